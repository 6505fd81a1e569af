"""Fixes the exchange of tensors between numpy 2 and a Python stub of Triton that was built for numpy 1.

For such a stub, elements of numpy 2 appear to have size 0: received data is empty, all elements of an array that a model gets equal the
first one, and byte strings crash the stub. DLPack does not depend on numpy's structures, so tensors are exchanged through DLPack.
This is not possible for byte strings, so a request with byte strings gets an error.

This file is copied into the folder of Triton's helper modules for models. It imports nothing from Penstock, because models may run in
other environments.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_HELPERS = "triton_python_backend_utils"
_NO_STRINGS = (
    f"with numpy {np.__version__}, models in this Triton's Python stub cannot exchange byte strings (TYPE_STRING): serve from an "
    "environment with numpy 1.26 (`penstock setup --stub`)"
)
_USED_CAPSULE = b"used_dltensor"
_set_capsule_name = ctypes.pythonapi.PyCapsule_SetName
_set_capsule_name.argtypes = ctypes.py_object, ctypes.c_char_p


class _Tensor(Protocol):
    """A tensor of the stub."""

    as_numpy: Callable[[_Tensor], np.ndarray]

    def __init__(self, name: str, array: object) -> None: ...

    def __dlpack__(self, *, stream: None = None) -> CapsuleType: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @staticmethod
    def from_dlpack(name: str, capsule: object) -> _Tensor:
        """Return a tensor that shares the memory of a DLPack capsule."""


class _Helpers(ModuleType):
    """Triton's module of helpers, into which the stub puts its class of tensors."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "Tensor" and isinstance(value, type):
            value = _for_models(value)
        super().__setattr__(name, value)


class _Unreadable(np.ndarray):
    """Stands for byte strings, of any shape, that the stub cannot read."""

    def reshape(self, *_: object, **__: object) -> _Unreadable:
        return self


class _Memory:
    """The memory of an array, declared as writable: numpy treats memory from DLPack as read-only."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def mend() -> None:
    """Fix the stub's class of tensors; call this before the stub adds the class to its helper module."""
    if int(np.__version__.split(".")[0]) >= 2:
        sys.modules[_HELPERS].__class__ = _Helpers


def is_broken(tensor: type[_Tensor]) -> bool:
    """Return whether the stub's tensors exchange wrong data with this numpy."""
    sent = np.arange(1, 4, dtype=np.float32)
    return not np.array_equal(tensor.as_numpy(_as_stub_tensor(tensor, "probe", sent)), sent)


@functools.cache  # the stub fills the module twice
def _for_models(tensor: type[_Tensor]) -> type:
    """Return the class of tensors that models use instead of the stub's."""
    if not is_broken(tensor):
        return tensor
    vars(sys.modules[_HELPERS])["deserialize_bytes_tensor"] = _unreadable
    as_numpy = tensor.as_numpy

    def as_right_numpy(self: _Tensor) -> np.ndarray:
        array = as_numpy(self)  # raises an error for a tensor on a GPU
        if isinstance(array, _Unreadable):
            raise RuntimeError(_NO_STRINGS)
        if array.dtype.hasobject or not array.size:
            return array
        return np.asarray(_Memory(np.from_dlpack(self)))

    tensor.as_numpy = as_right_numpy

    class OfStub(type):
        """Makes calls of a class return tensors of the stub, the only type that the stub accepts, and counts them as instances."""

        def __call__(cls, name: str, array: np.ndarray) -> object:
            if not isinstance(array, np.ndarray) or not array.size:
                return tensor(name, array)
            if array.dtype.kind in "OSU":
                raise RuntimeError(_NO_STRINGS)
            return _as_stub_tensor(tensor, name, array)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, tensor)

    class Tensor(metaclass=OfStub):
        """The class of tensors for models."""

        from_dlpack = tensor.from_dlpack

    return Tensor


def _as_stub_tensor(tensor: type[_Tensor], name: str, array: np.ndarray) -> _Tensor:
    """Return a tensor of the stub with the memory of an array, or of a copy if the array is not contiguous, is read-only, or has another
    byte order."""
    capsule = np.require(array, array.dtype.newbyteorder("="), ["C", "W"]).__dlpack__()
    made = tensor.from_dlpack(name, capsule)
    # Renamed as if consumed: the stub's capsules have a non-standard name, by which numpy does not recognize that they were consumed.
    _set_capsule_name(capsule, _USED_CAPSULE)
    return made


def _unreadable(_: object) -> _Unreadable:
    return np.empty(0, np.object_).view(_Unreadable)
