"""`transforms.rotation`: a rotation matrix."""

from __future__ import annotations

import numpy as np

from penstock.kernels.geometry import affine, rotation_2d, rotation_3d
from penstock.operators.geometry.transforms._transform import CENTER, INPUT, REVERSE_ORDER, TransformOperator, vector
from penstock.schema import Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example


@register_operator
class Rotation(TransformOperator):
    """The affine matrix of a rotation: in three dimensions if there is an axis, otherwise in two."""

    schema = Schema(
        name="transforms__Rotation",
        devices=("cpu",),
        inputs=(INPUT,),
        min_inputs=0,
        arguments=(
            Argument(
                "angle",
                "float",
                doc="In degrees.",
                required=True,
                tensor=True,
                zero_dimensional=True,
                per_frame=True,
                example=30.0,
            ),
            Argument(
                "axis",
                "float[]",
                None,
                "Direction (x, y, z) of the axis, of any length but 0; makes the rotation three-dimensional.",
                tensor=True,
                per_frame=True,
            ),
            CENTER,
            REVERSE_ORDER,
        ),
        sequences=True,
        constant=True,
        examples=(Example(), Example({"axis": [0.0, 0.6, 0.8]}), Example(inputs=(INPUT.example,))),
    )

    def matrix(self, sample: Sample) -> np.ndarray:
        axis = vector(sample, "axis", 3, all_given=True)
        if axis is None:
            return affine(rotation_2d(sample["angle"]), vector(sample, "center", 2, all_given=True))
        # `rotation_3d` maps output to input coordinates, so transpose (invert) it.
        with np.errstate(invalid="ignore"):
            return affine(rotation_3d(sample["angle"], axis).T, vector(sample, "center", 3, all_given=True))
