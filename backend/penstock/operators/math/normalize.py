"""`normalize`: subtracts the mean and divides by the standard deviation, which are computed unless they are passed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import FLOAT, INT8, INT16, INT32, UINT8, UINT16, UINT32, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.kernels.elementwise import evaluate, folded
from penstock.operators.math._reduction import kept_extents, reduced_count
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.fused import ArrayOperator

if TYPE_CHECKING:
    from penstock.kernels.cpu.moments import Standard

_TYPES = (INT8, UINT8, INT16, UINT16, INT32, UINT32, FLOAT)
# The number of elements that are processed at a time, so that they stay in the cache.
_BLOCK = 1 << 16


@register_operator
class Normalize(ArrayOperator[tuple[int, ...]]):
    """Computes ``(input - mean) / sqrt(variance + epsilon) * scale + shift``, with mean and variance over some dimensions.

    Where the deviation is 0, the result is ``shift``. If ``mean`` has the sample's shape and ``stddev`` is not passed, each difference is
    divided by the element's distance from the first mean.
    """

    schema = Schema(
        name="Normalize",
        inputs=(Input("input", doc="float32 or integers of at most 32 bits, of any shape."),),
        arguments=(
            Argument(
                "axes", "int32[]", None, "Indices of the dimensions that the other arguments apply to.", example=[0, 1]
            ),
            Argument(
                "axis_names",
                "layout",
                None,
                "Letters of the dimensions that the other arguments apply to.",
                example="HW",
            ),
            Argument("batch", "bool", False, "Compute mean and deviation over the whole batch."),
            Argument("ddof", "int32", 0, "Subtracted from the number of elements in the variance's denominator."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output: float32 or integers of at most 32 bits."),
            Argument("epsilon", "float", 0.0, "Added to the variance."),
            Argument(
                "mean",
                "float",
                None,
                "The mean to subtract, of extent 1 along the normalized axes; by default computed.",
                tensor=True,
                example=120.0,
                tensor_example=[[[120.0]]],
                exempt="",
            ),
            Argument("scale", "float", 1.0, "Multiplies the normalized value."),
            Argument("shift", "float", 0.0, "Added last."),
            Argument(
                "stddev",
                "float",
                None,
                "The standard deviation to divide by; by default computed.",
                tensor=True,
                example=40.0,
                tensor_example=[[[40.0]]],
            ),
        ),
        batchwise=True,
    )

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("Arguments `axes` and `axis_names` are mutually exclusive")
        if self.args["batch"] and ("mean" in self.tensor_arguments or "stddev" in self.tensor_arguments):
            raise RuntimeError("Per-sample `mean` or `stddev` cannot be given with `batch=True`")
        if {"mean", "stddev"} <= self.explicit and (self.given("axes") or self.given("axis_names")):
            raise RuntimeError("Axes must not be specified when both mean and standard deviation are scalars")

    def describe(self, workspace: Workspace[tuple[int, ...]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in _TYPES:
            raise RuntimeError(f"Normalize: unsupported input type: {dtype_name(batch.dtype)}")
        if self.args["dtype"] not in _TYPES:
            raise RuntimeError(f"Normalize: unsupported output type: {dtype_name(self.args['dtype'])}")
        if self.args["axes"] == []:
            raise RuntimeError("`axes` must name at least one dimension")
        for axis in self.args["axes"] or ():
            if not 0 <= axis < batch.ndim():
                raise RuntimeError(f"Normalize: axis index {axis} is out of valid range 0..{batch.ndim() - 1}")
        axes = resolve_axes(self.args["axes"], self.args["axis_names"], batch.layout(), batch.ndim())
        if self.args["axis_names"] == "":
            axes = []
        if axes is None:
            axes = self._implied_axes(workspace)
        workspace.state = tuple(axes)
        return [OutputSpec(self.args["dtype"], batch.layout(), batch.ndim())]

    @staticmethod
    def _implied_axes(workspace: Workspace[tuple[int, ...]]) -> list[int]:
        """Return the dimensions to reduce if there are no axes: those in which the mean or deviation from the graph has extent 1, or all
        if neither comes from the graph.
        """
        batch = workspace.inputs[0]
        statistic = next(
            (workspace.arguments[name] for name in ("mean", "stddev") if name in workspace.arguments), None
        )
        if statistic is None or not len(statistic):
            return list(range(batch.ndim()))
        shape, extents = statistic.shapes[0], batch.shapes[0]
        if len(shape) != len(extents) or any(one not in (1, extent) for one, extent in zip(shape, extents)):
            raise RuntimeError(
                "Each extent of the normalization parameters must be 1 or equal to the input's. "
                f"Got: parameters of shape {list(shape)}, input of shape {list(extents)}"
            )
        return [axis for axis, extent in enumerate(shape) if extent == 1]

    def infer(self, sample: Sample[tuple[int, ...]]) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute_samples(self, workspace: Workspace[tuple[int, ...]], shapes: Any) -> None:
        if self.args["batch"]:
            self._check_together(workspace)
            samples = workspace.live
            self._normalize(samples, [(sample.inputs[0], sample.outputs[0]) for sample in samples])
        else:
            super().compute_samples(workspace, shapes)

    def compute_array(self, sample: Sample[tuple[int, ...]], source: np.ndarray, target: np.ndarray) -> None:
        from penstock.kernels.cpu import moments

        volumes = moments.around(source, sample.workspace.state)
        if volumes is None or self.given("mean") or self.given("stddev"):
            self._normalize([sample], [(source, target)])
        else:
            moments.standardize(source, volumes, self._standard, target)

    def standard_of_rows(self, sample: Sample[tuple[int, ...]], data: np.ndarray) -> Standard | None:
        """Return the parameters for normalizing each row of a float32 matrix like ``data`` separately; None if rows are not normalized
        separately.
        """
        from penstock.kernels.cpu import moments

        if sample.workspace.state != (1,) or self.given("mean") or self.given("stddev"):
            return None
        return self._standard if moments.around(data, (1,)) else None

    @cached_property
    def _standard(self) -> Standard:
        from penstock.kernels.cpu.moments import Standard

        ddof, epsilon, scale, shift = (self.args[name] for name in ("ddof", "epsilon", "scale", "shift"))
        return Standard(ddof, epsilon, np.float32(scale), np.float32(shift))

    def compute_batch(self, workspace: Workspace[tuple[int, ...]]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.math._normalization_cuda import Normalization, normalize_batch

        samples = workspace.live
        if self.args["batch"]:
            self._check_together(workspace)
        settings = {name: self.args[name] for name in ("ddof", "epsilon", "scale", "shift")}
        means, deviations = ([self._given(name, sample) for sample in samples] for name in ("mean", "stddev"))
        normalize_batch(
            locate_all(workspace.inputs[0], samples),
            locate_all(workspace.outputs[0], samples),
            Normalization(workspace.state, self.args["batch"], **settings),
            means if self.given("mean") else None,
            deviations if self.given("stddev") else None,
        )

    def _given(self, name: str, sample: Sample[tuple[int, ...]]) -> Any:
        """Return the argument `mean` or `stddev` of a sample as float32, the latter with epsilon applied; None if it was not passed."""
        if not sample.given(name):
            return None
        axes = sample.workspace.state
        value = sample.tensor_argument(name)
        expected = tuple(1 if axis in axes else extent for axis, extent in enumerate(sample.shapes[0]))
        if value is None:
            value = np.array(self.args[name], np.float32)
        elif sample.workspace.arguments[name].dtype != FLOAT:
            raise TypeError(f"`{name}` must be of float, got {value.dtype}")
        elif value.shape != expected:
            raise RuntimeError(
                f"At sample {sample.index}: parameter shape of `{name}`, {list(value.shape)}, does not match the reduced "
                f"input sample shape which is: {list(expected)}"
            )
        if name == "stddev" and self.args["epsilon"]:
            value = np.sqrt(np.square(value) + np.float32(self.args["epsilon"]))
        return value.astype(np.float32)

    def _is_number(self, name: str, sample: Sample[tuple[int, ...]]) -> bool:
        """Return whether the argument is a constant number, the same for all samples."""
        return sample.given(name) and sample.tensor_argument(name) is None

    def _check_together(self, workspace: Workspace[tuple[int, ...]]) -> None:
        remaining = [axis for axis in range(workspace.inputs[0].ndim()) if axis not in workspace.state]
        if len({tuple(sample.shapes[0][axis] for axis in remaining) for sample in workspace.live}) > 1:
            raise RuntimeError(
                "With `batch=True`, samples must have equal extents in the dimensions that are not normalized"
            )

    def _normalize(
        self, samples: Sequence[Sample[tuple[int, ...]]], arrays: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        """Normalize samples with a common mean and deviation.

        Args:
            samples: the samples.
            arrays: ``(source, target)`` of each sample.
        """
        if not samples:
            return
        axes, data = samples[0].workspace.state, [values for values, _ in arrays]
        count = sum(reduced_count(values.shape, axes) for values in data)
        mean = self._given("mean", samples[0])
        with np.errstate(all="ignore"):
            if mean is None:
                sums = sum(_sum(values, axes) for values in data)
                mean = _along(sums / count, data[0].shape, axes)
            deviation = self._given("stddev", samples[0])
            if deviation is None:
                sums = sum(_sum_of_squares(values, _centre(mean, axes), axes) for values in data)
                denominator = count - self.args["ddof"]
                variance = sums / denominator if denominator > 0 else np.zeros_like(sums)
                deviation = _along(np.sqrt(variance + self.args["epsilon"]), data[0].shape, axes)
            factor = np.float32(self.args["scale"]) / deviation
            if not self._is_number("stddev", samples[0]):
                factor = np.where(deviation == 0, np.float32(0), factor)
            for values, out in arrays:
                self._store(values, axes, mean, factor, out)

    def _store(
        self, data: np.ndarray, axes: tuple[int, ...], mean: np.ndarray, factor: np.ndarray, out: np.ndarray
    ) -> None:
        from penstock.kernels.cpu import moments

        volumes = moments.around(data, axes)
        if volumes is not None and out.dtype != np.float16 and {mean.size, factor.size} <= {1, math.prod(volumes)}:
            moments.normalize(data, volumes, mean, factor, self.args["shift"], out)
            return
        result = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
        evaluate("sub", [data, mean], result)
        evaluate("mul", [result, factor], result)
        if self.args["shift"]:
            evaluate("add", [result, np.array(self.args["shift"], np.float32)], result)
        if result is not out:
            from penstock.kernels.cpu.casting import cast

            cast(result, out)


def _centre(mean: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the mean from which distances are measured: the first value of ``mean`` if no dimension is reduced, as in DALI."""
    return mean if axes else mean[(slice(0, 1),) * mean.ndim]


def _along(values: object, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Return a reduction's results as float32, with extent 1 along the reduced dimensions of an array of shape ``shape``."""
    extents = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return np.asarray(values, np.float32).reshape(extents)


def _sum(data: np.ndarray, axes: tuple[int, ...]) -> Any:
    from penstock.kernels.cpu import moments

    volumes = moments.around(data, axes)
    if volumes is not None:
        return moments.sums(data, volumes).reshape(kept_extents(data.shape, axes))
    return folded(np.add, data, axes, dtype=np.float64)


def _sum_of_squares(data: np.ndarray, mean: np.ndarray, axes: tuple[int, ...]) -> Any:
    """Return the sums of squared differences from the mean along ``axes``; a few rows are processed at a time to stay in the cache."""
    from penstock.kernels.cpu import moments

    volumes = moments.around(data, axes)
    if volumes is not None and mean.size in (1, math.prod(volumes)):
        return moments.squared_deviations(data, volumes, mean).reshape(kept_extents(data.shape, axes))
    if not data.ndim:
        return np.square(np.float64(data) - mean)
    rows = max(1, _BLOCK * len(data) // max(data.size, 1))
    buffer = np.empty((min(rows, len(data)), *data.shape[1:]), np.float32)
    sums = []
    for start in range(0, max(len(data), 1), rows):
        block = data[start : start + rows]
        differences = buffer[: len(block)]
        own = mean[start : start + rows] if mean.ndim and len(mean) > 1 else mean
        evaluate("sub", [block, own], differences)
        sums.append(folded(np.add, np.square(differences, out=differences), axes, dtype=np.float64))
    return sum(sums) if 0 in axes else np.concatenate(sums)
