"""`neighbour_resize`: linear interpolation between the nearest pixels, in two ways that `resize` does not support."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, UINT8, dtype_name
from penstock.kernels.cpu.torch_floats import interpolate_between_corners
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator

# The denominator of fixed-point weights. Pixels are multiplied by two weights; _SHIFT and _HALF round the sum, halves up.
_PARTS = 2048
_SHIFT, _HALF = 22, 1 << 21


@register_operator
class NeighbourResize(Operator[None, tuple[int, int]]):
    """Resizes images by interpolating between the two nearest pixels along each axis, without antialiasing.

    For float images, corners are aligned, and results equal those of PyTorch's `interpolate` with `mode="bilinear"` and
    `align_corners=True` bit for bit. For uint8 images, edges are aligned, and weights are multiples of 1/2048, as in
    SLANeXt's processor.

    >>> images = fn.neighbour_resize(images, size=[712, 488])
    """

    schema = Schema(
        name="NeighbourResize",
        devices=("cpu",),
        inputs=(Input("images", ("HWC",), doc="Images of float or uint8."),),
        arguments=(Argument("size", "float[]", None, "Height and width.", required=True, tensor=True, example=[7, 9]),),
        exempt={"sequences": "frames of a video are resized as images"},
    )

    def describe(self, workspace: Workspace[None]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in (FLOAT, UINT8):
            raise RuntimeError(f"Images must be float or uint8. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, self.input_layout(workspace), batch.ndim())]

    def infer(self, sample: Sample[None, tuple[int, int]]) -> tuple[int, ...]:
        height, width, channels = sample.shapes[0]
        size = [int(extent) for extent in sample["size"]]
        if len(size) != 2 or min(size) < 1 or min(height, width) < 1:
            raise ValueError(
                f"`size` must be a positive height and width, and images must not be empty. Got: {size}, {height}, {width}"
            )
        sample.plan = size[0], size[1]
        return (*sample.plan, channels)

    def compute(self, sample: Sample[None, tuple[int, int]]) -> None:
        source, target = sample.inputs[0], sample.outputs[0]
        if source.dtype == np.float32:
            interpolate_between_corners(np.ascontiguousarray(source), target)
        else:
            target[...] = _by_fixed_point(source, *sample.plan)


def _by_fixed_point(source: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a uint8 image resized to ``height`` and ``width`` in fixed-point arithmetic."""
    top, bottom = _parts(source.shape[0], height)
    left, right = _parts(source.shape[1], width)
    values = source.astype(np.int32)

    def across(rows: np.ndarray) -> np.ndarray:
        line: np.ndarray = rows[:, left[0]] * left[1][:, None] + rows[:, right[0]] * right[1][:, None]
        return line

    total = across(values[top[0]]) * top[1][:, None, None] + across(values[bottom[0]]) * bottom[1][:, None, None]
    return ((total + _HALF) >> _SHIFT).astype(np.uint8)


def _parts(size: int, outputs: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the positions and weights of the nearest pixels before and after each output, along an axis."""
    one, half = np.float32(1.0), np.float32(0.5)
    places = (np.arange(outputs, dtype=np.float32) + half) * np.float32(size / outputs) - half
    below = np.floor(places).astype(np.int32)
    rest = places - below.astype(np.float32)
    rest[below < 0], below[below < 0] = 0, 0
    # Beyond the last pixel, all weight is on the last pixel, as the one after `below`.
    rest[below >= size - 1], below[below >= size - 1] = one, max(size - 2, 0)
    weights = np.floor(rest * np.float32(_PARTS) + half).astype(np.int32)
    return (below, _PARTS - weights), (np.minimum(below + 1, size - 1), weights)
