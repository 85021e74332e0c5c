"""Only the optional compiled core lives here; every setting is in setup.cfg."""

import importlib.util
import os
import sys

from setuptools import Extension, setup

# Sums keep the order in which they are written: no -ffast-math or part of it. Never -march=native: wheels run anywhere.
FLAGS = ["/O2"] if os.name == "nt" else ["-O3", "-fno-math-errno"]
# Kernel rows of the margin distribution machine may be summed in any order, which lets them use wide registers.
ANY_ORDER = [] if os.name == "nt" else ["-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"]
# The loops over tags come in several widths of register, which must not differ by a bit: no multiply-and-add in one.
LANES = [] if os.name == "nt" else ["-ffp-contract=off"]
HEADERS = ["pa_river/_arena.h", "pa_river/_arena.pxd", "pa_river/_native.pxd", "pa_river/_rows.h"]
CHAINS = ["pa_river/_chain.h", "pa_river/_chain.pxd", "pa_river/_coder.pxd", "pa_river/_lattice.pxd"]
#: Every compiled module: name, sources, what it includes, flags.
MODULES = [
    ("pa_river._arena", ["pa_river/_arena.pyx"], HEADERS, FLAGS),
    ("pa_river._batch", ["pa_river/_batch.pyx"], HEADERS, FLAGS),
    ("pa_river._lattice", ["pa_river/_lattice.pyx"], CHAINS, FLAGS + LANES),
    ("pa_river._chain", ["pa_river/_chain.pyx"], CHAINS, FLAGS + LANES),
    ("pa_river._coder", ["pa_river/_coder.pyx"], ["pa_river/_coder.pxd"], FLAGS),
    ("pa_river._codec", ["pa_river/_codec.pyx"], HEADERS, FLAGS),
    ("pa_river._tagger", ["pa_river/_tagger.pyx"], CHAINS, FLAGS),
    ("pa_river._native", ["pa_river/_native.pyx"], HEADERS, FLAGS),
]
if importlib.util.find_spec("scipy") is not None:  # its declarations of BLAS are needed to translate
    MODULES.append(("pa_river.odm._native", ["pa_river/odm/_native.pyx"], [], FLAGS + ANY_ORDER))
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
