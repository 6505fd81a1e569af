"""`optical_flow`: motion between frames, computed by the GPU's optical flow engine. Declared, but it cannot run."""

from __future__ import annotations

from penstock.data_types import RGB
from penstock.schema import Argument, Deprecation, Input, Operator, Schema, register_operator


@register_operator
class OpticalFlow(Operator):
    """Does not run: NVIDIA's optical flow engine has no Python interface. `python_function` can call OpenCV's instead."""

    schema = Schema(
        name="OpticalFlow",
        devices=("gpu",),
        inputs=(
            Input("input_0", ("FHWC",), doc="Frames, FHWC."),
            Input("input_1", ("FHWC",), doc="Hints of the motion."),
        ),
        min_inputs=1,
        arguments=(
            Argument("enable_external_hints", "bool", False, "The second input holds hints."),
            Argument("enable_temporal_hints", "bool", False, "Use the previous frame for hints."),
            Argument("hint_grid", "int32", 4, "Pixels between hints."),
            Argument("image_type", "DALIImageType", RGB, "Colour space of the frames."),
            Argument(
                "output_format", "int32", 4, "Old name of `output_grid`.", deprecated=Deprecation("1.11", "output_grid")
            ),
            Argument("output_grid", "int32", 4, "Pixels between vectors of the output."),
            Argument("preset", "float", 0.0, "From 0.0, slow and exact, to 1.0, fast."),
        ),
        absent="it runs on NVIDIA's optical flow engine only, which has no Python interface; `fn.python_function` can call "
        "OpenCV's `calcOpticalFlowFarneback`",
    )
