"""The patches of overlapping crops that Molmo 2 pools to one token; found by probing `Molmo2ImageProcessor` of transformers 5.23."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Crops(NamedTuple):
    """How a canvas is cut into overlapping crops.

    Attributes:
        patches: the number of patches per side of a crop.
        before, after: the number of patches at the start, and at the end, of a crop's side that are taken from the neighbouring crop if
            there is one.
        pool: the number of rows and of columns of patches that become one token.
    """

    patches: int
    before: int
    after: int
    pool: tuple[int, int]

    @property
    def window(self) -> int:
        """The number of patches from one crop to the next."""
        return self.patches - self.before - self.after

    def tokens(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the number of rows and columns of tokens for ``rows`` and ``columns`` of patches."""
        return -(-rows // self.pool[0]), -(-columns // self.pool[1])

    def numbers(self, rows: int, columns: int) -> np.ndarray:
        """Return, for each patch of a canvas, its number among the patches of all crops, one crop after the other: int32 of shape
        (rows, columns).
        """
        (down, row), (across, column) = self._places(rows), self._places(columns)
        crops = down[:, None] * (int(across[-1]) + 1) + across
        numbers: np.ndarray = (crops * self.patches + row[:, None]) * self.patches + column
        return numbers.astype(np.int32)

    def _places(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each patch along an axis, the number of the crop to which it belongs and its position in that crop."""
        last = (count - self.patches) // self.window
        places = np.arange(count)
        crops = np.clip((places - self.before) // self.window, 0, last)
        return crops, places - crops * self.window


def pooled(numbers: np.ndarray, pool: tuple[int, int]) -> np.ndarray:
    """Return the numbers of each token's patches, row by row: int32 of shape (tokens, patches of a token), padded with -1."""
    beyond = [-extent % size for extent, size in zip(numbers.shape, pool)]
    padded = np.pad(numbers, [(each // 2, each - each // 2) for each in beyond], constant_values=-1)
    rows, columns = (extent // size for extent, size in zip(padded.shape, pool))
    squares = padded.reshape(rows, pool[0], columns, pool[1]).transpose(0, 2, 1, 3)
    own: np.ndarray = squares.reshape(rows * columns, pool[0] * pool[1])
    return own
