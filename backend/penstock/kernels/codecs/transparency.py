"""Transparent images on a white background, and other images that Pillow converts to RGB differently from other decoders."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.images import image_format
from penstock.kernels.codecs.image_description import ImageHeader
from penstock.kernels.codecs.image_header import reading_with_pillow

_BY_FORMAT = ("png", "webp", "gif", "tiff")
# The offset of the bit depth in a PNG.
_PNG_DEPTH = 24
_TIFF_DEPTHS = 258
_BITS = 8
_CMYK = 4


@dataclass(frozen=True)
class Conversion:
    """How Pillow converts an image to RGB.

    Attributes:
        drops_alpha: whether transparent pixels get the colours stored for them, as by `Image.convert("RGB")`; otherwise they are blended
            with white.
        upright: whether to rotate the image as its EXIF data says.
    """

    drops_alpha: bool = False
    upright: bool = True


def asks_pillow(header: ImageHeader, encoded: np.ndarray, drops_alpha: bool) -> bool:
    """Return whether :func:`decode_as_pillow` has to inspect the file: it may be transparent, CMYK, or have more than 8
    bits.
    """
    if header.cmyk or (header.format == "jpeg" and header.channels == _CMYK):
        return True
    if not drops_alpha:
        return header.format in _BY_FORMAT
    return header.format == "tiff" or (header.format == "png" and _has_deep_png_samples(encoded))


def decode_as_pillow(
    encoded: np.ndarray, output: np.ndarray, conversion: Conversion, decoding: Decoding = FREELY
) -> bool:
    """Decode an image if Pillow converts it to RGB differently from other decoders: it is transparent, CMYK, or has 16 bits.

    Args:
        encoded: a file that was decoded before, so that its header is known to be valid and its size to be allowed.
        output: uint8 of shape (H, W, 3), the size of the image.
        conversion: how to convert the image to RGB.
        decoding: the settings, which determine in which process to decode.

    Returns:
        False if the image is of none of these kinds, or has another size; ``output`` is then undefined.
    """
    known = image_format(encoded.data)
    # `image_format` does not cover JPEG; its decoders are trusted.
    pool = decoding.pool_for(*((known.trusted, known.check(encoded.data).crash_prone) if known else (True, False)))
    arguments = asdict(conversion)
    if pool is None:
        return decode_as_pillow_in_process(encoded, output, **arguments)
    return bool(pool.run("decode_as_pillow", known.title if known else "JPEG", encoded, arguments, output))


def decode_as_pillow_in_process(encoded: np.ndarray, output: np.ndarray, drops_alpha: bool, upright: bool) -> bool:
    """Same as :func:`decode_as_pillow`, but always in this process."""
    from PIL import Image, ImageOps

    with reading_with_pillow(encoded.data) as image:
        on_white = not drops_alpha and ("A" in image.getbands() or image.info.get("transparency") is not None)
        if not (on_white or image.mode == "CMYK" or _is_deep(image, encoded)):
            return False
        # The pixels are decoded here.
        turned = ImageOps.exif_transpose(image) if upright else image
        if on_white:
            page = Image.new("RGBA", turned.size, "white")
            turned = Image.alpha_composite(page, turned.convert("RGBA"))
        pixels = np.asarray(turned.convert("RGB"))
    if pixels.shape != output.shape:
        return False
    np.copyto(output, pixels)
    return True


def _is_deep(image: Any, encoded: np.ndarray) -> bool:
    """Return whether a file has more than 8 bits per sample."""
    if image.format == "PNG":
        return _has_deep_png_samples(encoded)
    return image.format == "TIFF" and max(image.tag_v2.get(_TIFF_DEPTHS, (1,))) > _BITS


def _has_deep_png_samples(encoded: np.ndarray) -> bool:
    return int(encoded[_PNG_DEPTH]) > _BITS
