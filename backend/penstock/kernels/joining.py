"""Checks of the inputs and computation of the output's shape, for `cat` and `stack`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def joined_shapes(inputs: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Return the shapes of samples joined along ``axis``, int64, one row for each sample.

    Args:
        inputs: the shapes of each input's samples, int64 of shape (samples, rank).
        axis: the dimension along which to join.

    Raises:
        RuntimeError: the inputs of a sample have different extents in another dimension.
    """
    joined = inputs[0].copy()
    for shapes in inputs[1:]:
        joined[:, axis] = shapes[:, axis]
        if not np.array_equal(joined, shapes):
            row = np.flatnonzero((joined != shapes).any(axis=1))[0]
            raise RuntimeError(
                f"Concatenated tensors can differ in size only in the concatenation axis ({axis}). "
                f"Got: {', '.join(str(own[row].tolist()) for own in inputs)}"
            )
    joined[:, axis] = sum(shapes[:, axis] for shapes in inputs)
    return joined
