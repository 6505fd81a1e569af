"""Compile the CUDA kernels listed in `kernels/signatures.txt` ahead of time with NVRTC, for each architecture.

NVRTC is a library that needs no GPU. It is part of the wheel ``nvidia-cuda-nvrtc-cu12``.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import json
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

from penstock.errors import PenstockError
from penstock.kernels.cuda import binaries
from penstock.kernels.cuda.binaries import Binary
from penstock.kernels.cuda.sources import OPTIONS, KernelSource
from penstock.kernels.recording import CudaKernel

_PACKAGE = "penstock"
# A GPU runs cubins for its major version and the same or an earlier minor version; GPUs of later major versions get PTX.
ARCHITECTURES = (binaries.OLDEST, "80", "90", "100", "120")
_TARGETS = (*ARCHITECTURES, binaries.PTX)


class NvrtcError(PenstockError):
    """NVRTC is missing, or cannot compile a kernel."""


def build_cuda(kernels: Iterable[CudaKernel], archive: Path, threads: int = 2) -> int:
    """Compile the kernels that are missing in an archive, and remove those that are not in ``kernels``.

    Args:
        kernels: the kernels that the archive should contain.
        archive: the path of the archive.
        threads: the number of threads that compile at the same time; NVRTC does not hold the GIL.

    Returns:
        The number of kernels compiled.

    Raises:
        NvrtcError: NVRTC is not installed, or a kernel cannot be compiled.
    """
    wanted = {_digest(kernel): kernel for kernel in sorted(set(kernels))}
    compiled = _compiled(archive)
    missing = [digest for digest in wanted if digest not in compiled]
    if not missing and len(compiled) == len(wanted):
        return 0
    jobs = [(digest, architecture) for digest in missing for architecture in _TARGETS]
    with ThreadPoolExecutor(threads) as pool:
        for (digest, architecture), binary in zip(jobs, pool.map(lambda job: _compile(wanted[job[0]], job[1]), jobs)):
            compiled.setdefault(digest, {})[architecture] = binary
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(binaries.INDEX, json.dumps({digest: compiled[digest][binaries.PTX].name for digest in wanted}))
        for digest in wanted:
            for architecture, binary in compiled[digest].items():
                file.writestr(binaries.entry_of(digest, architecture), binary.module)
    partial.replace(archive)
    return len(missing)


def _compiled(archive: Path) -> dict[str, dict[str, Binary]]:
    """Return the kernels that an archive contains for all architectures, by digest and architecture."""
    if not archive.is_file():
        return {}
    with zipfile.ZipFile(archive) as file:
        names, entries = json.loads(file.read(binaries.INDEX)), set(file.namelist())
        return {
            digest: {each: Binary(name, file.read(binaries.entry_of(digest, each))) for each in _TARGETS}
            for digest, name in names.items()
            if entries.issuperset(binaries.entry_of(digest, each) for each in _TARGETS)
        }


def _digest(kernel: CudaKernel) -> str:
    return binaries.digest_of(_text(kernel), kernel.instance, OPTIONS)


@functools.cache
def _text(kernel: CudaKernel) -> str:
    """Return the complete source of a kernel."""
    module = ".".join((_PACKAGE, *Path(kernel.source).with_suffix("").parts))
    source: KernelSource = importlib.import_module(module).SOURCE
    return source.text(kernel.preamble)


def _compile(kernel: CudaKernel, architecture: str) -> Binary:
    """Compile a kernel for an architecture."""
    nvrtc, program = _nvrtc(), c_void_p()
    text, instance = _text(kernel).encode(), kernel.instance.encode()
    _check(nvrtc.nvrtcCreateProgram(byref(program), text, kernel.source.encode(), 0, None, None))
    try:
        _check(nvrtc.nvrtcAddNameExpression(program, instance))
        is_ptx = architecture == binaries.PTX
        target = f"compute_{binaries.OLDEST}" if is_ptx else f"sm_{architecture}"
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={target}")]
        status = nvrtc.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options))
        if status:
            log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise NvrtcError(f"{kernel.instance} of {kernel.source}, for {target}:\n{log.decode().strip()[-2000:]}")
        name = c_char_p()
        _check(nvrtc.nvrtcGetLoweredName(program, instance, byref(name)))
        get_size, get = (
            (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if is_ptx else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        )
        return Binary((name.value or b"").decode(), _read(get_size, get, program))
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))


def _read(get_size: Callable[..., int], get: Callable[..., int], program: c_void_p) -> bytes:
    size = c_size_t()
    _check(get_size(program, byref(size)))
    data = ctypes.create_string_buffer(size.value)
    _check(get(program, data))
    return data.raw


def _check(status: int) -> None:
    if status:
        raise NvrtcError(f"NVRTC failed: {_nvrtc().nvrtcGetErrorString(status).decode()}")


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    """Return NVRTC's library.

    Raises:
        NvrtcError: NVRTC is not installed.
    """
    found = importlib.util.find_spec("nvidia.cuda_nvrtc") if importlib.util.find_spec("nvidia") else None
    folders = [Path(folder) / "lib" for folder in (found.submodule_search_locations or [] if found else [])]
    path = next((path for folder in folders for path in sorted(folder.glob("libnvrtc.so.*"))), None)
    if path is None:
        raise NvrtcError("CUDA kernels are compiled by NVRTC: `pip install nvidia-cuda-nvrtc-cu12`")
    library = ctypes.CDLL(str(path))
    library.nvrtcCreateProgram.argtypes = (POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p)
    library.nvrtcDestroyProgram.argtypes = (POINTER(c_void_p),)
    library.nvrtcAddNameExpression.argtypes = (c_void_p, c_char_p)
    library.nvrtcCompileProgram.argtypes = (c_void_p, c_int, POINTER(c_char_p))
    library.nvrtcGetLoweredName.argtypes = (c_void_p, c_char_p, POINTER(c_char_p))
    for name in ("ProgramLog", "PTX", "CUBIN"):
        getattr(library, f"nvrtcGet{name}Size").argtypes = (c_void_p, POINTER(c_size_t))
        getattr(library, f"nvrtcGet{name}").argtypes = (c_void_p, c_char_p)
    library.nvrtcGetErrorString.restype = c_char_p
    return library
