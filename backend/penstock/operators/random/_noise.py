"""The base class of noise operators, whose outputs have the shape and type of the input."""

from __future__ import annotations

from penstock.data_types import FLOAT64
from penstock.operators.random._draw import NUMBERS, check_dtype
from penstock.schema import Input, OutputSpec, Sample, Workspace
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.random_operator import RandomOperator

NOISY = Input("input", doc="Data of any shape; integers or float32.")


class Noise(RandomOperator[State, Plan, Plans]):
    """Base class of operators that add noise to their input."""

    repeatable = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch):
            check_dtype(batch.dtype, tuple(dtype for dtype in NUMBERS if dtype != FLOAT64))
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]
