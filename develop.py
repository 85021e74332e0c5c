"""The project's commands, with nothing but Python: each makes or refreshes the environment it needs, then runs.

    python3 develop.py run [ARGUMENTS]    the main job (arguments go to beam_pipelines.run)
    python3 develop.py test               lint, types, and every test but the slow ones, with a floor of coverage
    python3 develop.py integration        the tests on a real runner and broker (Go, a JDK and Maven must be there)
    python3 develop.py slow               the tests that take minutes and need no runner
    python3 develop.py proof              20 kills under 400,000 events; writes docs/proof/crashes.json
    python3 develop.py reference          the properties on the reference, as where there is no compiler
    python3 develop.py wheel              builds a wheel, and installs it, and the source, where no compiler works
    python3 develop.py sanitize           a fuzz of the compiled core under AddressSanitizer (needs gcc)
    python3 develop.py lint | types | unit
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SETTINGS = ("setup.cfg", "setup.py", "pyproject.toml")
CODE = ("pa_river", "beam_pipelines", "evaluation", "benchmarks", "tests", "setup.py", "develop.py")
COVERAGE = 85


def main(arguments: list[str]) -> int:
    """Run one command; 2 for an unknown one."""
    if sys.version_info < (3, 11):
        print(f"develop.py: Python 3.11 or newer is needed, this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    name, *rest = arguments or ["help"]
    if name not in COMMANDS:
        print(__doc__, file=sys.stderr if name != "help" else sys.stdout)
        return 0 if name in ("help", "-h", "--help") else 2
    return COMMANDS[name](rest)


def environment(extra: str) -> Path:
    """Return the Python of an environment that holds the project and `extra`; made or refreshed where need be."""
    folder = ROOT / f".venv-{extra}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    compiled = sorted(path for ending in ("pyx", "pxd", "h") for path in ROOT.glob(f"pa_river/**/*.{ending}"))
    settings = b"".join(path.read_bytes() for path in [*(ROOT / name for name in SETTINGS), *compiled])
    stamp, wanted = folder / "installed", hashlib.sha256(settings).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"develop.py: making {folder.name} (once; some minutes on a slow line)", flush=True)
    if subprocess.run([sys.executable, "-m", "venv", str(folder)]).returncode:
        raise SystemExit("develop.py: `python3 -m venv` failed; on Debian and Ubuntu it is the package python3-venv")
    if subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", f".[{extra}]"], cwd=ROOT
    ).returncode:
        raise SystemExit("develop.py: the packages could not be installed; pip's own words stand above")
    stamp.write_text(wanted)
    return python


def python(extra: str, *arguments: str) -> int:
    """Run the environment's Python in the project's folder; interrupted, wait for it to tidy up."""
    process = subprocess.Popen([environment(extra), *arguments], cwd=ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the terminal, or `timeout`, has sent it to the child too
            continue


def run(rest: list[str]) -> int:
    """The main job by default, into ./out."""
    return python("run", "-m", "beam_pipelines.run", *rest)


def lint(rest: list[str]) -> int:
    return python("test", "-m", "flake8", *CODE)


def types(rest: list[str]) -> int:
    return python("test", "-m", "mypy")


def unit(rest: list[str]) -> int:
    return python("test", "-m", "pytest", "-n", "auto", "-m", "not slow", "--cov", "--cov-report=term:skip-covered",
                  f"--cov-fail-under={COVERAGE}", *rest)


def integration(rest: list[str]) -> int:
    """Bring Prism and the broker first, so that what is missing is said in one line."""
    return python("test", "-m", "tests.integration.tools") or python(
        "test", "-m", "pytest", "tests/integration", "-m", "slow", "--durations=0", "--durations-min=1", *rest)


def slow(rest: list[str]) -> int:
    return python("test", "-m", "pytest", "-m", "slow", "--ignore", "tests/integration", *rest)


def proof(rest: list[str]) -> int:
    return python("test", "-m", "tests.integration.proof", *rest)


#: What a build needs; copied to a folder of its own, since setuptools takes objects of other flags for its own.
SOURCES = ("pa_river", "beam_pipelines", *SETTINGS, "MANIFEST.in", "README.md", "LICENSE")


def sources(folder: Path) -> Path:
    """Copy what a build needs into a new folder, without anything that was built before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def sanitize(rest: list[str]) -> int:
    """Build the compiled core apart, with AddressSanitizer and UBSan, and fuzz it there for a minute."""
    interpreter, build = environment("test"), ROOT / "build" / "asan"
    source = sources(ROOT / "build" / "asan-source")
    libraries = [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
                 for name in ("libasan.so", "libstdc++.so")]
    flags = {"CFLAGS": "-fsanitize=address,undefined -fno-omit-frame-pointer -g -O1", "PA_REQUIRE_NATIVE": "1"}
    shutil.rmtree(build, ignore_errors=True)
    built = subprocess.run(
        [interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(build), "."],
        cwd=source, env={**os.environ, **flags},
    ).returncode
    checked = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc",
               "PA_RIVER_NATIVE": "1", "PYTHONPATH": str(build)}
    fuzz = [interpreter, str(ROOT / "tests" / "fuzz_core.py"), "--seconds", "60", *rest]
    return built or subprocess.run(fuzz, cwd=build, env={**os.environ, **checked}).returncode


def reference(rest: list[str]) -> int:
    """The properties on the reference: what the compiled core is tied to must hold by itself."""
    os.environ["PA_RIVER_NATIVE"] = "0"
    return python("test", "-m", "pytest", "-n", "auto", "-m", "not slow", "tests/properties", *rest)


#: What an installed package must do on either core, in an environment that has nothing but it; {native} is filled in.
SMOKE = """
import pa_river
assert pa_river.NATIVE is {native}, pa_river.NATIVE
for model, y in ((pa_river.PAClassifier(), True), (pa_river.PAMulticlass(), "b"), (pa_river.ScaledPA(), False),
                 (pa_river.PARegressor(), 2.0), (pa_river.AROWClassifier(), True), (pa_river.SCWMulticlass(), "b")):
    model.learn_one({{"a": 1.0, 5: 2.0}}, y)
    model.learn_many([[1.0, 2.0], [3.0, 4.0]], [y, y])
    twin = pa_river.loads(pa_river.dumps(model))
    assert twin.predict_one({{"a": 1.0}}) == model.predict_one({{"a": 1.0}})
print("works, compiled:", pa_river.NATIVE)
"""


def wheel(rest: list[str]) -> int:
    """Build a wheel, its core required; install it where no compiler works; then the source, which falls back there."""
    interpreter, folder = environment("test"), ROOT / "build" / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    built = subprocess.run(
        [interpreter, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), "."],
        cwd=sources(folder / "source-of-the-wheel"), env={**os.environ, "PA_REQUIRE_NATIVE": "1"},
    ).returncode
    if built:
        return built
    (package,) = folder.glob("pa_river-*.whl")
    without = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false", "PA_REQUIRE_NATIVE": "0"}
    plain = sources(folder / "source")
    for number, (what, native) in enumerate(((str(package), True), (str(plain), False))):
        place = folder / f"environment-{number}"
        if subprocess.run([sys.executable, "-m", "venv", str(place)]).returncode:
            return 1
        own = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        for command in (["-m", "pip", "install", "--quiet", "--disable-pip-version-check", what],
                        ["-c", SMOKE.format(native=native)]):
            if code := subprocess.run([own, *command], cwd=folder, env=without).returncode:
                print(f"develop.py: {what} does not install or work without a compiler", file=sys.stderr)
                return code
    return 0


def test(rest: list[str]) -> int:
    """Every check in turn; the first that fails ends it."""
    return lint([]) or types([]) or unit(rest)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run, "test": test, "lint": lint, "types": types, "unit": unit, "integration": integration, "slow": slow,
    "proof": proof, "sanitize": sanitize, "reference": reference, "wheel": wheel,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
