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
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "GetSchema",
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
