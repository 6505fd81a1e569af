"""The operations of tensors and batches that operators carry out, such as arithmetic, casts and copies.

:mod:`penstock.dynamic._syntax` implements them. It imports tensors and batches, so these cannot import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from penstock.dynamic._value import Value

Results: TypeAlias = "Value | tuple[Value, ...]"
"""The result of a call: a tensor or a batch, or a tuple of several."""

_Value = TypeVar("_Value", bound="Value")


class Operations(Protocol):
    """Calls operators on tensors and batches."""

    def apply(self, function: str, *operands: object) -> Value:
        """Apply ``function``, a name in the expressions of arithmetic."""

    def call(self, operator: str, operand: _Value, arguments: dict[str, object], device: object) -> _Value:
        """Return the output of the operator with this schema: a tensor for a tensor, a batch for a batch."""


_defined: list[Operations] = []


def define(implementation: Operations) -> None:
    """Set the implementation of the operations."""
    _defined[:] = [implementation]


def operations() -> Operations:
    """Return the implementation of the operations."""
    return _defined[0]
