"""Select dimensions by index or by the layout's letters."""

from __future__ import annotations

import math
from collections.abc import Sequence


def resolve_axes(
    axes: Sequence[int] | None, axis_names: str | None, layout: str, ndim: int, repeated: bool = False
) -> list[int] | None:
    """Return the indices of the selected dimensions, counted from the front; None if neither ``axes`` nor ``axis_names`` is set.

    Args:
        axes: indices; negative ones count from the end.
        axis_names: letters of the layout; they take precedence over ``axes``.
        layout: the data's layout.
        ndim: the data's number of dimensions.
        repeated: whether a dimension may occur more than once.

    Raises:
        RuntimeError: a letter of ``axis_names`` is not in the layout.
        IndexError: an index is out of range.
        ValueError: a dimension occurs more than once, although ``repeated`` is False.
    """
    if axis_names:
        missing = [name for name in axis_names if name not in layout]
        if missing:
            raise RuntimeError(f"Axis '{missing[0]}' is not present in the input layout '{layout}'")
        found = [layout.index(name) for name in axis_names]
    elif axes is not None:
        found = [resolve_axis(axis, ndim) for axis in axes]
    else:
        return None
    if not repeated and len(set(found)) != len(found):
        raise ValueError(
            f"Repeated (duplicate) axis index: an axis occurs more than once in {list(axis_names or axes or ())}"
        )
    return found


def resolve_axis(axis: int, ndim: int) -> int:
    """Return the index of a dimension, counted from the front; a negative ``axis`` counts from the end."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"Axis {axis} out of range. Expected range is [{-ndim}, {ndim - 1}] for a {ndim}D input")
    return axis % ndim


def spatial_axes(layout: str, ndim: int) -> list[int]:
    """Return the dimensions along which filters run: all except leading channels or frames and trailing channels.

    Raises:
        RuntimeError: channels or frames lie between spatial dimensions, or there are no spatial dimensions or more than three.
    """
    if not layout and ndim:
        if ndim > 3:
            raise RuntimeError(f"Data with empty layout cannot have more than 3 dimensions, got {ndim} dimensions.")
        return list(range(ndim))
    first = len(layout) - len(layout.lstrip("FC"))
    if len(set(layout[:first])) < first:
        raise RuntimeError(f"Found more the one occurrence of 'F' or 'C' axes in layout: {layout}.")
    names = layout[first:].removesuffix("C")
    if not names:
        raise RuntimeError(f"No spatial axes found in the layout: {layout}")
    if "C" in names:
        raise RuntimeError(f"Only channel-first or channel-last layouts are supported, got: {layout}.")
    if "F" in names:
        raise RuntimeError(f"For sequences, layout should begin with 'F' or 'C', got: {layout}.")
    if len(names) > 3:
        raise RuntimeError(f"Too many dimensions, found: {len(names)} data axes, maximum supported is: 3.")
    return list(range(first, first + len(names)))


def image_view(shape: Sequence[int], axis: int) -> tuple[int, int, int, int]:
    """Return a shape (planes, height, width, inner) of the same elements, where the height is dimension ``axis`` of ``shape``."""
    return math.prod(shape[:axis]), shape[axis], shape[axis + 1], math.prod(shape[axis + 2 :])
