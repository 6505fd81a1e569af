"""Conversion of decoded video frames to pixels on the CPU: RGB, grey, or YCbCr."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import GRAY, RGB, DALIImageType, YCbCr

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

FILTERS = ("area", "bicublin", "bicubic", "bilinear", "fast_bilinear", "gauss", "lanczos", "point", "sinc", "spline")
"""The filters of FFmpeg's scaler, swscale, by its names."""

IMAGE_TYPES = (RGB, GRAY, YCbCr)
"""The colour spaces to which frames can be converted."""

_FULL_RANGE = 2  # AVCOL_RANGE_JPEG
# Pixel formats with halved planes of chroma, and the factor that scales the planes' values to the range from 0 to 255.
_HALVED = {"yuv420p": 1.0, "yuvj420p": 1.0, "yuv420p10le": 1 / 4, "yuv420p12le": 1 / 16}


# From this version on, PyAV by default converts each frame on as many threads as there are cores.
_FIRST_PYAV_WITH_SCALER_THREADS = 17


@dataclass(frozen=True)
class Scaling:
    """A size to which swscale resizes frames while it converts them to RGB.

    Attributes:
        height, width: the size of the results, in pixels.
        filter: one of :data:`FILTERS`.
    """

    height: int
    width: int
    filter: str


class FrameScaler:
    """Resizes frames and converts them to RGB with swscale, whose tables are computed only once for each format and size."""

    def __init__(self, scaling: Scaling) -> None:
        from av.video.reformatter import VideoReformatter

        self._reformatter = VideoReformatter()
        self._options: dict[str, Any] = {
            "height": scaling.height,
            "width": scaling.width,
            "interpolation": scaling.filter.upper(),
            "format": "rgb24",
        }

    def write(self, frame: VideoFrame, output: np.ndarray) -> None:
        """Resize a frame, and write it to uint8 of shape (H, W, 3)."""
        output[...] = self._reformatter.reformat(frame, **self._options, **_on_this_thread()).to_ndarray()


@functools.cache
def _on_this_thread() -> dict[str, Any]:
    """Return the options that make PyAV convert frames on the calling thread, as all versions before 17 do."""
    import av

    return {"threads": 1} if int(av.__version__.partition(".")[0]) >= _FIRST_PYAV_WITH_SCALER_THREADS else {}


def channels_of(image_type: DALIImageType) -> int:
    """Return the number of values of a pixel."""
    return 1 if image_type == GRAY else 3


def check_image_type(image_type: DALIImageType) -> None:
    """Raise ValueError for colour spaces to which frames cannot be converted."""
    if image_type not in IMAGE_TYPES:
        raise ValueError(f"Unsupported image_type: {image_type}. Frames of videos can be RGB, GRAY or YCbCr")


def is_full_range(frame: VideoFrame) -> bool:
    """Return whether luma and chroma range from 0 to 255; otherwise luma ranges from 16 to 235, and chroma from 16 to 240."""
    return frame.color_range == _FULL_RANGE or frame.format.name.startswith("yuvj")


def has_halved_planes(frame: VideoFrame) -> bool:
    """Return whether a frame is in host memory, has planes of luma and halved chroma, and an even height and width."""
    return frame.format.name in _HALVED and frame.height % 2 == frame.width % 2 == 0


def planes_of(frame: VideoFrame) -> list[np.ndarray]:
    """Return views of the planes of luma and chroma of a frame with halved planes, uint8 or uint16 of shape (rows, columns); rows may be
    padded in memory.
    """
    kind = np.dtype(np.uint8 if unit_of(frame) == 1 else np.uint16)
    return [
        np.frombuffer(memoryview(plane), np.uint8)[: plane.line_size * plane.height]
        .view(kind)
        .reshape(plane.height, -1)[:, : plane.width]
        for plane in frame.planes
    ]


def unit_of(frame: VideoFrame) -> float:
    """Return the factor that scales the values of a frame with halved planes to the range from 0 to 255."""
    return _HALVED[frame.format.name]


def write_pixels(frame: VideoFrame, image_type: DALIImageType, output: np.ndarray) -> None:
    """Convert a frame in host memory to pixels.

    Frames with halved planes are converted by BT.601, whatever the file says, as DALI does; FFmpeg converts other frames.

    Args:
        frame: the frame as decoded.
        image_type: one of :data:`IMAGE_TYPES`. YCbCr is in studio range.
        output: the array to fill, uint8 of shape (H, W, C), contiguous.
    """
    if not has_halved_planes(frame):
        rgb = frame.to_ndarray(format="rgb24", **_on_this_thread())
        if image_type == RGB:
            output[...] = rgb
        else:
            _from_rgb(rgb, image_type, output)
        return
    from penstock.kernels.cpu.video_colour import luma_to_grey, planes_to_rgb, planes_to_ycbcr

    luma, u, v = planes_of(frame)
    if image_type == GRAY:
        luma_to_grey(luma, np.float32(unit_of(frame)), is_full_range(frame), output)
    else:
        convert = planes_to_rgb if image_type == RGB else planes_to_ycbcr
        convert(luma, u, v, np.float32(unit_of(frame)), is_full_range(frame), output)


def _from_rgb(rgb: np.ndarray, image_type: DALIImageType, output: np.ndarray) -> None:
    from penstock.kernels.colour import LUMA, TO_YCBCR, YCBCR_OFFSET
    from penstock.kernels.cpu.colour import transform

    matrix, offset = (LUMA[None], np.zeros(1)) if image_type == GRAY else (TO_YCBCR, YCBCR_OFFSET)
    transform(np.ascontiguousarray(rgb), matrix, offset, output)
