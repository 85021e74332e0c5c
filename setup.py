"""Only the optional compiled core lives here; every setting is in setup.cfg."""

import os
import sys

from setuptools import Extension, setup

modules = []
if os.environ.get("PA_PURE") != "1" and sys.implementation.name == "cpython":
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("Cython is missing: installing the pure-Python path only")
    else:
        flags = ["/O2"] if os.name == "nt" else [
            "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
        ]
        modules = cythonize(
            [Extension("pa_river.odm._native", ["pa_river/odm/_native.pyx"], extra_compile_args=flags)],
            build_dir="build/cython",
        )
        for module in modules:  # cythonize() drops Extension(optional=True): set it afterwards
            module.optional = os.environ.get("PA_REQUIRE_NATIVE") != "1"
setup(ext_modules=modules)
