"""The bytes of encoded images, and the values of their headers: format, size and orientation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from penstock.core.codecs import JPEG_HEADER, find_whole_jpegs
from penstock.data_types import DALIImageType
from penstock.kernels.windows import Region
from penstock.tensors.places import places_of_flat


class EncodedFiles:
    """The bytes of files, and the addresses by which compiled code accesses them.

    Args:
        files: each file's bytes, uint8 of shape (n,), contiguous.
        places: the addresses of the files' bytes, int64; None: they are determined here.
        sizes: the sizes of the files in bytes, int64; None: they are determined here.

    Attributes:
        files: as above.
        places, sizes: as above, contiguous.
    """

    def __init__(
        self, files: Sequence[np.ndarray], places: np.ndarray | None = None, sizes: np.ndarray | None = None
    ) -> None:
        if places is None or sizes is None:
            known = places_of_flat(files)
            if known is None:
                places = np.array([file.__array_interface__["data"][0] for file in files], np.int64)
                sizes = np.array([file.size for file in files], np.int64)
            else:
                places, sizes = known
        self.files = files
        self.places, self.sizes = np.ascontiguousarray(places, np.int64), np.ascontiguousarray(sizes, np.int64)

    def __len__(self) -> int:
        return len(self.places)

    def take(self, indices: Sequence[int]) -> EncodedFiles:
        """Return the files at these indices."""
        if len(indices) == len(self):
            return self
        return EncodedFiles([self.files[index] for index in indices], self.places[indices], self.sizes[indices])

    def are_whole(self) -> np.ndarray:
        """Return whether each file ends with the end marker of a JPEG, apart from trailing zeros."""
        return find_whole_jpegs(self.places, self.sizes)


@dataclass(frozen=True)
class Orientation:
    """The steps that turn a stored image upright: first transpose, then flip.

    Attributes:
        transposed: whether to swap rows and columns.
        flip_y: whether to reverse the rows, after transposing.
        flip_x: whether to reverse the columns, after transposing.
    """

    transposed: bool = False
    flip_y: bool = False
    flip_x: bool = False

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the upright size (height, width) of an image stored as ``height`` x ``width``."""
        return (width, height) if self.transposed else (height, width)

    def upright(self, stored: np.ndarray) -> np.ndarray:
        """Return the upright view of a stored image of shape (H, W, ...), without a copy."""
        image = stored.swapaxes(0, 1) if self.transposed else stored
        return image[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]

    def stored(self, upright: np.ndarray) -> np.ndarray:
        """Return a view of an upright image of shape (H, W, ...) as it is stored; the inverse of :meth:`upright`."""
        image = upright[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]
        return image.swapaxes(0, 1) if self.transposed else image

    def stored_region(self, region: Region, height: int, width: int) -> Region:
        """Return the position, in the stored image, of a region (in H, W) of the upright ``height`` x ``width`` image."""
        (y, x), (rows, columns) = region.anchor, region.extents
        if self.flip_y:
            y = height - y - rows
        if self.flip_x:
            x = width - x - columns
        return Region((x, y), (columns, rows)) if self.transposed else Region((y, x), (rows, columns))


UPRIGHT = Orientation()
BY_EXIF = {
    2: Orientation(flip_x=True),
    3: Orientation(flip_y=True, flip_x=True),
    4: Orientation(flip_y=True),
    5: Orientation(transposed=True),
    6: Orientation(transposed=True, flip_x=True),
    7: Orientation(transposed=True, flip_y=True, flip_x=True),
    8: Orientation(transposed=True, flip_y=True),
}
"""Orientations by their number in EXIF data; images with other numbers are upright."""
_FIRST_TURNED, _FIRST_TRANSPOSED, _LAST = 2, 5, 8


class ImageHeader(NamedTuple):
    """The header of an encoded image.

    Attributes:
        format: the format's name in nvImageCodec or Pillow, in lower case: ``jpeg``, ``png``, ``tiff`` ...
        height, width: the extents as stored, before the orientation is applied.
        channels: the number of channels, as stored.
        orientation: how the image is turned upright.
        cmyk: whether the stored channels are CMYK.
        by_pillow: whether Pillow has to decode the image, as nvImageCodec does not support it.
        isolated: whether the image has to be decoded in a worker process.
        memory: the bytes that decoding takes besides the result, according to the format's
            :class:`~penstock.kernels.codecs.decoder_memory.PixelCost`; 0 for JPEG, where they depend on the file.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: Orientation = UPRIGHT
    cmyk: bool = False
    by_pillow: bool = False
    isolated: bool = False
    memory: int = 0

    def placed(self, adjust_orientation: bool) -> Orientation:
        """Return the orientation to apply: upright if it is not to be adjusted."""
        return self.orientation if adjust_orientation else UPRIGHT

    def shape(self, output_type: DALIImageType, adjust_orientation: bool = True) -> tuple[int, int, int]:
        """Return the shape (H, W, C) of the image decoded as ``output_type``."""
        height, width = self.placed(adjust_orientation).size(self.height, self.width)
        return height, width, output_channels(output_type, self.channels)


class JpegHeaders(Sequence[ImageHeader]):
    """The headers of many ordinary JPEGs.

    Args:
        records: a :data:`~penstock.core.codecs.JPEG_HEADER` for each image.
        isolated: whether the images have to be decoded in a worker process.

    Attributes:
        isolated: as above.
        shapes: height, width and channels as stored, int64 of shape (images, 3).
        sizes: height and width as stored, int64 of shape (images, 2).
    """

    def __init__(self, records: np.ndarray, isolated: bool) -> None:
        self._records, self.isolated = np.ascontiguousarray(records), isolated
        columns = self._records.view(np.int64).reshape(-1, len(JPEG_HEADER.fields or ()))
        # Contiguous, also for several images: compiled code takes arrays of one layout.
        self.shapes, self.sizes = np.ascontiguousarray(columns[:, :3]), np.ascontiguousarray(columns[:, :2])

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> ImageHeader: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ImageHeader]: ...

    def __getitem__(self, index: int | slice) -> ImageHeader | Sequence[ImageHeader]:
        if isinstance(index, slice):
            return JpegHeaders(self._records[index], self.isolated)
        height, width, channels, orientation, _ = self._records[index].tolist()
        return ImageHeader("jpeg", height, width, channels, BY_EXIF.get(orientation, UPRIGHT), isolated=self.isolated)

    def have_at_most(self, pixels: int) -> bool:
        """Return whether no image has more than this many pixels."""
        return bool((self.pixels <= pixels).all())

    @property
    def pixels(self) -> np.ndarray:
        """The number of pixels of each image."""
        return self.sizes[:, 0] * self.sizes[:, 1]

    @property
    def needs_all_coefficients(self) -> np.ndarray:
        """Whether decoders store all coefficients of each image, because it has several scans."""
        found: np.ndarray = self._records["needs_all_coefficients"] != 0
        return found

    @property
    def turned(self) -> np.ndarray:
        """Whether each image is stored in another orientation than upright."""
        return self._is_from(_FIRST_TURNED)

    @property
    def transposed(self) -> np.ndarray:
        """Whether each image is stored with rows and columns swapped."""
        return self._is_from(_FIRST_TRANSPOSED)

    def _is_from(self, first: int) -> np.ndarray:
        """Return which images have an EXIF orientation with a number from ``first`` on."""
        orientations: np.ndarray = self._records["orientation"]
        return (orientations >= first) & (orientations <= _LAST)


class PngHeaders(Sequence[ImageHeader]):
    """The headers of many plain PNGs.

    Args:
        shapes: height, width and channels as stored, int64 of shape (images, 3).
        memory: the bytes that decoding each image takes, besides the result and the bytes that every decoder takes, int64.

    Attributes:
        shapes, memory: as above.
    """

    def __init__(self, shapes: np.ndarray, memory: np.ndarray) -> None:
        self.shapes, self.memory = shapes, memory

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, index: int) -> ImageHeader: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ImageHeader]: ...

    def __getitem__(self, index: int | slice) -> ImageHeader | Sequence[ImageHeader]:
        if isinstance(index, slice):
            return PngHeaders(self.shapes[index], self.memory[index])
        height, width, channels = self.shapes[index].tolist()
        return ImageHeader("png", height, width, channels, memory=int(self.memory[index]))

    @property
    def transposed(self) -> np.ndarray:
        """Whether each image is stored with rows and columns swapped."""
        return np.zeros(len(self), np.bool_)


def output_channels(output_type: DALIImageType, stored: int) -> int:
    """Return the number of channels of an image with ``stored`` channels when it is decoded as ``output_type``."""
    if output_type == DALIImageType.ANY_DATA:
        return stored
    return 1 if output_type == DALIImageType.GRAY else 3
