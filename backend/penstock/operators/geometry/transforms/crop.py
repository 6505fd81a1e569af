"""`transforms.crop`: maps one range of coordinates to another."""

from __future__ import annotations

import numpy as np

from penstock.operators.geometry.transforms._transform import INPUT, REVERSE_ORDER, TransformOperator, repeated
from penstock.schema import Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example


@register_operator
class Crop(TransformOperator):
    """The affine matrix that maps ``from_start`` to ``to_start`` and ``from_end`` to ``to_end``."""

    schema = Schema(
        name="transforms__Crop",
        devices=("cpu",),
        inputs=(INPUT,),
        min_inputs=0,
        arguments=(
            Argument("absolute", "bool", False, "Swap starts and ends if a start is greater than its end."),
            Argument(
                "from_end",
                "float[]",
                [1.0],
                "Upper bound of the original coordinates.",
                tensor=True,
                uniform=True,
                per_frame=True,
            ),
            Argument("from_start", "float[]", [0.0], "Their lower bound.", tensor=True, uniform=True, per_frame=True),
            REVERSE_ORDER,
            Argument(
                "to_end",
                "float[]",
                [1.0],
                "Upper bound of the new coordinates.",
                tensor=True,
                uniform=True,
                per_frame=True,
            ),
            Argument("to_start", "float[]", [0.0], "Their lower bound.", tensor=True, uniform=True, per_frame=True),
        ),
        sequences=True,
        constant=True,
        examples=(Example(), Example({"from_start": [0.0, 0.1]}, (INPUT.example,))),
    )

    def matrix(self, sample: Sample) -> np.ndarray:
        names = ("from_start", "from_end", "to_start", "to_end")
        count = max(len(sample[name]) for name in names)
        from_start, from_end, to_start, to_end = (repeated(sample[name], name, count) for name in names)
        if self.args["absolute"]:
            from_start, from_end = np.minimum(from_start, from_end), np.maximum(from_start, from_end)
            to_start, to_end = np.minimum(to_start, to_end), np.maximum(to_start, to_end)
        # As in DALI, the scale of an empty range is infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = (to_end - to_start) / (from_end - from_start)
            return np.column_stack([np.diag(scale), to_start - scale * from_start])
