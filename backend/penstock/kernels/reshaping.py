"""The shapes of reshaped samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]


def check_extents(shape: Sequence[int] | None) -> None:
    """Raise RuntimeError for a constant shape with an extent of 0, which only a computed shape may have."""
    if shape is not None and 0 in shape:
        raise RuntimeError(f"Extent of 0 is illegal; got: {_extents_text(shape)}")


def reshaped(
    shape: Shape,
    wanted: Sequence[float] | None,
    relative: bool,
    src_dims: Sequence[int] | None,
    volume: float | None = None,
) -> Shape:
    """Return the output's shape.

    Args:
        shape: the input's shape.
        wanted: the extents of the output; a negative extent is inferred. None: the extents of ``src_dims``.
        relative: whether ``wanted`` are factors for the corresponding input extents.
        src_dims: the input dimension to which each output dimension corresponds; -1: a new dimension of extent 1.
        volume: the number of elements of the output, if it differs from the input's.

    Raises:
        RuntimeError: the requested shape has another number of elements, or an extent is not an integer.
    """
    total = math.prod(shape) if volume is None else volume
    base = list(shape) if src_dims is None else [_source_extent(shape, dim) for dim in src_dims]
    if wanted is None:
        extents: list[float] = list(base)
    elif relative:
        if src_dims is not None and len(wanted) != len(base):
            raise RuntimeError(f"`src_dims` and `rel_shape` have different lengths: {len(base)} vs {len(wanted)}")
        extents = []
        for index, factor in enumerate(wanted):
            if factor < 0:
                extents.append(-1)
                continue
            if index >= len(base):
                raise RuntimeError(
                    f"`rel_shape` has more elements ({len(wanted)}) than there are dimensions in the input ({len(base)}). "
                    "To add new dimensions, use `src_dims` to specify the mapping between input and output dimensions."
                )
            extents.append(math.floor(factor * base[index] + 0.5))
    else:
        extents = list(wanted)
    return _completed(extents, total, shape)


def _extents_text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _source_extent(shape: Shape, dim: int) -> int:
    if dim == -1:
        return 1
    if not 0 <= dim < len(shape):
        raise RuntimeError(
            f"`src_dims` names dimension {dim}, which is out of bounds. The indices in `src_dims` should be either valid "
            f"dimension indices in range [0..{len(shape) - 1}] or -1 to insert a new dimension."
        )
    return shape[dim]


def _completed(extents: Sequence[float], total: float, shape: Shape) -> Shape:
    left = [index for index, extent in enumerate(extents) if extent < 0]
    if len(left) > 1:
        raise RuntimeError(f"Only one negative extent is allowed; got: {list(extents)}")
    result = [int(extent) for extent in extents]
    if left:
        known = math.prod(extent for index, extent in enumerate(result) if index != left[0])
        if not known:
            raise RuntimeError(
                f"Cannot infer the extent of dimension {left[0]} when the volume of remaining dimensions is 0. "
                f"Input shape: {_extents_text(shape)}. Requested shape: {list(extents)}"
            )
        result[left[0]] = int(total // known)
    if math.prod(result) != total:
        raise RuntimeError(
            "Input and output samples must occupy the same size in bytes. The volume of the new shape should match the one of "
            f"the original shape. Requested a shape with {math.prod(result)} elements but the original shape has {total:.0f} "
            f"elements. Input shape: {_extents_text(shape)}. Requested shape: {_extents_text(result)}"
        )
    return tuple(result)
