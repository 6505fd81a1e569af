"""The module ``nvidia.dali.backend``: tensors, batches and types, and what there is of operators and devices."""

from __future__ import annotations

from penstock import ops, types
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
from penstock.compat.op_schema import GetSchema, OpSchema, TryGetSchema
from penstock.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, cuda
from penstock.tensors.tensor import DLDeviceType

__all__ = [
    "DLDeviceType",
    "GetCUDADeviceCount",
    "GetCudaVersion",
    "GetCufftVersion",
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "GetNppVersion",
    "GetNvjpegVersion",
    "GetSchema",
    "IsDriverInitialized",
    "OpSchema",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "RegisteredCPUOps",
    "RegisteredGPUOps",
    "RegisteredMixedOps",
    "ReleaseUnusedMemory",
    "RestrictPinnedMemUsage",
    "SetBufferGrowthFactor",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "TryGetSchema",
    "initialized",
    "types",
]


def RegisteredCPUOps() -> list[str]:
    """The names of operators that run on CPU."""
    return sorted(ops.cpu_ops())


def RegisteredGPUOps() -> list[str]:
    """The names of operators that run on GPU."""
    return sorted(ops.gpu_ops())


def RegisteredMixedOps() -> list[str]:
    """The names of operators that take data on CPU and give it on GPU."""
    return sorted(ops.mixed_ops())


def GetCUDADeviceCount() -> int:
    """How many GPUs there are."""
    return cuda.device_count()


def IsDriverInitialized() -> bool:
    """Whether there is a GPU that can be used."""
    return cuda.device_count() > 0


def GetCudaVersion() -> int:
    """The version of the CUDA runtime, 12020 for 12.2; 0 where there is none."""
    return int(cuda.require_cupy("this").cuda.runtime.runtimeGetVersion()) if cuda.device_count() else 0


def GetNvjpegVersion() -> int:
    """-1: nvJPEG is not used by itself, but by way of nvImageCodec."""
    return -1


def GetNppVersion() -> int:
    """-1: NPP is not used."""
    return -1


def GetCufftVersion() -> int:
    """-1: cuFFT is not used."""
    return -1


# Importing DALI initializes its backend; here there is nothing to wait for.
initialized = True
