"""Checks of arguments that several transforms share."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Mapping, Sequence
from typing import TypeVar

from penstock.plugin.torchvision._typing import Fill, Fills, Floats, Interpolation, Size

_Part = TypeVar("_Part")
_BY_NUMBER = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


class InterpolationMode(enum.Enum):
    """The interpolation filters. Arguments may also be the members' values, or Pillow's numbers."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_FILTERS = tuple(mode.value for mode in InterpolationMode)


def filter_name(interpolation: Interpolation) -> str:
    """Return the name of a filter.

    Raises:
        ValueError: there is no such filter.
    """
    if isinstance(interpolation, int) and interpolation in _BY_NUMBER:
        return _BY_NUMBER[interpolation]
    name = getattr(interpolation, "value", interpolation)
    if name in _FILTERS:
        return str(name)
    raise ValueError(
        f"`interpolation` must be one of {', '.join(_FILTERS)}, or Pillow's number. Got: {interpolation!r}"
    )


def pair_of(size: Size, name: str = "size") -> tuple[int, int]:
    """Return the height and width that ``size`` specifies.

    Raises:
        ValueError: the value is neither a number nor a sequence of one or two numbers.
    """
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[arg-type]
    if isinstance(size, Sequence) and not isinstance(size, str) and len(size) in (1, 2):
        return size[0], size[-1]
    raise ValueError(f"`{name}` must be a number, or height and width. Got: {size!r}")


def range_of(value: Floats, name: str) -> tuple[float, float]:
    """Return a range, from one number or two.

    Raises:
        TypeError, ValueError: the value is neither one nor two numbers.
    """
    if isinstance(value, (int, float)):
        return float(value), float(value)
    if not isinstance(value, Sequence):
        raise TypeError(f"`{name}` must be a number, or two. Got: {value!r}")
    if len(value) not in (1, 2) or not all(isinstance(part, (int, float)) for part in value):
        raise ValueError(f"`{name}` must be a number, or two. Got: {value!r}")
    return float(value[0]), float(value[-1])


def angles_of(value: Floats, name: str, counts: Sequence[int] = (2,)) -> list[float]:
    """Return angles in degrees: ``value``, or for a single number x the range from -x to x.

    Raises:
        TypeError, ValueError: the value is neither a number of at least 0, nor a sequence whose length is one of ``counts``.
    """
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"`{name}`, if it is one number, must not be negative. Got: {value:g}")
        return [-float(value), float(value)]
    return [float(angle) for angle in several(value, name, counts)]


def several(value: Sequence[_Part], name: str, counts: Sequence[int] = (2,)) -> Sequence[_Part]:
    """Return a sequence after checking its length.

    Raises:
        TypeError, ValueError: the value is not a sequence, or its length is not one of ``counts``.
    """
    wanted = " or ".join(map(str, counts))
    if not isinstance(value, Sequence):
        raise TypeError(f"`{name}` must be a sequence of {wanted}. Got: {value!r}")
    if len(value) not in counts:
        raise ValueError(f"`{name}` must be a sequence of {wanted}. Got {len(value)}: {value!r}")
    return value


def probability(value: float) -> float:
    """Return a probability after checking it.

    Raises:
        ValueError: the value is not between 0 and 1.
    """
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`p` must be between 0 and 1. Got: {value}")
    return value


def checked_padding(padding: Size) -> tuple[int, int, int, int]:
    """Return the result of :func:`borders_of`; raise only ValueError, as transforms do.

    Raises:
        ValueError: the value is not valid; see :func:`borders_of`.
    """
    try:
        return borders_of(padding)
    except TypeError as error:
        raise ValueError(str(error)) from None


def borders_of(padding: Size) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of `padding`, which is one number, two (across, down) or four.

    Raises:
        TypeError, ValueError: the value does not have this form.
    """
    if isinstance(padding, int):
        return padding, padding, padding, padding
    if not isinstance(padding, (list, tuple)):
        raise TypeError(f"`padding` must be a number, or a list of 1, 2 or 4. Got: {padding!r}")
    if len(padding) not in (1, 2, 4) or not all(isinstance(border, int) for border in padding):
        raise ValueError(f"`padding` must be a number, or a list of 1, 2 or 4. Got: {padding!r}")
    left, top, *rest = [*padding, *padding][:4] if len(padding) > 1 else [*padding] * 4
    return left, top, rest[0], rest[1]


def fills_of(fill: Fills) -> Mapping[type | str, Fill]:
    """Return the fill values by type; the key `others` is for all other types.

    Raises:
        TypeError: the value is neither a number, nor a sequence, nor a dictionary of these.
    """
    if isinstance(fill, dict):
        return {kind: _fill(value) for kind, value in fill.items()}
    return {"others": _fill(fill)}


def _fill(fill: Fill) -> Fill:
    if fill is None or isinstance(fill, (int, float)):
        return fill
    if isinstance(fill, (tuple, list)):
        return [float(value) for value in fill]
    raise TypeError(f"`fill` must be a number, a sequence or a dictionary of them. Got: {fill!r}")


def resized_extents(extents: tuple[int, int], size: Size | None, max_size: int | None) -> tuple[int, int]:
    """Return the height and width that `Resize` gives an image.

    Args:
        extents: the height and width of the image.
        size: height and width of the result, or the length of the shorter side; None: ``max_size`` is the length of the longer side.
        max_size: the largest length of the longer side.

    Raises:
        ValueError: the sizes cannot be used together.
    """
    height, width = extents
    short, long = min(height, width), max(height, width)
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(f"`max_size` must be a number where `size` is None. Got: {max_size!r}")
        sides = int(max_size * short / long), max_size
        return sides[::-1] if width <= height else sides
    wanted = [size] if isinstance(size, int) else list(size)
    if len(wanted) == 2:
        if max_size is not None:
            raise ValueError(
                "`max_size` applies only if `size` is the length of the shorter side, not height and width"
            )
        return wanted[0], wanted[1]
    sides = wanted[0], int(wanted[0] * long / short)
    if max_size is not None:
        if max_size <= wanted[0]:
            raise ValueError(f"`max_size`, {max_size}, must be greater than the shorter side, {wanted[0]}")
        if sides[1] > max_size:
            sides = int(max_size * sides[0] / sides[1]), max_size
    return sides[::-1] if width <= height else sides


def crop_anchor(extents: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Return top and left of a centre crop; half pixels are rounded to even."""
    return round((extents[0] - size[0]) / 2.0), round((extents[1] - size[1]) / 2.0)


def crop_borders(extents: tuple[int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the padding (left, top, right, bottom) of an image that is smaller than its centre crop."""
    down, across = max(size[0] - extents[0], 0), max(size[1] - extents[1], 0)
    return across // 2, down // 2, (across + 1) // 2, (down + 1) // 2
