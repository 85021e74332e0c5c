"""`python3 develop.py proof`: the large form of the crash test; its figures go to docs/proof/crashes.json."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import apache_beam

from tests.integration import crashes, rig, tools

_FIGURES = rig.ROOT / "docs" / "proof" / "crashes.json"


def main() -> int:
    """Run it; 1 if any event was lost, doubled or learned twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2013)
    parser.add_argument("--output", type=Path, default=_FIGURES)
    args = parser.parse_args()
    rig.reap_when_terminated()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job").mkdir()
        broker = rig.Broker(tools.kafka(), folder)
        try:
            figures = crashes.run(broker, tools.prism(), folder / "job", kills=args.kills, count=args.events,
                                  keys=args.keys, seed=args.seed)  # fmt: skip
        finally:
            broker.reap()
    figures = {"command": "python3 develop.py proof", "beam": apache_beam.__version__, **figures}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    return int(any(figures[name] for name in crashes.FAULTS))


if __name__ == "__main__":
    sys.exit(main())
