"""Transparent images on a white background, and what Pillow converts to RGB otherwise than other decoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.images import image_format
from penstock.kernels.codecs.image_description import ImageHeader
from penstock.kernels.codecs.image_header import reading_with_pillow

_BY_FORMAT = ("png", "webp", "gif", "tiff")
# Where a PNG has the bits of a sample.
_PNG_DEPTH = 24
_TIFF_DEPTHS = 258
_BITS = 8
_CMYK = 4


def asks_pillow(header: ImageHeader) -> bool:
    """Whether a file may be transparent, or CMYK, or have more than 8 bits: then :func:`decode_on_white` looks closer."""
    return header.cmyk or header.format in _BY_FORMAT or (header.format == "jpeg" and header.channels == _CMYK)


def decode_on_white(encoded: np.ndarray, output: np.ndarray, decoding: Decoding = FREELY) -> bool:
    """Decodes an image onto a white background, upright, as RGB; CMYK and colours of 16 bits become what they are to Pillow.

    Args:
        encoded: a file that was decoded before, so that its header is valid and its size allowed.
        output: uint8 of shape (H, W, 3), the size of the image.
        decoding: where to decode.

    Returns:
        False, with the output undefined, if the image is none of these, or has another size.
    """
    known = image_format(encoded.data)
    # Of JPEGs, it knows none: they are checked on their own, and trusted.
    pool = decoding.pool_for(*((known.trusted, known.check(encoded.data).crash_prone) if known else (True, False)))
    if pool is None:
        return decode_on_white_in_process(encoded, output)
    return bool(pool.run("decode_on_white", known.title if known else "JPEG", encoded, None, output))


def decode_on_white_in_process(encoded: np.ndarray, output: np.ndarray) -> bool:
    """Like :func:`decode_on_white`, but always in this process."""
    from PIL import Image, ImageOps

    with reading_with_pillow(encoded.data) as image:
        transparent = "A" in image.getbands() or image.info.get("transparency") is not None
        if not (transparent or image.mode == "CMYK" or (image.mode == "RGB" and _is_deep(image, encoded))):
            return False
        # This decodes.
        upright = ImageOps.exif_transpose(image)
        if transparent:
            page = Image.new("RGBA", upright.size, "white")
            upright = Image.alpha_composite(page, upright.convert("RGBA"))
        pixels = np.asarray(upright.convert("RGB"))
    if pixels.shape != output.shape:
        return False
    np.copyto(output, pixels)
    return True


def _is_deep(image: Any, encoded: np.ndarray) -> bool:
    """Whether a file has more bits than the image that Pillow makes of it."""
    if image.format == "PNG":
        return int(encoded[_PNG_DEPTH]) > _BITS
    return image.format == "TIFF" and max(image.tag_v2.get(_TIFF_DEPTHS, (1,))) > _BITS
