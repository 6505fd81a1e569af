"""`nonsilent_region`: the part of a recording that is not silent."""

from __future__ import annotations

import numpy as np

from penstock.data_types import BOOL, FLOAT, FLOAT16, FLOAT64, INT32, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, signals, sounds


@register_operator
class NonsilentRegion(Operator):
    """Finds the start and length of the region between the first and the last time at which the power, averaged over a window,
    reaches the threshold.

    >>> start, length = fn.nonsilent_region(audio, cutoff_db=-40.0)
    """

    schema = Schema(
        name="NonsilentRegion",
        inputs=(Input("input", doc="Signals: 1-D, float32 or integers.", example=signals),),
        arguments=(
            Argument("cutoff_db", "float", -60.0, "The threshold, in dB relative to the reference."),
            Argument("reference_power", "float", 0.0, "The power at 0 dB; by default the highest of the signal."),
            Argument(
                "reset_interval",
                "int32",
                8192,
                "Elements after which the running average is reset; a multiple of the window, or -1: never.",
            ),
            Argument("window_length", "int32", 2048, "Length of the window, in samples."),
        ),
        outputs=2,
        shown=(Example({"cutoff_db": -40.0}, (sounds,)),),
    )

    def setup(self) -> None:
        if self.args["window_length"] < 0:
            raise RuntimeError(f"`window_length` must not be negative, got {self.args['window_length']}")
        if self.given("reference_power") and not self.args["reference_power"] > 0:
            raise RuntimeError(f"`reference_power` has to be positive. Got: {self.args['reference_power']:g}")

        self._ratio = 10 ** (self.args["cutoff_db"] / 10)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype in (BOOL, FLOAT16, FLOAT64):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}; float32 and integers are supported")
        if len(batch) and batch.ndim() != 1:
            raise RuntimeError(f"Input with dimension ({batch.ndim()}) cannot be converted to dimension (1)")
        window, interval = self.args["window_length"], self.args["reset_interval"]
        # Only sums of floats are reset: sums of integers are exact.
        if batch.dtype == FLOAT and interval != -1 and (interval <= 0 or not window or interval % window):
            raise RuntimeError(
                f"`reset_interval` shall be a multiple of `window_length`. Got: reset_interval: {interval} vs "
                f"window_length: {window}"
            )
        return [OutputSpec(INT32, ndim=0)] * 2

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        return [(), ()]

    def compute(self, sample: Sample) -> None:
        signal = np.ascontiguousarray(sample.inputs[0])
        if not self.args["window_length"]:
            # With windows of 0 elements there is no average power, so the whole signal counts as silent.
            sample.outputs[0][...] = sample.outputs[1][...] = 0
            return
        start, length = self._region(signal, self._window(signal.size))
        sample.outputs[0][...] = start
        sample.outputs[1][...] = length

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.audio._loudness_cuda import find_loud_regions

        samples = workspace.live
        signals, starts, lengths = (locate_all(batch, samples) for batch in (workspace.inputs[0], *workspace.outputs))
        jobs = [
            (signal, self._window(signal.size), start, length)
            for signal, start, length in zip(signals, starts, lengths)
        ]
        find_loud_regions(jobs, self._ratio, self._reference())

    def _window(self, count: int) -> int:
        return min(self.args["window_length"], max(count, 1))

    def _reference(self) -> float | None:
        """Return the power at 0 dB; None: the highest power of each signal."""
        return self.args["reference_power"] if self.given("reference_power") else None

    def _region(self, signal: np.ndarray, window: int) -> tuple[int, int]:
        from penstock.kernels.cpu import audio, decibels

        power = np.empty(signal.size, np.float32)
        audio.moving_power(signal, window, self.args["reset_interval"], power)
        reference = self._reference()
        if reference is None:
            reference = float(decibels.largest(power))
        first, last = audio.loud_part(power, np.float32(reference * self._ratio))
        if first > last:
            return 0, 0
        start = max(first - window + 1, 0)
        return start, last - start + 1
