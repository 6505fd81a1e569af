"""`transforms.combine`: combines several affine matrices into one."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from penstock.kernels.geometry import composed
from penstock.operators.geometry.transforms._transform import REVERSE_ORDER, MatrixOperator
from penstock.schema import Equivalent, Input, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays
from penstock.schema.operator import Shape


@register_operator
class Combine(MatrixOperator):
    """The affine matrix that applies the transforms of all inputs in the order of the inputs."""

    schema = Schema(
        name="transforms__Combine",
        devices=("cpu",),
        inputs=(
            Input(
                "input_0", doc="An affine matrix [M|t] of float, of shape (n, n + 1).", example=random_arrays((2, 3))
            ),
            Input("input_1", doc="Another of the same shape; more may follow.", example=random_arrays((2, 3), low=-2)),
        ),
        variadic=True,
        max_inputs=99,
        arguments=(REVERSE_ORDER,),
        sequences=True,
        equivalents=(Equivalent("numpy.matmul", "Of matrices with the row (0, ..., 0, 1) added."),),
    )

    plans_by_shape = True

    def infer(self, sample: Sample) -> tuple[int, ...]:
        for index, shape in enumerate(sample.shapes):
            if shape != sample.shapes[0]:
                raise RuntimeError(
                    f"The matrices must be of one shape, got {list(sample.shapes[0])} and {list(shape)} as input {index}"
                )
        return sample.shapes[0]

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        output = workspace.outputs[0]
        if workspace.failures or not workspace.batch_size or not output.is_dense_tensor():
            super().compute_samples(workspace, shapes)
            return
        stacks = [np.array(batch.samples) for batch in workspace.inputs]
        output.contiguous_elements()[:] = self._combined(stacks).reshape(-1)

    def compute(self, sample: Sample) -> None:
        sample.outputs[0][...] = self._combined(sample.inputs)

    def _combined(self, matrices: Sequence[np.ndarray]) -> np.ndarray:
        return functools.reduce(composed, matrices[::-1] if self.args["reverse_order"] else matrices)
