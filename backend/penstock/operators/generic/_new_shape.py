"""The shape arguments and the shape input of `reshape` and `reinterpret`."""

from __future__ import annotations

import numpy as np

from penstock.schema import Argument, Input, Operator, Sample, Workspace
from penstock.schema.example_data import Example, fixed_arrays, pictures

DATA_AND_SHAPE = (
    Input("data", doc="Data of any type and shape."),
    Input("shape_input", device="cpu", doc="The extents of the output: 1-D, of integers."),
)
SHAPE_ARGUMENTS = (
    Argument("layout", "layout", None, "Layout of the output.", example="X"),
    Argument(
        "rel_shape",
        "float[]",
        None,
        "Extents relative to the input's; a negative one is inferred.",
        tensor=True,
    ),
    Argument("shape", "int32[]", None, "Extents of the output.", tensor=True, any_integer=True),
    Argument(
        "src_dims",
        "int32[]",
        None,
        "The input dimension that each output extent comes from; -1: a new one of extent 1.",
        tensor=True,
    ),
)
EXAMPLES = (
    Example({"shape": [-1]}),
    Example({"rel_shape": [0.5, 2.0, 1.0]}),
    Example({"src_dims": [1, 0, 2]}),
    Example(inputs=(pictures, fixed_arrays([-1, 1], dtype=np.int32))),
)


def check_one_shape(operator: Operator, has_input: bool = False) -> None:
    """Raise RuntimeError if the new shape is specified in several ways; ``has_input``: whether the second input specifies it."""
    if has_input + operator.given("shape") + operator.given("rel_shape") > 1:
        raise RuntimeError("Shape input, `shape` argument and `rel_shape` argument are mutually exclusive")


def check_shapes(workspace: Workspace) -> None:
    """Raise RuntimeError if `shape` or `rel_shape` is computed in the graph and is a single number for each sample."""
    computed = [workspace.arguments[name] for name in ("shape", "rel_shape") if name in workspace.arguments]
    if any(len(batch) and not batch.ndim() for batch in computed):
        raise RuntimeError("The shape must be a list of extents for each sample, got single numbers")


def extents_from_input(sample: Sample) -> list[int]:
    """Return the shape that the sample of the second input contains."""
    data = sample.inputs[1]
    if data.ndim != 1 or data.dtype.kind not in "iu":
        raise RuntimeError(
            f"Shape input must have integral type and one dimension, got {data.dtype} with {data.ndim} dimensions"
        )
    return data.tolist()
