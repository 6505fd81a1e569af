"""What `cat` and `stack` have in common: checks of the inputs and the shape of the output."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.tensors import TensorList
from penstock.types import DALIDataType, dtype_name


def common_type(inputs: Sequence[TensorList]) -> DALIDataType:
    """The inputs' type; raises RuntimeError where they differ."""
    types = [batch.dtype for batch in inputs]
    for index, dtype in enumerate(types):
        if dtype != types[0]:
            raise RuntimeError(
                f"All inputs must have the same type: input 0 is {dtype_name(types[0])}, input {index} is {dtype_name(dtype)}"
            )
    return types[0]


def common_rank(inputs: Sequence[TensorList]) -> int:
    """The inputs' number of dimensions; raises RuntimeError where they differ."""
    ranks = {batch.ndim() for batch in inputs}
    if len(ranks) > 1:
        raise RuntimeError(
            f"All inputs must have the same number of dimensions, got: {', '.join(map(str, sorted(ranks)))}"
        )
    return ranks.pop()


def joined_shape(shapes: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """The extents of samples joined along ``axis``; raises RuntimeError where they differ elsewhere."""
    first = shapes[0]
    for shape in shapes:
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise RuntimeError(
                f"Samples must have matching extents in all dimensions but {axis}, got: {', '.join(str(list(s)) for s in shapes)}"
            )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])
