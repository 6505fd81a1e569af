"""The base class of tensors and batches, with the operations that are carried out by operators, such as arithmetic, casts and copies.

:mod:`penstock.dynamic._syntax` implements these operations. It imports the modules of tensors and batches, so they cannot import it.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, TypeVar, cast

import numpy as np

from penstock.dynamic._devices import Device, DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._pending import Result
from penstock.graph.syntax import UFUNCS

Results: TypeAlias = "Value | tuple[Value, ...]"
"""The result of a call: a tensor, a batch, or a tuple of several of these."""

_Own = TypeVar("_Own", bound="Value")


class Operations(Protocol):
    """Runs operators on tensors and batches."""

    def apply(self, function: str, *operands: object) -> Value:
        """Apply ``function``, a name in arithmetic expressions."""

    def call(self, operator: str, operand: _Own, arguments: dict[str, object], device: object) -> _Own:
        """Return the output of the operator with this schema name: a tensor for a tensor, and a batch for a batch."""


_defined: list[Operations] = []


def define(implementation: Operations) -> None:
    """Set the implementation of the operations."""
    _defined[:] = [implementation]


def operations() -> Operations:
    """Return the implementation of the operations."""
    return _defined[0]


class Value:
    """The base class of tensors and batches: arithmetic and devices."""

    __slots__ = ("__weakref__", "_device", "_external", "_invocation_result")
    _invocation_result: Result | None
    _device: Device | None
    _external: bool

    @property
    def device(self) -> Device:
        """The device on which the data are, or will be."""
        if self._device is None:
            self._device = Device.CPU if self.device_type() == "cpu" else self._gpu()
        return self._device

    def device_type(self) -> str:
        """``cpu`` or ``gpu``."""
        raise NotImplementedError

    def _gpu(self) -> Device:
        return Device("gpu")

    def is_external(self) -> bool:
        """Return whether the data are in memory that the program may change."""
        return self._external

    def evaluate(self: _Own) -> _Own:
        """Run the call that this is a result of, unless it has run already; return this object."""
        raise NotImplementedError

    def cpu(self: _Own) -> _Own:
        """Return the same data on the CPU."""
        return self.to_device(Device.CPU)

    def gpu(self: _Own, index: int | None = None) -> _Own:
        """Return the same data on a GPU, by default the current one."""
        return self.to_device(Device("gpu", index))

    def to_device(self: _Own, device: DeviceLike, force_copy: bool = False) -> _Own:
        """Return the same data on a device: this object if the data are there already, unless ``force_copy`` is set."""
        target = as_device(unmarked(device))
        assert target is not None, "a device is given"
        if target == self.device and not force_copy:
            return self
        return operations().call("Copy", self, {}, target)

    def _arithmetic(self: _Own, function: str, *operands: object) -> _Own:
        """Return a batch if an operand is a batch, which annotations do not express; otherwise a tensor."""
        return cast(_Own, operations().apply(function, *operands))

    def __add__(self: _Own, other: object) -> _Own:
        return self._arithmetic("add", self, other)

    def __radd__(self: _Own, other: object) -> _Own:
        return self._arithmetic("add", other, self)

    def __sub__(self: _Own, other: object) -> _Own:
        return self._arithmetic("sub", self, other)

    def __rsub__(self: _Own, other: object) -> _Own:
        return self._arithmetic("sub", other, self)

    def __mul__(self: _Own, other: object) -> _Own:
        return self._arithmetic("mul", self, other)

    def __rmul__(self: _Own, other: object) -> _Own:
        return self._arithmetic("mul", other, self)

    def __pow__(self: _Own, other: object) -> _Own:
        return self._arithmetic("pow", self, other)

    def __rpow__(self: _Own, other: object) -> _Own:
        return self._arithmetic("pow", other, self)

    def __truediv__(self: _Own, other: object) -> _Own:
        return self._arithmetic("fdiv", self, other)

    def __rtruediv__(self: _Own, other: object) -> _Own:
        return self._arithmetic("fdiv", other, self)

    def __floordiv__(self: _Own, other: object) -> _Own:
        return self._arithmetic("div", self, other)

    def __rfloordiv__(self: _Own, other: object) -> _Own:
        return self._arithmetic("div", other, self)

    def __mod__(self: _Own, other: object) -> _Own:
        return self._arithmetic("mod", self, other)

    def __rmod__(self: _Own, other: object) -> _Own:
        return self._arithmetic("mod", other, self)

    def __neg__(self: _Own) -> _Own:
        return self._arithmetic("minus", self)

    def __pos__(self: _Own) -> _Own:
        return self

    def __abs__(self: _Own) -> _Own:
        return self._arithmetic("abs", self)

    def __invert__(self: _Own) -> _Own:
        return self._arithmetic("bitnot", self)

    def __eq__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return self._arithmetic("eq", self, other)

    def __ne__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return self._arithmetic("neq", self, other)

    def __lt__(self: _Own, other: object) -> _Own:
        return self._arithmetic("lt", self, other)

    def __le__(self: _Own, other: object) -> _Own:
        return self._arithmetic("leq", self, other)

    def __gt__(self: _Own, other: object) -> _Own:
        return self._arithmetic("gt", self, other)

    def __ge__(self: _Own, other: object) -> _Own:
        return self._arithmetic("geq", self, other)

    def __and__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitand", self, other)

    def __rand__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitand", other, self)

    def __or__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitor", self, other)

    def __ror__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitor", other, self)

    def __xor__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitxor", self, other)

    def __rxor__(self: _Own, other: object) -> _Own:
        return self._arithmetic("bitxor", other, self)

    def __lshift__(self: _Own, other: object) -> _Own:
        return self._arithmetic("lshift", self, other)

    def __rlshift__(self: _Own, other: object) -> _Own:
        return self._arithmetic("lshift", other, self)

    def __rshift__(self: _Own, other: object) -> _Own:
        return self._arithmetic("rshift", self, other)

    def __rrshift__(self: _Own, other: object) -> _Own:
        return self._arithmetic("rshift", other, self)

    # Not hashable, as comparison returns tensors.
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **options: object) -> Value:
        """Apply NumPy's operators, between an array and a tensor or batch, like those of dynamic mode."""
        if method != "__call__" or options or function not in UFUNCS:
            return NotImplemented
        return operations().apply(UFUNCS[function], *inputs)
