"""The module ``nvidia.dali.backend``: tensors, batches and types, and queries about operators and devices."""

from __future__ import annotations

import ctypes
import struct
import warnings
from importlib import metadata

from penstock import dynamic, ops, tfrecord, types
from penstock.compat.dali import __cuda_version__  # noqa: F401
from penstock.compat.memory import (
    GetDeviceBufferGrowthFactor,
    GetHostBufferGrowthFactor,
    GetHostBufferShrinkThreshold,
    PreallocateDeviceMemory,
    PreallocatePinnedMemory,
    ReleaseUnusedMemory,
    RestrictPinnedMemUsage,
    SetBufferGrowthFactor,
    SetDeviceBufferGrowthFactor,
    SetHostBufferGrowthFactor,
    SetHostBufferShrinkThreshold,
)
from penstock.compat.plugin_manager import load_directory as LoadDirectory
from penstock.compat.plugin_manager import load_library as LoadLibrary
from penstock.compat.shared_memory import SharedMem
from penstock.core.codecs import codec_version
from penstock.kernels.codecs.nvimgcodec.library import library
from penstock.schema.op_schema import GetSchema, GetSchemaAndTarget, OpSchema, OpSpec, TryGetSchema
from penstock.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, cuda
from penstock.tensors.tensor import DLDeviceType

__all__ = [
    "CUDAStreamSynchronize",
    "CheckDLPackCapsule",
    "DLDeviceType",
    "GetCUDACurrentDevice",
    "GetCUDADeviceCount",
    "GetCudaVersion",
    "GetCufftVersion",
    "GetCxx11AbiFlag",
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "GetNppVersion",
    "GetNvimgcodecVersion",
    "GetNvjpegVersion",
    "GetOpenCVVersion",
    "GetSchema",
    "GetSchemaAndTarget",
    "IsDriverInitialized",
    "LoadDefaultPlugins",
    "LoadDirectory",
    "LoadLibrary",
    "OpSchema",
    "OpSpec",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "RegisteredCPUOps",
    "RegisteredGPUOps",
    "RegisteredMixedOps",
    "ReleaseUnusedMemory",
    "RestrictPinnedMemUsage",
    "SetBufferGrowthFactor",
    "SetCUDACurrentDevice",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "SharedMem",
    "Stream",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "TryGetSchema",
    "check_cuda_runtime",
    "cuda_checked",
    "deprecation_warning",
    "initialized",
    "tfrecord",
    "types",
]


class Stream(dynamic.Stream):
    """A new CUDA stream of a GPU, by default of the current GPU."""

    def __init__(self, device_id: int | None = None) -> None:
        super().__init__(device_id=device_id)


def LoadDefaultPlugins() -> None:
    """Do nothing: all operators are loaded already, and there are no default plugins."""


def RegisteredCPUOps() -> list[str]:
    """Return the names of operators that run on the CPU."""
    return sorted(ops.cpu_ops())


def RegisteredGPUOps() -> list[str]:
    """Return the names of operators that run on the GPU."""
    return sorted(ops.gpu_ops())


def RegisteredMixedOps() -> list[str]:
    """Return the names of operators that take data on the CPU and return it on the GPU."""
    return sorted(ops.mixed_ops())


def GetCUDADeviceCount() -> int:
    """Return the number of GPUs."""
    return cuda.device_count()


def IsDriverInitialized() -> bool:
    """Return whether there is a usable GPU."""
    return cuda.device_count() > 0


def GetCudaVersion() -> int:
    """Return the version of the CUDA runtime, such as 12020 for 12.2; 0 if there is none."""
    return int(cuda.require_cupy("this").cuda.runtime.runtimeGetVersion()) if cuda.device_count() else 0


def GetNvjpegVersion() -> int:
    """Return -1: nvJPEG is only used through nvImageCodec."""
    return -1


def GetNvimgcodecVersion() -> int:
    """Return the version of nvImageCodec, such as 900 for 0.9.0; -1 if it is not installed."""
    found = library()
    return -1 if found is None else codec_version(found)


def GetNppVersion() -> int:
    """Return -1: NPP is not used."""
    return -1


def GetCufftVersion() -> int:
    """Return -1: cuFFT is not used."""
    return -1


def GetOpenCVVersion() -> str:
    """Return the version of OpenCV; an empty string if it is not installed."""
    try:
        return metadata.version("opencv-python-headless")
    except metadata.PackageNotFoundError:
        return ""


def CheckDLPackCapsule(obj: object) -> tuple[bool, bool]:
    """Return whether an object is a DLPack capsule, and whether its memory is on a GPU.

    Raises:
        RuntimeError: the capsule does not contain a DLPack tensor, or was consumed already.
    """
    if type(obj).__name__ != "PyCapsule":
        return False, False
    is_valid, pointer_of = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer_of.restype = ctypes.c_void_p
    if not is_valid(obj, b"dltensor"):
        raise RuntimeError("Invalid DLPack tensor capsule. Notice that a dl tensor can be consumed only once")
    # The structure DLManagedTensor begins with the address of the data, followed by the kind of device.
    (kind,) = struct.unpack("i", ctypes.string_at(pointer_of(obj, b"dltensor") + ctypes.sizeof(ctypes.c_void_p), 4))
    return True, kind == DLDeviceType.kDLCUDA


def GetCUDACurrentDevice() -> int:
    """Return the number of the current GPU."""
    return int(cuda.require_cupy("this").cuda.runtime.getDevice())


def SetCUDACurrentDevice(device_id: int) -> None:
    """Make a GPU the current one on this thread."""
    cuda.require_cupy("this").cuda.runtime.setDevice(device_id)


def CUDAStreamSynchronize(stream: int) -> None:
    """Wait for the work that was queued on a stream, which is passed as its address."""
    cuda.require_cupy("this").cuda.runtime.streamSynchronize(stream)


def GetCxx11AbiFlag() -> int:
    """Return 1, for the C++ ABI that current Linux distributions use."""
    return 1


def check_cuda_runtime() -> None:
    """Do nothing: code that needs a GPU checks for it."""


def deprecation_warning(what: str) -> None:
    """Issue a deprecation warning at the line that calls this function."""
    warnings.warn(what, Warning, stacklevel=2)


# In DALI, importing the backend initializes it; Penstock needs no initialization.
initialized = cuda_checked = True
