"""Writes the type stubs of `fn` and `ops` when the package is built, and adds the backend's library or its sources.

Everything else is in pyproject.toml.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "backend"
# As `make wheel` does it. The library is for one kind of machine, and for every Python.
COMPILED = bool(os.environ.get("PENSTOCK_COMPILED"))


class BuildWithStubs(build_py):
    """Stubs follow from the operators' declarations: a wheel carries them, an editable install gets them in its tree."""

    def run(self):
        super().run()
        sys.path.insert(0, str(SOURCES))
        from penstock.cli._stub_files import write_stubs

        write_stubs((SOURCES if self.editable_mode else Path(self.build_lib)) / "penstock")
        if not self.editable_mode:
            self.add_backend_library(Path(self.build_lib) / "penstock" / "native")

    def add_backend_library(self, folder):
        from penstock.serving.shim import compile_to

        shutil.rmtree(folder, ignore_errors=True)  # what an earlier build has left
        if COMPILED:
            compile_to(folder)
        else:
            # `penstock setup` compiles them where it is installed.
            shutil.copytree(SOURCES / "native", folder)


class WithLibrary(Distribution):
    """For machines like this one, if the library is in it."""

    def has_ext_modules(self):
        return COMPILED


class WheelForAnyPython(bdist_wheel):
    """The library asks for no certain version of Python."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if COMPILED else (python, abi, platform)


setup(cmdclass={"build_py": BuildWithStubs, "bdist_wheel": WheelForAnyPython}, distclass=WithLibrary)
