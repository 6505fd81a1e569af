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
sys.path.insert(0, str(SOURCES))

from penstock.core.compiling import GLIBC_OF_WHEELS, compiler_for_wheels, has_compiler  # noqa: E402
from penstock.core.library import CORE  # noqa: E402
from penstock.kernels.cpu.calls import CALLS  # noqa: E402
from penstock.kernels.cpu.libraries import folder_of_levels  # noqa: E402
from penstock.kernels.cuda import binaries  # noqa: E402
from penstock.serving.shim import SHIM  # noqa: E402

# As `make wheels` does it: with all libraries, for the architecture that this names (x86_64, aarch64), and for every Python.
ARCHITECTURE = os.environ.get("PENSTOCK_COMPILED", "")
# Every pipeline needs the core, and calls kernels. Without a compiler here, these are compiled where they are first used.
NEEDED = [CORE, CALLS]
LIBRARIES = [*NEEDED, SHIM] if ARCHITECTURE else NEEDED if has_compiler() else []
# For all levels of processors, and for all GPUs, as `python -m penstock.kernels.building --levels` and `--cuda` compile them.
KERNELS = folder_of_levels(Path(__file__).parent, ARCHITECTURE)
CUDA_KERNELS = Path(__file__).parent / binaries.FOLDER / binaries.NAME


class BuildWithStubs(build_py):
    """Stubs follow from the operators' declarations: a wheel carries them, an editable install gets them in its tree."""

    def run(self):
        super().run()
        from penstock.cli._stub_files import write_stubs

        write_stubs((SOURCES if self.editable_mode else Path(self.build_lib)) / "penstock")
        if not self.editable_mode:
            self.add_libraries(Path(self.build_lib) / "penstock" / "native")
            return
        for library in NEEDED if LIBRARIES else []:
            if not library.is_built():
                library.compile_to(library.folder_in_checkout())

    def add_libraries(self, folder):
        shutil.rmtree(folder, ignore_errors=True)  # what an earlier build has left
        for library in (*NEEDED, SHIM):
            if library in LIBRARIES:
                library.compile_to(folder, compiler_for_wheels(ARCHITECTURE) if ARCHITECTURE else ())
            else:
                shutil.copytree(SOURCES / library.folder, folder / library.folder)
        for kernels in KERNELS.glob("*/*.so") if ARCHITECTURE else ():
            (folder / "kernels" / kernels.parent.name).mkdir(parents=True)
            shutil.copy(kernels, folder / "kernels" / kernels.parent.name)
        if ARCHITECTURE and CUDA_KERNELS.is_file():
            (folder / "kernels").mkdir(exist_ok=True)
            shutil.copy(CUDA_KERNELS, folder / "kernels")


class WithLibrary(Distribution):
    """For machines like this one, if the libraries are in it."""

    def has_ext_modules(self):
        return bool(LIBRARIES)


class WheelForAnyPython(bdist_wheel):
    """The libraries ask for no certain version of Python."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        if ARCHITECTURE:
            return "py3", "none", f"manylinux_{GLIBC_OF_WHEELS.replace('.', '_')}_{ARCHITECTURE}"
        return ("py3", "none", platform) if LIBRARIES else (python, abi, platform)


setup(cmdclass={"build_py": BuildWithStubs, "bdist_wheel": WheelForAnyPython}, distclass=WithLibrary)
