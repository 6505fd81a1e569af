"""`constant`: the same tensor for every sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, dtype_name, numpy_dtype
from penstock.schema import Argument, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import Example
from penstock.tensors import TensorCPU, TensorList, TensorListCPU, TensorListGPU


@register_operator
class Constant(Operator):
    """Returns a tensor that is known when the pipeline is built; all samples share its memory."""

    schema = Schema(
        name="Constant",
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; not FLOAT64."),
            Argument("fdata", "float[]", None, "Values, for floating point types."),
            Argument("idata", "int64[]", None, "Values, for integer types."),
            Argument("layout", "layout", "", "Layout of the output."),
            Argument("shape", "int32[]", None, "Extents of the output."),
        ),
        constant=True,
        hidden=True,
        examples=(Example({"fdata": [0.5, 1.5]}), Example({"idata": [1, 2, 3], "shape": [3], "layout": "X"})),
    )

    is_cheap_on_host = True

    def setup(self) -> None:
        self._tensor: TensorCPU | None = None
        self._on_gpu: object = None
        # The last batch; most batches have as many samples.
        self._batch: TensorList | None = None
        self._numbers = True
        reals, integers = self.args["fdata"], self.args["idata"]
        if reals is None and integers is None:
            return
        if reals is not None and integers is not None:
            raise RuntimeError("`fdata` and `idata` arguments are mutually exclusive")
        values = np.array(integers, np.int64) if reals is None else _single(reals)
        dtype = self.args["dtype"]
        if dtype is None:
            dtype = INT32 if reals is None else FLOAT
        array = _as_type(values, numpy_dtype(dtype))
        shape = self.args["shape"]
        if shape is None:
            shape = [len(values)]
        if array.size not in (1, math.prod(shape)):
            raise RuntimeError(f"The number of values, {array.size}, does not match the shape specified: {list(shape)}")
        if array.size == 1:
            array = np.full(shape, array[0])
        layout = self.args["layout"]
        if layout and len(layout) != len(shape):
            raise RuntimeError(f'The requested layout "{layout}" is incompatible with the output shape {list(shape)}')
        self._tensor = TensorCPU(array.reshape(shape), layout or None)
        self._tensor.marked(dtype)

    def bind(self, payload: Any) -> None:
        if payload is not None:
            self._tensor, self._numbers = payload, False

    def run(self, workspace: Workspace) -> None:
        if self._numbers and self.args["dtype"] == FLOAT64:
            raise RuntimeError(f"Unsupported type: {dtype_name(FLOAT64)}")
        if self._tensor is None:
            raise RuntimeError("A constant needs its values: give `fdata` or `idata`")
        if self._batch is None or len(self._batch) != workspace.batch_size:
            self._batch = self._broadcast(self._tensor, workspace)
        # Positions and sources are set on the outputs of each batch.
        workspace.outputs = [self._batch.shallow_copy()]

    def _broadcast(self, tensor: TensorCPU, workspace: Workspace) -> TensorList:
        """Return a batch of the constant."""
        if workspace.device == "cpu":
            return TensorListCPU.broadcast(tensor, workspace.batch_size)
        if self._on_gpu is None:
            self._on_gpu = TensorListGPU.upload(TensorListCPU.broadcast(tensor, 1))[0]
        return TensorListGPU.broadcast(self._on_gpu, workspace.batch_size)


def _single(values: object) -> np.ndarray:
    """Return values in single precision; values beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float32)


def _as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return values in another type; for integer types, they are rounded half away from zero and clamped."""
    if dtype.kind == "b":
        return values != 0
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        rounded = np.nan_to_num(np.trunc(values.astype(np.float64) + np.copysign(0.5, values)))
        return np.array([min(max(int(value), limits.min), limits.max) for value in rounded], dtype)
    lowest, highest = max(limits.min, np.iinfo(np.int64).min), min(limits.max, np.iinfo(np.int64).max)
    return np.clip(values, lowest, highest).astype(dtype)
