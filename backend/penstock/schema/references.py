"""The argument `reference` of operators that can compute exactly the same as OpenCV."""

from __future__ import annotations

from collections.abc import Collection

from penstock.data_types import DALIDataType, dtype_name
from penstock.schema.arguments import Argument
from penstock.schema.operator import Operator
from penstock.schema.workspace import Workspace

_DALI, _OPENCV = "dali", "opencv"


def opencv_reference(doc: str) -> Argument:
    """Return the argument `reference`.

    Args:
        doc: a description of what OpenCV computes, and of its inputs.
    """
    return Argument(
        "reference",
        "string",
        _DALI,
        f"The library whose results are computed: `dali`, or `opencv`, which OpenCV itself computes, for a GPU on the host. {doc}",
        choices=(_DALI, _OPENCV),
    )


def follows_opencv(operator: Operator) -> bool:
    """Return whether an operator is to compute the same as OpenCV.

    Raises:
        ValueError: the value of ``reference`` is not allowed.
    """
    reference = operator.args["reference"]
    if reference not in (_DALI, _OPENCV):
        raise ValueError(f"`reference` must be one of {_DALI}, {_OPENCV}. Got: {reference!r}")
    return bool(reference == _OPENCV)


def check_opencv_types(workspace: Workspace, accepted: Collection[DALIDataType], output: DALIDataType) -> None:
    """Check that OpenCV supports the types of the first input and of the output.

    Raises:
        RuntimeError: OpenCV's function does not accept the type of the input, or the output has another type than the input.
    """
    dtype = workspace.inputs[0].dtype
    if dtype not in accepted:
        names = ", ".join(dtype_name(known) for known in accepted)
        raise RuntimeError(f"With `reference='{_OPENCV}'`, images must be of one of {names}. Got: {dtype_name(dtype)}")
    if output != dtype:
        raise RuntimeError(
            f"With `reference='{_OPENCV}'`, `dtype` must be that of the images, {dtype_name(dtype)}. Got: {dtype_name(output)}"
        )
