"""The shapes that reshaping gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]


def reshaped(
    shape: Shape,
    wanted: Sequence[float] | None,
    relative: bool,
    src_dims: Sequence[int] | None,
    volume: float | None = None,
) -> Shape:
    """The output's extents.

    Args:
        shape: of the input.
        wanted: extents of the output; one may be negative: what is left. None: those of ``src_dims``.
        relative: ``wanted`` are factors of the extents of the corresponding input dimensions.
        src_dims: the input dimension that each output extent comes from; -1: none, of extent 1.
        volume: of the output in elements, where it is not the input's.

    Raises:
        RuntimeError: the volumes differ, or extents do not come out as whole numbers.
    """
    total = math.prod(shape) if volume is None else volume
    base = list(shape) if src_dims is None else [_source_extent(shape, dim) for dim in src_dims]
    if wanted is None:
        extents: list[float] = list(base)
    elif relative:
        if src_dims is not None and len(wanted) != len(base):
            raise RuntimeError(f"`rel_shape` has {len(wanted)} entries, but `src_dims` has {len(base)}")
        extents = []
        for index, factor in enumerate(wanted):
            if factor < 0:
                extents.append(-1)
                continue
            if index >= len(base):
                raise RuntimeError(
                    f"`rel_shape` has {len(wanted)} entries, but the input has only {len(base)} dimensions"
                )
            extents.append(math.floor(factor * base[index] + 0.5))
    else:
        extents = list(wanted)
    return _completed(extents, total, shape)


def _source_extent(shape: Shape, dim: int) -> int:
    if dim == -1:
        return 1
    if not 0 <= dim < len(shape):
        raise RuntimeError(f"`src_dims` names dimension {dim}, but the input has {len(shape)} dimensions")
    return shape[dim]


def _completed(extents: Sequence[float], total: float, shape: Shape) -> Shape:
    left = [index for index, extent in enumerate(extents) if extent < 0]
    if len(left) > 1:
        raise RuntimeError(
            f"Only one extent may follow from the others, but {list(extents)} has {len(left)} negative ones"
        )
    result = [int(extent) for extent in extents]
    if left:
        known = math.prod(extent for index, extent in enumerate(result) if index != left[0])
        if not known or total % known:
            raise RuntimeError(
                f"The input's shape {list(shape)} cannot be brought into the shape {result}: {total} / {known} is not whole"
            )
        result[left[0]] = int(total // known)
    if math.prod(result) != total:
        raise RuntimeError(
            f"Input and output samples must have the same volume: shape {list(shape)} holds {total:g} elements, shape {result} "
            f"holds {math.prod(result)}"
        )
    return tuple(result)
