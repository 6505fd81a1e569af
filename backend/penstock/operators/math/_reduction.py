"""What reductions have in common: which dimensions go, and what is left of shape and layout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.kernels.axes import resolve_axes
from penstock.schema import Argument, Operator, OutputSpec, Sample, Workspace
from penstock.types import BOOL, FLOAT, FLOAT16, FLOAT64, INT64, UINT64, DALIDataType, dtype_name, numpy_dtype

REDUCTION_ARGUMENTS = (
    Argument("axes", "int32[]", None, "Indices of the dimensions to reduce; by default all."),
    Argument("axis_names", "layout", None, "Letters of the dimensions to reduce, as in the layout."),
    Argument("keep_dims", "bool", False, "Keep the reduced dimensions with extent 1."),
)


class Reduction(Operator):
    """The base of operators that replace the elements along some dimensions by one number."""

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("`axes` and `axis_names` cannot be given together")

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        """The output's type for an input type; raises RuntimeError where the operator cannot give what was asked for."""
        raise NotImplementedError(f"{type(self).__name__} must say what type it gives")

    def reduce(self, data: Any, axes: tuple[int, ...], sample: Sample, kind: np.dtype[Any], xp: Any) -> Any:
        """The reduced array without the reduced dimensions; ``xp`` is numpy or CuPy, ``kind`` the output's type."""
        raise NotImplementedError(f"{type(self).__name__} must say what it computes")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype in (BOOL, FLOAT16, FLOAT64):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}; use an integer type or FLOAT")
        names = self.args["axis_names"]
        axes = [] if names == "" else resolve_axes(self.args["axes"], names, batch.layout(), batch.ndim())
        reduced = tuple(range(batch.ndim()) if axes is None else axes)
        workspace.state = reduced
        layout, ndim = batch.layout(), batch.ndim()
        if not self.args["keep_dims"]:
            layout = "".join(letter for axis, letter in enumerate(layout) if axis not in reduced)
            ndim -= len(reduced)
        return [OutputSpec(self.result_type(batch.dtype), layout, ndim)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        axes, shape = sample.workspace.state, sample.shapes[0]
        if self.args["keep_dims"]:
            return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        return kept_extents(shape, axes)

    def compute(self, sample: Sample) -> None:
        with np.errstate(all="ignore"):
            self._reduce_into(sample, np)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.tensors.cuda import require_cupy

        cupy = require_cupy()
        for sample in workspace.live:
            self._reduce_into(sample, cupy)

    def _reduce_into(self, sample: Sample, xp: Any) -> None:
        target, data, axes = sample.outputs[0], sample.inputs[0], sample.workspace.state
        result = self.reduce(data, axes, sample, target.dtype, xp)
        target[...] = xp.asarray(result).reshape(target.shape)


class TypedReduction(Reduction):
    """The base of reductions whose ``dtype`` argument chooses among a few types."""

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        """The output types for an input type, the default first."""
        raise NotImplementedError(f"{type(self).__name__} must say what types it gives")

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        possible, wanted = self.possible_types(dtype), self.args["dtype"]
        if wanted is None:
            return possible[0]
        if wanted not in possible:
            names = " or ".join(dict.fromkeys(map(dtype_name, possible)))
            raise RuntimeError(
                f"Unsupported types: the output for {dtype_name(dtype)} input is {names}, not {dtype_name(wanted)}"
            )
        return wanted


def kept_extents(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the dimensions that are not reduced."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def reduced_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements become one."""
    return math.prod(shape[axis] for axis in axes)


def widest(dtype: DALIDataType) -> DALIDataType:
    """The type of 64 bits into which integers are summed; FLOAT stays."""
    if dtype == FLOAT:
        return FLOAT
    return INT64 if numpy_dtype(dtype).kind == "i" else UINT64


def mean_of(data: Any, axes: tuple[int, ...], kind: np.dtype[Any], square: bool, xp: Any) -> Any:
    """The mean of the elements or of their squares, in float64 where the result is not an integer.

    Integer results are summed in the result's own type, which wraps, and the quotient's fraction is cut off.
    """
    count = reduced_count(data.shape, axes)
    accumulator = np.dtype(np.float64) if kind.kind == "f" else kind
    values = data.astype(accumulator)
    if square:
        values *= values
    total = values.sum(axis=axes, dtype=accumulator)
    if kind.kind == "f":
        return total / np.float64(count) if count else xp.full(total.shape, np.nan)
    if not count:
        return xp.zeros(total.shape, kind)
    quotient = xp.trunc(total.astype(np.float64) / count)
    return quotient.astype(kind)


def extreme(data: Any, axes: tuple[int, ...], xp: Any, largest: bool) -> Any:
    """The smallest or largest elements, among which the type's finite limit at the other end always counts."""
    if not axes:
        return data
    limits: Any = np.finfo(data.dtype) if data.dtype.kind == "f" else np.iinfo(data.dtype)
    start = limits.min if largest else limits.max
    shape = kept_extents(data.shape, axes)
    if not reduced_count(data.shape, axes):
        return xp.full(shape, start, data.dtype)
    if data.dtype.kind == "f":
        data = xp.where(xp.isnan(data), start, data)
    found = data.max(axis=axes) if largest else data.min(axis=axes)
    return xp.maximum(found, start) if largest else xp.minimum(found, start)


def deviation_of(data: Any, mean: Any, axes: tuple[int, ...], ddof: int, xp: Any) -> Any:
    """The mean of the squared differences from ``mean``, whose denominator is reduced by ``ddof``.

    Raises:
        RuntimeError: there is neither one mean for all nor one for each output element.
    """
    kept = kept_extents(data.shape, axes)
    if mean.size not in (1, math.prod(kept)):
        raise RuntimeError(f"The mean of shape {list(mean.shape)} does not fit an output of shape {list(kept)}")
    along = tuple(1 if axis in axes else extent for axis, extent in enumerate(data.shape))
    centre = mean.reshape(along if mean.size > 1 else (1,) * data.ndim)
    squares = xp.square(data.astype(np.float32) - centre).sum(axis=axes, dtype=np.float64)
    return squares / np.float64(reduced_count(data.shape, axes) - ddof)
