"""The settings of DALI's memory pools. Memory is allocated by numpy and CuPy here, so growth factors and shrink thresholds can be set, but
have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.tensors.cuda import device_count, require_cupy
from penstock.tensors.driver import has_context

__all__ = [
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "ReleaseUnusedMemory",
    "RestrictPinnedMemUsage",
    "SetBufferGrowthFactor",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
]


@dataclass
class _Settings:
    host_growth: float = 1.1
    device_growth: float = 1.1
    host_shrink: float = 0.5


_settings = _Settings()


def _checked_growth(factor: float) -> float:
    if not 1 <= factor <= 4:
        raise ValueError(f"Growth factor must be between 1 and 4, got {factor:g}.")
    return float(factor)


def SetHostBufferGrowthFactor(factor: float) -> None:
    """Set the growth factor of host buffers."""
    _settings.host_growth = _checked_growth(factor)


def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """Set the growth factor of GPU buffers."""
    _settings.device_growth = _checked_growth(factor)


def SetBufferGrowthFactor(factor: float) -> None:
    """Set both growth factors."""
    SetHostBufferGrowthFactor(factor)
    SetDeviceBufferGrowthFactor(factor)


def SetHostBufferShrinkThreshold(threshold: float) -> None:
    """Set the used fraction of a host buffer below which the buffer shrinks."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"Shrink threshold must be between 0 (never shrink) and 1 (always shrink), got {threshold:g}.")
    _settings.host_shrink = float(threshold)


def GetHostBufferGrowthFactor() -> float:
    """Return the growth factor of host buffers."""
    return _settings.host_growth


def GetDeviceBufferGrowthFactor() -> float:
    """Return the growth factor of GPU buffers."""
    return _settings.device_growth


def GetHostBufferShrinkThreshold() -> float:
    """Return the shrink threshold of host buffers."""
    return _settings.host_shrink


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Grow the memory pool of a GPU, so that it has a free block of ``bytes`` bytes."""
    cupy = require_cupy("preallocated memory")
    with cupy.cuda.Device(device_id):
        # The block is freed immediately, but stays in the pool.
        cupy.get_default_memory_pool().malloc(bytes)


def PreallocatePinnedMemory(bytes: int) -> None:
    """Grow the pool of pinned memory, so that it has a free block of ``bytes`` bytes."""
    require_cupy("pinned memory").get_default_pinned_memory_pool().malloc(bytes)


def ReleaseUnusedMemory() -> None:
    """Release the free memory of all GPUs' pools and of the pool of pinned memory."""
    try:
        cupy = require_cupy()
    except RuntimeError:
        # Without a GPU there are no pools.
        return
    # CuPy has a pool for each GPU, and releases the current GPU's. Making a GPU current takes memory if the process has no context there.
    for device_id in filter(has_context, range(device_count())):
        with cupy.cuda.Device(device_id):
            cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def RestrictPinnedMemUsage() -> bool:
    """Return False: pinned memory is not restricted, and no setting restricts it."""
    return False
