"""Video processors: which frames they take, and what becomes of these: Qwen-VL, GLM-4V, LLaVA, InternVL and others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, fitted
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Family,
    Features,
    PresetError,
    Values,
    checked_extents,
    extended,
    named,
    size_of,
)
from penstock.presets.fixed import IMAGENET, NO_CROP, NO_PAD, OPENAI, FixedFamily
from penstock.presets.patches import Gemma4Family, KimiFamily, MuseImageFamily, PatchFamily

_PIXELS, _GRID = "pixel_values_videos", "video_grid_thw"
# SmolVLM's longest edge.
_SMOL_MOST = 4096
_INERT = frozenset({"video_metadata", "return_metadata"})


@dataclass(frozen=True)
class VideoLength:
    """How long a video is.

    Attributes:
        frames: its frames.
        rate: its frames per second, if known.
        duration: its seconds as its decoder reports them, if known; the ratio of the others need not equal it.
    """

    frames: int
    rate: float | None
    duration: float | None


@dataclass(frozen=True, kw_only=True)
class SampledFamily(Family):
    """Which frames of a video are taken.

    Attributes:
        do_sample_frames: whether it is only some.
        fps: so many a second; 0: not told.
        num_frames: so many; 0: not told.
        min_frames, max_frames: bounds of the number that `fps` tells.
        temporal_patch_size: of it, too, there are multiples.
        initial_shift: where InternVL begins: in frames; true: with half of the distance between two.
        max_duration: in seconds, up to which GLM-4V goes by `fps`.
        sampling: by which rule.
    """

    do_sample_frames: bool = False
    fps: float = 0.0
    num_frames: int = 0
    min_frames: int = 4
    max_frames: int = 768
    temporal_patch_size: int = 2
    initial_shift: float = 0.0
    max_duration: int = 300
    sampling: str = "uniform"

    kind = "videos"

    def sampled(self, video: VideoLength) -> list[int]:
        """The numbers of the frames that the processor takes of a video.

        Raises:
            ValueError: its rate or duration must be known, or there are too few frames.
        """
        if video.frames < 1:
            raise ValueError(f"A video has frames. Got: {video.frames}")
        return _RULES[self.sampling](self, video)

    def by_rate(self, frames: int, rate: float | None) -> float:
        """How many frames `fps` asks for."""
        if rate is None or rate <= 0:
            raise ValueError("To take so many frames a second, the frames a second of the video must be told")
        return frames / rate * self.fps


def _uniform(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    _check_either(family)
    count = family.num_frames
    if not count and family.fps:
        count = max(1, int(family.by_rate(frames, rate)))
    _check_count(count or frames, frames)
    return [number * frames // (count or frames) for number in range(count or frames)]


def _qwen2_vl(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    _check_either(family)
    unit = family.temporal_patch_size
    if family.num_frames:
        count = round(family.num_frames / unit) * unit
    elif family.fps:
        most = math.floor(min(family.max_frames, frames) / unit) * unit
        wanted = min(max(family.by_rate(frames, rate), family.min_frames), most, frames)
        count = math.floor(wanted / unit) * unit
    else:
        raise ValueError("`fps` or `num_frames` tell how many frames are taken")
    _check_count(count, frames)
    return _stepped(0.0, frames, frames / count)


def _qwen3_vl(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    _check_either(family)
    count = family.num_frames
    if not count and family.fps:
        count = min(max(int(family.by_rate(frames, rate or 24)), family.min_frames), family.max_frames, frames)
    count = count or min(max(frames, family.min_frames), family.max_frames)
    return [int(number) for number in np.linspace(0, frames - 1, count).round()]


def _internvl(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    count = family.num_frames
    if not count and family.fps:
        count = int(family.by_rate(frames, rate))
    _check_count(count, frames)
    # True is told from 1 by its type, which JSON keeps.
    shift = frames / count / 2 if family.initial_shift is True else float(family.initial_shift)
    return _stepped(shift, frames, frames / count)


def _glm_duration(video: VideoLength, rate: float) -> float:
    """The seconds of a video; whole ones where its decoder reports none."""
    return video.duration or round((video.frames - 1) / rate) + 1


def _glm4v(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0 or not family.fps:
        raise ValueError("The frames a second of the video must be told, and those that are taken (`fps`)")
    last = frames - 1
    duration = _glm_duration(video, rate)
    if duration <= family.max_duration:
        count = max(math.floor(duration * family.fps), 1)
        numbers = [min(last, math.ceil(number * rate / family.fps)) for number in range(count)]
    else:
        count = int(family.max_duration * family.fps)
        seconds = np.linspace(0, duration, count, endpoint=True).tolist()
        numbers = list(range(frames)) if count >= frames else [min(last, math.ceil(at * rate)) for at in seconds]
    own = list(dict.fromkeys(numbers))
    return own + own[-1:] * (len(own) % 2)


# GLM-4.6V takes so many frames a second of a video of up to so many seconds, and knows no longer ones; and so many at most.
_GLM46V_RATES, _GLM46V_LONGEST, _GLM46V_MOST = {30: 3.0, 300: 1.0, 2400: 0.5}, 2400, 640


def _glm46v(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0:
        raise ValueError("The frames a second of the video must be told")
    last = frames - 1
    duration = _glm_duration(video, rate)
    known = min(duration, _GLM46V_LONGEST)
    wanted = next(of for longest, of in _GLM46V_RATES.items() if known <= longest) * family.temporal_patch_size
    count = min(int(known * wanted), _GLM46V_MOST)
    return _so_many(_at_times(frames, rate, 1 / wanted, int(duration)) if frames >= count else [], count, last)


def _glmga(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0 or not family.fps:
        raise ValueError("The frames a second of the video must be told, and those that are taken (`fps`)")
    last = frames - 1
    duration = _glm_duration(video, rate)
    count, step = min(int(duration * family.fps), family.max_frames), 1 / family.fps
    if frames < count:
        return _so_many([math.floor(number * frames / count) for number in range(count)], count, last)
    return _so_many(_at_times(frames, rate, step, duration - step), count, last)


def _so_many(numbers: list[int], count: int, last: int) -> list[int]:
    """The frames, or as many evenly spread, each once, and the last one again if they are odd.

    Where there were too few, they are spread from the first to the last of them, and else over the video.
    """
    own = numbers
    if len(own) != count:
        start, end = (own[0], own[-1]) if 0 < len(own) < count else (0, last)
        own = np.linspace(start, end, count, dtype=int).tolist()
    own = list(dict.fromkeys(own))
    return own + own[-1:] * (len(own) % 2)


def _at_times(frames: int, rate: float, step: float, end: float) -> list[int]:
    """The first frames that are not before times that are a step apart, up to an end, in seconds."""
    own, at, of_frame = [], 0.0, 1 / rate
    for number in range(frames):
        if number * of_frame >= at:
            at += step
            own.append(number)
            if at >= end:
                break
    return own


# Seconds that SmolVLM leaves out at both ends of a long video.
_SMOL_SKIPPED = 1


def _smolvlm(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    duration, last = video.duration, frames - 1
    if rate is None or rate <= 0 or not (duration and family.fps and family.num_frames):
        raise ValueError("The frames a second and the duration of the video must be known, and `fps` and `num_frames`")
    count = max(min(round(family.fps * duration), family.num_frames), 1)
    start, end = 0, last
    if duration - 2 * _SMOL_SKIPPED > family.num_frames * family.fps:
        start, end = int(_SMOL_SKIPPED * rate), min(int(frames - _SMOL_SKIPPED * rate), last)
    if start >= end:
        start, end = 0, last
    return np.unique(np.linspace(start, end, count, dtype=int)).tolist()


def _muse(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, unit = video.frames, family.temporal_patch_size
    count = min(int(frames * family.fps / (video.rate or 24)), family.num_frames, frames)
    count = min(max(unit, count // unit * unit), frames)
    if count == 1:
        return [0]
    # As PyTorch computes it in single precision, from both ends.
    step, last = np.float32((frames - 1) / (count - 1)), np.float32(frames - 1)
    numbers = np.arange(count, dtype=np.float32)
    own = np.where(numbers < count // 2, step * numbers, last - step * (np.float32(count - 1) - numbers))
    return [int(number) for number in own]


def _pe(family: SampledFamily, video: VideoLength) -> list[int]:
    if not family.num_frames:
        return _uniform(family, video)
    if family.num_frames == 1:
        raise ValueError("The first and the last frame are taken, and those between: `num_frames` is at least 2")
    return [int(number * (video.frames - 1) / (family.num_frames - 1)) for number in range(family.num_frames)]


_RULES: dict[str, Callable[[SampledFamily, VideoLength], list[int]]] = {
    "uniform": _uniform,
    "qwen2-vl": _qwen2_vl,
    "qwen3-vl": _qwen3_vl,
    "internvl": _internvl,
    "pe": _pe,
    "glm4v": _glm4v,
    "muse": _muse,
    "glm46v": _glm46v,
    "glmga": _glmga,
    "smolvlm": _smolvlm,
}


def _check_either(family: SampledFamily) -> None:
    if family.fps and family.num_frames:
        raise ValueError("Either `fps` or `num_frames` tells how many frames are taken, not both")


def _check_count(count: int, frames: int) -> None:
    if not 1 <= count <= frames:
        raise ValueError(f"Of a video of {frames} frames, {count} are asked for")


# PyTorch counts in eights.
_LANES = 8


def _stepped(start: float, end: float, step: float) -> list[int]:
    """From a number up to another in steps, without fractions, as PyTorch computes it in single precision."""
    places = np.arange(math.ceil((end - start) / step))
    lanes = places % _LANES
    begins = (start + (places - lanes) * step).astype(np.float32).astype(np.float64)
    return [int(number) for number in (begins + lanes * step).astype(np.float32)]


@dataclass(frozen=True, kw_only=True)
class VideoFamily(SampledFamily, PatchFamily):
    """Videos as patches of several frames.

    Attributes:
        cap_pixels_per_frame: must be false.
        max_video_tokens, max_image_size: accepted: they are read with that only, or not at all.
    """

    cap_pixels_per_frame: bool = False
    max_video_tokens: int = 0
    max_image_size: object = None
    torchvision_only: bool = True
    ignored: frozenset[str] = _INERT

    names = (_PIXELS, _GRID)
    concatenated = (_PIXELS,)
    hidden = PatchFamily.hidden | {"sampling", "initial_shift", "max_duration"}

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.cap_pixels_per_frame:
            raise PresetError("`cap_pixels_per_frame`: no preset bounds a video's pixels by its frames")

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        fit = Fit(height, width, height, width)
        if self.do_resize:
            bounds = SizeArguments(self._factor, self.size["shortest_edge"], self.size["longest_edge"], frames=frames)
            fit = fitted(self.rule, height, width, bounds)
        token = self.patch_size * self.merge_size
        return -(-frames // self.temporal_patch_size) * (fit.height // token) * (fit.width // token)


QWEN2_VL_VIDEO = VideoFamily(
    size={"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768}, sampling="qwen2-vl", **OPENAI
)
QWEN3_VL_VIDEO = VideoFamily(
    rule="qwen3-vl-video",
    size={"shortest_edge": 128 * 32 * 32, "longest_edge": 32 * 32 * 768},
    patch_size=16,
    do_sample_frames=True,
    fps=2.0,
    sampling="qwen3-vl",
)

COSMOS3_EDGE_VIDEO = VideoFamily(
    rule="cosmos3",
    size={"shortest_edge": 64 * 64, "longest_edge": 24 * 1024 * 1024},
    patch_size=16,
    temporal_patch_size=1,
    channels_last=True,
    do_sample_frames=True,
    fps=2.0,
    sampling="qwen3-vl",
)


@dataclass(frozen=True, kw_only=True)
class Glm4vVideoFamily(VideoFamily):
    """Videos of GLM-4V, which knows how long it follows `fps`."""

    rule: str = "qwen3-vl-video"
    size: Mapping[str, int] = field(
        default_factory=lambda: {"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 2 * 30000}
    )
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    do_sample_frames: bool = True
    fps: float = 2.0
    sampling: str = "glm4v"

    hidden = PatchFamily.hidden | {"sampling", "initial_shift"}


GLM46V_VIDEO = Glm4vVideoFamily(sampling="glm46v")
GLMGA_VIDEO = Glm4vVideoFamily(
    size={"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 2 * 55790}, max_frames=640, sampling="glmga"
)


@dataclass(frozen=True, kw_only=True)
class MiniMaxVideoFamily(VideoFamily):
    """Videos of MiniMax M3, which are told to the model in segments. A pipeline tells their grid as a whole.

    Attributes:
        min_pixels, max_pixels: of a frame; `size` has no effect.
        vision_segment_max_frames: patches in time that a segment has at the most; None: there is one.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 672, "width": 672})
    min_pixels: int = 4 * 28 * 28
    max_pixels: int = 768 * 28 * 28
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    fps: float = 1.0
    vision_segment_max_frames: int | None = 4
    ignored: frozenset[str] = _INERT | {"total_pixels"}

    def converted(self, values: Values) -> Values:
        longest = values["vision_segment_max_frames"]
        if longest is not None and longest < 1:
            raise PresetError(f"`vision_segment_max_frames` is positive. Got: {longest}")
        edges = {"shortest_edge": values["min_pixels"], "longest_edge": values["max_pixels"]}
        return super().converted({**values, "size": edges})

    def joined(self, images: Sequence[Features]) -> Values:
        segments = [self._segments(*image[_GRID].tolist()) for image in images]
        grids = np.array([segment for of_video in segments for segment in of_video])
        counts = np.array([len(of_video) for of_video in segments])
        return {**super().joined(images), _GRID: grids, "num_chunks_per_video": counts}

    def _segments(self, frames: int, height: int, width: int) -> list[list[int]]:
        """The grids of a video's segments."""
        most = self.vision_segment_max_frames or frames
        return [[min(most, frames - start), height, width] for start in range(0, frames, most)]


@dataclass(frozen=True, kw_only=True)
class FrameFamily(SampledFamily, FixedFamily):
    """Videos whose frames are treated as images are."""

    torchvision_only: bool = True
    ignored: frozenset[str] = _INERT | NO_PAD

    names: ClassVar[tuple[str, ...]] = (_PIXELS,)
    tells_by = ()
    hidden = FixedFamily.hidden | {
        "sampling",
        "initial_shift",
        "max_duration",
        "temporal_patch_size",
        "min_frames",
        "max_frames",
    }

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.names

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        frames = self.normalized(self.prepared(data, backend), backend, None)
        return (named(frames, self.names[0], 4),)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        raise PresetError("No preset of these videos tells how many tokens one becomes")


@dataclass(frozen=True, kw_only=True)
class ClipFamily(FrameFamily):
    """VideoMAE, TimeSformer and InstructBLIP, which call frames as others do images."""

    names = (PIXELS,)


@dataclass(frozen=True, kw_only=True)
class PeVideoFamily(FrameFamily):
    """PE Video, which does only what it is told to, and adds frames of zeros to shorter videos of a call, with a mask."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 336, "width": 336})
    do_resize: bool = False
    do_rescale: bool = False
    do_normalize: bool = False
    sampling: str = "pe"

    def joined(self, images: Sequence[Features]) -> Values:
        videos = [image[_PIXELS] for image in images]
        lengths = np.array([len(video) for video in videos])
        values: Values = {_PIXELS: extended(videos, (0,))}
        if (lengths != lengths[0]).any():
            values["padding_mask_videos"] = np.arange(lengths.max()) < lengths[:, None]
        return values


@dataclass(frozen=True, kw_only=True)
class VJepaFamily(FrameFamily):
    """V-JEPA 2, which resizes to 256 / 224 of what it takes of the middle, whatever `size` is."""

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=dict)
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 256, "width": 256})

    unchanged = frozenset({"crop_size", "size"})

    def converted(self, values: Values) -> Values:
        crop = values["crop_size"]
        side = crop.get("height") if isinstance(crop, Mapping) else crop
        if not isinstance(side, int) or side < 1:
            raise PresetError(f"`crop_size` is a number, or has `height` and `width`. Got: {crop!r}")
        return super().converted({**values, "size": {"shortest_edge": int(side * 256 / 224)}})


@dataclass(frozen=True, kw_only=True)
class Sam2VideoFamily(FrameFamily):
    """SAM 2, which tells how large frames were, and are."""

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 1024})

    names = (_PIXELS, "original_sizes", "reshaped_input_sizes")
    forms = (frozenset({"height", "width"}),)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        now = [self.size["height"], self.size["width"]]
        resized = fn.constant(idata=now, shape=[2], dtype=types.INT64, name=self.names[2])
        return (*super().process(data, backend), named(data.shape()[1:3], self.names[1], 1), resized)


@dataclass(frozen=True, kw_only=True)
class SmolVideoFamily(FrameFamily):
    """SmolVLM: frames as tiles, with masks, of which the class adds some of zeros to shorter videos of a call.

    Attributes:
        size: `longest_edge`, of frames before they are made square; or `height` and `width`.
        max_image_size: `longest_edge`, of the square.
        do_pad: whether there are masks.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 4 * 364})
    resample: int = 1
    max_image_size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 364})
    do_pad: bool = True
    ignored: frozenset[str] = _INERT | NO_CROP | {"pad_size", "video_sampling"}
    sampling: str = "smolvlm"

    forms = (frozenset({"longest_edge"}), frozenset({"height", "width"}))
    unchanged = frozenset({"max_image_size"})

    @property
    def outputs(self) -> tuple[str, ...]:
        return (PIXELS, *("pixel_attention_mask",) * self.do_pad)

    def converted(self, values: Values) -> Values:
        own = super().converted({**values, "do_pad": False})
        square = size_of(own["max_image_size"], False, "`max_image_size`", frozenset({"longest_edge"}))
        return own | {"max_image_size": square, "do_pad": values["do_pad"]}

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_resize or self.size.get("longest_edge", 0) > _SMOL_MOST:
            raise PresetError(f"SmolVLM's videos are followed where they are resized, to at the most {_SMOL_MOST}")

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        size: DataNode | list[int] = [self.size.get("height", 0), self.size.get("width", 0)]
        if "longest_edge" in self.size:
            size, _ = fn.fitted_size(images, rule="idefics3", most=self.size["longest_edge"])
        return self.resized(self.resized(images, backend, size), backend, [self.max_image_size["longest_edge"]] * 2)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        frames = self.normalized(self.prepared(data, backend), backend, None)
        outputs = (named(frames, PIXELS, 4),)
        if not self.do_pad:
            return outputs
        channel = frames[:, 0]
        return (*outputs, fn.cast(channel == channel, dtype=types.INT64, name=self.outputs[1]))

    def joined(self, images: Sequence[Features]) -> Values:
        if not self.do_pad:
            return super().joined(images)
        values = extended([image[PIXELS] for image in images], (0,))
        # Of frames that are added, the masks are of ones.
        return {PIXELS: values, self.outputs[1]: np.ones((*values.shape[:2], *values.shape[3:]), np.int64)}


@dataclass(frozen=True, kw_only=True)
class InternVLVideoFamily(FrameFamily):
    """Videos of InternVL, whose first frame may be a later one."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    initial_shift: float = True
    sampling: str = "internvl"

    hidden = FrameFamily.hidden - {"initial_shift"}


@dataclass(frozen=True, kw_only=True)
class VivitVideoFamily(ClipFamily):
    """ViViT, which subtracts 1 from what it has rescaled."""

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 256})
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    default_to_square: bool = False
    rescale_factor: float = 1 / 127.5

    def fuses_factor(self, backend: str) -> bool:
        return False

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_rescale:
            raise PresetError("`do_rescale`: ViViT's videos are followed where they are rescaled")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        frames = fn.rescale_normalize(self.prepared(data, backend), divisor=self.divisor()) - 1.0
        if self.do_normalize:
            mean, std = (
                types.Constant(list(each), dtype=types.FLOAT, shape=[1, 3, 1, 1])
                for each in (self.image_mean, self.image_std)
            )
            frames = (frames - mean) / std
        return (named(frames, PIXELS, 4),)


@dataclass(frozen=True, kw_only=True)
class Gemma4VideoFamily(SampledFamily, Gemma4Family):
    """Videos of Gemma 4: patches of each frame with their places, padded to a number."""

    do_normalize: bool = True
    max_soft_tokens: int = 70
    do_sample_frames: bool = True
    num_frames: int = 32
    torchvision_only: bool = True
    ignored: frozenset[str] = _INERT | {"size"}

    names: ClassVar[tuple[str, ...]] = (
        _PIXELS,
        "video_position_ids",
        "num_frames_per_video",
        "num_soft_tokens_per_video",
    )
    concatenated = names[:2]
    hidden = Gemma4Family.hidden | {
        "sampling",
        "initial_shift",
        "max_duration",
        "temporal_patch_size",
        "min_frames",
        "max_frames",
    }

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        frames = data
        if self.do_resize:
            bounds = self._bounds
            size, _ = fn.fitted_size(
                data, rule="gemma4", factor=bounds.factor, most=bounds.most, tile=list(bounds.tile)
            )
            frames = self.resized(data, backend, size)
        side, length = self._cut
        patches, _ = fn.image_patches(frames, patch=side, channels_last=True, **self.normalizing(backend))
        # Told by the shape: it lies on the host, also where the patches lie on a GPU.
        extents = frames.shape()
        grid, count = extents[1:3] // side, fn.cast(extents[:1], dtype=types.INT32)
        by_frame = fn.reshape(patches, shape=fn.cat(count, [-1], [CHANNELS * side**2]))
        padded = fn.slice(by_frame, start=[0], shape=[length], axes=[1], out_of_bounds_policy="pad", name=self.names[0])
        numbers = types.Constant(list(range(length)), dtype=types.INT64, shape=[length])
        rows = numbers // grid[1]
        own = fn.expand_dims(fn.cast(numbers < grid[0] * grid[1], dtype=types.INT64), axes=[1])
        positions = (fn.stack(numbers - rows * grid[1], rows, axis=1) + 1) * own - 1
        of_frames = fn.ones(shape=fn.cat(count, [1, 1]), dtype=types.INT64)
        tokens = grid[0] * grid[1] // self.pooling_kernel_size**2
        return (
            padded,
            named(of_frames * positions, self.names[1], 3),
            fn.copy(extents[0], name=self.names[2]),
            fn.copy(tokens, name=self.names[3]),
        )

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return frames * self.tokens(height, width, model)

    def joined(self, images: Sequence[Features]) -> Values:
        told = {name: [int(image[name]) for image in images] for name in self.names[2:]}
        return Family.joined(self, images) | told


@dataclass(frozen=True, kw_only=True)
class HunYuanVideoFamily(VideoFamily):
    """Videos of HunYuan V4: never enlarged, and whole tokens of at most so many pixels.

    Attributes:
        size: `longest_edge`: the most pixels of a video; `shortest_edge` has no effect.
        max_image_size: `longest_edge`: the most pixels of a frame.
    """

    rule: str = "hunyuan-v4-video"
    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 4096, "longest_edge": 1 << 25})
    max_image_size: object = field(default_factory=lambda: {"longest_edge": 1 << 20})
    patch_size: int = 16
    temporal_patch_size: int = 1
    grouped: bool = False
    fps: float = 2.0
    min_frames: int = 2
    max_frames: int = 1024
    sampling: str = "qwen3-vl"

    def converted(self, values: Values) -> Values:
        most = size_of(values["max_image_size"], False, "`max_image_size`", frozenset({"longest_edge"}))
        size = {**dict(values["size"]), "shortest_edge": most["longest_edge"]}
        return super().converted({**values, "size": size, "max_image_size": most})


@dataclass(frozen=True, kw_only=True)
class MuseVideoFamily(SampledFamily, MuseImageFamily):
    """Videos of Muse Glimmer.

    Attributes:
        max_video_frame_tokens: so many tokens a frame becomes at the most.
        frame_timestamp_format: accepted: the processor of texts reads it.
    """

    default_to_square: bool = True
    max_video_frame_tokens: int = 144
    do_sample_frames: bool = True
    num_frames: int = 96
    fps: float = 2.0
    sampling: str = "muse"
    ignored: frozenset[str] = MuseImageFamily.ignored | _INERT | {"frame_timestamp_format", "default_to_square"}

    names = (_PIXELS, _GRID)
    concatenated = (_PIXELS,)
    hidden = MuseImageFamily.hidden | {
        "sampling",
        "initial_shift",
        "max_duration",
        "min_frames",
        "max_frames",
        "max_image_tokens",
        "default_to_square",
    }

    def converted(self, values: Values) -> Values:
        return super().converted({**values, "max_image_tokens": values["max_video_frame_tokens"]})

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        unit, side = self.temporal_patch_size, self.patch_size
        total = (data.shape()[:1] + (unit - 1)) // unit * unit
        # The last frame is repeated.
        frames = fn.slice(
            data, start=[0], shape=fn.cast(total, dtype=types.INT32), axes=[0], out_of_bounds_policy="clamp"
        )
        if self.do_resize:
            bounds = self._bounds
            size, _ = fn.fitted_size(frames, rule="muse-glimmer", factor=bounds.factor, most=bounds.most)
            frames = self.resized(frames, backend, size)
        patches, _ = fn.image_patches(frames, patch=side, **self.normalizing(backend))
        of_patch, extents = CHANNELS * side**2, frames.shape()
        times = extents[:1] // unit
        by_frame = fn.reshape(patches, shape=fn.cat(fn.cast(times, dtype=types.INT32), [unit, -1, of_patch]))
        values = fn.reshape(fn.transpose(by_frame, perm=[0, 2, 1, 3]), shape=[-1, unit * of_patch], name=_PIXELS)
        return values, fn.cat(times, extents[1:3] // side, name=_GRID)

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return -(-frames // self.temporal_patch_size) * self.tokens(height, width, model)


@dataclass(frozen=True, kw_only=True)
class KimiVideoFamily(SampledFamily, KimiFamily):
    """Videos of Kimi K2.5, which are told to the model in chunks. A pipeline tells their grid as a whole."""

    max_patches: int = 4096
    temporal_patch_size: int = 4
    do_sample_frames: bool = True
    fps: float = 2.0
    ignored: frozenset[str] = KimiFamily.ignored | _INERT

    names = (_PIXELS, _GRID)
    concatenated = (_PIXELS,)
    hidden = KimiFamily.hidden | {"sampling", "initial_shift", "max_duration", "min_frames", "max_frames"}

    def joined(self, images: Sequence[Features]) -> Values:
        chunks = [self._chunks(*image[_GRID].tolist()) for image in images]
        grids = np.array([chunk for of_video in chunks for chunk in of_video])
        return {**super().joined(images), _GRID: grids, "num_chunks_per_video": [len(each) for each in chunks]}

    def _chunks(self, frames: int, height: int, width: int) -> list[list[int]]:
        """The grids of a video's chunks."""
        most = self.temporal_patch_size
        return [[min(most, frames - start), height, width] for start in range(0, frames, most)]

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return frames * self.tokens(height, width, model)
