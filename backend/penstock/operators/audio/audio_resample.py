"""`audio_resample`: changes the sample rate."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, INT8, INT16, INT32, UINT8, UINT16, UINT32, DALIDataType, dtype_name
from penstock.kernels.levels import from_unit, to_unit
from penstock.kernels.resampling import filter_table, lobes_of_quality, resample_signal
from penstock.schema import Alias, Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, signals, sounds

_TYPES = (INT8, UINT8, INT16, UINT16, INT32, UINT32, FLOAT)


@register_operator
class AudioResample(Operator[None, float]):
    """Resamples signals with a windowed sinc filter.

    The factor is the ratio of two sample rates (`in_rate`, `out_rate`), or `scale`, or follows from `out_length`. Integers represent
    numbers from -1 to 1.

    >>> audio = fn.audio_resample(audio, in_rate=44100.0, out_rate=16000.0)
    """

    schema = Schema(
        name="AudioResample",
        inputs=(
            Input(
                "input", doc="Signals: (time) or (time, channels); float32 or integers up to 32 bits.", example=signals
            ),
        ),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "in_rate",
                "float",
                None,
                "Sample rate of the input; goes with `out_rate`.",
                tensor=True,
                zero_dimensional=True,
            ),
            Argument("out_length", "int64", None, "Length of the output.", tensor=True, zero_dimensional=True),
            Argument("out_rate", "float", None, "Sample rate of the output.", tensor=True, zero_dimensional=True),
            Argument(
                "quality",
                "float",
                50.0,
                "Width of the filter, from 0 to 100; at 50, 16 lobes on each side.",
            ),
            Argument(
                "scale",
                "float",
                None,
                "Ratio of the output's to the input's number of samples.",
                tensor=True,
                zero_dimensional=True,
            ),
        ),
        aliases=(Alias("experimental__AudioResample", deprecated_since="1.18"),),
        examples=(
            Example({"scale": 0.73}),
            Example({"in_rate": 44100.0, "out_rate": 16000.0}),
            Example({"out_length": 500}),
        ),
        shown=(Example({"in_rate": 16000.0, "out_rate": 4000.0}, (sounds,)),),
    )

    def setup(self) -> None:
        if self.given("in_rate") != self.given("out_rate"):
            raise RuntimeError("The parameters ``in_rate`` and ``out_rate`` must be specified together")
        ways = self.given("in_rate") + self.given("scale") + self.given("out_length")
        if ways > 1:
            raise RuntimeError("The sampling rates, `scale` and `out_length` cannot be used together")
        if not ways:
            raise RuntimeError(
                "No resampling factor specified! Please supply the scale, the output length, or the input and output sampling rates"
            )
        self._lobes = lobes_of_quality(self.args["quality"])
        self._check_type(self.args["dtype"], "output")

    @staticmethod
    def _check_type(dtype: DALIDataType | None, end: str) -> None:
        if dtype is not None and dtype not in _TYPES:
            names = ", ".join(map(dtype_name, _TYPES))
            raise RuntimeError(f"Unsupported {end} type: {dtype_name(dtype)}. Supported types are: {names}")

    def describe(self, workspace: Workspace[None, float]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch):
            self._check_type(batch.dtype, "output" if self.args["dtype"] is None else "input")
            if batch.ndim() not in (1, 2):
                raise RuntimeError(
                    "Audio resampling supports only time series data, with an optional innermost channel dimension; "
                    f"got data of {batch.ndim()} dimensions"
                )
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        return [OutputSpec(dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample[None, float]) -> tuple[int, ...]:
        count = sample.shapes[0][0]
        scale, length = self._scale_and_length(sample, count)
        sample.plan = scale
        return (length, *sample.shapes[0][1:])

    def _scale_and_length(self, sample: Sample[None, float], count: int) -> tuple[float, int]:
        """Return the number of output samples per input sample, and the number of output samples."""
        if sample.given("out_length"):
            length = sample["out_length"]
            if length < 0:
                raise RuntimeError(f"`out_length` cannot be negative, got {length}")
            if length and not count:
                raise RuntimeError("Cannot produce a non-empty signal from an empty input")
            return (length / count if count else 1.0), length
        if sample.given("scale"):
            scale = float(np.float32(sample["scale"]))
        else:
            in_rate, out_rate = sample["in_rate"], sample["out_rate"]
            if in_rate <= 0:
                raise RuntimeError(f"Input sampling rates must be positive. Got in_rate == {in_rate:g}")
            if out_rate < 0:
                raise RuntimeError(f"Output sampling rates must be non-negative. Got out_rate == {out_rate:g}")
            scale = out_rate / in_rate
        if scale < 0:
            raise RuntimeError(f"The scaling factor must be non-negative. Got scale == {scale:g}")
        return scale, math.ceil(count * scale)

    def compute(self, sample: Sample[None, float]) -> None:
        out = sample.outputs[0]
        if out.size:
            signal = to_unit(sample.inputs[0], unsigned=out.dtype.kind == "u")
            from_unit(resample_signal(signal, sample.plan, len(out), self._lobes), out)

    def compute_batch(self, workspace: Workspace[None, float]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.audio._sinc_cuda import resample_signals

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        scales = [sample.plan for sample in samples]
        resample_signals(list(zip(sources, scales, targets)), self._lobes, filter_table(self._lobes))
