"""The form in which transforms hold PIL images and arrays: pixels that are resized only when they are needed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from penstock.data_types import INTERP_LINEAR
from penstock.kernels import pillow
from penstock.kernels.resize_shapes import AxisPlan
from penstock.operators.image._reference_plans import Reference, ReferencePlan  # private: resized as by the operator
from penstock.operators.image._resample_plans import Window  # private: resized as by the operator
from penstock.plugin.torchvision._typing import PilImage

_CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
_MODES = {channels: mode for mode, channels in _CHANNELS.items()}


@functools.lru_cache(maxsize=512)
def _plan(rows: int, columns: int, height: int, width: int, kind: str, channels: int) -> ReferencePlan:
    """Return the plan by which Pillow resizes images of this size."""
    axes = AxisPlan(rows, height, 0.0, rows), AxisPlan(columns, width, 0.0, columns)
    windows = Window(0, height), Window(0, width)
    return ReferencePlan(axes, (INTERP_LINEAR,) * 2, True, windows, Reference("pil", kind, 0.0), channels)


@functools.lru_cache(maxsize=512)
def _part_of(plan: ReferencePlan, windows: tuple[Window, ...]) -> ReferencePlan:
    """Return a plan for a part of another plan's output; cached, so that the part's filters are computed once."""
    return replace(plan, windows=tuple(outer.part(inner) for outer, inner in zip(plan.windows, windows)))


class Pixels:
    """A uint8 image, which must not be written to.

    Args:
        source: the pixels (H, W, C), before resizing if there is a ``plan``; None: the pixels of ``original``.
        plan: how the image is resized; None: it is not.
        original: the PIL image, if it was not changed yet.
        as_array: whether the caller passed the image as an array, not as a PIL image.
        flat: whether the caller passed an array of two dimensions.
    """

    def __init__(
        self,
        source: np.ndarray | None,
        plan: ReferencePlan | None = None,
        original: PilImage | None = None,
        as_array: bool = False,
        flat: bool = False,
    ) -> None:
        self._source = source
        self.plan = plan
        self._original = original
        self.as_array = as_array
        self._flat = flat

    @property
    def source(self) -> np.ndarray:
        """The array (H, W, C) from which the image is computed."""
        if self._source is None:
            array = np.asarray(self._original)
            self._source = array[:, :, None] if array.ndim == 2 else array
        return self._source

    @property
    def size(self) -> tuple[int, int]:
        """The height and width."""
        if self.plan is not None:
            height, width = self.plan.extents
            return height, width
        if self._original is not None:
            return self._original.height, self._original.width
        return self.source.shape[0], self.source.shape[1]

    @property
    def channels(self) -> int:
        """The number of channels: 1 (mode L), 2 (LA), 3 (RGB) or 4 (RGBA)."""
        return _CHANNELS[self._original.mode] if self._original is not None else self.source.shape[2]

    @functools.cached_property
    def array(self) -> np.ndarray:
        """The array, (H, W, C)."""
        if self.plan is None:
            return self.source
        result = np.empty((*self.size, self.channels), np.uint8)
        self.plan.resample(np.ascontiguousarray(self.source), result, self.plan.tables)
        return result

    def _resampled(self, source: np.ndarray, plan: ReferencePlan | None = None) -> Pixels:
        return Pixels(source, plan, None, self.as_array, self._flat and source.shape[2] == 1)

    def in_same_form(self, array: np.ndarray) -> Pixels:
        """Return the image ``array`` in the caller's form of this one."""
        return self._resampled(array)

    def resized(self, height: int, width: int, kind: str) -> Pixels:
        """Resize as `Image.resize` does.

        Args:
            height, width: pixels.
            kind: the name of one of Pillow's filters.
        """
        source = self.array
        return self._resampled(source, _plan(source.shape[0], source.shape[1], height, width, kind, source.shape[2]))

    def cropped(self, top: int, left: int, height: int, width: int) -> Pixels:
        """Return a region of the image; what lies outside the image is black."""
        rows, columns = self.size
        inside = top >= 0 and left >= 0 and top + height <= rows and left + width <= columns
        if self.plan is not None and inside:
            windows = Window(top, top + height), Window(left, left + width)
            return self._resampled(self.source, _part_of(self.plan, windows))
        return self._resampled(pillow.crop(self.array, top, left, height, width))

    def mirrored(self, vertically: bool = False) -> Pixels:
        """Mirror left to right; ``vertically``: top to bottom."""
        if self.plan is not None:
            height, width = self.size
            windows = Window(0, height, vertically), Window(0, width, not vertically)
            return self._resampled(self.source, _part_of(self.plan, windows))
        return self._resampled(self.source[::-1] if vertically else self.source[:, ::-1])

    def released(self) -> PilImage | np.ndarray:
        """Return the image as a PIL image or an array, whichever the caller passed."""
        if self._original is not None:
            return self._original
        if self.as_array:
            return self.array[:, :, 0] if self._flat else self.array
        return self.picture()

    def picture(self) -> PilImage:
        """Return a new PIL image."""
        from PIL import Image

        array = np.ascontiguousarray(self.array)
        return Image.fromarray(array[:, :, 0] if self.channels == 1 else array)


def is_pil(value: object) -> TypeGuard[PilImage]:
    """Return whether a value is a PIL image, without importing PIL."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(value).__mro__)


def has_pixel_mode(value: PilImage) -> bool:
    """Return whether the mode of a PIL image is one that is held as pixels: L, LA, RGB or RGBA."""
    return value.mode in _CHANNELS


def is_picture(value: object) -> bool:
    """Return whether a value is an array that could be an image: uint8 of shape (H, W) or (H, W, C)."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and (value.ndim == 2 or (value.ndim == 3 and value.shape[2] in _MODES))
    )


def held(value: Pixels | PilImage | np.ndarray) -> Pixels:
    """Return a PIL image, or a uint8 array, as pixels.

    Raises:
        TypeError: the mode of the image is none of L, LA, RGB and RGBA.
    """
    if isinstance(value, Pixels):
        return value
    if isinstance(value, np.ndarray):
        return Pixels(value[:, :, None] if value.ndim == 2 else value, as_array=True, flat=value.ndim == 2)
    if value.mode not in _CHANNELS:
        raise TypeError(
            f"An image of PIL has the mode {value.mode}, but transforms take {', '.join(_CHANNELS)}: convert it, e.g. with "
            "image.convert('RGB')"
        )
    return Pixels(None, original=value)


def joined_fill(fill: Sequence[float] | float | None) -> Sequence[float]:
    """Return the fill values as a sequence: one for each channel, or one for all channels."""
    if fill is None:
        return (0,)
    return (fill,) if isinstance(fill, (int, float)) else fill
