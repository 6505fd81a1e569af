"""`top_k`: the classes with the highest scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, INT32, UINT8
from penstock.operators.postprocessing._axis import (
    AXIS,
    LABELS,
    ClassOperator,
    check_labels,
    fill_names,
)
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays
from penstock.schema.outputs import Shape
from penstock.schema.plans import NoPlans


@register_operator
class TopK(ClassOperator):
    """Finds the highest scores along a dimension, in descending order; equal scores stay in order.

    Returns the scores (FLOAT), their indices (INT32) and, with `labels`, the names of the classes: strings, as rows of UINT8 that are
    padded with zeros. A sample fails if a score is NaN, or if it has fewer than `k` scores.

    >>> probabilities, classes, names = fn.top_k(fn.softmax(logits), k=5, labels=IMAGENET_CLASSES)
    """

    schema = Schema(
        name="TopK",
        fn="top_k",
        inputs=(
            Input(
                "input",
                doc="Scores of FLOAT or FLOAT16, with at least one dimension.",
                example=random_arrays((3, 5, 3), (4, 3, 3), (3, 6, 3), layout="HWC"),
            ),
        ),
        arguments=(*AXIS, Argument("k", "int32", None, "How many scores.", required=True, example=2), LABELS),
        outputs=lambda arguments: 2 if arguments.get("labels") is None else 3,
        examples=(
            Example({"k": 2}),
            Example({"k": 3, "axis": 0}),
            Example({"k": 2, "labels": ["cat", "dog", "owl"]}, (random_arrays((3,), (3,), (3,)),)),
        ),
        equivalents=(Equivalent("torch.topk", "Of equal scores, any may be found, and a NaN is the highest."),),
    )

    def setup(self) -> None:
        super().setup()
        if self.args["k"] < 1:
            raise ValueError(f"`k` must be 1 or more. Got: {self.args['k']}")

    def describe(self, workspace: Workspace[int]) -> list[OutputSpec]:
        workspace.state = self.resolve(workspace)
        layout, ndim = workspace.inputs[0].layout(), workspace.inputs[0].ndim()
        specs = [OutputSpec(FLOAT, layout, ndim), OutputSpec(INT32, layout, ndim)]
        return specs if self.names is None else [*specs, OutputSpec(UINT8, "", ndim + 1)]

    def infer_batch(self, samples: Samples[int]) -> tuple[list[list[Shape]], NoPlans]:
        axis, shapes, count = samples.state, samples.shape_list(), self.args["k"]
        extents = self.extents(samples)
        check_labels(self.args["labels"], extents)
        if min(extents) < count:
            raise ValueError(f"`k` is {count}, but there are only {min(extents)} scores")
        found = [(*shape[:axis], count, *shape[axis + 1 :]) for shape in shapes]
        return self.result_shapes(found, 2), NoPlans(len(samples))

    def launch(
        self, places: np.ndarray, begin: int, end: int, outputs: Sequence[np.ndarray], faults: np.ndarray
    ) -> None:
        from penstock.operators.postprocessing._axis_cpu import top_k

        top_k(places, self.args["k"], begin, end, outputs[0], outputs[1], faults)
        if self.names is not None:
            fill_names(self.names, outputs[1], outputs[2], places, begin, end, self.args["k"], faults)

    def compute_batch(self, workspace: Workspace[int]) -> None:
        values, indices, *names = workspace.outputs
        self.find_classes(workspace, values, indices, names, self.args["k"])
