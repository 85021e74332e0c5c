"""Only the optional compiled core lives here; every setting is in setup.cfg."""

from setuptools import setup

setup()
