"""The settings of DALI's memory pools. numpy and CuPy allocate here, so growth and shrinking can be set but change
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.tensors.cuda import require_cupy

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
    """The growth factor of host buffers."""
    _settings.host_growth = _checked_growth(factor)


def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """The growth factor of GPU buffers."""
    _settings.device_growth = _checked_growth(factor)


def SetBufferGrowthFactor(factor: float) -> None:
    """Set both growth factors."""
    SetHostBufferGrowthFactor(factor)
    SetDeviceBufferGrowthFactor(factor)


def SetHostBufferShrinkThreshold(threshold: float) -> None:
    """The fraction of its size below which a host buffer shrinks."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"Shrink threshold must be between 0 (never shrink) and 1 (always shrink), got {threshold:g}.")
    _settings.host_shrink = float(threshold)


def GetHostBufferGrowthFactor() -> float:
    """See :func:`SetHostBufferGrowthFactor`."""
    return _settings.host_growth


def GetDeviceBufferGrowthFactor() -> float:
    """See :func:`SetDeviceBufferGrowthFactor`."""
    return _settings.device_growth


def GetHostBufferShrinkThreshold() -> float:
    """See :func:`SetHostBufferShrinkThreshold`."""
    return _settings.host_shrink


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Make a GPU's memory pool hold at least ``bytes`` free bytes."""
    cupy = require_cupy("preallocated memory")
    with cupy.cuda.Device(device_id):
        # The memory is freed immediately, but stays in the pool.
        cupy.get_default_memory_pool().malloc(bytes)


def PreallocatePinnedMemory(bytes: int) -> None:
    """Make the pool of pinned memory hold at least ``bytes`` free bytes."""
    require_cupy("pinned memory").get_default_pinned_memory_pool().malloc(bytes)


def ReleaseUnusedMemory() -> None:
    """Release the free memory of the GPUs' pools."""
    try:
        cupy = require_cupy()
    except RuntimeError:
        # Without a GPU there are no pools.
        return
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def RestrictPinnedMemUsage() -> bool:
    """Return whether pinned memory is used sparingly; nothing asks for that here."""
    return False
