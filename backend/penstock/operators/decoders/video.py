"""`decoders.video`: decodes videos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import UINT8
from penstock.kernels.codecs.video import (
    PADDINGS,
    Clip,
    CorruptVideoError,
    fill_frames,
    frames_at,
    frames_at_rate,
    open_video,
    padded,
)
from penstock.operators.decoders._examples import encoded_videos
from penstock.operators.decoders._images import check_encoded, encoded_bytes
from penstock.schema import Alias, Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.libraries import PYAV
from penstock.schema.tolerance import ON_ERROR

# A limit for resampling alone: what is then decoded has limits of its own.
_MOST_FRAMES = 1 << 24
_SPANS = ("start_frame", "sequence_length", "stride", "end_frame")


@dataclass
class _Request:
    """An open video and the numbers of the frames to decode, as returned by `padded`."""

    video: Clip
    frames: list[int]


@register_operator
class VideoDecoder(Operator[None, _Request]):
    """Decodes videos to sequences of frames: uint8, layout FHWC, RGB.

    Everything that FFmpeg reads in the usual containers (MP4, MOV, Matroska, WebM, AVI, Ogg, FLV, MPEG, ASF and others)
    is decoded on the CPU; DALI's CPU decoder takes VP8, VP9 and MJPEG only. Damaged frames, and frames that depend on
    them, are errors. Needs PyAV: ``pip install penstock[video]``.

    >>> clips = fn.decoders.video(encoded, start_frame=10, sequence_length=16, stride=2)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Video",
        devices=("cpu", "mixed"),
        needs=(PYAV,),
        inputs=(
            Input("encoded", device="cpu", doc="Contents of video files: uint8 of shape (n,).", example=encoded_videos),
        ),
        arguments=(
            Argument("affine", "bool", True, "Accepted for compatibility."),
            Argument("build_index", "bool", True, "Accepted for compatibility; there is always an index."),
            ON_ERROR,
            Argument("end_frame", "int32", None, "The number of the frame after the last one.", tensor=True, example=4),
            Argument("fill_value", "int32[]", [0], 'Colour of frames past the end, with pad_mode="constant".'),
            Argument(
                "fps",
                "float",
                0.0,
                "Frames per second: frames are repeated and left out, as their times tell; the other arguments count "
                "the frames that this yields. 0: as recorded. Not in DALI.",
                tensor=True,
                example=15.0,
            ),
            Argument(
                "frames", "int32[]", None, "Frame numbers to decode, in any order.", tensor=True, example=[3, 0, 1]
            ),
            Argument(
                "pad_mode",
                "string",
                "constant",
                "Replaces frames past the end: `none` (nothing), `constant`, `edge` (the last frame), `symmetric` "
                "or `reflect_1001`, `reflect` or `reflect_101`.",
                choices=("constant", "none", "edge", "reflect_101", "reflect_1001"),
            ),
            Argument(
                "sequence_length",
                "int32",
                None,
                "Number of frames; by default all up to the end.",
                tensor=True,
                example=8,
            ),
            Argument(
                "start_frame", "int32", None, "The number of the first frame; by default 0.", tensor=True, example=2
            ),
            Argument("stride", "int32", None, "Distance between frames; by default 1.", tensor=True, example=2),
            Argument(
                "timestamps",
                "float[]",
                None,
                "Times in seconds, in any order: for each, the frame that is on the screen then. Not in DALI.",
                tensor=True,
                example=[0.3, 0.1],
            ),
        ),
        aliases=(Alias("experimental__decoders__Video", "2.0"),),
    )

    def setup(self) -> None:
        if self.given("frames") and any(self.given(name) for name in _SPANS):
            raise ValueError(
                f"Cannot specify both `frames` and any of {', '.join(f'`{name}`' for name in _SPANS)} arguments"
            )
        if self.given("timestamps") and any(self.given(name) for name in ("frames", "fps", *_SPANS)):
            others = ", ".join(f"`{name}`" for name in ("frames", "fps", *_SPANS))
            raise ValueError(f"Cannot specify both `timestamps` and any of {others} arguments")
        if self.given("sequence_length") and self.given("end_frame"):
            raise ValueError("Cannot specify both `sequence_length` and `end_frame` arguments")
        if self.args["pad_mode"] not in PADDINGS:
            raise ValueError(f"Invalid pad_mode: {self.args['pad_mode']}. Use one of {', '.join(PADDINGS)}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        check_encoded(workspace)
        return [OutputSpec(UINT8, "FHWC", 4)]

    def infer(self, sample: Sample[None, _Request]) -> tuple[int, ...]:
        decoding = sample.workspace.decoding
        infos = sample.workspace.inputs[0].source_infos
        try:
            video = open_video(encoded_bytes(sample), decoding)
        except CorruptVideoError as error:
            source = f' for "{infos[sample.index]}"' if infos and infos[sample.index] else ""
            raise ValueError(f"Failed to create video decoder{source}. {error}") from error
        limits, mode = decoding.limits, self.args["pad_mode"]
        if sample.given("timestamps"):
            times = np.array(sample["timestamps"], np.float64)
            limits.check_video(len(times), video.shape)
            sample.plan = _Request(video, _at_times(video, times))
            return len(times), *video.shape
        shown = _resampled(video, sample["fps"]) if sample.given("fps") else None
        count = len(video) if shown is None else len(shown)
        wanted = self._wanted(sample, count)
        if sample.given("frames") and PADDINGS[mode] is None and not all(0 <= frame < count for frame in wanted):
            raise ValueError(
                f"Unexpected out-of-bounds frame index in {wanted} for pad_mode = 'none': the video has {count} frames"
            )
        if isinstance(wanted, range) and PADDINGS[mode] is None:
            wanted = range(wanted.start, min(wanted.stop, count), wanted.step)
        # Before the list of frames is built, as their number may come from an untrusted request.
        limits.check_video(len(wanted), video.shape)
        frames = padded(wanted, count, mode)
        if shown is not None:
            frames = [int(shown[frame]) if frame >= 0 else frame for frame in frames]
        sample.plan = _Request(video, frames)
        return len(sample.plan.frames), *video.shape

    @staticmethod
    def _wanted(sample: Sample[None, _Request], count: int) -> Sequence[int]:
        if sample.given("frames"):
            return [int(frame) for frame in sample["frames"]]
        start = sample["start_frame"] if sample.given("start_frame") else 0
        stride = sample["stride"] if sample.given("stride") else 1
        if start >= count:
            raise ValueError(f"Start frame {start} is out of bounds: the video has {count} frames")
        if stride < 1:
            raise ValueError(f"Stride must be positive, got {stride}")
        if sample.given("sequence_length"):
            length = sample["sequence_length"]
            if length < 0:
                raise ValueError(f"The sequence length must not be negative, got {length}")
            return range(start, start + length * stride, stride)
        end = sample["end_frame"] if sample.given("end_frame") else count
        if end <= start:
            raise ValueError(f"end_frame ({end}) must be greater than start_frame ({start})")
        return range(start, end, stride)

    def compute(self, sample: Sample[None, _Request]) -> None:
        fill_frames(sample.plan.video, sample.plan.frames, self.args["fill_value"], sample.outputs[0])


def _at_times(video: Clip, times: np.ndarray) -> list[int]:
    """The frames that are on the screen at these times; raises ValueError for times that are none."""
    if not np.isfinite(times).all() or (times < 0).any():
        raise ValueError(f"Timestamps are seconds from the first frame on, from 0; got {times.tolist()}")
    return frames_at(video.times, times).tolist() if len(video) else []


def _resampled(video: Clip, rate: float) -> np.ndarray | None:
    """The frames that are on the screen ``rate`` times a second; None: those recorded."""
    if not 0 <= rate < math.inf:
        raise ValueError(f"`fps` must be a number of frames per second, or 0 for the video's own, got {rate}")
    if rate == 0 or len(video) < 2:
        return None
    times = video.times
    if (times[-1] - times[0]) * rate > _MOST_FRAMES:
        raise ValueError(f"`fps` of {rate} yields more than {_MOST_FRAMES} frames")
    return frames_at_rate(times, rate)
