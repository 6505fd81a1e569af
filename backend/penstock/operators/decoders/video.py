"""`decoders.video`: decodes videos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, RGB, UINT8
from penstock.errors import without_frames
from penstock.kernels.codecs.decoder_memory import video_bytes
from penstock.kernels.codecs.limits import Limits
from penstock.kernels.codecs.video import (
    Clip,
    CorruptVideoError,
    Video,
    announced_size,
    fill_frames,
    fill_sound,
    open_video,
    sound_rate,
    sound_shape,
)
from penstock.kernels.codecs.video_frames import PADDINGS, frames_at, frames_at_rate, padded
from penstock.kernels.codecs.video_pixels import FILTERS, Scaling, channels_of, check_image_type
from penstock.operators.decoders._examples import encoded_videos
from penstock.operators.decoders._images import check_encoded, encoded_bytes
from penstock.schema import Alias, Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.libraries import PYAV
from penstock.schema.tolerance import ON_ERROR
from penstock.tensors import TensorListCPU, TensorListGPU

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located

# The greatest number of frames that `fps` may yield; decoding has separate limits.
_MAX_RESAMPLED_FRAMES = 1 << 24
# The greatest height and width of `size`, in pixels. FFmpeg's scaler may accept more, but no frames in use are larger.
_MAX_SCALED_EXTENT = 1 << 14
# Frames of at least this many pixels count as large.
_MIN_PIXELS_OF_LARGE_FRAME = 1280 * 720
_SPANS = ("start_frame", "sequence_length", "stride", "end_frame")


@dataclass
class _Request:
    """An open video, and the numbers of the frames to decode, as returned by `padded`."""

    video: Clip
    frames: list[int]


# For each sample, the open video, or the error that prevented opening it.
_Opened = list[Clip | Exception]


@register_operator
class VideoDecoder(Operator[_Opened, _Request]):
    """Decodes videos to sequences of frames: uint8, layout FHWC.

    The CPU decodes all codecs that FFmpeg supports, in the usual containers (MP4, MOV, Matroska, WebM, AVI, Ogg, FLV, MPEG, ASF and
    others); DALI's CPU decoder supports VP8, VP9 and MJPEG only. With ``device="mixed"`` the GPU's video engine (NVDEC) decodes the videos
    that it supports, the CPU all others. Damaged frames, and frames that depend on them, are errors. Needs PyAV:
    ``pip install penstock-triton[video]``.

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
            Argument(
                "enable_audio",
                "bool",
                False,
                "Also return the sound from the start of the first frame to the end of the last: float32 of shape (time, "
                "channels), from -1 to 1, and its rate in Hz. Without a sound track: shape (0, 1), and rate 0. Not in DALI.",
            ),
            Argument(
                "end_frame",
                "int32",
                None,
                "The number of the frame after the last one.",
                tensor=True,
                zero_dimensional=True,
                example=4,
            ),
            Argument("fill_value", "int32[]", [0], 'Colour of frames past the end, with pad_mode="constant".'),
            Argument(
                "fps",
                "float",
                0.0,
                "Frames per second: frames are repeated or dropped according to their times; the other arguments count "
                "the resulting frames. 0: as recorded. Not in DALI.",
                tensor=True,
                example=15.0,
            ),
            Argument(
                "frames", "int32[]", None, "Frame numbers to decode, in any order.", tensor=True, example=[3, 0, 1]
            ),
            Argument(
                "image_type",
                "DALIImageType",
                RGB,
                "Colour space of the frames: RGB, GRAY, or YCbCr in studio range. Not in DALI.",
            ),
            Argument(
                "interpolation",
                "string",
                "bilinear",
                "The filter with which frames are resized to `size`. Not in DALI.",
                choices=FILTERS,
                exempt="It needs a size.",
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
                zero_dimensional=True,
                example=8,
            ),
            Argument(
                "size",
                "int32[]",
                None,
                "Height and width to which FFmpeg's scaler (swscale) resizes frames while it converts them to RGB: frames are never "
                "stored at full size, and equal those of PyAV's `VideoFrame.reformat`, not those of a `resize` that follows. On the "
                "CPU only. Not in DALI.",
                exempt="The scaler's rounding depends on the processor.",
            ),
            Argument(
                "start_frame",
                "int32",
                None,
                "The number of the first frame; by default 0.",
                tensor=True,
                zero_dimensional=True,
                example=2,
            ),
            Argument(
                "stride",
                "int32",
                None,
                "Distance between frames; by default 1.",
                tensor=True,
                zero_dimensional=True,
                example=2,
            ),
            Argument(
                "timestamps",
                "float[]",
                None,
                "Times in seconds, in any order: for each, the frame that is on the screen then. Not in DALI.",
                tensor=True,
                example=[0.3, 0.1],
            ),
        ),
        outputs=lambda arguments: 3 if arguments.get("enable_audio") else 1,
        aliases=(Alias("experimental__decoders__Video", "2.0"),),
    )

    # Kernel launches depend on the decoded frames, so a recording of them cannot be replayed.
    repeatable = False

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
        check_image_type(self.args["image_type"])
        self._scaling = self._scaling_asked_for() if self.given("size") else None
        if self._scaling is None and self.given("interpolation"):
            raise ValueError(
                "`interpolation` needs a `size`; of a `resize` that follows, `interp_type` chooses the filter"
            )

    def _scaling_asked_for(self) -> Scaling:
        size: list[int] = list(self.args["size"])
        name = self.args["interpolation"]
        if len(size) != 2 or not all(1 <= extent <= _MAX_SCALED_EXTENT for extent in size):
            raise ValueError(f"`size` must be a height and a width, each from 1 to {_MAX_SCALED_EXTENT}. Got: {size}")
        if name not in FILTERS:
            raise ValueError(f"`interpolation` must be one of {', '.join(FILTERS)}. Got: {name!r}")
        if self.args["image_type"] != RGB:
            raise ValueError("`size` needs `image_type=types.RGB`: FFmpeg's scaler converts frames to RGB only")
        if self.device != "cpu":
            raise ValueError(
                "`size` needs `device='cpu'`: FFmpeg's scaler works on the CPU. A `resize` can follow on the GPU"
            )
        height, width = size
        return Scaling(height, width, name)

    def describe(self, workspace: Workspace[_Opened]) -> list[OutputSpec]:
        check_encoded(workspace)
        workspace.state = self._opened(workspace)
        frames = OutputSpec(UINT8, "FHWC", 4)
        return [frames, OutputSpec(FLOAT, "", 2), OutputSpec(FLOAT, "", 0)] if self.args["enable_audio"] else [frames]

    def _opened(self, workspace: Workspace[_Opened]) -> _Opened:
        """Open the batch's videos. To open one, FFmpeg decodes some of its frames; if these are large, threads share the work."""
        opened: _Opened = [CorruptVideoError("The video was not opened")] * workspace.batch_size

        def task(index: int) -> None:
            if index not in workspace.failures:
                try:
                    opened[index] = open_video(encoded_bytes(Sample(self, workspace, index)), workspace.decoding)
                except Exception as error:
                    opened[index] = without_frames(error)

        samples = workspace.inputs[0].samples
        large = any(_is_large(sample) for sample in samples)
        # Opening videos with small frames mostly executes Python code, so that threads would wait for the GIL.
        workspace.parallel(task, len(samples), None if large else [1] * len(samples))
        return opened

    def infer(self, sample: Sample[_Opened, _Request]) -> list[tuple[int, ...]]:
        decoding = sample.workspace.decoding
        infos = sample.workspace.inputs[0].source_infos
        video = sample.workspace.state[sample.index]
        if isinstance(video, CorruptVideoError):
            source = f' for "{infos[sample.index]}"' if infos and infos[sample.index] else ""
            raise ValueError(f"Failed to create video decoder{source}. {video}") from video
        if isinstance(video, Exception):
            raise video
        scaling = self._scaling
        extents = video.size if scaling is None else (scaling.height, scaling.width)
        shape = *extents, channels_of(self.args["image_type"])
        frames = self._chosen(sample, video, shape, decoding.limits)
        sample.plan = _Request(video, frames)
        if not self.args["enable_audio"]:
            return [(len(frames), *shape)]
        return [(len(frames), *shape), sound_shape(video, frames, decoding.limits), ()]

    def _chosen(
        self, sample: Sample[_Opened, _Request], video: Clip, shape: tuple[int, int, int], limits: Limits
    ) -> list[int]:
        """Return the numbers of the frames to decode.

        Args:
            sample: the sample, whose arguments select frames.
            video: the sample's video.
            shape: the shape of an output frame, to check the limits.
            limits: the limits of decoded sizes.
        """
        mode = self.args["pad_mode"]
        if sample.given("timestamps"):
            times = np.array(sample["timestamps"], np.float64)
            limits.check_video(len(times), shape)
            return _at_times(video, times)
        shown = _resampled(video, sample["fps"]) if sample.given("fps") else None
        count = len(video) if shown is None else len(shown)
        wanted = self._wanted(sample, count)
        if sample.given("frames") and PADDINGS[mode] is None and not all(0 <= frame < count for frame in wanted):
            raise ValueError(
                f"Unexpected out-of-bounds frame index in {wanted} for pad_mode = 'none': the video has {count} frames"
            )
        if isinstance(wanted, range) and PADDINGS[mode] is None:
            wanted = range(wanted.start, min(wanted.stop, count), wanted.step)
        # Check the limits before building the list of frames: their number may come from an untrusted request.
        limits.check_video(len(wanted), shape)
        frames = padded(wanted, count, mode)
        if shown is not None:
            frames = [int(shown[frame]) if frame >= 0 else frame for frame in frames]
        return frames

    @staticmethod
    def _wanted(sample: Sample[_Opened, _Request], count: int) -> Sequence[int]:
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

    def working_bytes(self, workspace: Workspace[_Opened, _Request]) -> Sequence[int]:
        return [0 if sample is None else self._working_bytes(sample.plan) for sample in workspace.samples]

    def _working_bytes(self, request: _Request) -> int:
        height, width = request.video.size
        # The decoding worker process holds a second copy of the frames.
        scaling = self._scaling
        pixels = height * width if scaling is None else scaling.height * scaling.width
        result = len(request.frames) * pixels * channels_of(self.args["image_type"])
        return result + video_bytes(height, width)

    def compute(self, sample: Sample[_Opened, _Request]) -> None:
        video, frames = sample.plan.video, sample.plan.frames
        output, image_type = sample.outputs[0], self.args["image_type"]
        fill_frames(video, frames, self.args["fill_value"], output, image_type, self._scaling)
        if self.args["enable_audio"]:
            _, heard, rate = sample.outputs
            fill_sound(video, frames, heard)
            rate[...] = sound_rate(video)

    def compute_batch(self, workspace: Workspace[_Opened, _Request]) -> None:
        from penstock.kernels.codecs.video_gpu import DecodingOnGpu, fill_on_gpu
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        targets = locate_all(workspace.outputs[0], samples)
        beside = [TensorListCPU.allocate(batch.shapes, FLOAT) for batch in workspace.outputs[1:]]
        decoding = DecodingOnGpu()

        def task(number: int) -> None:
            sample = samples[number]
            try:
                with decoding.on_thread():
                    decode(sample, targets[number])
            except Exception as error:
                workspace.fail(sample.index, error)

        def decode(sample: Sample[_Opened, _Request], target: Located) -> None:
            video, frames = sample.plan.video, sample.plan.frames
            if isinstance(video, Video):
                video.use_engine(decoding.device)
            fill_on_gpu(video, frames, self.args["fill_value"], target, self.args["image_type"])
            if beside:
                fill_sound(video, frames, beside[0].samples[sample.index])
                beside[1].samples[sample.index][...] = sound_rate(video)

        try:
            workspace.parallel(task, len(samples))
        finally:
            decoding.finish()
        workspace.outputs[1:] = [TensorListGPU.upload(batch) for batch in beside]


def _is_large(encoded: np.ndarray) -> bool:
    """Return whether a video's header announces large frames."""
    height, width = announced_size(encoded) or (0, 0)
    return height * width >= _MIN_PIXELS_OF_LARGE_FRAME


def _at_times(video: Clip, times: np.ndarray) -> list[int]:
    """Return the numbers of the frames that are on the screen at these times, in seconds; raise ValueError for invalid times."""
    if not np.isfinite(times).all() or (times < 0).any():
        raise ValueError(f"Timestamps must be seconds since the first frame, at least 0; got {times.tolist()}")
    return frames_at(video.times, times).tolist() if len(video) else []


def _resampled(video: Clip, rate: float) -> np.ndarray | None:
    """Return the numbers of the frames on the screen when it is sampled ``rate`` times a second; None if each frame is used once.

    Raises:
        ValueError: the rate is not a number from 0, or it yields too many frames.
    """
    if not 0 <= rate < math.inf:
        raise ValueError(f"`fps` must be a number of frames per second, or 0 for the video's own, got {rate}")
    if rate == 0 or len(video) < 2:
        return None
    times = video.times
    if (times[-1] - times[0]) * rate > _MAX_RESAMPLED_FRAMES:
        raise ValueError(f"`fps` of {rate} yields more than {_MAX_RESAMPLED_FRAMES} frames")
    return frames_at_rate(times, rate)
