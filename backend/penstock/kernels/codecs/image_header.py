"""What an encoded image's header tells without decoding: format, size, channels, orientation.

JPEG headers are walked here, which takes some microseconds and gives the EXIF orientation on the way; other formats
are parsed by nvImageCodec, and by Pillow where nvImageCodec is not installed or does not know the format.

Sources: ITU-T T.81 (JPEG markers), Exif 2.32 (orientation, tag 0x0112), the PNG, TIFF 6.0 and WebP specifications.
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import PenstockError
from penstock.kernels.codecs.libraries import nvimgcodec, pillow_image
from penstock.kernels.windows import Region
from penstock.types import DALIImageType


class ImageError(PenstockError, ValueError):
    """Bytes that should be an encoded image cannot be read as one."""


class NotAnImageError(ImageError):
    """The bytes are empty or of no known image format."""


class CorruptImageError(ImageError):
    """The bytes begin like an image, but are cut short or damaged."""


@dataclass(frozen=True)
class Orientation:
    """How a stored image becomes upright: transposed first, then flipped.

    Attributes:
        transposed: rows become columns.
        flip_y: the order of rows is reversed (after transposing).
        flip_x: the order of columns is reversed (after transposing).
    """

    transposed: bool = False
    flip_y: bool = False
    flip_x: bool = False

    def size(self, height: int, width: int) -> tuple[int, int]:
        """The upright size (height, width) of an image that is stored as ``height`` x ``width``."""
        return (width, height) if self.transposed else (height, width)

    def upright(self, stored: np.ndarray) -> np.ndarray:
        """The upright view of a stored image of shape (H, W, ...); nothing is copied."""
        image = stored.swapaxes(0, 1) if self.transposed else stored
        return image[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]

    def stored(self, upright: np.ndarray) -> np.ndarray:
        """The view as it was stored of an upright image of shape (H, W, ...); the reverse of :meth:`upright`."""
        image = upright[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]
        return image.swapaxes(0, 1) if self.transposed else image

    def stored_region(self, region: Region, height: int, width: int) -> Region:
        """Where a region (in H, W) of the upright ``height`` x ``width`` image is stored."""
        (y, x), (rows, columns) = region.anchor, region.extents
        if self.flip_y:
            y = height - y - rows
        if self.flip_x:
            x = width - x - columns
        return Region((x, y), (columns, rows)) if self.transposed else Region((y, x), (rows, columns))


UPRIGHT = Orientation()
_BY_EXIF = {
    2: Orientation(flip_x=True),
    3: Orientation(flip_y=True, flip_x=True),
    4: Orientation(flip_y=True),
    5: Orientation(transposed=True),
    6: Orientation(transposed=True, flip_x=True),
    7: Orientation(transposed=True, flip_y=True, flip_x=True),
    8: Orientation(transposed=True, flip_y=True),
}


class ImageHeader(NamedTuple):
    """The header of an encoded image.

    Attributes:
        format: ``jpeg``, ``png``, ``tiff`` ... as nvImageCodec or Pillow call it, in small letters.
        height, width: as stored, before the orientation is applied.
        channels: as stored.
        orientation: how the stored image becomes upright.
        cmyk: the stored channels are inks.
        by_pillow: nvImageCodec does not read it, Pillow does.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: Orientation = UPRIGHT
    cmyk: bool = False
    by_pillow: bool = False

    def placed(self, adjust_orientation: bool) -> Orientation:
        """The orientation to apply."""
        return self.orientation if adjust_orientation else UPRIGHT

    def shape(self, output_type: DALIImageType, adjust_orientation: bool = True) -> tuple[int, int, int]:
        """The shape (H, W, C) of the image decoded as ``output_type``."""
        height, width = self.placed(adjust_orientation).size(self.height, self.width)
        return height, width, output_channels(output_type, self.channels)


def output_channels(output_type: DALIImageType, stored: int) -> int:
    """The number of channels of an image of ``stored`` channels decoded as ``output_type``."""
    if output_type == DALIImageType.ANY_DATA:
        return stored
    return 1 if output_type == DALIImageType.GRAY else 3


def read_header(encoded: np.ndarray) -> ImageHeader:
    """The header of an encoded image.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous; zeros behind the image are ignored.

    Raises:
        NotAnImageError: the bytes are empty or of no known format.
        CorruptImageError: the format is known, but the header is cut short or damaged.

    >>> read_header(np.fromfile("photo.jpg", np.uint8)).shape(DALIImageType.RGB)
    (853, 1280, 3)
    """
    if encoded.size == 0:
        raise NotAnImageError("Expected an encoded image, got no data (0 bytes)")
    header = _parse(encoded)
    pixels = header.height * header.width
    if min(header.height, header.width, header.channels) <= 0:
        raise CorruptImageError(f"Damaged image: its header tells a size of {header.height}x{header.width} pixels")
    if pixels > _LARGE and pixels > _DENSEST * encoded.size:
        raise CorruptImageError(
            f"{encoded.size} bytes cannot hold the {header.height}x{header.width} pixels that the header tells"
        )
    return header


# A few bytes must not make the process reserve gigabytes.
_LARGE, _DENSEST = 1 << 28, 10_000


def _parse(encoded: np.ndarray) -> ImageHeader:
    data = encoded.data
    if data[:2] == b"\xff\xd8":
        return _jpeg_header(data)
    codec = nvimgcodec()
    if codec is not None:
        try:
            return _nvimgcodec_header(codec, encoded, data)
        except (RuntimeError, TypeError):
            pass  # Of no kind that nvImageCodec reads; it does not tell which.
    return _pillow_header(data)


def _nvimgcodec_header(codec: Any, encoded: np.ndarray, data: memoryview) -> ImageHeader:
    stream = codec.CodeStream(encoded)
    name = stream.codec_name
    if np.dtype(stream.dtype).kind not in "uif":
        raise CorruptImageError(f"Damaged image: its {name} header tells an unknown type of pixels")
    find_exif = _EXIF_FINDERS.get(name)
    orientation = _exif_orientation(find_exif(data)) if find_exif else UPRIGHT
    cmyk = stream.color_spec == codec.ColorSpec.CMYK
    return ImageHeader(name, stream.height, stream.width, stream.num_channels, orientation, cmyk)


def _pillow_header(data: memoryview) -> ImageHeader:
    with reading_with_pillow(data) as image:
        orientation = _BY_EXIF.get(image.getexif().get(_ORIENTATION_TAG, 1), UPRIGHT)
        channels = 3 if image.mode in ("P", "PA") else len(image.getbands())
        name = (image.format or "").lower()
        width, height = image.size
        if name == "tiff":
            width, height = image.tag_v2[_TIFF_WIDTH], image.tag_v2[_TIFF_HEIGHT]  # Pillow tells the upright size.
        return ImageHeader(name, height, width, channels, orientation, image.mode == "CMYK", True)


@contextlib.contextmanager
def reading_with_pillow(data: memoryview) -> Iterator[Any]:
    """The image as Pillow's, not yet decoded; what goes wrong with it inside the context is an ImageError."""
    pillow = pillow_image()
    try:
        yield pillow.open(io.BytesIO(data))
    except pillow.UnidentifiedImageError:
        start = bytes(data[:8])
        if any(start.startswith(signature) for signature in _SIGNATURES):
            raise CorruptImageError(f"The image's header is damaged or cut short ({len(data)} bytes)") from None
        raise NotAnImageError(
            f"The {len(data)} bytes are not an image of a known format; they begin with {start!r}"
        ) from None
    except ImageError:
        raise
    except (*_PILLOW_ERRORS, pillow.DecompressionBombError) as error:
        raise CorruptImageError(f"The image ({len(data)} bytes) cannot be read: {error}") from error


_PILLOW_ERRORS = (
    *(OSError, SyntaxError, ValueError, EOFError, RuntimeError, SystemError, TypeError, IndexError, KeyError),
    struct.error,
)
_SIGNATURES = (b"\x89PNG", b"BM", b"II*\0", b"MM\0*", b"RIFF", b"GIF8", b"\0\0\0\x0cjP", b"\xff\x4f\xff\x51")

# -- JPEG --------------------------------------------------------------------------------------------------------

_FILL, _END_OF_IMAGE, _START_OF_SCAN, _APP1 = 0xFF, 0xD9, 0xDA, 0xE1
_LAST = {_START_OF_SCAN, _END_OF_IMAGE}
_WITHOUT_LENGTH = {_FILL, 0x01, *range(0xD0, 0xD8), *_LAST}
_START_OF_FRAME = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# A segment begins with a prefix, a marker and its length; a frame's header tells height, width and channels.
_SEGMENT, _FRAME = struct.Struct(">BBH").unpack_from, struct.Struct(">HHB").unpack_from


def _jpeg_header(data: memoryview) -> ImageHeader:
    orientation = UPRIGHT
    size: tuple[int, int, int] | None = None
    position = 2
    try:
        while True:
            prefix, marker, length = _SEGMENT(data, position)
            if prefix != 0xFF:
                raise CorruptImageError(f"Damaged JPEG: no marker at byte {position}")
            if marker in _WITHOUT_LENGTH:
                if marker in _LAST:
                    break
                position += 1 if marker == _FILL else 2
                continue
            if marker in _START_OF_FRAME:
                height, width, channels = _FRAME(data, position + 5)
                size = height, width, channels
            elif marker == _APP1 and data[position + 4 : position + 10] == b"Exif\0\0":
                orientation = _exif_orientation(data[position + 10 : position + 2 + length])
            position += 2 + length
    except struct.error:
        raise CorruptImageError(f"Truncated JPEG: its {len(data)} bytes end within the header") from None
    if size is None or 0 in size:
        raise CorruptImageError("Damaged JPEG: no image is described before its data")
    return ImageHeader("jpeg", *size, orientation)


# -- orientation -------------------------------------------------------------------------------------------------

_ORIENTATION_TAG, _TIFF_WIDTH, _TIFF_HEIGHT = 0x0112, 256, 257


def _exif_orientation(tiff: memoryview | None) -> Orientation:
    """The orientation that a TIFF structure (a file, or the contents of an EXIF block) gives; upright without one."""
    if tiff is None:
        return UPRIGHT
    order = {b"II": "<", b"MM": ">"}.get(bytes(tiff[:2]))
    if order is None:
        return UPRIGHT
    try:
        magic, directory = struct.unpack_from(order + "HI", tiff, 2)
        if magic != 42:
            return UPRIGHT
        (count,) = struct.unpack_from(order + "H", tiff, directory)
        for entry in range(directory + 2, directory + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(order + "HH", tiff, entry)
            if tag == _ORIENTATION_TAG:
                (value,) = struct.unpack_from(order + ("I" if kind == 4 else "H"), tiff, entry + 8)
                return _BY_EXIF.get(value, UPRIGHT)
    except struct.error:
        pass  # Damaged metadata do not make the image unreadable.
    return UPRIGHT


def _png_exif(data: memoryview) -> memoryview | None:
    position = 8
    while position + 8 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if data[position + 4 : position + 8] == b"eXIf":
            return data[position + 8 : position + 8 + length]
        position += 12 + length
    return None


def _webp_exif(data: memoryview) -> memoryview | None:
    position = 12
    while position + 8 <= len(data):
        length = int.from_bytes(data[position + 4 : position + 8], "little")
        if data[position : position + 4] == b"EXIF":
            block = data[position + 8 : position + 8 + length]
            return block[6:] if block[:6] == b"Exif\0\0" else block
        position += 8 + length + (length & 1)
    return None


def _whole_file(data: memoryview) -> memoryview:
    return data


_EXIF_FINDERS = {"png": _png_exif, "webp": _webp_exif, "tiff": _whole_file}
