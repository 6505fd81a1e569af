"""Estimates from headers how much memory decoding takes besides its result, so that files that need too much are refused before anything is
allocated.

The numbers are the increase of ``VmHWM`` in a fresh process that decoded an image of 6 or 24 megapixels (2026-11-28; Pillow 13.0,
nvImageCodec 0.9, simplejpeg 1.9, pillow-heif 1.8), the largest of all output types, rounded up. tests/kernels/codecs/
test_decoder_memory.py measures them again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.headers import jpeg
from penstock.kernels.codecs.headers.declared import Declared
from penstock.kernels.codecs.image_description import UPRIGHT, ImageHeader, JpegHeaders, PngHeaders, output_channels

BASE_BYTES = 8 << 20
"""The bytes that every decoder takes, for tables and for blocks of converted values."""

_MIN_CHANNELS = 3  # Grey images are often decoded to colours.


class PixelCost(NamedTuple):
    """The number of bytes that a decoder takes for each pixel of an image.

    Attributes:
        copies: the number of copies of the stored pixel; each is counted as having at least three channels.
        per_channel: additional bytes per pixel and channel.
        fixed: additional bytes per pixel, independent of the number of channels.
    """

    copies: int
    per_channel: int = 0
    fixed: int = 0

    def of(self, image: Declared) -> int:
        """Return the bytes that decoding an image with this header takes."""
        value = -(-image.bits // 8)
        pixel = (
            self.copies * max(image.channels, _MIN_CHANNELS) * value + self.per_channel * image.channels + self.fixed
        )
        return image.height * image.width * pixel + _COPIES_OF_TILE * image.tile


# The number of copies of a tile in memory: libtiff has one, and Pillow one for a part of an image.
_COPIES_OF_TILE = 2

# Measured, in bytes per pixel: 6.7 (8 bits), 8.7 (RGBA), 12.7 (16 bits), 16.7 (RGBA with 16 bits). Interlaced images take the same.
PNG = PixelCost(copies=2, fixed=2)
PNG_BYTES_PER_PIXEL = np.array([PNG.of(Declared(1, 1, channels)) for channels in range(5)])
"""The bytes per pixel that decoding 8-bit PNGs takes, by the number of channels."""
# Measured, both lossless: 9.7 bytes per pixel, with alpha 12.7.
WEBP = PixelCost(copies=3, fixed=1)
# Measured: 10.0 bytes per pixel.
BMP = PixelCost(copies=3, fixed=2)
# Measured: 10.1 bytes per pixel, with 16 bits 12.7.
PNM = PixelCost(copies=3, fixed=2)
# Measured: 11.0 bytes per pixel.
GIF = PixelCost(copies=3, fixed=3)
# Pillow makes the mask and an RGBA image, in addition to what decoding a BMP takes.
ICO = PixelCost(copies=4, fixed=4)
# Measured, in bytes per pixel: 17.7, including the file itself, if it is not compressed; CMYK 20; RGBA with 16 bits 28.5; floats
# 25.6.
TIFF = PixelCost(copies=3, fixed=9)
# Measured, in bytes per pixel: 19.2, with 16 bits 27.7, grey 10.6. OpenJPEG computes with 32 bits, and files with more than
# 8 bits are decoded twice.
JPEG_2000 = PixelCost(copies=2, per_channel=5, fixed=3)
# Measured: 16.0 bytes per pixel. With more than 8 bits, planes take twice as much; headers do not always state the depth.
AVIF = PixelCost(copies=0, fixed=32)
# Measured: 14.3 bytes per pixel, twice as much with more than 8 bits.
HEIC = PixelCost(copies=0, fixed=28)

# -- JPEG --------------------------------------------------------------------------------------------------------------

# If a file has several scans, decoders store all coefficients, 2 bytes each, and our kernels also store one word per level
# for every 64 coefficients.
_COEFFICIENT_BYTES = 3
# Measured, in bytes per pixel: 0 with our kernels and simplejpeg, which decode a few rows at a time; 6.1 with nvImageCodec, where
# CMYK takes 12, and 19.6 if it is decoded to grey.
_JPEG_IN_PLACE, _JPEG_BY_LIBRARY, _JPEG_CMYK = 1, 7, 20


def image_memory(
    header: ImageHeader, encoded: np.ndarray, output_type: DALIImageType, dtype: np.dtype, adjust_orientation: bool
) -> int:
    """Return the bytes of memory that :func:`~penstock.kernels.codecs.image_codec.decode` takes besides the result.

    Args:
        header, encoded, output_type, adjust_orientation: as for ``decode``; the whole image is decoded.
        dtype: the type of the result.
    """
    result = math.prod(header.shape(output_type, adjust_orientation)) * dtype.itemsize
    memory = BASE_BYTES + encoded.size + header.memory
    if header.format == "jpeg":
        memory += _jpeg_memory(header, encoded, output_type, dtype)
    if header.isolated:
        memory += result  # for the image in the worker, which is then copied
    if header.placed(adjust_orientation) != UPRIGHT:
        memory += result  # for the image before rotation
    return memory


def memory_of_jpegs(
    headers: JpegHeaders, file_bytes: np.ndarray, output_type: DALIImageType, dtype: np.dtype, adjust_orientation: bool
) -> np.ndarray:
    """Return the same as :func:`image_memory` for each of many ordinary JPEGs, int64.

    Args:
        headers, output_type, dtype, adjust_orientation: as for :func:`image_memory`.
        file_bytes: the sizes of the files.
    """
    height, width, stored = headers.shapes.T
    pixel = _ordinary_jpeg_pixel(output_type, dtype) + _COEFFICIENT_BYTES * stored * headers.needs_all_coefficients
    memory: np.ndarray = BASE_BYTES + file_bytes + height * width * pixel
    channels = stored if output_type == DALIImageType.ANY_DATA else output_channels(output_type, 0)
    copies = headers.turned.astype(np.int64) * adjust_orientation + headers.isolated
    return memory + copies * height * width * channels * dtype.itemsize


def _ordinary_jpeg_pixel(output_type: DALIImageType, dtype: np.dtype) -> int:
    """Return the bytes of memory for each pixel of a JPEG that is not CMYK."""
    return _JPEG_BY_LIBRARY if output_type == DALIImageType.YCbCr or dtype != np.uint8 else _JPEG_IN_PLACE


def _jpeg_memory(header: ImageHeader, encoded: np.ndarray, output_type: DALIImageType, dtype: np.dtype) -> int:
    pixel = _JPEG_CMYK if header.channels > _MIN_CHANNELS else _ordinary_jpeg_pixel(output_type, dtype)
    if jpeg.has_several_scans(encoded.data, header.channels):
        pixel += _COEFFICIENT_BYTES * header.channels
    return header.height * header.width * pixel


def memory_of_pngs(headers: PngHeaders, file_bytes: np.ndarray) -> np.ndarray:
    """Return the same as :func:`image_memory` for each of many plain PNGs; ``file_bytes``: the sizes of the files."""
    memory: np.ndarray = BASE_BYTES + file_bytes + headers.memory
    return memory


ON_WHITE_BYTES_PER_PIXEL = 28
"""The bytes per pixel that Pillow takes to put an RGBA image on white: for the decoded image, a converted copy, the white background, the
composite of both, and the result as RGB.
"""

# -- videos and recordings ---------------------------------------------------------------------------------------------

# The number of reference frames that H.264 and HEVC allow plus frames in flight, and the bytes per pixel of YUV 4:2:0.
_VIDEO_FRAMES, _VIDEO_BYTES_PER_PIXEL = 20, 1.5


def video_bytes(height: int, width: int) -> int:
    """Return the bytes that a video decoder takes for frames of this size."""
    return int(_VIDEO_FRAMES * _VIDEO_BYTES_PER_PIXEL * height * width)


def recording_bytes(encoded: int) -> int:
    """Return the bytes that decoding a recording of ``encoded`` bytes takes: libsndfile reads a copy of the file, and decodes it block
    by block.
    """
    return encoded + BASE_BYTES
