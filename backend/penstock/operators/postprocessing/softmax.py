"""`softmax`: scores as probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT
from penstock.operators.postprocessing._axis import AXIS, AxisOperator
from penstock.schema import Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays
from penstock.schema.outputs import Shape
from penstock.schema.plans import NoPlans


@register_operator
class Softmax(AxisOperator):
    """Turns scores into probabilities: exponentials that sum to 1 along a dimension.

    Probabilities are computed in double precision; results are FLOAT, less than 2 units in the last place from the exact ones. A
    score of -inf has probability 0. If a score is NaN or +inf, or all scores along the dimension are -inf, all results along it are
    NaN.

    >>> probabilities = fn.softmax(logits)
    """

    schema = Schema(
        name="Softmax",
        inputs=(
            Input(
                "input",
                doc="Scores (logits) of FLOAT or FLOAT16, with at least one dimension.",
                example=random_arrays((3, 5, 4), (2, 3, 7), (1, 6, 2), low=-5, high=5, layout="CHW"),
            ),
        ),
        arguments=AXIS,
        examples=(Example(), Example({"axis": 0})),
        equivalents=(Equivalent("torch.softmax"), Equivalent("scipy.special.softmax")),
    )

    def describe(self, workspace: Workspace[int]) -> list[OutputSpec]:
        workspace.state = self.resolve(workspace)
        batch = workspace.inputs[0]
        return [OutputSpec(FLOAT, batch.layout(), batch.ndim())]

    def infer_batch(self, samples: Samples[int]) -> tuple[list[list[Shape]], NoPlans]:
        self.extents(samples)
        return [samples.shape_list()], NoPlans(len(samples))

    def launch(
        self, places: np.ndarray, begin: int, end: int, outputs: Sequence[np.ndarray], faults: np.ndarray
    ) -> None:
        from penstock.operators.postprocessing._axis_cpu import softmax

        softmax(places, begin, end, outputs[0])

    def compute_batch(self, workspace: Workspace[int]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.postprocessing._axis_cuda import softmax_batch

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        softmax_batch(sources, targets, workspace.state)
