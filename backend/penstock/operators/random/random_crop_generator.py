"""`random_crop_generator`: draws windows of random area and aspect ratio, for operators that crop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, dtype_name
from penstock.kernels.random_crop import DEFAULT_AREA, DEFAULT_ASPECT_RATIO, RandomCrop
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import fixed_arrays
from penstock.schema.operator import Shape
from penstock.schema.random_operator import RandomOperator

_INTEGERS = (UINT8, UINT16, UINT32, INT8, INT16, INT32, INT64)


@register_operator
class RandomCropGenerator(RandomOperator):
    """Draws a window of random area and aspect ratio for each image; returns the window's start (y, x) and extents (height, width).

    >>> start, extents = fn.random_crop_generator(fn.peek_image_shape(jpegs))
    """

    schema = Schema(
        name="RandomCropGenerator",
        devices=("cpu",),
        inputs=(
            Input(
                "input",
                doc="Shapes of images, (height, width) or (height, width, channels): 1-D integers.",
                example=fixed_arrays([40, 60], [33, 29], [64, 64], dtype=np.int64),
            ),
        ),
        arguments=(
            Argument(
                "num_attempts",
                "int32",
                10,
                "Pairs of area and aspect ratio to try before the largest window is used.",
            ),
            Argument(
                "random_area", "float[]", DEFAULT_AREA, "Range of the window's area, as a fraction of the image's."
            ),
            Argument("random_aspect_ratio", "float[]", DEFAULT_ASPECT_RATIO, "Range of the window's width / height."),
        ),
        outputs=2,
        random=True,
        stateful=True,
    )
    plans_by_shape = True

    def setup(self) -> None:
        self._crop = RandomCrop(self.args["random_area"], self.args["random_aspect_ratio"], self.args["num_attempts"])

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        shapes = workspace.inputs[0]
        if shapes.dtype not in _INTEGERS:
            raise RuntimeError(f"Only integer types are supported. Got: {dtype_name(shapes.dtype)}")
        return [OutputSpec(INT32, ndim=1)] * 2

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        if sample.shapes[0] not in ((2,), (3,)):
            raise RuntimeError(
                "Expected the shape of an image: a 1-D tensor of 2 or 3 numbers (HW or HWC), "
                f"got a tensor of shape {sample.shapes[0]}"
            )
        return [(2,), (2,)]

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        extents = np.array([shape[:2] for shape in workspace.inputs[0].samples], np.int64).reshape(-1, 2)
        if workspace.failures or not len(extents) or extents.min() <= 0:
            super().compute_samples(workspace, shapes)
            return
        key, streams, start = self.streams(workspace, range(workspace.batch_size))
        windows = self._crop.windows(key, streams, start, extents)
        for batch, columns in zip(workspace.outputs, (windows[:, :2], windows[:, 2:])):
            batch.contiguous_elements()[:] = columns.reshape(-1)

    def compute(self, sample: Sample) -> None:
        height, width = (int(extent) for extent in sample.inputs[0][:2])
        y, x, h, w = self._crop.window(self.stream(sample), height, width)
        start, extents = sample.outputs
        start[...] = y, x
        extents[...] = h, w
