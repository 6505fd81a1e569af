"""`bb_flip`: mirrors bounding boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import boxes
from penstock.schema.operator import Shape
from penstock.schema.sharing import share
from penstock.tensors.places import places_in_type, places_to_fill


@dataclass(eq=False)
class Flips(PlanColumns[int]):
    """The directions in which the boxes of many samples are mirrored.

    Attributes:
        directions: for each sample, 1 for horizontally plus 2 for vertically, int64.
    """

    directions: np.ndarray

    def __len__(self) -> int:
        return len(self.directions)

    def row(self, number: int) -> int:
        return int(self.directions[number])


@register_operator
class BbFlip(Operator[None, int, Flips]):
    """Mirrors bounding boxes whose coordinates are fractions of the image's extents."""

    schema = Schema(
        name="BbFlip",
        inputs=(Input("input", doc="Boxes of float, four numbers each: x, y, width, height.", example=boxes),),
        arguments=(
            Argument("horizontal", "int32", 1, "Nonzero: mirror horizontally.", tensor=True, zero_dimensional=True),
            Argument("ltrb", "bool", False, "Boxes are given by left, top, right, bottom."),
            Argument("vertical", "int32", 0, "Nonzero: mirror vertically.", tensor=True, zero_dimensional=True),
        ),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.horizontal_flip_bounding_boxes",
                "In pixels; here in fractions of the image.",
            ),
        ),
    )

    repeats_plans = True

    def describe(self, workspace: Workspace[None, int, Flips]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be float, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "", batch.ndim())]

    def infer_batch(self, samples: Samples[None, int, Flips]) -> tuple[list[list[Shape]], Flips]:
        shapes = samples.shape_list()
        for shape in [shape for shape in shapes if math.prod(shape) % 4]:
            raise RuntimeError(
                f"Boxes must have four numbers each, got {math.prod(shape)} numbers in shape {list(shape)}"
            )
        names = ("horizontal", "vertical")
        return [shapes], Flips(samples.derived(names, len(samples), _directions, samples))

    def compute_samples(self, workspace: Workspace[None, int, Flips], shapes: Sequence[Shape]) -> None:
        from penstock.operators.geometry._boxes_cpu import flip_boxes

        if not workspace.live_indices:
            return
        batch, ltrb, directions = workspace.inputs[0], self.args["ltrb"], workspace.plans.directions
        sources, _owner = places_in_type(batch, np.float32)
        addresses = workspace.of_live(sources), workspace.of_live(places_to_fill(workspace.outputs[0]))
        volumes = workspace.of_live(batch.sample_volumes())
        share(workspace, lambda begin, end: flip_boxes(*addresses, volumes, directions, ltrb, begin, end), volumes)

    def compute_batch(self, workspace: Workspace[None, int, Flips]) -> None:
        from penstock.kernels.cuda.elementwise import evaluate_batch
        from penstock.kernels.cuda.launch import locate_all, upload

        samples = workspace.live
        masks = upload([np.array([sample.plan], np.int32) for sample in samples])
        boxes, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        if self.args["ltrb"]:
            start, extent = "1.0f - (&a)[2]", "1.0f - (&a)[-2]"
            same = "a"
        else:
            start, extent = "1.0f - (a + (&a)[2])", "(1.0f - (&a)[-2]) - (1.0f - ((&a)[-2] + a))"
            same = "k < 2 ? a : ((&a)[-2] + a) - (&a)[-2]"
        body = f"int k = int(offsets[0] & 3); return b >> (k & 1) & 1 ? (k < 2 ? {start} : {extent}) : ({same});"
        jobs = [((box.flat(), mask), target.flat()) for box, mask, target in zip(boxes, masks, targets)]
        evaluate_batch(body, jobs, promoted=False)


def _directions(samples: Samples[None, int, Flips]) -> np.ndarray:
    """Return the directions in which samples are mirrored, as :class:`Flips` holds them."""
    horizontal, vertical = samples.scalars("horizontal") != 0, samples.scalars("vertical") != 0
    return np.broadcast_to(horizontal + 2 * vertical, len(samples)).copy()
