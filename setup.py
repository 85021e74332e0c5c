"""Only the optional compiled core lives here; every setting is in setup.cfg."""

import importlib.util
import os
import sys
from pathlib import Path

from setuptools import Extension, setup

# Sums keep the order in which they are written: no -ffast-math or part of it. Never -march=native: wheels run anywhere.
FLAGS = ["/O2"] if os.name == "nt" else ["-O3", "-fno-math-errno"]
# Kernel rows of the margin distribution machine may be summed in any order, which lets them use wide registers.
ANY_ORDER = [] if os.name == "nt" else ["-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"]
# The loops over tags come in several widths of register, which must not differ by a bit: no multiply-and-add in one.
LANES = [] if os.name == "nt" else ["-ffp-contract=off"]
#: What any of them may include; a change in one translates them all anew.
HEADERS = sorted(str(path) for ending in ("h", "pxd") for path in Path("pa_river").glob(f"*.{ending}"))
CORE = sorted(path.stem for path in Path("pa_river").glob("*.pyx"))
#: Every compiled module: name, sources, what it includes, flags.
MODULES = [
    (f"pa_river.{name}", [f"pa_river/{name}.pyx"], HEADERS, FLAGS + (LANES if name in ("_chain", "_lattice") else []))
    for name in CORE
]
if importlib.util.find_spec("scipy") is not None:  # its declarations of BLAS are needed to translate
    ODM_HEADERS = sorted(str(path) for ending in ("h", "pxd") for path in Path("pa_river/odm").glob(f"*.{ending}"))
    MODULES += [
        (f"pa_river.odm.{path.stem}", [str(path)], ODM_HEADERS, FLAGS + ANY_ORDER)
        for path in sorted(Path("pa_river/odm").glob("*.pyx"))
    ]
REQUIRED = os.environ.get("PA_REQUIRE_NATIVE") == "1"


def extensions() -> list[Extension]:
    """Return the compiled modules, each optional, or none where there is no Cython."""
    if sys.implementation.name != "cpython":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if REQUIRED:
            raise
        print("Cython is missing: installing the reference only", file=sys.stderr)
        return []
    modules: list[Extension] = cythonize(
        [
            Extension(name, sources, depends=depends, include_dirs=["pa_river"], extra_compile_args=flags)
            for name, sources, depends, flags in MODULES
        ],
        build_dir="build/cython",
    )
    for module in modules:  # cythonize() drops Extension(optional=True): set it afterwards
        module.optional = not REQUIRED
    return modules


setup(ext_modules=extensions())
