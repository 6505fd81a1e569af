"""`jitter`: every pixel displaced a little, at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.random_streams import Stream
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.random_operator import RandomOperator
from penstock.types import FLOAT, INTERP_LINEAR, INTERP_NN, UINT8, dtype_name


@register_operator
class Jitter(RandomOperator):
    """Takes each pixel from a place up to ``nDegree / 2`` pixels away in x and in y, drawn evenly.

    Displacements are whole pixels, so both interpolations give the same. The numbers are those of the operator's own
    random streams, not those of DALI, which draws them on the GPU.

    >>> images = fn.jitter(images, nDegree=4)  # doctest: +SKIP
    """

    schema = Schema(
        name="Jitter",
        devices=("gpu",),
        inputs=(Input("input", ("HWC",), doc="Images of uint8 or float."),),
        arguments=(
            Argument("fill_value", "float", 0.0, "What lies outside of the input."),
            Argument("interp_type", "DALIInterpType", INTERP_NN, "INTERP_NN or INTERP_LINEAR."),
            Argument(
                "mask",
                "int32",
                1,
                "Computed in the graph, 0 leaves a sample as it is. A constant has no effect.",
                tensor=True,
            ),
            Argument("nDegree", "int32", 2, "Twice the greatest displacement, in pixels."),
        ),
        random=True,
        stateful=True,
    )

    def setup(self) -> None:
        if self.args["interp_type"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use INTERP_NN or INTERP_LINEAR")
        if self.args["nDegree"] < 0:
            raise RuntimeError(f"`nDegree` must not be negative, got {self.args['nDegree']}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, layout, 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = sample.shapes[0]
        displaced = sample.tensor_argument("mask") is None or bool(sample["mask"])
        sample.plan = (
            displacements(self.stream(sample), shape[0], shape[1], self.args["nDegree"]) if displaced else None
        )
        return shape

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.tensors.cuda import require_cupy

        cupy = require_cupy()
        for sample in workspace.live:
            source, target = sample.inputs[0], sample.outputs[0]
            if sample.plan is None or not source.size:
                target[...] = source
            else:
                target[...] = displaced(cupy, source, cupy.asarray(sample.plan), self.args["fill_value"])


def displacements(stream: Stream, height: int, width: int, degree: int) -> np.ndarray:
    """For each pixel the (y, x) by which it is displaced; int32 of shape (height, width, 2)."""
    from penstock.kernels.cpu.philox import fill_draws

    draws = np.empty(height * width * 2, np.uint32)
    fill_draws(draws, *stream)
    farthest = degree // 2
    return (draws % np.uint32(2 * farthest + 1)).astype(np.int32).reshape(height, width, 2) - np.int32(farthest)


def displaced(library: Any, source: Any, offsets: Any, fill: float) -> Any:
    """``source[y + dy, x + dx]``, in arrays of ``library``: numpy or CuPy."""
    height, width = source.shape[:2]
    rows = library.arange(height)[:, None] + offsets[..., 0]
    columns = library.arange(width)[None] + offsets[..., 1]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    taken = source[library.clip(rows, 0, height - 1), library.clip(columns, 0, width - 1)]
    return library.where(inside[..., None], taken, library.asarray(fill).astype(source.dtype))
