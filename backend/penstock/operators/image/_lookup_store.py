"""`rescale_normalize` as the last stage of a chain, with pixel values looked up in tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.kernels.windows import Region
from penstock.schema import Sample
from penstock.schema.image_chain import Pixels, Store
from penstock.schema.operator import Shape

PLANES = (2, 0, 1)
"""The permutation from HWC to CHW."""


@dataclass(frozen=True)
class LookupStore(Store):
    """Looks up the pixel values of uint8 images in a table per channel, and stores them with permuted dimensions.

    Attributes:
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        factors: factors that compute the table's values (see :func:`factors_of`); empty if there are none.
        permutation: the order of the output's dimensions, as indices into HWC.
        shape: the output's shape.
    """

    table: np.ndarray
    factors: np.ndarray
    permutation: tuple[int, ...]
    shape: Shape

    writes_views = True

    @property
    def is_computed(self) -> bool:
        """Whether three-channel images are stored as planes, with values computed with ``factors`` rather than looked up."""
        return len(self.factors) > 0 and self.permutation == PLANES

    def covers(self, window: Region) -> Region:
        place = self.permutation.index(2)
        anchor, extents = list(window.anchor), list(window.extents)
        anchor[place], extents[place] = 0, self.shape[place]
        return Region(tuple(anchor), tuple(extents))

    def reads(self, window: Region) -> Region:
        order = [self.permutation.index(axis) for axis in range(3)]
        return Region(tuple(window.anchor[k] for k in order), tuple(window.extents[k] for k in order))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        look_up(source.part(self.reads(window)), self.table, target, self.permutation, self.factors)


def look_up(
    image: np.ndarray, table: np.ndarray, target: np.ndarray, permutation: tuple[int, ...], factors: np.ndarray
) -> None:
    """Fill ``target`` with the normalized values of an image (H, W, C).

    Values are computed with ``factors`` if these are not empty and the kernel supports the image; otherwise, they are
    looked up in ``table``.
    """
    from penstock.kernels.cpu.pixel_values import LANES
    from penstock.operators.image._rescale_normalize_cpu import compute_planes, look_up_pixels

    planes = len(factors) and image.shape[2] == 3 and permutation[0] == 2 and image.shape[1] >= LANES
    if planes and image.flags.c_contiguous and target[0].flags.c_contiguous:
        # A strip of planes is not contiguous: pass all memory from its first to its last element as one array.
        stride = target.strides[0] // target.itemsize
        span = 2 * stride + target[0].size
        compute_planes(image, factors, as_strided(target, (span,), target.strides[2:]), stride)
        return
    order = [permutation.index(axis) for axis in range(3)]
    look_up_pixels(image, table, target.transpose(order))
