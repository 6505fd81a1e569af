"""`transforms.shear`: a shear matrix."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.geometry import affine
from penstock.operators.geometry.transforms._transform import CENTER, INPUT, REVERSE_ORDER, TransformOperator, vector
from penstock.schema import Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example


@register_operator
class Shear(TransformOperator):
    """The affine matrix that shifts each dimension in proportion to the others."""

    schema = Schema(
        name="transforms__Shear",
        devices=("cpu",),
        inputs=(INPUT,),
        min_inputs=0,
        arguments=(
            Argument(
                "angles",
                "float[]",
                None,
                "Angles of the shear in degrees, from -90 to 90, in the order of `shear`, which they replace.",
                tensor=True,
                matrix=True,
                uniform=True,
                per_frame=True,
            ),
            CENTER,
            REVERSE_ORDER,
            Argument(
                "shear",
                "float[]",
                None,
                "Factors (x, y), or (xy, xz, yx, yz, zx, zy): the shift along the first axis per unit along the second.",
                tensor=True,
                matrix=True,
                uniform=True,
                per_frame=True,
            ),
        ),
        sequences=True,
        constant=True,
        examples=(
            Example({"shear": [0.1, 0.2]}),
            Example({"angles": [10.0, -20.0]}),
            Example({"shear": [0.1, 0.2]}, (INPUT.example,)),
        ),
    )

    def setup(self) -> None:
        if self.given("shear") == self.given("angles"):
            raise RuntimeError("One and only one of the following arguments is expected: ``shear`` or ``angles``")

    def matrix(self, sample: Sample) -> np.ndarray:
        factors = self._factors(sample)
        count = {2: 2, 6: 3}.get(len(factors))
        if count is None:
            raise RuntimeError(
                "Shear matrix must have D*(D-1) elements where D is the number of dimensions: 2 or 6. "
                f"Got {len(factors)} elements."
            )
        linear = np.eye(count, dtype=np.float32)
        linear[~np.eye(count, dtype=bool)] = factors
        return affine(linear, vector(sample, "center", count, all_given=True))

    @staticmethod
    def _factors(sample: Sample) -> np.ndarray:
        name = "angles" if sample.given("angles") else "shear"
        values = sample.tensor_argument(name)
        if values is not None and values.shape not in ((2,), (2, 1), (3, 2)):
            raise RuntimeError(
                f"`{name}` must be a D x (D-1) matrix or a 2-element vector, got a tensor of shape {list(values.shape)}"
            )
        angles = np.asarray(sample[name], np.float32)
        if name == "shear":
            return angles
        if np.any(np.abs(angles) > 90):
            raise RuntimeError(f"Angles of a shear must be from -90 to 90 degrees, got {angles.tolist()}")
        return np.tan(angles * np.float32(math.pi / 180))
