"""How much one sample may decode to, at most: a few bytes can announce, or unfold to, more than a machine has."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NoReturn

from penstock.errors import LimitError


@dataclass(frozen=True)
class Limits:
    """What one sample's decoded data may be at most; None: there is no limit.

    All are checked by what a file announces, before anything is allocated for it. An image counts as a whole, also where
    a window of it is all that is decoded.

    Attributes:
        pixels: height x width of an image, or of each frame of a video.
        bytes: of an image, of all frames that are taken of a video, of a recording, of an array; in the output's type.
        frames: of those that are taken of a video; moments x channels of a recording.

    >>> Limits(pixels=1000).check_pixels(30, 40)
    Traceback (most recent call last):
    penstock.errors.LimitError: The image has 30x40 = 1200 pixels, and `max_pixels` of the pipeline allows 1000
    """

    pixels: int | None = None
    bytes: int | None = None
    frames: int | None = None

    def tightened(self, other: Limits) -> Limits:
        """Those of both that allow less."""
        pairs = [(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)]
        return Limits(*(min((limit for limit in pair if limit is not None), default=None) for pair in pairs))

    def check_pixels(self, height: int, width: int, what: str = "image") -> None:
        """Raises LimitError for an image (or frame) of that size."""
        if self.pixels is not None and height * width > self.pixels:
            _refuse(f"The {what} has {height}x{width} = {height * width} pixels", "max_pixels", self.pixels)

    def check_image(self, shape: tuple[int, int, int], itemsize: int) -> None:
        """Raises LimitError for an image of the shape (H, W, C) that takes too many bytes."""
        if self.bytes is not None:
            self.check_bytes(math.prod(shape) * itemsize, f"The image of {shape[0]}x{shape[1]} pixels")

    def check_bytes(self, size: int, what: str) -> None:
        """Raises LimitError where what ``what`` names would take ``size`` bytes, and may not."""
        if self.bytes is not None and size > self.bytes:
            _refuse(f"{what} decodes to {size} bytes", "max_bytes", self.bytes)

    def check_video(self, frames: int, shape: tuple[int, int, int]) -> None:
        """Raises LimitError for so many frames (H, W, C) of uint8."""
        height, width, channels = shape
        self.check_pixels(height, width, "video")
        if self.frames is not None and frames > self.frames:
            _refuse(f"{frames} frames of the video are wanted", "max_frames", self.frames)
        self.check_bytes(frames * height * width * channels, f"The video ({frames} frames of {height}x{width} pixels)")

    def check_audio(self, moments: int, channels: int, itemsize: int) -> None:
        """Raises LimitError for a recording of so many moments, each a value of ``itemsize`` bytes for each channel."""
        values = moments * channels
        if self.frames is not None and values > self.frames:
            _refuse(f"The recording has {moments} x {channels} = {values} samples", "max_frames", self.frames)
        self.check_bytes(values * itemsize, f"The recording ({moments} samples of {channels} channels)")


def _refuse(found: str, setting: str, limit: int) -> NoReturn:
    raise LimitError(f"{found}, and `{setting}` of the pipeline allows {limit}")


UNLIMITED = Limits()
