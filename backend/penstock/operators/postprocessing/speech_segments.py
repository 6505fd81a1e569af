"""`speech_segments`: the segments of a recording with speech."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32
from penstock.operators.postprocessing._rows import (
    Rows,
    RowsOperator,
    Tables,
    check_real,
    elements_of,
    firsts_of,
)
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples
from penstock.schema.sharing import share

_CUTS = ("longest_silence", "last_silence")
# The default of `exit_threshold` is this much below `threshold`, but at least the second number.
_HYSTERESIS, _MIN_EXIT_THRESHOLD = 0.15, 0.01
_MAX_SAMPLES = np.iinfo(np.int32).max


def _probabilities(layout: str = "") -> ExampleSamples:
    """Return speech and pauses of different lengths."""

    def make(index: int) -> np.ndarray:
        rng = np.random.default_rng([index, 3])
        spoken = np.repeat(np.arange(12) % 2, rng.integers(2, 25, 12))
        return np.clip(0.1 + 0.8 * spoken + rng.normal(0, 0.15, len(spoken)), 0, 1).astype(np.float32)

    return ExampleSamples(make, bad=np.array([0.5, np.nan], np.float32))


@register_operator
class SpeechSegments(RowsOperator):
    """Finds the segments of a recording with speech, from the probabilities that a detector of speech (VAD) gives for its frames.

    Speech begins with a frame of at least the `threshold`, and ends where probabilities stay below the `exit_threshold` for
    `min_silence_ms`. Segments of at most `min_speech_ms` are dropped. Then each segment grows by `speech_pad_ms` on either side, or to
    the middle of a shorter pause. A segment longer than `max_speech_seconds` is split at a pause longer than `min_split_silence_ms`
    or, if there is none, where it becomes too long. Finally, neighbours are joined as long as the result, with the pauses inside, is
    no longer than `max_joined_seconds`: networks that take 30 seconds at a time then run less often.

    Returns start and end of each segment, in samples of the recording, INT32 of shape (segments, 2); the end is exclusive. A sample of
    the batch fails if a probability is not between 0 and 1.

    The rules, except for joining, are those of Silero's `get_speech_timestamps` (silero-vad 6.2).

    >>> segments = fn.speech_segments(probabilities, length=audio.shape()[0], max_speech_seconds=30)
    >>> clips, counts = fn.cut_segments(audio, segments)
    """

    schema = Schema(
        name="SpeechSegments",
        inputs=(
            Input(
                "probabilities",
                doc="FLOAT or FLOAT16, of shape (frames,): how probable speech is.",
                example=_probabilities,
            ),
        ),
        arguments=(
            Argument(
                "exit_threshold",
                "float",
                None,
                "Below this probability, speech ends; by default 0.15 below the `threshold`, and at least 0.01.",
                example=0.3,
            ),
            Argument("frame_step", "int32", 512, "Distance between the starts of two frames, in samples."),
            Argument(
                "length",
                "int32",
                None,
                "Length of the recording, in samples; by default that of all frames. Frames that begin after it are not read.",
                tensor=True,
                example=9000,
            ),
            Argument(
                "max_joined_seconds", "float", 0.0, "The longest segment that neighbours are joined to; 0: none are."
            ),
            Argument("max_speech_seconds", "float", 0.0, "The longest segment; 0: any length.", example=1.0),
            Argument("min_silence_ms", "float", 100.0, "The shortest pause that ends a segment."),
            Argument("min_speech_ms", "float", 250.0, "Segments must be longer than this."),
            Argument("min_split_silence_ms", "float", 98.0, "Long segments are split only at pauses longer than this."),
            Argument("sample_rate", "float", 16000.0, "Sample rate of the recording, in Hz."),
            Argument("speech_pad_ms", "float", 30.0, "How much longer segments become on either side."),
            Argument(
                "split_at",
                "string",
                "longest_silence",
                "Where long segments are split: at the `longest_silence` or at the `last_silence`.",
                choices=_CUTS,
            ),
            Argument("threshold", "float", 0.5, "From this probability on, a frame is speech."),
        ),
        examples=(
            Example(),
            Example({"max_speech_seconds": 0.6, "min_speech_ms": 60.0, "min_split_silence_ms": 30.0}),
            Example({"max_speech_seconds": 0.6, "min_split_silence_ms": 30.0, "split_at": "last_silence"}),
            Example({"max_joined_seconds": 2.0, "threshold": 0.6, "exit_threshold": 0.2, "sample_rate": 8000.0}),
        ),
        equivalents=(Equivalent("silero_vad.get_speech_timestamps", "With the arguments of the same meaning."),),
    )

    def setup(self) -> None:
        args = {name: _as_written(value) if type(value) is float else value for name, value in self.args.items()}
        threshold = args["threshold"]
        exit_threshold = args["exit_threshold"]
        if exit_threshold is None:
            exit_threshold = max(threshold - _HYSTERESIS, _MIN_EXIT_THRESHOLD)
        if not 0 <= exit_threshold <= threshold <= 1:
            raise ValueError(
                "`exit_threshold` and `threshold` must be probabilities, the first at most the second. "
                f"Got: {exit_threshold:g} and {threshold:g}"
            )
        if args["split_at"] not in _CUTS:
            raise ValueError(f"`split_at` must be one of {', '.join(_CUTS)}. Got: {args['split_at']!r}")
        if args["frame_step"] < 1 or not 0 < args["sample_rate"] < np.inf:
            raise ValueError(
                f"`frame_step` and `sample_rate` must be positive. Got: {args['frame_step']} and {args['sample_rate']:g}"
            )
        spans = ("min_silence_ms", "min_speech_ms", "min_split_silence_ms", "speech_pad_ms")
        for name in (*spans, "max_joined_seconds", "max_speech_seconds"):
            if not 0 <= args[name] < np.inf:
                raise ValueError(f"`{name}` must be 0 or more. Got: {args[name]:g}")
        rate = args["sample_rate"]
        min_silence, min_speech, min_split_silence, pad = (rate * args[name] / 1000 for name in spans)
        limit = np.inf
        if args["max_speech_seconds"]:
            limit = rate * args["max_speech_seconds"] - args["frame_step"] - 2 * pad
            if limit <= 0:
                raise ValueError(
                    "`max_speech_seconds` must be longer than a frame and twice `speech_pad_ms`. "
                    f"Got: {args['max_speech_seconds']:g}"
                )
        self._rules = (
            threshold,
            exit_threshold,
            min_speech,
            min_silence,
            min_split_silence,
            limit,
            pad,
            rate * args["max_joined_seconds"],
            args["split_at"] == "longest_silence",
        )

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        check_real(workspace, 0, "probabilities")
        return [OutputSpec(INT32, "", 2)]

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        from penstock.operators.postprocessing._speech_segments_cpu import find_segments

        shapes, step = samples.shapes(0), self.args["frame_step"]
        if shapes.shape[1] != 1:
            raise ValueError(f"Probabilities must have the shape (frames,). Got: {shapes[0].tolist()}")
        frames = np.ascontiguousarray(shapes[:, 0])
        lengths = np.ascontiguousarray(frames * step)
        if samples.given("length"):
            lengths[:] = samples.scalars("length")
        if (lengths < 0).any() or (lengths > frames * step).any():
            raise ValueError(
                f"`length` must be from 0 to {frames[0] * step}, the length of all frames. Got: {lengths[0]}"
            )
        if (lengths > _MAX_SAMPLES).any():
            raise ValueError(f"A recording must have at most {_MAX_SAMPLES} samples. Got: {lengths[0]}")
        probabilities = elements_of(samples, 0, np.float32)
        firsts = firsts_of(frames)
        # A frame ends two segments at most, and the end of the recording one more.
        segment_firsts = firsts_of(2 * frames + 1)
        segments = np.empty((segment_firsts[-1], 2), np.int32)
        counts, faults = np.empty(len(frames), np.int64), np.empty(len(frames), np.int64)
        share(
            samples.workspace,
            lambda begin, end: find_segments(
                probabilities, firsts, lengths, step, *self._rules, segment_firsts, begin, end, segments, counts, faults
            ),
            frames,
        )
        for number in np.flatnonzero(faults >= 0).tolist():
            value = probabilities[firsts[number] + faults[number]]
            raise ValueError(f"The probability {value} of frame {faults[number]} is not between 0 and 1")
        found = [segments[first : first + count] for first, count in zip(segment_firsts.tolist(), counts.tolist())]
        plans = Rows([np.concatenate([*found, segments[:0]])], counts[:, None])
        return plans.shapes(), plans


def _as_written(value: float) -> float:
    """Return the decimal that the user wrote for an argument stored in single precision, so that 0.7 s at 16 kHz are 11200 samples."""
    return float(str(np.float32(value)))
