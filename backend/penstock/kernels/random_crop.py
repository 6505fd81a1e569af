"""Random windows by area and aspect ratio: the crop with which images are augmented to train classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.random_keys import Key
from penstock.kernels.random_streams import CROP_KEY, Stream

__all__ = ["DEFAULT_AREA", "DEFAULT_ASPECT_RATIO", "RandomCrop", "Window"]

Window = tuple[int, int, int, int]

DEFAULT_AREA = [0.08, 1.0]
DEFAULT_ASPECT_RATIO = [3 / 4, 4 / 3]


class RandomCrop:
    """Draws windows with random area and aspect ratio.

    Args:
        area: the range of the window's area, as a fraction of the image's area.
        aspect_ratio: the range of the window's width divided by its height.
        attempts: the number of pairs of area and aspect ratio to try before the largest window in range is used.

    Raises:
        ValueError: a range is empty, or does not consist of one or two numbers.

    >>> window = RandomCrop().window(sample_stream(seed=5, produced=0, index=0), 480, 640)  # doctest: +SKIP
    """

    def __init__(
        self,
        area: Sequence[float] = DEFAULT_AREA,
        aspect_ratio: Sequence[float] = DEFAULT_ASPECT_RATIO,
        attempts: int = 10,
    ) -> None:
        self._area = _range(area, "random_area")
        self._ratio = _range(aspect_ratio, "random_aspect_ratio")
        self._attempts = int(attempts)

    def window(self, stream: Stream, height: int, width: int) -> Window:
        """Return a window (y, x, height, width) of an image of ``height`` x ``width`` pixels, drawn from a sample's random stream."""
        if height <= 0 or width <= 0:
            return 0, 0, 0, 0
        windows = self.windows(stream.key, np.array([stream.stream]), stream.start, np.array([[height, width]]))
        y, x, own_height, own_width = windows[0].tolist()
        return y, x, own_height, own_width

    def windows(self, key: Key, streams: np.ndarray, start: np.uint64, extents: np.ndarray) -> np.ndarray:
        """Return a window like :meth:`window` for each of many images: int64 of shape (images, 4).

        Args:
            key, start: the key of all random streams, and the position of their first draws.
            streams: the number of each image's stream.
            extents: each image's height and width, which must not be 0: int64 of shape (images, 2).
        """
        from penstock.kernels.cpu import random_windows

        extents, windows = np.ascontiguousarray(extents), np.empty((len(extents), 4), np.int64)
        random_windows.crop_windows(
            _of_crops(key), streams, start, extents, self._area, self._ratio, self._attempts, windows
        )
        return windows


def _range(values: Sequence[float], name: str) -> tuple[np.float32, np.float32]:
    if len(values) == 1:
        values = [*values, *values]
    if len(values) != 2:
        raise ValueError(f"`{name}` must be a range: two numbers, or one number for both ends. Got: {list(values)}")
    low, high = (np.float32(value) for value in values)
    if not low <= high:
        raise ValueError(f"Provided empty range: `{name}` is {list(values)}")
    return low, high


def _of_crops(key: Key) -> Key:
    """Return the key with which random windows are drawn, derived from an operator's key."""
    return (key[0] ^ CROP_KEY, key[1]) if isinstance(key, tuple) else key ^ CROP_KEY
