"""Broadcasting the shapes of elementwise operands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

# As in DALI, operands are rejected if their dimensions form more groups than this; see `_count_groups`.
_MAX_GROUPS = 6


def broadcast(shapes: Sequence[tuple[int, ...]], sample: int) -> tuple[int, ...]:
    """Return the shape of the result, as numpy does: dimensions are aligned from the end, and extents of 1 are repeated.

    Args:
        shapes: the operands' shapes.
        sample: the sample's index, for messages.

    Raises:
        RuntimeError: extents differ and neither is 1, or there are too many groups of dimensions.
    """
    different = set(shapes) - {()}
    if len(different) < 2:
        # Nothing or only numbers are broadcast.
        return different.pop() if different else ()
    rank = max(map(len, shapes))
    extents = []
    for back in range(1, rank + 1):
        found = {shape[-back] for shape in shapes if len(shape) >= back} - {1}
        if len(found) > 1:
            raise RuntimeError(_mismatch(shapes, back, sample))
        extents.append(found.pop() if found else 1)
    result = tuple(reversed(extents))
    groups = _count_groups(shapes, result)
    if groups > _MAX_GROUPS:
        raise RuntimeError(
            "Broadcasting pattern too complex. Can't operate with simplified shapes with more than "
            f"{_MAX_GROUPS} groups of dimensions. Got {groups} groups. For more details see "
            "https://docs.nvidia.com/deeplearning/dali/user-guide/docs/math.html"
        )
    return result


def _count_groups(shapes: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> int:
    """Return the number of groups of dimensions. A group consists of consecutive dimensions in which the same operands are broadcast;
    dimensions in which the result has extent 1 do not count.
    """
    rank = len(result)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    patterns = [tuple(shape[axis] == 1 for shape in aligned) for axis in range(rank) if result[axis] != 1]
    return sum(1 for _ in itertools.groupby(patterns))


def _mismatch(shapes: Sequence[tuple[int, ...]], back: int, sample: int) -> str:
    lines = [
        f"{' x '.join(map(str, shape))} (d={len(shape) - back}, belonging to sample_idx={sample})"
        for shape in shapes
        if len(shape) >= back
    ]
    return "\n".join(["Can't broadcast shapes:", *lines])
