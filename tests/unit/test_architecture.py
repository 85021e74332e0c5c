"""The walls: imports point down, modules stay small, pa_river knows no engine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pa_river", "beam_pipelines")

#: From the ground up. A module imports from its own floor only what is written before it, and never from above.
FLOORS = [
    ["terms", "_version"],
    ["_row"],
    ["_pack"],
    ["_river_state"],
    ["state"],
    ["features", "_loops", "_proba"],
    ["_validate"],
    ["labels", "kernels", "tokens"],
    ["_block", "budget", "batch"],
    ["_gram"],
    ["rows", "support"],
    ["centers", "confidence"],
    ["steps", "stores", "decode"],
    ["spread"],
    ["_compiled", "chain"],
    ["learner", "merging", "sentences"],
    ["prototypes"],
    ["binary", "regression", "uniclass", "multiclass", "multilabel", "cost_sensitive", "baselines", "metrics", "odm"],
    ["joint", "scaled", "second_order", "comparators", "sequence", "averaged"],
    ["certified"],
    ["stream"],
]


def modules(package: str) -> list[Path]:
    return sorted(path for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def floor(name: str) -> int | None:
    """The floor of a dotted module of pa_river; None for the package itself and for names inside modules."""
    parts = name.split(".")
    if parts[0] != "pa_river" or len(parts) < 2:
        return None
    return next((number for number, names in enumerate(FLOORS) if parts[1] in names), None)


def test_every_module_of_the_package_has_a_floor():
    heads = {path.relative_to(ROOT / "pa_river").parts[0].removesuffix(".py") for path in modules("pa_river")}
    placed = {name for names in FLOORS for name in names}
    assert heads - {"__init__"} == placed & heads
    assert not heads - {"__init__"} - placed


@pytest.mark.parametrize("path", modules("pa_river"), ids=lambda path: path.stem)
def test_imports_point_down(path):
    own = floor("pa_river." + ".".join(path.relative_to(ROOT / "pa_river").with_suffix("").parts))
    if own is None:  # the package's front door may see everything
        assert path.name == "__init__.py"
        return
    same = path.relative_to(ROOT / "pa_river").parts[0].removesuffix(".py")
    above = {name for name in imported(path)
             if (other := floor(name)) is not None and other >= own and name.split(".")[1] != same}
    assert not above, f"{path.name} looks up at {sorted(above)}"


@pytest.mark.parametrize("path", modules("pa_river"), ids=lambda path: path.stem)
def test_the_learners_know_no_engine(path):
    heads = {name.split(".")[0] for name in imported(path)}
    assert not heads & {"apache_beam", "beam_pipelines", "pyflink", "confluent_kafka", "tests"}


@pytest.mark.parametrize("path", [path for package in PACKAGES for path in modules(package)],
                         ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_module_is_one_idea_and_opens_with_a_sentence(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), f"{path} does not say what it is for"
    assert "pickle" not in {name.split(".")[0] for name in imported(path)}


def test_only_tests_import_the_pipelines():
    for package in ("pa_river", "evaluation", "benchmarks"):
        for path in modules(package):
            if package == "pa_river":
                assert not any(name.startswith("beam_pipelines") for name in imported(path)), path
