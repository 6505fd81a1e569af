"""`jitter`: random displacement of every pixel."""

from __future__ import annotations

from penstock.data_types import FLOAT, INTERP_LINEAR, INTERP_NN, UINT8, dtype_name
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo
from penstock.schema.random_operator import RandomOperator


@register_operator
class Jitter(RandomOperator[None, int]):
    """Takes each pixel from a uniformly random position up to ``nDegree / 2`` pixels away in x and in y.

    Displacements are whole pixels, so both interpolations give the same results. Random numbers come from the operator's
    random streams, and differ from DALI's, which are drawn on the GPU.

    >>> images = fn.jitter(images, nDegree=4)  # doctest: +SKIP
    """

    schema = Schema(
        name="Jitter",
        devices=("gpu",),
        inputs=(Input("input", ("HWC",), doc="Images of uint8 or float."),),
        arguments=(
            Argument("fill_value", "float", 0.0, "Value of pixels outside the input."),
            Argument("interp_type", "DALIInterpType", INTERP_NN, "INTERP_NN or INTERP_LINEAR."),
            Argument(
                "mask",
                "int32",
                1,
                "0 leaves a sample unchanged if it is computed in the graph; a constant has no effect.",
                tensor=True,
            ),
            Argument("nDegree", "int32", 2, "Twice the largest displacement, in pixels."),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(nDegree=8),),
    )
    repeatable = True

    def setup(self) -> None:
        if self.args["interp_type"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use INTERP_NN or INTERP_LINEAR")
        if self.args["nDegree"] < 0:
            raise RuntimeError(f"`nDegree` must not be negative, got {self.args['nDegree']}")

    def describe(self, workspace: Workspace[None, int]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, layout, 3)]

    def infer(self, sample: Sample[None, int]) -> tuple[int, ...]:
        displaced = sample.tensor_argument("mask") is None or bool(sample["mask"])
        # The largest displacement, in pixels.
        sample.plan = self.args["nDegree"] // 2 if displaced else 0
        return sample.shapes[0]

    def compute_batch(self, workspace: Workspace[None, int]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.philox import Jitter as Jittered
        from penstock.kernels.cuda.philox import jitter_images

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        whole = workspace.inputs[0].dtype == UINT8
        fill = self.args["fill_value"]
        # For bytes, the fill value is reduced to its lowest eight bits.
        outside = int(fill) & 255 if whole else fill
        jitters = [
            Jittered(source, target, self.stream_index(workspace, s.index), s.plan, outside)
            for s, source, target in zip(samples, sources, targets)
        ]
        jitter_images(jitters, self.first_stream(workspace))
