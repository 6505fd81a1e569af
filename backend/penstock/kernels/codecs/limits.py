"""Limits on the decoded size of one sample: a few bytes can declare more data than a machine has memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NoReturn

from penstock.errors import LimitError


@dataclass(frozen=True)
class Limits:
    """The limits on one sample's decoded data; None: no limit.

    Headers are checked against all limits before anything is allocated. The whole image counts, even if only a window of it is decoded.

    Attributes:
        pixels: height x width of an image, or of each frame of a video.
        bytes: the size in the output's type, in bytes: of an image, of all frames decoded from a video, of a recording or of an array.
        frames: the number of frames decoded from a video, or frames x channels of a recording.

    >>> Limits(pixels=1000).check_pixels(30, 40)
    Traceback (most recent call last):
    penstock.errors.LimitError: The image has 30x40 = 1200 pixels, and `max_pixels` of the pipeline allows 1000
    """

    pixels: int | None = None
    bytes: int | None = None
    frames: int | None = None

    def tightened(self, other: Limits) -> Limits:
        """Return the stricter limits of this object and another."""
        pairs = [(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)]
        return Limits(*(min((limit for limit in pair if limit is not None), default=None) for pair in pairs))

    def check_pixels(self, height: int, width: int, what: str = "image") -> None:
        """Raise LimitError if an image, or frame, of this size exceeds the limit."""
        if self.pixels is not None and height * width > self.pixels:
            _refuse(f"The {what} has {height}x{width} = {height * width} pixels", "max_pixels", self.pixels)

    def check_image(self, shape: tuple[int, int, int], itemsize: int) -> None:
        """Raise LimitError if an image of shape (H, W, C) takes too many bytes."""
        if self.bytes is not None:
            self.check_bytes(math.prod(shape) * itemsize, f"The image of {shape[0]}x{shape[1]} pixels")

    def check_bytes(self, size: int, what: str) -> None:
        """Raise LimitError if ``size`` bytes are too many; ``what``: the name of the data in the message."""
        if self.bytes is not None and size > self.bytes:
            _refuse(f"{what} decodes to {size} bytes", "max_bytes", self.bytes)

    def check_video(self, frames: int, shape: tuple[int, int, int]) -> None:
        """Raise LimitError if this many frames of shape (H, W, C), uint8, exceed the limits."""
        height, width, channels = shape
        self.check_pixels(height, width, "video")
        if self.frames is not None and frames > self.frames:
            _refuse(f"{frames} frames of the video are wanted", "max_frames", self.frames)
        self.check_bytes(frames * height * width * channels, f"The video ({frames} frames of {height}x{width} pixels)")

    def check_audio(self, moments: int, channels: int, itemsize: int) -> None:
        """Raise LimitError if a recording exceeds the limits.

        Args:
            moments: the length, in samples per channel.
            channels: the number of channels.
            itemsize: the bytes of a sample.
        """
        values = moments * channels
        if self.frames is not None and values > self.frames:
            _refuse(f"The recording has {moments} x {channels} = {values} samples", "max_frames", self.frames)
        self.check_bytes(values * itemsize, f"The recording ({moments} samples of {channels} channels)")


def _refuse(found: str, setting: str, limit: int) -> NoReturn:
    raise LimitError(f"{found}, and `{setting}` of the pipeline allows {limit}")


UNLIMITED = Limits()
