"""Only the optional compiled core lives here; every setting is in setup.cfg."""

import os
import sys

from setuptools import Extension, setup

# Exact arithmetic: sums keep the order of the reference. Never -march=native: wheels must run anywhere.
EXACT = ["/O2"] if os.name == "nt" else ["-O3", "-fno-math-errno"]
# Loops over whole batches may add in any order, which lets the compiler use wide registers. Not -ffast-math: it
# would let the compiler assume that NaN and inf never come, and every check for them would vanish.
VECTOR = ["/O2", "/fp:fast"] if os.name == "nt" else [
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
]
HEADERS = ["pa_river/_arena.h", "pa_river/_arena.pxd", "pa_river/_rows.h"]
#: Every compiled module: name, sources, what it includes, flags.
MODULES = [
    ("pa_river._arena", ["pa_river/_arena.pyx"], HEADERS, EXACT),
    ("pa_river._batch", ["pa_river/_batch.pyx"], HEADERS, VECTOR),
    ("pa_river._native", ["pa_river/_native.pyx"], HEADERS, EXACT),
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
