"""`content_window`: the window with a page's content."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32, UINT8, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example

# Luma weights of red, green and blue.
_WEIGHTS = (np.float32(0.2989), np.float32(0.587), np.float32(0.114))
_WHITE = 255


@register_operator
class ContentWindow(Operator):
    """Finds the smallest window of an image outside of which all pixels are bright, as Nougat's image processor does.

    Images are converted to grey like torchvision's `rgb_to_grayscale`, and spread so that the darkest pixel is 0 and the
    brightest 255. Returns the window's start and its extents, each INT32 of shape (2,): rows and columns, as `slice` accepts
    them. The window of an image of a single colour is the whole image.

    >>> start, extents = fn.content_window(pages)
    >>> pages = fn.slice(pages, start=start, shape=extents, axes=[0, 1])
    """

    schema = Schema(
        name="ContentWindow",
        devices=("cpu",),
        inputs=(Input("images", ("HWC",), doc="Images of uint8, of three channels."),),
        arguments=(Argument("threshold", "int32", 200, "Pixels that are at least this bright are the margin."),),
        outputs=2,
        exempt={"sequences": "each frame of a video would have another size"},
        examples=(Example({"threshold": 100}),),
    )

    def setup(self) -> None:
        if not 0 < self.args["threshold"] <= _WHITE:
            raise ValueError(f"`threshold` must be from 1 to {_WHITE}. Got: {self.args['threshold']}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(INT32, "", 1), OutputSpec(INT32, "", 1)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        shape = sample.shapes[0]
        if shape[2] != len(_WEIGHTS) or 0 in shape:
            raise ValueError(
                f"Images must have {len(_WEIGHTS)} channels, and must not be empty. Got the shape {tuple(shape)}"
            )
        return [(2,), (2,)]

    def compute(self, sample: Sample) -> None:
        grey = _grey(sample.inputs[0])
        darkest, brightest = grey.min(), grey.max()
        start, extents = np.zeros(2, np.int64), np.array(grey.shape)
        if darkest != brightest:
            spread = (grey - darkest).astype(np.float32) / np.float32(brightest - darkest) * np.float32(_WHITE)
            dark = spread < self.args["threshold"]
            for axis in (0, 1):
                places = np.flatnonzero(dark.any(axis=1 - axis))
                start[axis], extents[axis] = places[0], places[-1] - places[0] + 1
        sample.outputs[0][...], sample.outputs[1][...] = start, extents


def _grey(image: np.ndarray) -> np.ndarray:
    """Return the grey values, rounded like torchvision's: products are not rounded before they are added."""
    value = image[..., 0].astype(np.float32) * _WEIGHTS[0]
    for channel in (1, 2):
        value = (value + image[..., channel].astype(np.float64) * np.float64(_WEIGHTS[channel])).astype(np.float32)
    return value.astype(np.uint8)
