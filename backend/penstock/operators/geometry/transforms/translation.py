"""`transforms.translation`: a translation matrix."""

from __future__ import annotations

import numpy as np

from penstock.operators.geometry.transforms._transform import INPUT, REVERSE_ORDER, TransformOperator, vector
from penstock.schema import Alias, Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example


@register_operator
class Translation(TransformOperator):
    """The affine matrix of a translation."""

    schema = Schema(
        name="transforms__Translation",
        devices=("cpu",),
        inputs=(INPUT,),
        min_inputs=0,
        arguments=(
            Argument(
                "offset",
                "float[]",
                doc="The shift of each dimension; its length is their number.",
                required=True,
                tensor=True,
                uniform=True,
                per_frame=True,
                example=[3.0, -4.0],
            ),
            REVERSE_ORDER,
        ),
        sequences=True,
        constant=True,
        aliases=(Alias("TransformTranslation", deprecated_since="1.0"),),
        examples=(Example(), Example(inputs=(INPUT.example,))),
    )

    def matrix(self, sample: Sample) -> np.ndarray:
        offset = vector(sample, "offset")
        assert offset is not None
        return np.column_stack([np.eye(len(offset), dtype=np.float32), offset])
