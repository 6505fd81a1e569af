"""Shared by `cat` and `stack`: checks of the inputs, and the output's shape."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.data_types import DALIDataType, dtype_name
from penstock.tensors import TensorList


def common_type(inputs: Sequence[TensorList]) -> DALIDataType:
    """Return the inputs' type; raise RuntimeError if they differ."""
    types = [batch.dtype for batch in inputs]
    for index, dtype in enumerate(types):
        if dtype != types[0]:
            raise RuntimeError(
                "All inputs must have the same type and number of dimensions. "
                f"input #0: {dtype_name(types[0])}, input #{index}: {dtype_name(dtype)}"
            )
    return types[0]


def common_rank(inputs: Sequence[TensorList]) -> int:
    """Return the inputs' number of dimensions; raise RuntimeError if they differ."""
    ranks = {batch.ndim() for batch in inputs}
    if len(ranks) > 1:
        raise RuntimeError(
            "All inputs must have the same type and number of dimensions. "
            + " ".join(f"input #{index}: {batch.ndim()}-D" for index, batch in enumerate(inputs))
        )
    return ranks.pop()


def joined_shape(shapes: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """Return the extents of samples joined along ``axis``; raise RuntimeError if they differ elsewhere."""
    first = shapes[0]
    for shape in shapes:
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise RuntimeError(
                f"Concatenated tensors can differ in size only in the concatenation axis ({axis}). "
                f"Got: {', '.join(str(list(s)) for s in shapes)}"
            )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])
