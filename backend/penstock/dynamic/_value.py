"""The base class of tensors and batches."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from penstock.dynamic._devices import Device, DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._operations import Outcome, operations
from penstock.dynamic._pending import Result
from penstock.graph.syntax import UFUNCS

_Own = TypeVar("_Own", bound="Value")


class Value:
    """The base class of tensors and batches: arithmetic and devices."""

    __slots__ = ("__weakref__", "_device", "_external", "_invocation_result")
    _invocation_result: Result | None
    _device: Device | None
    _external: bool

    @property
    def device(self) -> Device:
        """Where the data is, or will be."""
        if self._device is None:
            self._device = Device.CPU if self.device_type() == "cpu" else self._gpu()
        return self._device

    def device_type(self) -> str:
        """``cpu`` or ``gpu``."""
        raise NotImplementedError

    def _gpu(self) -> Device:
        return Device("gpu")

    def is_external(self) -> bool:
        """Return whether the memory is the program's, which may change it."""
        return self._external

    def evaluate(self: _Own) -> _Own:
        """Run the call that this is the result of, if that was not done before; return the same object."""
        raise NotImplementedError

    def cpu(self: _Own) -> _Own:
        """Return the same data on the CPU."""
        return self.to_device(Device.CPU)

    def gpu(self: _Own, index: int | None = None) -> _Own:
        """Return the same data on a GPU, by default the current one."""
        return self.to_device(Device("gpu", index))

    def to_device(self: _Own, device: DeviceLike, force_copy: bool = False) -> _Own:
        """Return the same data on a device: the same object if it is there already, unless ``force_copy``."""
        target = as_device(unmarked(device))
        assert target is not None, "a device is given"
        if target == self.device and not force_copy:
            return self
        copied: _Own = operations().call("Copy", (self,), {}, target)
        return copied

    def __add__(self: _Own, other: object) -> _Own:
        return operations().apply("add", self, other)

    def __radd__(self: _Own, other: object) -> _Own:
        return operations().apply("add", other, self)

    def __sub__(self: _Own, other: object) -> _Own:
        return operations().apply("sub", self, other)

    def __rsub__(self: _Own, other: object) -> _Own:
        return operations().apply("sub", other, self)

    def __mul__(self: _Own, other: object) -> _Own:
        return operations().apply("mul", self, other)

    def __rmul__(self: _Own, other: object) -> _Own:
        return operations().apply("mul", other, self)

    def __pow__(self: _Own, other: object) -> _Own:
        return operations().apply("pow", self, other)

    def __rpow__(self: _Own, other: object) -> _Own:
        return operations().apply("pow", other, self)

    def __truediv__(self: _Own, other: object) -> _Own:
        return operations().apply("fdiv", self, other)

    def __rtruediv__(self: _Own, other: object) -> _Own:
        return operations().apply("fdiv", other, self)

    def __floordiv__(self: _Own, other: object) -> _Own:
        return operations().apply("div", self, other)

    def __rfloordiv__(self: _Own, other: object) -> _Own:
        return operations().apply("div", other, self)

    def __mod__(self: _Own, other: object) -> _Own:
        return operations().apply("mod", self, other)

    def __rmod__(self: _Own, other: object) -> _Own:
        return operations().apply("mod", other, self)

    def __neg__(self: _Own) -> _Own:
        return operations().apply("minus", self)

    def __pos__(self: _Own) -> _Own:
        return self

    def __abs__(self: _Own) -> _Own:
        return operations().apply("abs", self)

    def __invert__(self: _Own) -> _Own:
        return operations().apply("bitnot", self)

    def __eq__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return operations().apply("eq", self, other)

    def __ne__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return operations().apply("neq", self, other)

    def __lt__(self: _Own, other: object) -> _Own:
        return operations().apply("lt", self, other)

    def __le__(self: _Own, other: object) -> _Own:
        return operations().apply("leq", self, other)

    def __gt__(self: _Own, other: object) -> _Own:
        return operations().apply("gt", self, other)

    def __ge__(self: _Own, other: object) -> _Own:
        return operations().apply("geq", self, other)

    def __and__(self: _Own, other: object) -> _Own:
        return operations().apply("bitand", self, other)

    def __rand__(self: _Own, other: object) -> _Own:
        return operations().apply("bitand", other, self)

    def __or__(self: _Own, other: object) -> _Own:
        return operations().apply("bitor", self, other)

    def __ror__(self: _Own, other: object) -> _Own:
        return operations().apply("bitor", other, self)

    def __xor__(self: _Own, other: object) -> _Own:
        return operations().apply("bitxor", self, other)

    def __rxor__(self: _Own, other: object) -> _Own:
        return operations().apply("bitxor", other, self)

    def __lshift__(self: _Own, other: object) -> _Own:
        return operations().apply("lshift", self, other)

    def __rlshift__(self: _Own, other: object) -> _Own:
        return operations().apply("lshift", other, self)

    def __rshift__(self: _Own, other: object) -> _Own:
        return operations().apply("rshift", self, other)

    def __rrshift__(self: _Own, other: object) -> _Own:
        return operations().apply("rshift", other, self)

    # Unhashable, as comparison returns tensors.
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **options: object) -> Outcome:
        """Apply numpy's operators on arrays and these as those of dynamic mode."""
        if method != "__call__" or options or function not in UFUNCS:
            return NotImplemented
        return operations().apply(UFUNCS[function], *inputs)
