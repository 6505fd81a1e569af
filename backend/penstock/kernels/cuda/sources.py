"""Kernel sources: a `.cu` file, preceded by the structs and constants that it shares with Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

import numpy as np

from penstock.core.once import Once
from penstock.kernels import recording
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda import binaries
from penstock.kernels.cuda.structs import Struct, cuda_type, declarations
from penstock.tensors.cuda import require_cupy

_FOLDER = Path(__file__).parent
_PACKAGE = Path(__file__).parents[2]
# Contraction is off and kernels call fmaf explicitly, so that fused and separate operators give the same bits. CuPy passes the last option
# by default, too.
OPTIONS = ("-std=c++17", "--fmad=false", "-ftz=true")
# Threads per block.
THREADS = 256
# Constants that all kernels see.
_COMMON: dict[str, int] = {"THREADS": THREADS, **{f"BORDER_{name.upper()}": i for i, name in enumerate(BORDERS)}}


class Function(Protocol):
    """A kernel's function as the driver sees it."""

    @property
    def ptr(self) -> int:
        """The function's handle."""


class Kernel(Protocol):
    """A CuPy kernel for one device."""

    max_dynamic_shared_size_bytes: int

    @property
    def kernel(self) -> Function:
        """The driver's function to launch."""

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[object, ...], *, shared_mem: int = ...
    ) -> None: ...


class KernelSource:
    """A `.cu` file in the folder of a Python module, with the same name.

    Args:
        module: the module's ``__file__``.
        structs: the structs that the kernels read.
        constants: further constants that the file uses; Python integers become int, and NumPy scalars keep their types.
    """

    def __init__(self, module: str, *structs: Struct, **constants: int | np.generic) -> None:
        self.path = Path(module).with_suffix(".cu")
        self.structs = structs
        self._constants = constants

    def kernel(self, instance: str, preamble: str = "") -> Kernel:
        """Return the kernel ``instance`` (such as ``window<uint8, float>``), compiled for the current device.

        Args:
            preamble: source code to insert before the file, such as generated functions.
        """
        return _kernel_on(require_cupy("a CUDA kernel").cuda.runtime.getDevice(), self, instance, preamble)

    def text(self, preamble: str = "") -> str:
        """Return the complete source, with includes expanded."""
        own = re.sub(r'#include "(\w+\.cuh)"', lambda found: (_FOLDER / found[1]).read_text(), self.path.read_text())
        return "".join(
            [
                _constants(_COMMON),
                (_FOLDER / "common.cuh").read_text(),
                preamble,
                _constants(self._constants),
                declarations(self.structs),
                own,
            ]
        )


@Once
def _kernel_on(_device: int, source: KernelSource, instance: str, preamble: str) -> Kernel:
    if source.path.is_relative_to(_PACKAGE):  # sources outside the package are not precompiled
        recording.record_cuda(source.path.relative_to(_PACKAGE), instance, preamble)
    cupy, text = require_cupy(), source.text(preamble)
    binary = binaries.find(binaries.digest_of(text, instance, OPTIONS), cupy.cuda.Device().compute_capability)
    if binary is not None:
        return binaries.BinaryKernel(binary)
    module = cupy.RawModule(code=text, options=OPTIONS, name_expressions=(instance,))
    kernel: Kernel = module.get_function(instance)
    return kernel


def _constants(constants: dict[str, int] | dict[str, int | np.generic]) -> str:
    return "".join(
        f"const {'int' if isinstance(value, int) else cuda_type(value.dtype)} {name} = {value};\n"
        for name, value in constants.items()
    )
