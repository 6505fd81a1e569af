"""`paste_masks`: the masks of detected objects, in the size of the image."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, UINT8
from penstock.operators.postprocessing._paste_masks import MAX_COORDINATE, factors_of
from penstock.operators.postprocessing._rows import check_real
from penstock.schema import (
    Argument,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, ExampleSamples, random_arrays


def _boxes(layout: str = "") -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        corners = np.random.default_rng([index, 8]).uniform(-4, 20, ((2, 1, 3)[index % 3], 2))
        return np.hstack([corners, corners + np.array([9, 14])]).astype(np.float32)

    return ExampleSamples(make, bad=np.zeros((2, 3), np.float32))


@register_operator
class PasteMasks(Operator[None, tuple[int, int]]):
    """Resizes the masks that a network predicts inside of boxes, and pastes each into an image of zeros; as Mask R-CNN needs it.

    Returns the probabilities, FLOAT of shape (boxes, height, width), or, with a `threshold`, UINT8 of that shape: 1 where probabilities
    are above the threshold, else 0. As in torchvision, masks get a border of zeros, and are then resized to whole pixels by bilinear
    interpolation.

    >>> masks = fn.paste_masks(masks, boxes, size=fn.shapes(images)[:2], threshold=0.5)
    """

    schema = Schema(
        name="PasteMasks",
        inputs=(
            Input(
                "masks",
                doc="Probabilities of FLOAT or FLOAT16, of shape (boxes, height, width).",
                example=random_arrays((2, 7, 7), (1, 7, 7), (3, 7, 7), low=0),
            ),
            Input(
                "boxes",
                doc="FLOAT or FLOAT16, of shape (boxes, 4): left, top, right, bottom, in pixels of the image.",
                example=_boxes,
            ),
        ),
        arguments=(
            Argument(
                "size", "int32[]", None, "Height and width of the image.", required=True, tensor=True, example=[24, 30]
            ),
            Argument(
                "threshold",
                "float",
                None,
                "The probability above which a pixel belongs to the object, 0 to 1.",
                example=0.5,
            ),
        ),
        examples=(Example({"size": [24, 30]}), Example({"size": [24, 30], "threshold": 0.5})),
    )

    # Launches cannot be replayed, because the host waits for the kernel to report coordinates that are NaN or too large.
    repeatable = False

    def setup(self) -> None:
        threshold = self.args["threshold"]
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"`threshold` must be from 0 to 1. Got: {threshold:g}")

    def describe(self, workspace: Workspace[None, tuple[int, int]]) -> list[OutputSpec]:
        check_real(workspace, 0, "masks")
        check_real(workspace, 1, "boxes")
        return [OutputSpec(FLOAT if self.args["threshold"] is None else UINT8, "", 3)]

    def infer(self, sample: Sample[None, tuple[int, int]]) -> tuple[int, ...]:
        masks, boxes = sample.shapes
        size = [int(extent) for extent in sample["size"]]
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"`size` must be a positive height and width. Got: {size}")
        if len(masks) != 3 or boxes != (masks[0], 4) or (masks[0] and not min(masks[1:])):
            raise ValueError(
                "Masks must have the shape (boxes, height, width), and boxes the shape (boxes, 4). Got: "
                f"{list(masks)} and {list(boxes)}"
            )
        return masks[0], size[0], size[1]

    def compute(self, sample: Sample[None, tuple[int, int]]) -> None:
        from penstock.operators.postprocessing._paste_masks_cpu import paste_masks

        masks, boxes = (np.ascontiguousarray(array, np.float32) for array in sample.inputs)
        threshold = self.args["threshold"]
        paste_masks(
            masks,
            _with_border(boxes, masks.shape),
            -math.inf if threshold is None else float(threshold),
            sample.outputs[0],
        )

    def compute_batch(self, workspace: Workspace[None, tuple[int, int]]) -> None:
        from penstock.kernels.cuda.launch import places_of
        from penstock.operators.postprocessing._paste_masks_cuda import Masks, paste_masks

        live = workspace.live_indices
        batches = [*workspace.inputs, *workspace.outputs]
        masks, boxes, targets = (places_of(batch)[0][live] for batch in batches)
        given, made = (batch.shape_array()[live] for batch in (workspace.inputs[0], workspace.outputs[0]))
        dtypes = [batch.dtype for batch in workspace.inputs]
        faults = paste_masks(Masks(masks, boxes, targets, given, made, *dtypes), self.args["threshold"])
        for index, box in zip(live, faults.tolist()):
            if box >= 0:
                workspace.fail(index, _fault(box))


def _with_border(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the boxes enlarged by the border of one zero that masks get, in whole pixels, int64, computed as in torchvision.

    Raises:
        ValueError: a coordinate is NaN, or is far beyond any image.
    """
    are_good = (np.abs(boxes) <= MAX_COORDINATE).all(axis=1)
    if not are_good.all():
        raise _fault(int(np.argmin(are_good)))
    half = (boxes[:, 2:] - boxes[:, :2]) * np.float32(0.5) * factors_of(np.array([shape]))
    centres = (boxes[:, 2:] + boxes[:, :2]) * np.float32(0.5)
    return np.hstack([centres - half, centres + half]).astype(np.int64)


def _fault(box: int) -> ValueError:
    return ValueError(f"Box {box} has a coordinate that is not a number, or is far beyond any image")
