"""`constant`: the same tensor for every sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.schema import Argument, Operator, Schema, Workspace, register_operator
from penstock.tensors import TensorCPU, TensorListCPU, TensorListGPU
from penstock.types import BOOL, FLOAT, FLOAT16, FLOAT64, INT32, numpy_dtype


@register_operator
class Constant(Operator):
    """Gives a tensor that is known when the pipeline is built; all samples share its memory."""

    schema = Schema(
        name="Constant",
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output."),
            Argument("fdata", "float[]", None, "Values, for floating point types."),
            Argument("idata", "int64[]", None, "Values, for integer types."),
            Argument("layout", "layout", "", "Layout of the output."),
            Argument("shape", "int32[]", None, "Extents of the output."),
        ),
        constant=True,
        hidden=True,
    )

    def setup(self) -> None:
        self._tensor: TensorCPU | None = None
        self._on_gpu: Any = None
        reals, integers = self.args["fdata"], self.args["idata"]
        if reals is None and integers is None:
            return
        values: Any = integers if reals is None else reals
        dtype = self.args["dtype"]
        if dtype is None:
            dtype = INT32 if reals is None else FLOAT
        kind = np.float64 if reals is not None else np.int64
        if dtype == BOOL:
            array = np.array(values, kind) != 0
        elif dtype in (FLOAT, FLOAT16, FLOAT64):
            array = np.array(values, np.float32 if reals is not None else np.float64).astype(numpy_dtype(dtype))
        else:
            array = np.array(values).astype(numpy_dtype(dtype))
        shape = self.args["shape"]
        if shape is None:
            shape = [len(values)]
        if array.size == 1:
            array = np.full(shape, array[0])
        self._tensor = TensorCPU(array.reshape(shape), self.args["layout"] or None)
        self._tensor.marked(dtype)

    def bind(self, payload: Any) -> None:
        if payload is not None:
            self._tensor = payload

    def run(self, workspace: Workspace) -> None:
        if self._tensor is None:
            raise RuntimeError("A constant needs its values: give `fdata` or `idata`")
        if workspace.device == "cpu":
            batch = TensorListCPU.broadcast(self._tensor, workspace.batch_size)
        else:
            if self._on_gpu is None:
                self._on_gpu = TensorListGPU.upload(TensorListCPU.broadcast(self._tensor, 1))[0]
            batch = TensorListGPU.broadcast(self._on_gpu, workspace.batch_size)
        workspace.outputs = [batch]
