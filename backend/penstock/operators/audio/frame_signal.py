"""`frame_signal`: overlapping windows of a signal."""

from __future__ import annotations

import numpy as np

from penstock.data_types import dtype_name, numpy_dtype
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, random_arrays, signals

_NUMERIC_KINDS = "iuf"


@register_operator
class FrameSignal(Operator):
    """Cuts a signal into frames of equal length, which overlap if the step is shorter than a frame.

    The first dimension is time; a signal of shape (time, ...) becomes frames of shape (frames, frame_length, ...). A frame that
    reaches beyond the end is padded, so that no value at the end is lost. With `pad_end=False` such frames are left out, and the last
    values may be in no frame. A signal without values has no frames.

    >>> frames = fn.frame_signal(audio, frame_length=400, step=160)
    >>> frames = fn.frame_signal(audio, frame_length=576, step=512, pad_begin=64)  # the input of Silero's VAD
    """

    schema = Schema(
        name="FrameSignal",
        inputs=(Input("input", doc="Signals of numbers, with time as their first dimension.", example=signals),),
        arguments=(
            Argument("frame_length", "int32", None, "Length of a frame, in samples.", required=True, example=400),
            Argument(
                "step",
                "int32",
                None,
                "Distance between the starts of two frames, in samples; by default `frame_length`.",
            ),
            Argument("pad_begin", "int32", 0, "How many values to fill in before the signal."),
            Argument("pad_end", "bool", True, "Fill up the last frame; otherwise, drop it unless it is complete."),
            Argument("fill_value", "float", 0.0, "What is filled in."),
        ),
        examples=(
            Example({"frame_length": 400, "step": 160}),
            Example({"frame_length": 576, "step": 512, "pad_begin": 64}),
            Example({"frame_length": 300, "step": 500, "pad_end": False, "fill_value": 1.0}),
            Example({"frame_length": 4, "step": 3}, (random_arrays((9, 2), (3, 2), (16, 2)),)),
        ),
        equivalents=(
            Equivalent("librosa.util.frame", "With `pad_end=False`; it has the frames as the last dimension."),
        ),
    )

    def setup(self) -> None:
        self._length, step = self.args["frame_length"], self.args["step"]
        self._step = self._length if step is None else step
        for name, value, lowest in (
            ("frame_length", self._length, 1),
            ("step", self._step, 1),
            ("pad_begin", self.args["pad_begin"], 0),
        ):
            if value < lowest:
                raise ValueError(f"`{name}` must be {lowest} or more. Got: {value}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and numpy_dtype(batch.dtype).kind not in _NUMERIC_KINDS:
            raise RuntimeError(f"Signals must be numbers, got {dtype_name(batch.dtype)}")
        if len(batch) and not batch.ndim():
            raise RuntimeError("Signals must have at least one dimension: time")
        return [OutputSpec(batch.dtype, "", batch.ndim() + 1)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        time, *rest = sample.shapes[0]
        return (self._count(time), self._length, *rest)

    def compute(self, sample: Sample) -> None:
        signal, frames = sample.inputs[0], sample.outputs[0]
        before = self.args["pad_begin"]
        # Copy all frames that lie within the signal together, and the frames at its ends one by one.
        first = min(-(-before // self._step), len(frames))
        last = (
            max((len(signal) + before - self._length) // self._step + 1, first)
            if len(signal) >= self._length
            else first
        )
        last = min(last, len(frames))
        if last > first:
            begin = first * self._step - before
            windows = np.lib.stride_tricks.sliding_window_view(signal[begin:], self._length, axis=0)
            frames[first:last] = np.moveaxis(windows[:: self._step][: last - first], -1, 1)
        for number in (*range(first), *range(last, len(frames))):
            begin = number * self._step - before
            inside = slice(max(begin, 0), max(min(begin + self._length, len(signal)), 0))
            frames[number] = self.args["fill_value"]
            frames[number][inside.start - begin : inside.stop - begin] = signal[inside]

    def _count(self, time: int) -> int:
        """Return the number of frames of a signal with ``time`` values."""
        if not time:
            return 0
        beyond = time + self.args["pad_begin"] - self._length
        if self.args["pad_end"]:
            # If the step is longer than a frame, rounding up could add a frame that begins after the signal's end: leave that out.
            return min(max(-(-beyond // self._step), 0) + 1, -(-(time + self.args["pad_begin"]) // self._step))
        return max(beyond // self._step + 1, 0)
