"""Bring what the integration tests run: Prism at Beam's version, a Kafka 4 broker. `python -m tests.integration.tools`.

Prism is built by `go install` from the Go module proxy, the broker's jars come from Maven Central; both are kept in the
user's cache. Needs Go, Maven and Java 17 or newer on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apache_beam

_POM = Path(__file__).with_name("kafka.xml")
_TIMEOUT = 900  # seconds: a cold build of Prism takes two minutes on a quiet machine
_JAVA = 17  # what Kafka 4 needs


def cache() -> Path:
    """The folder that both are kept in."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pa_river-integration"


def prism() -> Path:
    """The Prism binary of the installed Beam's version, built if it is not there."""
    version = apache_beam.__version__
    folder = cache() / f"prism-{version}"
    if not (folder / "prism").exists():
        with _beside(folder) as building:
            package = f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{version}"
            _run(["go", "install", package], env={**os.environ, "GOBIN": str(building)})
    return folder / "prism"


def kafka() -> Path:
    """The folder of the broker's jars, downloaded if they are not there."""
    folder = cache() / "kafka-4.1.1"
    if not folder.exists():
        with _beside(folder) as building:
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={building}"]
            with tempfile.TemporaryDirectory() as project:  # Maven writes beside the pom
                shutil.copy(_POM, Path(project) / "pom.xml")
                _run(["mvn", "-q", "-B", *goal], cwd=project)
    return folder


class _beside:
    """A folder to build in, renamed when all is there: an interrupted download is not taken for a whole one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._building = Path(tempfile.mkdtemp(dir=self._folder.parent))
        return self._building

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None and not self._folder.exists():
            self._building.rename(self._folder)
        shutil.rmtree(self._building, ignore_errors=True)


def require() -> None:
    """`RuntimeError` that names what the machine lacks."""
    missing = [program for program in ("go", "java", "mvn") if shutil.which(program) is None]
    if missing:
        raise RuntimeError(f"the integration tests need {', '.join(missing)} on the PATH")
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        raise RuntimeError(f"the integration tests need Java {_JAVA} or newer, here is: {said.strip()[:80]!r}")


def _run(command: list[str], **given: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, **given)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def main() -> int:
    """Bring both, and say where they are."""
    try:
        require()
        for bring in (prism, kafka):
            begun = time.perf_counter()
            print(f"{bring.__name__}: {bring()} ({time.perf_counter() - begun:.0f} s)", flush=True)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"tests.integration.tools: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
