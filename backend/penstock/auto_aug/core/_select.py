"""Calls one of several operations for each sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph.branching import ternary


def select(ops: Sequence[Callable[..., object]], selected_op_idx: object, *op_args: object, **op_kwargs: object) -> Any:
    """Return the result of the selected operation for each sample.

    The batch is split recursively, by halves of the list of operations, so that each operation runs once, on the samples that
    selected it. The pipeline must be defined with ``enable_conditionals=True``.

    Args:
        ops: functions of nodes.
        selected_op_idx: a node with the index of the operation for each sample.
        op_args, op_kwargs: the arguments and keyword arguments for the operations.
    """
    if not ops:
        raise ValueError("There must be at least one operation to select from")
    return _select(ops, 0, len(ops) - 1, selected_op_idx, op_args, op_kwargs)


def _select(
    ops: Sequence[Callable[..., Any]],
    first: int,
    last: int,
    index: Any,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    if first == last:
        return ops[first](*args, **kwargs)
    middle = (first + last) // 2
    return ternary(
        index <= middle,
        lambda: _select(ops, first, middle, index, args, kwargs),
        lambda: _select(ops, middle + 1, last, index, args, kwargs),
    )
