"""Reads the header of an encoded image: format, size, channels, orientation.

The modules of ``headers`` check all headers first. For JPEG that is enough, and takes a few microseconds; other headers are then parsed by
nvImageCodec, or by Pillow if nvImageCodec is not installed or does not support the format.

Sources: Exif 2.32 (orientation, tag 0x0112), the PNG, TIFF 6.0 and WebP specifications.
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import codecs
from penstock.kernels.codecs.decoder_memory import PNG_BYTES_PER_PIXEL
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers import jpeg
from penstock.kernels.codecs.headers.avif import is_heic
from penstock.kernels.codecs.headers.images import ImageFormat, image_format
from penstock.kernels.codecs.image_description import (
    BY_EXIF,
    UPRIGHT,
    EncodedFiles,
    ImageHeader,
    JpegHeaders,
    Orientation,
    PngHeaders,
)
from penstock.kernels.codecs.image_errors import CorruptImageError, ImageError, NotAnImageError
from penstock.kernels.codecs.isolated_images import read_header_isolated
from penstock.kernels.codecs.libraries import add_heif_to_pillow, nvimgcodec, pillow_image

if TYPE_CHECKING:
    from penstock.kernels.codecs.worker_pool import DecoderPool


def read_header(encoded: np.ndarray, decoding: Decoding = FREELY) -> ImageHeader:
    """Return the header of an encoded image.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous; zeros after the image are ignored.
        decoding: the settings: the limits to apply, and in which process to decode.

    Raises:
        NotAnImageError: the bytes are empty or of no known format.
        CorruptImageError: the format is known, but the header is truncated or damaged.
        LimitError: the image exceeds the limits.

    >>> read_header(np.fromfile("photo.jpg", np.uint8)).shape(DALIImageType.RGB)
    (853, 1280, 3)
    """
    if encoded.size == 0:
        raise NotAnImageError("Expected an encoded image, got no data (0 bytes)")
    data = encoded.data
    if data[:2] == jpeg.SIGNATURE:
        height, width, channels, exif = jpeg.check_jpeg(data)
        decoding.limits.check_pixels(height, width)
        isolated = decoding.pool_for(trusted=True) is not None
        return ImageHeader("jpeg", height, width, channels, _exif_orientation(exif), isolated=isolated)
    known = image_format(data)
    if known is None:
        raise NotAnImageError(
            f"The {len(data)} bytes are not an image of a known format; they begin with {bytes(data[:8])!r}"
        )
    declared = known.check(data)
    decoding.limits.check_pixels(declared.height, declared.width)
    pool = decoding.pool_for(known.trusted, declared.crash_prone)
    if declared.is_plain and pool is None and nvimgcodec() is not None:
        # The same values as nvImageCodec reads, in a third of the time.
        header = ImageHeader(known.title.lower(), declared.height, declared.width, declared.channels)
    else:
        header = _read(encoded, known, pool)
    _check_size(header, encoded.size)
    decoding.limits.check_pixels(header.height, header.width)
    stored = declared._replace(channels=max(declared.channels, header.channels))
    if header.height * header.width > declared.height * declared.width:
        stored = stored._replace(height=header.height, width=header.width)
    return header._replace(memory=known.cost.of(stored))


def read_jpeg_headers(files: EncodedFiles, decoding: Decoding = FREELY) -> Sequence[ImageHeader | None]:
    """Return the headers of ordinary JPEGs, read together; None for each file that :func:`read_header` has to read."""
    found = codecs.read_jpeg_headers(files.places, files.sizes)
    isolated, most = decoding.pool_for(trusted=True) is not None, decoding.limits.pixels
    taken = found["channels"] > 0
    if most is not None:
        taken &= found["height"] * found["width"] <= most
    headers = JpegHeaders(found, isolated)
    return headers if taken.all() else [header if own else None for header, own in zip(headers, taken.tolist())]


def read_png_sizes(files: EncodedFiles, decoding: Decoding = FREELY) -> np.ndarray | None:
    """Return height and width of plain, upright PNGs, int64; None if :func:`read_header` has to read any of them."""
    if decoding.pool_for(trusted=True) is not None:
        return None
    found, most = codecs.read_png_sizes(files.places, files.sizes), decoding.limits.pixels
    known = found.all() and (most is None or (found.prod(axis=1) <= most).all())
    return found if known else None


def read_png_headers(files: EncodedFiles, decoding: Decoding = FREELY) -> PngHeaders | None:
    """Return the headers of files that are all plain 8-bit PNGs; None if :func:`read_header` has to read any of them."""
    if decoding.pool_for(trusted=True) is not None or nvimgcodec() is None:
        return None
    found, most = codecs.read_png_headers(files.places, files.sizes), decoding.limits.pixels
    pixels = found[:, 0] * found[:, 1]
    if not found.all() or (most is not None and (pixels > most).any()):
        return None
    return PngHeaders(found, pixels * PNG_BYTES_PER_PIXEL[found[:, 2]])


def _read(encoded: np.ndarray, known: ImageFormat, pool: DecoderPool | None) -> ImageHeader:
    if pool is None:
        return parse_header(encoded)
    return read_header_isolated(pool, encoded, known.title)


def _check_size(header: ImageHeader, available: int) -> None:
    pixels = header.height * header.width
    if min(header.height, header.width, header.channels) <= 0:
        raise CorruptImageError(f"Damaged image: its header declares a size of {header.height}x{header.width} pixels")
    if pixels > _MAX_UNCHECKED_PIXELS and pixels > _MAX_PIXELS_PER_BYTE * available:
        raise CorruptImageError(
            f"{available} bytes cannot hold the {header.height}x{header.width} pixels that the header declares"
        )


# Without these limits, a few bytes could make the process allocate gigabytes.
_MAX_UNCHECKED_PIXELS, _MAX_PIXELS_PER_BYTE = 1 << 28, 10_000


def parse_header(encoded: np.ndarray) -> ImageHeader:
    """Return the header of an image other than a JPEG. A library parses it in this process, so the file must be safe for that."""
    codec = nvimgcodec()
    if codec is not None:
        try:
            return _nvimgcodec_header(codec, encoded, encoded.data)
        except (RuntimeError, TypeError):
            pass  # nvImageCodec does not support the file, and does not say which format it is.
    return _pillow_header(encoded.data)


def _nvimgcodec_header(codec: ModuleType, encoded: np.ndarray, data: memoryview) -> ImageHeader:
    stream = codec.CodeStream(encoded)
    name = stream.codec_name
    if np.dtype(stream.dtype).kind not in "uif":
        raise CorruptImageError(f"Damaged image: its {name} header declares an unknown pixel type")
    find_exif = _EXIF_FINDERS.get(name)
    orientation = _exif_orientation(find_exif(data)) if find_exif else UPRIGHT
    cmyk = stream.color_spec == codec.ColorSpec.CMYK
    return ImageHeader(name, stream.height, stream.width, stream.num_channels, orientation, cmyk)


def _pillow_header(data: memoryview) -> ImageHeader:
    with reading_with_pillow(data) as image:
        orientation = BY_EXIF.get(image.getexif().get(_ORIENTATION_TAG, 1), UPRIGHT)
        channels = 3 if image.mode in ("P", "PA") else len(image.getbands())
        name = (image.format or "").lower()
        width, height = image.size
        if name == "tiff":
            width, height = (
                image.tag_v2[_TIFF_WIDTH],
                image.tag_v2[_TIFF_HEIGHT],
            )  # Pillow's own size is that of the upright image
        return ImageHeader(name, height, width, channels, orientation, image.mode == "CMYK", True)


@contextlib.contextmanager
def reading_with_pillow(data: memoryview) -> Iterator[Any]:
    """Open an image with Pillow, without decoding it; errors inside the context are raised as ImageError."""
    pillow = pillow_image()
    heic = is_heic(data)
    if heic:
        add_heif_to_pillow()
    try:
        yield pillow.open(io.BytesIO(data), formats=("HEIF",) if heic else _PILLOW_FORMATS)
    except pillow.UnidentifiedImageError:
        raise CorruptImageError(f"The image's header is damaged or cut short ({len(data)} bytes)") from None
    except (ImageError, MemoryError):
        raise
    except Exception as error:
        # Damaged files make Pillow raise almost anything, from OverflowError to AssertionError.
        raise CorruptImageError(f"The image ({len(data)} bytes) cannot be read: {error}") from error


# Pillow reads many more formats, one of them by running another program. It gets only formats whose headers have been checked.
_PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO")

# -- orientation -------------------------------------------------------------------------------------------------

_ORIENTATION_TAG, _TIFF_WIDTH, _TIFF_HEIGHT = 0x0112, 256, 257


def _exif_orientation(tiff: memoryview | None) -> Orientation:
    """Return the orientation in a TIFF structure, which is a file or an EXIF block; upright if it has none."""
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
                return BY_EXIF.get(value, UPRIGHT)
    except struct.error:
        pass  # Damaged metadata do not make the image unreadable.
    return UPRIGHT


def _png_exif(data: memoryview) -> memoryview | None:
    position = 8
    while position + 8 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if bytes(data[position + 4 : position + 8]) == b"eXIf":
            return data[position + 8 : position + 8 + length]
        position += 12 + length
    return None


def _webp_exif(data: memoryview) -> memoryview | None:
    position = 12
    while position + 8 <= len(data):
        length = int.from_bytes(data[position + 4 : position + 8], "little")
        if bytes(data[position : position + 4]) == b"EXIF":
            block = data[position + 8 : position + 8 + length]
            return block[6:] if bytes(block[:6]) == b"Exif\0\0" else block
        position += 8 + length + (length & 1)
    return None


def _whole_file(data: memoryview) -> memoryview:
    return data


_EXIF_FINDERS = {"png": _png_exif, "webp": _webp_exif, "tiff": _whole_file}
