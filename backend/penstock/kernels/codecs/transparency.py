"""Transparent images on a white background."""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.images import image_format
from penstock.kernels.codecs.image_header import reading_with_pillow

_PNG, _RIFF, _WEBP, _GIF = b"\x89PNG\r\n\x1a\n", b"RIFF", b"WEBP", b"GIF8"


def may_be_transparent(encoded: np.ndarray) -> bool:
    """Whether a file's format allows transparency: PNG, WebP and GIF do."""
    start = encoded[:16].tobytes()
    return start.startswith((_PNG, _GIF)) or (start[:4] == _RIFF and start[8:12] == _WEBP)


def decode_on_white(encoded: np.ndarray, output: np.ndarray, decoding: Decoding = FREELY) -> bool:
    """Decodes an image onto a white background, upright, as RGB.

    Args:
        encoded: a file that was decoded before, so that its header is valid and its size allowed.
        output: uint8 of shape (H, W, 3), the size of the image.
        decoding: where to decode.

    Returns:
        False, with the output undefined, if the image has no transparency, or another size.
    """
    known = image_format(encoded.data)
    if known is None:
        return False
    pool = decoding.pool_for(known.trusted, known.check(encoded.data).crash_prone)
    if pool is None:
        return decode_on_white_in_process(encoded, output)
    return bool(pool.run("decode_on_white", known.title, encoded, None, output))


def decode_on_white_in_process(encoded: np.ndarray, output: np.ndarray) -> bool:
    """Like :func:`decode_on_white`, but always in this process."""
    from PIL import Image, ImageOps

    with reading_with_pillow(encoded.data) as image:
        if "A" not in image.getbands() and image.info.get("transparency") is None:
            return False
        upright = ImageOps.exif_transpose(image).convert("RGBA")
        page = Image.new("RGBA", upright.size, "white")
        pixels = np.asarray(Image.alpha_composite(page, upright).convert("RGB"))
    if pixels.shape != output.shape:
        return False
    np.copyto(output, pixels)
    return True
