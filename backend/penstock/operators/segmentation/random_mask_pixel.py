"""`segmentation.random_mask_pixel`: the position of a random mask element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT16, FLOAT64, INT64, dtype_name
from penstock.kernels.random_streams import bounded, philox
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays
from penstock.schema.operator import Shape
from penstock.schema.random_operator import RandomOperator


@register_operator
class RandomMaskPixel(RandomOperator):
    """The indices of an element drawn at random from the whole mask or, with `foreground`, from its foreground.

    If there is no foreground, the element is drawn from the whole mask.

    >>> centre = fn.segmentation.random_mask_pixel(masks, foreground=1)
    """

    schema = Schema(
        name="segmentation__RandomMaskPixel",
        devices=("cpu",),
        inputs=(
            Input(
                "input",
                doc="Masks of integers, booleans or FLOAT, of any shape.",
                example=random_arrays((9, 8), (5, 6), (7, 7), dtype=np.int32, low=0, high=3),
            ),
        ),
        arguments=(
            Argument("foreground", "int32", 0, "1: draw from the foreground; 0: from the whole mask.", tensor=True),
            Argument("threshold", "float", 0.0, "Elements above it are foreground.", tensor=True),
            Argument("value", "int32", None, "Elements equal to it are foreground.", tensor=True, example=2),
        ),
        random=True,
        stateful=True,
    )

    def setup(self) -> None:
        if self.given("value") and self.given("threshold"):
            raise RuntimeError("Arguments ``value`` and ``threshold`` can not be provided together")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype in (FLOAT16, FLOAT64):
            raise RuntimeError(f"Unexpected data type: {dtype_name(batch.dtype)}")
        return [OutputSpec(INT64, "", 1)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        if 0 in sample.shapes[0]:
            raise RuntimeError(f"Cannot draw an element of an empty mask of shape {list(sample.shapes[0])}")
        for name in ("foreground", "threshold", "value"):
            sample[name]  # Read all arguments, so that they are checked even if the foreground is not requested.
        return (len(sample.shapes[0]),)

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.starts import draw_starts

        if workspace.failures or not workspace.batch_size or workspace.arguments or self.args["foreground"]:
            super().compute_samples(workspace, shapes)
            return
        extents = workspace.inputs[0].shape_array()
        chosen = workspace.outputs[0].contiguous_elements().reshape(extents.shape)
        streams = self.streams(workspace, range(len(extents)))
        draw_starts(*streams, np.zeros_like(extents), extents - 1, chosen, True)

    def compute(self, sample: Sample) -> None:
        mask, draws = sample.inputs[0], philox(self.stream(sample))
        if sample["foreground"]:
            inside = mask == sample["value"] if sample.given("value") else mask > np.float32(sample["threshold"])
            foreground = np.flatnonzero(inside)
            if foreground.size:
                chosen = foreground[bounded(draws, foreground.size)]
                sample.outputs[0][...] = np.unravel_index(chosen, mask.shape)
                return
        sample.outputs[0][...] = [bounded(draws, extent) for extent in mask.shape]
