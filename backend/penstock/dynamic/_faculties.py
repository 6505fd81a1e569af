"""What tensors and batches do by means of operators.

:mod:`penstock.dynamic._syntax`, which is further down, knows how to call these and provides the faculties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

# What a call gives: a tensor, a batch, or a tuple of them.
Outcome = Any
# What programs give: data of any kind, checked where it is used.
Given = Any


class Faculties(Protocol):
    """Calls operators on tensors and batches."""

    def apply(self, function: str, *operands: object) -> Outcome:
        """Applies ``function``, a name in the expressions of arithmetic."""

    def call(self, operator: str, inputs: Sequence[object], arguments: dict[str, object], device: object) -> Outcome:
        """The output of the operator with this schema."""


_defined: list[Faculties] = []


def define(faculties: Faculties) -> None:
    """Sets the faculties."""
    _defined[:] = [faculties]


def faculties() -> Faculties:
    """The faculties."""
    return _defined[0]
