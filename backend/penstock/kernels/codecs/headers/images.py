"""Detects the format of an encoded image, and checks the image's header."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.kernels.codecs import decoder_memory
from penstock.kernels.codecs.decoder_memory import PixelCost
from penstock.kernels.codecs.headers import avif, bmp, gif, ico, jpeg2000, png, pnm, tiff, webp
from penstock.kernels.codecs.headers.declared import Declared


class ImageFormat(NamedTuple):
    """An image format.

    Attributes:
        title: the format's common name.
        check: function that returns the values that a header declares; raises CorruptImageError for impossible ones.
        cost: the estimated memory for decoding an image, in bytes per pixel.
        trusted: whether the format's decoders have proven robust against malicious files, so that they run in this process if isolation is
            ``auto``.
    """

    title: str
    check: Callable[[memoryview], Declared]
    cost: PixelCost
    trusted: bool = False


_PNG = ImageFormat("PNG", png.check_png, decoder_memory.PNG, trusted=True)
_BMP = ImageFormat("BMP", bmp.check_bmp, decoder_memory.BMP, trusted=True)
_PNM = ImageFormat("PNM", pnm.check_pnm, decoder_memory.PNM, trusted=True)
_WEBP = ImageFormat("WebP", webp.check_webp, decoder_memory.WEBP, trusted=True)
_GIF = ImageFormat("GIF", gif.check_gif, decoder_memory.GIF)
_ICO = ImageFormat("ICO", ico.check_ico, decoder_memory.ICO)
_TIFF = ImageFormat("TIFF", tiff.check_tiff, decoder_memory.TIFF)
_JPEG_2000 = ImageFormat("JPEG 2000", jpeg2000.check_jpeg2000, decoder_memory.JPEG_2000)
_AVIF = ImageFormat("AVIF", avif.check_avif, decoder_memory.AVIF)
_HEIC = ImageFormat("HEIC", avif.check_heic, decoder_memory.HEIC)

_BY_SIGNATURE = {
    png.SIGNATURE: _PNG,
    bmp.SIGNATURE: _BMP,
    **dict.fromkeys(pnm.SIGNATURES, _PNM),
    **dict.fromkeys(gif.SIGNATURES, _GIF),
    ico.SIGNATURE: _ICO,
    **dict.fromkeys(tiff.SIGNATURES, _TIFF),
    jpeg2000.BOX_SIGNATURE: _JPEG_2000,
    jpeg2000.CODESTREAM_SIGNATURE: _JPEG_2000,
}
_LONGEST = max(map(len, _BY_SIGNATURE))


def image_format(data: memoryview) -> ImageFormat | None:
    """Return the format of an encoded image other than JPEG; None if the format is not supported."""
    start = bytes(data[:_LONGEST])
    for signature, found in _BY_SIGNATURE.items():
        if start.startswith(signature):
            return found
    if start.startswith(webp.SIGNATURE) and start[8:12] == webp.KIND:
        return _WEBP
    if avif.is_heic(data):
        return _HEIC
    return _AVIF if avif.is_avif(data) else None
