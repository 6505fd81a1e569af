"""What a file's header announces, and the checks that several formats share."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.codecs.image_errors import CorruptImageError


class Declared(NamedTuple):
    """What an image's header announces.

    Attributes:
        height, width: in pixels, as stored.
        channels: as stored.
        bits: of one value of a channel, as stored.
        crash_prone: it is of a kind over which the format's decoders are known to end the process.
    """

    height: int
    width: int
    channels: int = 3
    bits: int = 8
    crash_prone: bool = False

    @property
    def size(self) -> int:
        """The bytes of the stored values."""
        return self.height * -(-self.width * self.channels * self.bits // 8)


def check(condition: bool, what: str) -> None:
    """Raises CorruptImageError, saying ``what`` is wrong, unless the condition holds."""
    if not condition:
        raise CorruptImageError(f"Damaged {what}")


# What an image may take in any case: damaged files of ordinary size are left to the libraries, which say more of them.
_SMALL = 1 << 24


def check_density(declared: Declared, available: int, ratio: int, kind: str) -> None:
    """Raises CorruptImageError where a file cannot hold what it announces, so that a few bytes reserve no gigabytes.

    Args:
        declared: by the header.
        available: the bytes that are there.
        ratio: the most bytes of pixels that a byte of such a file can stand for.
        kind: the format's name, for the message.
    """
    if declared.size > max(ratio * available, _SMALL):
        raise CorruptImageError(
            f"Damaged {kind}: {available} bytes cannot hold the {declared.height}x{declared.width} pixels that the "
            "header tells"
        )
