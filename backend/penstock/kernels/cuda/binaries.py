"""CUDA kernels that :mod:`penstock.kernels.building.cuda` compiled when the package was built: cubins for each architecture.

They are in one archive, in the package's ``native/kernels`` or a checkout's ``build/kernels``. Each is stored under a digest of
everything that it is compiled from, so a kernel whose source has changed is not found. CuPy compiles missing kernels at run time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import zipfile
from pathlib import Path
from typing import NamedTuple

from penstock.core.compiling import checkout
from penstock.tensors.cuda import require_cupy

logger = logging.getLogger(__name__)

NAME = "cuda_kernels.zip"
FOLDER = Path("build", "kernels")
"""The archive's folder in a checkout."""
INDEX = "index.json"
"""The archive's first file: it maps digests to the names of kernels in their cubins."""
OLDEST = "75"
"""The oldest architecture that kernels are compiled for: Turing."""
PTX = "ptx"
"""Used in place of an architecture: PTX for :data:`OLDEST`, which the driver compiles for GPUs that are newer than this package."""
# CUfunction_attribute of the driver API.
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class Binary(NamedTuple):
    """A compiled kernel.

    Attributes:
        name: the kernel's name in the module.
        module: a cubin, or PTX.
    """

    name: str
    module: bytes


class BinaryKernel:
    """A kernel of a module that was compiled earlier, loaded on the current device; called like a CuPy kernel.

    Args:
        binary: the kernel.

    Attributes:
        kernel: the driver's function.
    """

    def __init__(self, binary: Binary) -> None:
        cupy = require_cupy("a CUDA kernel")
        self._driver = cupy.cuda.driver
        self._module = cupy.cuda.function.Module()
        self._module.load(binary.module)
        self.kernel = self._module.get_function(binary.name)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The limit of dynamic shared memory in a launch, in bytes."""
        return int(self._driver.funcGetAttribute(_MAX_DYNAMIC_SHARED_SIZE_BYTES, self.kernel.ptr))

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._driver.funcSetAttribute(self.kernel.ptr, _MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[object, ...], *, shared_mem: int = 0
    ) -> None:
        """Launch the kernel on the current stream."""
        self.kernel(grid, block, args, shared_mem)


def digest_of(text: str, instance: str, options: tuple[str, ...]) -> str:
    """Return the digest under which a kernel is stored in the archive.

    Args:
        text: the complete source.
        instance: the kernel's name with its template arguments.
        options: the compiler's options.
    """
    return hashlib.sha256(repr((text, instance, options)).encode()).hexdigest()[:24]


def entry_of(digest: str, architecture: str) -> str:
    """Return the name of a module in the archive.

    Args:
        digest: the kernel's digest.
        architecture: for example ``90``, or :data:`PTX`.
    """
    return f"{digest}.{architecture}"


def find(digest: str, capability: str) -> Binary | None:
    """Return a kernel if it was compiled when the package was built, otherwise None.

    Args:
        digest: the kernel's digest.
        capability: the device's compute capability, such as ``"90"``. A device runs cubins of its major version and the same or an earlier
            minor version.
    """
    archive = _archive()
    if archive is None or digest not in archive.names or int(capability) < int(OLDEST):
        return None
    wanted = [f"{capability[:-1]}{minor}" for minor in range(int(capability[-1]), -1, -1)]
    for architecture in (*wanted, PTX):
        try:
            return Binary(archive.names[digest], archive.file.read(entry_of(digest, architecture)))
        except KeyError:
            continue
    return None


class _Archive(NamedTuple):
    file: zipfile.ZipFile
    names: dict[str, str]


@functools.cache
def _archive() -> _Archive | None:
    root = checkout()
    places = [Path(__file__).parents[2] / "native" / "kernels", *([] if root is None else [root / FOLDER])]
    path = next((place / NAME for place in places if (place / NAME).is_file()), None)
    if path is None:
        return None
    try:
        file = zipfile.ZipFile(path)
        return _Archive(file, json.loads(file.read(INDEX)))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        logger.warning("'%s' is damaged, and CUDA kernels are compiled where they are used: %s", path, error)
        return None
