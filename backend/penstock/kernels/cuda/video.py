"""Colour conversion of decoded video frames on the GPU; results equal those of :mod:`penstock.kernels.cpu.video_colour` bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, launch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, cuda_type, records


class Colours(IntEnum):
    """The colour space of output pixels."""

    RGB = 0
    GREY = 1
    YCBCR = 2


class Planes(NamedTuple):
    """A decoded frame, and the target of its pixels.

    Attributes:
        luma, u, v: addresses of the planes' first values.
        luma_pitch, chroma_pitch: bytes from one row to the next.
        step: the distance from one value of u to the next, in values: 2 if u and v alternate.
        halved: whether four values of luma share one value of u and of v; otherwise each has its own.
        unit: the factor that scales the planes' values to the range from 0 to 255.
        full_range: whether luma and chroma range from 0 to 255; otherwise luma ranges from 16 to 235, and chroma from 16 to 240.
        factor: the factor that output values are multiplied by, if they are floating-point numbers.
    """

    luma: Pointer
    u: Pointer
    v: Pointer
    target: Pointer
    luma_pitch: Int64
    chroma_pitch: Int64
    height: Int32
    width: Int32
    step: Int32
    halved: Int32
    full_range: Int32
    unit: Float
    factor: Float


# The number of neighbouring pixels per thread.
_UNIT = 4
# The coefficients of ITU-R BT.601.
SOURCE = KernelSource(
    __file__,
    Planes,
    UNIT=_UNIT,
    RGB=int(Colours.RGB),
    GREY=int(Colours.GREY),
    LUMA_SCALE=np.float32(255 / 219),
    CHROMA_SCALE=np.float32(255 / 224),
    TO_STUDIO=np.float32(219 / 255),
    CHROMA_TO_STUDIO=np.float32(224 / 255),
    V_TO_R=np.float32(1.402),
    U_TO_G=np.float32(-0.344136),
    V_TO_G=np.float32(-0.714136),
    U_TO_B=np.float32(1.772),
)


def convert_frames(frames: Sequence[Planes], colours: Colours, stored: np.dtype, wanted: np.dtype) -> None:
    """Convert frames on the current stream, in one launch.

    Args:
        frames: the frames and their targets, of shape (H, W, 3), or (H, W, 1) for grey.
        colours: the output's colours.
        stored: type of the planes' values: uint8 or uint16.
        wanted: type of the output: uint8, rounded, or float32, neither rounded nor clamped.
    """
    if frames:
        kernel = SOURCE.kernel(f"convert<{cuda_type(stored)}, {cuda_type(wanted)}, {int(colours)}>")
        counts = [blocks_for(frame.height * -(-frame.width // _UNIT)) for frame in frames]
        launch(kernel, records(Planes, frames), counts)
