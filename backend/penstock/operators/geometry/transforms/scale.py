"""`transforms.scale`: a scaling matrix."""

from __future__ import annotations

import numpy as np

from penstock.operators.geometry.transforms._transform import CENTER, INPUT, REVERSE_ORDER, TransformOperator, vector
from penstock.schema import Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example


@register_operator
class Scale(TransformOperator):
    """The affine matrix that scales each dimension."""

    schema = Schema(
        name="transforms__Scale",
        devices=("cpu",),
        inputs=(INPUT,),
        min_inputs=0,
        arguments=(
            CENTER,
            Argument(
                "ndim",
                "int32",
                None,
                "Number of dimensions, if `scale` is a single value and there is no input.",
            ),
            REVERSE_ORDER,
            Argument(
                "scale",
                "float[]",
                doc="Factor of each dimension.",
                required=True,
                tensor=True,
                uniform=True,
                per_frame=True,
                example=[2.0, 0.5],
            ),
        ),
        sequences=True,
        constant=True,
        examples=(Example(), Example({"scale": [2.0], "ndim": 2}), Example(inputs=(INPUT.example,))),
    )

    def matrix(self, sample: Sample) -> np.ndarray:
        count = len(sample["scale"])
        if count == 1:
            count = sample.shapes[0][0] if sample.shapes else self.args["ndim"] or 1
        scale = vector(sample, "scale", count)
        assert scale is not None
        centre = vector(sample, "center", count, all_given=True)
        offset = np.zeros_like(scale) if centre is None else centre * (1 - scale)
        return np.column_stack([np.diag(scale), offset])
