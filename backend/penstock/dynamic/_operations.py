"""The operations of tensors and batches that operators carry out, such as arithmetic, casts and copies.

:mod:`penstock.dynamic._syntax` implements them. It imports tensors and batches, so these cannot import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

# The result of a call: a tensor, a batch, or a tuple of them.
Outcome = Any
# Data of any kind that programs pass, checked where it is used.
Given = Any


class Operations(Protocol):
    """Calls operators on tensors and batches."""

    def apply(self, function: str, *operands: object) -> Outcome:
        """Apply ``function``, a name in the expressions of arithmetic."""

    def call(self, operator: str, inputs: Sequence[object], arguments: dict[str, object], device: object) -> Outcome:
        """Return the output of the operator with this schema."""


_defined: list[Operations] = []


def define(implementation: Operations) -> None:
    """Set the implementation of the operations."""
    _defined[:] = [implementation]


def operations() -> Operations:
    """Return the implementation of the operations."""
    return _defined[0]
