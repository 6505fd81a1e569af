"""Loads CuPy when a GPU is first needed; raises an error that says why if none can be used."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType, TracebackType
from typing import Any, Protocol

import numpy as np

from penstock.errors import DeviceError, DeviceLostError, as_imported


class DeviceMemory(Protocol):
    """The memory of a CuPy array, with the array's address."""

    ptr: int


class ArrayDevice(Protocol):
    """The GPU on which an array is; it is the current one in a `with` statement."""

    id: int

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class DeviceArray(Protocol):
    """The attributes of a CuPy array that describe its type and location."""

    @property
    def data(self) -> DeviceMemory: ...

    @property
    def device(self) -> ArrayDevice: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def strides(self) -> tuple[int, ...]: ...

    @property
    def flags(self) -> ArrayFlags: ...


class ArrayFlags(Protocol):
    """The memory layout of an array."""

    @property
    def c_contiguous(self) -> bool: ...


@functools.lru_cache(maxsize=1)
def _device_count() -> tuple[int, str]:
    try:
        import cupy
    except ImportError as error:
        return 0, f"CuPy is not installed ({error}): install penstock-triton[gpu]"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return 0, f"the CUDA driver reports: {error}"
    return count, "" if count else "the CUDA driver reports no device"


def device_count() -> int:
    """Return the number of usable GPUs; also 0 if CuPy or the driver is missing."""
    return _device_count()[0]


class _ForeignStream:
    """Another library's stream, known by its address, in a form that CuPy accepts."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def stream_at(address: int, device_id: int) -> Any:
    """Return a CuPy stream for the address of a stream that another library created on a device."""
    cuda = require_cupy("a CUDA stream").cuda
    if not address:
        return cuda.Stream.null
    with cuda.Device(device_id):
        if hasattr(cuda.Stream, "from_external"):
            return cuda.Stream.from_external(_ForeignStream(address))
        return cuda.ExternalStream(address, device_id)


# CUDA errors after which all calls of a process fail; the runtime and the driver use the same numbers.
_DEVICE_LOST_ERRORS = frozenset(
    {
        214,  # uncorrectable ECC error
        220,  # uncorrectable NVLink error
        226,  # contained memory error
        700,  # illegal address
        702,  # context destroyed
        709,  # the context is destroyed
        710,  # assert
        714,  # hardware stack error
        715,  # illegal instruction
        716,  # misaligned address
        717,  # invalid address space
        718,  # invalid program counter
        719,  # launch failure
    }
)


def device_lost(error: BaseException) -> DeviceLostError | None:
    """Return the error to raise in place of one that reports a lost GPU; None if ``error`` does not."""
    if getattr(error, "status", None) not in _DEVICE_LOST_ERRORS or not type(error).__module__.startswith("cupy"):
        return None
    lost = DeviceLostError(
        f"A GPU was lost: {error}. Nothing runs on it in this process any more; a new process may be able to use it."
    )
    lost.__cause__ = error
    return lost


def find_device_lost() -> DeviceLostError | None:
    """Wait for the current device; return the error to raise if the device was lost, otherwise None."""
    try:
        require_cupy().cuda.runtime.deviceSynchronize()
    except Exception as error:
        return device_lost(error)
    return None


# The environment variable that, set to ``cpu``, moves all pipelines of a process, and of processes that it starts, off the GPU.
DEVICE_VARIABLE = "PENSTOCK_DEVICE"


def _hint_to_programs() -> str:
    """Return advice for DALI programs that run under :mod:`penstock.compat`; empty for others."""
    if as_imported("penstock") == "penstock" or os.environ.get(DEVICE_VARIABLE):
        return ""
    return " `python -m penstock.compat --device cpu PROGRAM` runs a program unchanged on the CPU."


def require_device(device_id: int) -> None:
    """Raise DeviceError, with the reason, if a pipeline cannot use GPU ``device_id``."""
    count, why = _device_count()
    if not count:
        raise DeviceError(
            f"You are trying to create a GPU DALI pipeline while CUDA is not available. The pipeline has device_id={device_id}, and "
            f"{why}. With `device_id=None` it runs on the CPU.{_hint_to_programs()}"
        )
    if not 0 <= device_id < count:
        raise DeviceError(f"There is no GPU {device_id}, a wrong device_id: this machine has {count}.")


def require_cupy(purpose: str = "this pipeline") -> ModuleType:
    """Return the cupy module; raise DeviceError, with the reason, if no GPU can be used."""
    count, why = _device_count()
    if not count:
        raise DeviceError(
            f"{purpose[0].upper()}{purpose[1:]} requires a CUDA-capable GPU but none can be used: {why}.{_hint_to_programs()}"
        )
    # This is cheaper than an import, even of a loaded module.
    return sys.modules["cupy"]
