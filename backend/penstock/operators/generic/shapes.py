"""`shapes`: the shape of each sample."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, INT64, UINT32, UINT64, dtype_name, numpy_dtype
from penstock.schema import (
    Alias,
    Argument,
    Deprecation,
    Equivalent,
    Input,
    Operator,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.operator import OutputSpec
from penstock.tensors import TensorListCPU, TensorListGPU

_TYPES = (INT32, UINT32, INT64, UINT64, FLOAT, FLOAT64)


@register_operator
class Shapes(Operator):
    """Returns the shape of each sample, as a 1-D tensor."""

    schema = Schema(
        name="Shapes",
        inputs=(Input("input", device="any", doc="Data of any kind, on CPU or GPU; only its shape is used."),),
        arguments=(
            Argument("dtype", "DALIDataType", INT64, "Type of the output."),
            Argument(
                "type",
                "DALIDataType",
                INT64,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.27", renamed_to="dtype"),
            ),
        ),
        aliases=(Alias("_Shape", fn="_shape"),),
        deprecated_since="1.14",
        deprecation_note="Use the method `shape` of a `DataNode` instead.",
        equivalents=(Equivalent("numpy.shape"),),
    )

    def setup(self) -> None:
        if self.args["dtype"] not in _TYPES:
            raise RuntimeError(
                f"Shapes can return the output as one of the following: {', '.join(map(dtype_name, _TYPES))}; "
                f"requested: {dtype_name(self.args['dtype'])}"
            )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        dtype = self.args["dtype"]
        shapes = np.array(batch.shapes, numpy_dtype(dtype)).reshape(len(batch), batch.ndim())
        spec = OutputSpec(dtype, "", 1)
        output = TensorListCPU.of_samples(list(shapes), spec.layout, spec.dtype, spec.ndim)
        workspace.outputs = [output if workspace.device == "cpu" else TensorListGPU.upload(output)]
