"""`argmax`: the class with the highest score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32, UINT8
from penstock.operators.postprocessing._axis import (
    AXIS,
    LABELS,
    ClassOperator,
    check_labels,
    fill_names,
)
from penstock.schema import Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples, random_arrays
from penstock.schema.outputs import Shape
from penstock.schema.plans import NoPlans


def _scores(layout: str = "") -> ExampleSamples:
    return random_arrays((3, 5, 4), (3, 3, 7), (3, 6, 2), layout="CHW")("")


def _class_scores(layout: str = "") -> ExampleSamples:
    return random_arrays((3,), (3,), (3,))("")


@register_operator
class Argmax(ClassOperator):
    """Finds the index of the highest score along a dimension, the first if several are equal.

    Returns INT32 of the shape of the scores without that dimension and, with `labels`, the names of the classes: strings, as rows of
    UINT8 that are padded with zeros. A sample fails if a score is NaN.

    >>> classes = fn.argmax(logits, axis_name="C")  # of each pixel
    >>> number, name = fn.argmax(logits, labels=["cat", "dog", "owl"])
    """

    schema = Schema(
        name="Argmax",
        inputs=(Input("input", doc="Scores of FLOAT or FLOAT16, with at least one dimension.", example=_scores),),
        arguments=(*AXIS, LABELS),
        outputs=lambda arguments: 1 if arguments.get("labels") is None else 2,
        examples=(Example(), Example({"axis": 0}), Example({"labels": ["cat", "dog", "owl"]}, (_class_scores,))),
        equivalents=(
            Equivalent("numpy.argmax", "A NaN is the highest score."),
            Equivalent("torch.argmax", "A NaN is the highest score, and of equal ones, any may be found."),
        ),
    )

    def describe(self, workspace: Workspace[int]) -> list[OutputSpec]:
        axis = workspace.state = self.resolve(workspace)
        layout, ndim = workspace.inputs[0].layout(), workspace.inputs[0].ndim() - 1
        specs = [OutputSpec(INT32, layout[:axis] + layout[axis + 1 :], ndim)]
        return specs if self.names is None else [*specs, OutputSpec(UINT8, "", ndim + 1)]

    def infer_batch(self, samples: Samples[int]) -> tuple[list[list[Shape]], NoPlans]:
        axis, shapes = samples.state, samples.shape_list()
        check_labels(self.args["labels"], self.extents(samples))
        return self.result_shapes([(*shape[:axis], *shape[axis + 1 :]) for shape in shapes], 1), NoPlans(len(samples))

    def launch(
        self, places: np.ndarray, begin: int, end: int, outputs: Sequence[np.ndarray], faults: np.ndarray
    ) -> None:
        from penstock.operators.postprocessing._axis_cpu import argmax

        argmax(places, begin, end, outputs[0], faults)
        if self.names is not None:
            fill_names(self.names, outputs[0], outputs[1], places, begin, end, 1, faults)

    def compute_batch(self, workspace: Workspace[int]) -> None:
        self.find_classes(workspace, None, workspace.outputs[0], workspace.outputs[1:], 1)
