"""The CUDA driver in the form in which compiled code calls it: by the addresses of its functions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from penstock.tensors.cuda import require_cupy


class Driver(NamedTuple):
    """The addresses of driver functions; each returns 0 or the number of an error."""

    set_context: int
    launch: int
    copy: int
    copy_to_device: int
    copy_to_host: int
    record: int
    wait: int
    synchronize: int


# The functions' names, in the order of the fields. Names never change their meaning, as later versions of a function have other names.
_NAMES = (
    "cuCtxSetCurrent",
    "cuLaunchKernel",
    "cuMemcpyAsync",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuEventSynchronize",
)


def load_library() -> Any:
    """Return the driver's library."""
    return ctypes.CDLL("libcuda.so.1")


@functools.cache
def _library() -> Any:
    return load_library()


@functools.cache
def driver() -> Driver:
    """Return the addresses of the driver's functions."""
    library = _library()
    return Driver(*(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _NAMES))


@functools.cache
def context_of(device_id: int) -> int:
    """Return the handle of the context that the CUDA runtime, and thus CuPy, uses on a device; it lives as long as the process."""
    context = ctypes.c_void_p()
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), _device(device_id))
    return context.value or 0


def has_context(device_id: int) -> bool:
    """Return whether the CUDA runtime, and thus CuPy, has a context on a device; without one, the process has no memory there."""
    flags, is_active = ctypes.c_uint(), ctypes.c_int()
    _call("cuDevicePrimaryCtxGetState", _device(device_id), ctypes.byref(flags), ctypes.byref(is_active))
    return bool(is_active.value)


def _device(device_id: int) -> ctypes.c_int:
    """Return the driver's handle of a device."""
    device = ctypes.c_int()
    _call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(device_id))
    return device


def _call(function: str, *arguments: object) -> None:
    """Call a function of the driver's library; raise the error that it returns."""
    status = getattr(_library(), function)(*arguments)
    if status:
        raise driver_error(status)


def driver_error(status: int) -> Exception:
    """Return the error that CuPy raises for an error number of the driver."""
    error: Exception = require_cupy().cuda.driver.CUDADriverError(status)
    return error
