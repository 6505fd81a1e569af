"""Writes the type stubs of `fn` and `ops` when the package is built, and adds the libraries in C++ or their sources.

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
# As `make wheel` does it. The libraries are for one kind of machine, and for every Python.
COMPILED = bool(os.environ.get("PENSTOCK_COMPILED"))


class BuildWithStubs(build_py):
    """Stubs follow from the operators' declarations: a wheel carries them, an editable install gets them in its tree."""

    def run(self):
        super().run()
        sys.path.insert(0, str(SOURCES))
        from penstock.cli._stub_files import write_stubs

        write_stubs((SOURCES if self.editable_mode else Path(self.build_lib)) / "penstock")
        if self.editable_mode:
            self.compile_core()
        else:
            self.add_libraries(Path(self.build_lib) / "penstock" / "native")

    def compile_core(self):
        from penstock.core.compiling import has_compiler
        from penstock.core.library import CORE

        # Without a compiler, the first pipeline says what is missing.
        if has_compiler() and not CORE.is_built():
            CORE.compile_to(CORE.folder_in_checkout())

    def add_libraries(self, folder):
        from penstock.core.library import CORE
        from penstock.serving.shim import SHIM

        shutil.rmtree(folder, ignore_errors=True)  # what an earlier build has left
        for library in (CORE, SHIM):
            if COMPILED:
                library.compile_to(folder)
            else:
                # They are compiled where they are installed, when they are first needed.
                shutil.copytree(SOURCES / library.folder, folder / library.folder)


class WithLibrary(Distribution):
    """For machines like this one, if the libraries are in it."""

    def has_ext_modules(self):
        return COMPILED


class WheelForAnyPython(bdist_wheel):
    """The libraries ask for no certain version of Python."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if COMPILED else (python, abi, platform)


setup(cmdclass={"build_py": BuildWithStubs, "bdist_wheel": WheelForAnyPython}, distclass=WithLibrary)
