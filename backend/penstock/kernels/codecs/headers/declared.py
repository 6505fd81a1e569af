"""The result of checking an image's header, and checks that several formats share."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.codecs.image_errors import CorruptImageError


class Declared(NamedTuple):
    """The values that an image's header declares.

    Attributes:
        height, width: the height and width in pixels, as stored.
        channels: the number of channels, as stored.
        bits: the number of bits per value, as stored.
        crash_prone: whether images of this kind are known to crash the format's decoders.
        is_plain: whether the image is upright and decodes to 8-bit values in the stored channels, so that no other header field matters.
        tile: the bytes of a tile, if the image is decoded tile by tile; a tile may be larger than the image.
    """

    height: int
    width: int
    channels: int = 3
    bits: int = 8
    crash_prone: bool = False
    tile: int = 0
    is_plain: bool = False

    @property
    def size(self) -> int:
        """The size of the stored values, in bytes."""
        return self.height * -(-self.width * self.channels * self.bits // 8)


def check(condition: bool, what: str) -> None:
    """Raise CorruptImageError with the message "Damaged ``what``" unless the condition holds."""
    if not condition:
        raise CorruptImageError(f"Damaged {what}")


# Images of up to this many values are always accepted: for damaged files of ordinary size, the libraries' errors say more.
_MAX_UNCHECKED_VALUES = 1 << 24


def check_density(declared: Declared, available: int, ratio: int, kind: str) -> None:
    """Raise CorruptImageError if a file is too small for the image that it declares, so that a few bytes cannot make the process allocate
    gigabytes.

    Args:
        declared: the values that the header declares.
        available: the size of the file.
        ratio: the largest number of bytes of pixels that one byte of the format can encode.
        kind: the format's name, for the message.
    """
    values = declared.height * declared.width * declared.channels
    if declared.size > ratio * available and values > _MAX_UNCHECKED_VALUES:
        raise CorruptImageError(
            f"Damaged {kind}: {available} bytes cannot hold the {declared.height}x{declared.width} pixels that the "
            "header declares"
        )
