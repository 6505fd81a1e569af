"""`normalize`: subtracts a mean and divides by a standard deviation, both given or computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.axes import resolve_axes
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.types import FLOAT, FLOAT16


@register_operator
class Normalize(Operator):
    """``(input - mean) / sqrt(variance + epsilon) * scale + shift``, the mean and variance taken over some dimensions.

    Where the variance is 0, the result is ``shift``.
    """

    schema = Schema(
        name="Normalize",
        inputs=(Input("input", doc="Data of any type and shape."),),
        arguments=(
            Argument("axes", "int32[]", None, "Indices of the dimensions that the other arguments speak of."),
            Argument(
                "axis_names",
                "layout",
                None,
                "Letters of the dimensions that the other arguments speak of, as in the layout.",
            ),
            Argument("batch", "bool", False, "Compute mean and deviation over the whole batch."),
            Argument("ddof", "int32", 0, "Subtracted from the number of elements in the variance's denominator."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output."),
            Argument("epsilon", "float", 0.0, "Added to the variance."),
            Argument(
                "mean",
                "float",
                None,
                "The mean to subtract, of extent 1 along the normalized axes; by default computed.",
                tensor=True,
            ),
            Argument("scale", "float", 1.0, "Multiplied with the normalized value."),
            Argument("shift", "float", 0.0, "Added last."),
            Argument("stddev", "float", None, "The standard deviation to divide by; by default computed.", tensor=True),
        ),
        batchwise=True,
    )

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("`axes` and `axis_names` cannot be given together")
        if self.args["batch"] and ("mean" in self.tensor_arguments or "stddev" in self.tensor_arguments):
            raise RuntimeError("Per-sample `mean` or `stddev` cannot be given with `batch=True`")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if self.args["axes"] == []:
            raise RuntimeError("`axes` must name at least one dimension")
        axes = resolve_axes(self.args["axes"], self.args["axis_names"], batch.layout(), batch.ndim())
        workspace.state = tuple(range(batch.ndim()) if axes is None else axes)
        return [OutputSpec(self.args["dtype"], batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute_samples(self, workspace: Workspace, shapes: Any) -> None:
        if self.args["batch"]:
            self._normalize_together(workspace)
        else:
            super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample) -> None:
        axes = sample.workspace.state
        data = sample.inputs[0].astype(np.float32)
        mean = self._given("mean", sample)
        if mean is None:
            mean = data.mean(axis=axes, keepdims=True, dtype=np.float64).astype(np.float32)
        deviation = self._given("stddev", sample)
        if deviation is None:
            count = int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64)) - self.args["ddof"]
            squares = np.square(data - mean).sum(axis=axes, keepdims=True, dtype=np.float64)
            variance = squares / count if count > 0 else np.zeros_like(squares)
            deviation = np.sqrt(variance + self.args["epsilon"]).astype(np.float32)
        self._store(data, mean, deviation, sample.outputs[0])

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.normalization import Normalization, normalize_batch

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

    def _given(self, name: str, sample: Sample) -> Any:
        """The mean or the deviation that was given, float32; None where there is none."""
        if not sample.given(name):
            return None
        axes = sample.workspace.state
        value = sample.tensor_argument(name)
        if value is None:
            value = np.array(self.args[name], np.float32)
        expected = tuple(1 if axis in axes else extent for axis, extent in enumerate(sample.shapes[0]))
        if value.size == 1:
            value = value.reshape(())
        elif value.shape != expected and any(v not in (1, e) for v, e in zip(value.shape, expected)):
            raise RuntimeError(
                f"`{name}` has shape {list(value.shape)}, expected {list(expected)}: extent 1 along the normalized axes"
            )
        if name == "stddev" and self.args["epsilon"]:
            value = np.sqrt(np.square(value) + np.float32(self.args["epsilon"]))
        return value.astype(np.float32)

    def _check_together(self, workspace: Workspace) -> None:
        kept = [axis for axis in range(workspace.inputs[0].ndim()) if axis not in workspace.state]
        if len({tuple(sample.shapes[0][axis] for axis in kept) for sample in workspace.live}) > 1:
            raise RuntimeError(
                "With `batch=True`, samples must have equal extents in the dimensions that are not normalized"
            )

    def _normalize_together(self, workspace: Workspace) -> None:
        axes = workspace.state
        samples = workspace.live
        if not samples:
            return
        self._check_together(workspace)
        data = [sample.inputs[0].astype(np.float32) for sample in samples]
        count = sum(int(np.prod([d.shape[axis] for axis in axes], dtype=np.int64)) for d in data)
        mean = self._given("mean", samples[0])
        if mean is None:
            mean = (sum(d.sum(axis=axes, keepdims=True, dtype=np.float64) for d in data) / count).astype(np.float32)
        deviation = self._given("stddev", samples[0])
        if deviation is None:
            squares = sum(np.square(d - mean).sum(axis=axes, keepdims=True, dtype=np.float64) for d in data)
            denominator = count - self.args["ddof"]
            variance = squares / denominator if denominator > 0 else np.zeros_like(squares)
            deviation = np.sqrt(variance + self.args["epsilon"]).astype(np.float32)
        for sample, values in zip(samples, data):
            self._store(values, mean, deviation, sample.outputs[0])

    def _store(self, data: np.ndarray, mean: Any, deviation: Any, out: np.ndarray) -> None:
        with np.errstate(divide="ignore"):
            factor = np.where(deviation == 0, np.float32(0), np.float32(self.args["scale"]) / deviation)
        result = (data - mean) * factor + np.float32(self.args["shift"])
        if self.args["dtype"] in (FLOAT, FLOAT16):
            out[...] = result
            return
        limits = np.iinfo(out.dtype)
        rounded = np.where(result >= 0, np.floor(result + np.float32(0.5)), np.ceil(result - np.float32(0.5)))
        out[...] = np.clip(rounded, limits.min, limits.max)
