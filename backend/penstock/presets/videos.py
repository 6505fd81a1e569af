"""Video processors, which select frames of a video and prepare them: Qwen-VL, GLM-4V, LLaVA, InternVL and others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock import math as graph_math
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, fitted
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Family,
    Features,
    FloatFamily,
    PresetError,
    Values,
    checked_extents,
    extended,
    fitted_sizes,
    named,
    size_of,
)
from penstock.presets.fixed import IMAGENET, NO_CROP, NO_PAD, OPENAI, FixedFamily
from penstock.presets.patches import Gemma4Family, Glm5Family, KimiFamily, MuseImageFamily, PatchFamily, UnifiedFamily
from penstock.presets.slices import MiniCPMFamily, MolmoFamily

_PIXELS, _GRID = "pixel_values_videos", "video_grid_thw"
# The default and greatest longest edge of SmolVLM's frames, in pixels.
_SMOL_MAX_EDGE = 4096
_INERT = frozenset({"video_metadata", "return_metadata"})
# Attributes of `SampledFamily` that are no settings of most classes.
_UNSET = frozenset({"sampling", "initial_shift", "overflow_strategy"})


@dataclass(frozen=True)
class VideoLength:
    """The length of a video.

    Attributes:
        frames: the number of frames.
        rate: the number of frames per second; None: unknown.
        duration: the duration in seconds as the decoder reports it, which may differ from `frames / rate`; None or 0: unknown.
    """

    frames: int
    rate: float | None
    duration: float | None


@dataclass(frozen=True, kw_only=True)
class SampledFamily(Family):
    """Base class of video processors, which select frames.

    Attributes:
        do_sample_frames: whether to select frames instead of using all.
        fps: how many frames per second to select; 0: not set.
        num_frames: how many frames to select; 0: not set.
        min_frames, max_frames: the bounds of the number of frames that follows from `fps`.
        temporal_patch_size: the number of frames of a patch; some rules select a multiple of it.
        initial_shift: for InternVL: the position of the first frame; True: half the distance between selected frames.
        max_duration: for GLM-4V: the longest duration in seconds for which `fps` applies.
        sampling: the name of the rule by which frames are selected.
        overflow_strategy: for EmbeddingGemma 2: how to reduce more frames to `max_frames`: `uniform` or `truncate`.
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
    overflow_strategy: str = "uniform"

    kind = "videos"

    def sampled(self, video: VideoLength) -> list[int]:
        """Return the numbers of the frames that the processor selects from a video.

        Raises:
            ValueError: the video's rate or duration is needed but unknown, the video has too few frames, or settings contradict each
                other.
        """
        if video.frames < 1:
            raise ValueError(f"The number of a video's frames must be positive. Got: {video.frames}")
        return _RULES[self.sampling](self, video)

    def by_rate(self, frames: int, rate: float | None) -> float:
        """Return how many frames `fps` requests from a video of this many frames and this rate; not rounded."""
        if rate is None or rate <= 0:
            raise ValueError("Selecting frames at a rate requires the video's frame rate")
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
        max_frames = math.floor(min(family.max_frames, frames) / unit) * unit
        wanted = min(max(family.by_rate(frames, rate), family.min_frames), max_frames, frames)
        count = math.floor(wanted / unit) * unit
    else:
        raise ValueError("Set `fps` or `num_frames`, which determine the number of frames")
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
    # In configurations, `true` and `1` mean different things. JSON preserves the difference.
    shift = frames / count / 2 if family.initial_shift is True else float(family.initial_shift)
    return _stepped(shift, frames, frames / count)


def _glm_duration(video: VideoLength, rate: float) -> float:
    """Return the duration in seconds that a video's decoder reports; if it reports none, a duration computed from the frames."""
    return video.duration or round((video.frames - 1) / rate) + 1


def _glm4v(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0 or not family.fps:
        raise ValueError("The video's frame rate and the rate of the frames to select (`fps`) are required")
    last = frames - 1
    duration = _glm_duration(video, rate)
    if duration <= family.max_duration:
        count = max(math.floor(duration * family.fps), 1)
        numbers = [min(last, math.ceil(number * rate / family.fps)) for number in range(count)]
    else:
        count = int(family.max_duration * family.fps)
        seconds = np.linspace(0, duration, count, endpoint=True).tolist()
        numbers = list(range(frames)) if count >= frames else [min(last, math.ceil(at * rate)) for at in seconds]
    unique = list(dict.fromkeys(numbers))
    return unique + unique[-1:] * (len(unique) % 2)


# For GLM-4.6V: the frames per second, by the longest duration in seconds for which they apply; the duration in seconds after which no
# frames are counted; the largest number of frames.
_GLM46V_RATES, _GLM46V_MAX_SECONDS, _GLM46V_MAX_FRAMES = {30: 3.0, 300: 1.0, 2400: 0.5}, 2400, 640


def _glm46v(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0:
        raise ValueError("The video's frame rate is required")
    last = frames - 1
    duration = _glm_duration(video, rate)
    known = min(duration, _GLM46V_MAX_SECONDS)
    wanted = next(of for longest, of in _GLM46V_RATES.items() if known <= longest) * family.temporal_patch_size
    count = min(int(known * wanted), _GLM46V_MAX_FRAMES)
    return _spread_evenly(_at_times(frames, rate, 1 / wanted, int(duration)) if frames >= count else [], count, last)


def _glmga(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0 or not family.fps:
        raise ValueError("The video's frame rate and the rate of the frames to select (`fps`) are required")
    last = frames - 1
    duration = _glm_duration(video, rate)
    count, step = min(int(duration * family.fps), family.max_frames), 1 / family.fps
    if frames < count:
        return _spread_evenly([math.floor(number * frames / count) for number in range(count)], count, last)
    return _spread_evenly(_at_times(frames, rate, step, duration - step), count, last)


def _spread_evenly(numbers: list[int], count: int, last: int) -> list[int]:
    """Return selected frames without repetitions; if their number is odd, repeat the last one.

    If ``numbers`` does not contain ``count`` frames, ``count`` evenly spread frames replace them: between the first and the last of
    ``numbers`` if there are too few of these, and otherwise between 0 and ``last``.
    """
    chosen = numbers
    if len(chosen) != count:
        start, end = (chosen[0], chosen[-1]) if 0 < len(chosen) < count else (0, last)
        chosen = np.linspace(start, end, count, dtype=int).tolist()
    chosen = list(dict.fromkeys(chosen))
    return chosen + chosen[-1:] * (len(chosen) % 2)


def _at_times(frames: int, rate: float, step: float, end: float) -> list[int]:
    """Return, for each multiple of ``step`` up to ``end``, both in seconds, the number of the first frame at or after it."""
    chosen, at, of_frame = [], 0.0, 1 / rate
    for number in range(frames):
        if number * of_frame >= at:
            at += step
            chosen.append(number)
            if at >= end:
                break
    return chosen


# The number of seconds that SmolVLM skips at each end of a long video.
_SMOL_SKIPPED_SECONDS = 1


def _smolvlm(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    duration, last = video.duration, frames - 1
    if rate is None or rate <= 0 or not (duration and family.fps and family.num_frames):
        raise ValueError("The video's frame rate and duration, `fps` and `num_frames` are required")
    count = max(min(round(family.fps * duration), family.num_frames), 1)
    start, end = 0, last
    if duration - 2 * _SMOL_SKIPPED_SECONDS > family.num_frames * family.fps:
        start, end = int(_SMOL_SKIPPED_SECONDS * rate), min(int(frames - _SMOL_SKIPPED_SECONDS * rate), last)
    if start >= end:
        start, end = 0, last
    return np.unique(np.linspace(start, end, count, dtype=int)).tolist()


def _ernie(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, max_frames = video.frames, family.max_frames
    _check_either(family)
    if family.num_frames:
        if not family.min_frames <= family.num_frames <= max_frames:
            raise ValueError(f"`num_frames` must be from {family.min_frames} to {max_frames}. Got: {family.num_frames}")
        _check_count(family.num_frames, frames)
        return _stepped(0.0, frames, frames / family.num_frames)
    wanted = family.by_rate(frames, video.rate) if family.fps else frames
    return _stepped(0.0, frames, frames / min(max(wanted, family.min_frames), max_frames, frames))


def _glm5(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate = video.frames, video.rate
    if rate is None or rate <= 0 or not family.fps:
        raise ValueError("The video's frame rate and the rate of the frames to select (`fps`) are required")
    whole = _glm_duration(video, rate)
    duration = min(whole, family.max_duration) if family.max_duration > 0 else whole
    count = min(int(duration * family.fps), family.max_frames)
    last = frames - 1
    if frames < count:
        return _spread_evenly(np.linspace(0, last, count, dtype=int).tolist(), count, last)
    return _spread_evenly(_at_times(frames, rate, 1 / family.fps, int(whole)), count, last)


def _embedding_gemma2(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate, duration = video.frames, video.rate, video.duration
    if family.num_frames:
        raise ValueError("`fps` and `max_frames` determine the number of frames, not `num_frames`")
    numbers = list(range(frames))
    if family.fps and rate and duration:
        step = rate / family.fps
        numbers = [min(frames - 1, int(number * step)) for number in range(max(1, int(duration * family.fps)))]
    if len(numbers) <= family.max_frames:
        return numbers
    if family.overflow_strategy == "truncate":
        return numbers[: family.max_frames]
    return [numbers[position] for position in np.linspace(0, len(numbers) - 1, family.max_frames, dtype=int)]


# For videos with more seconds than `max_frames`, MiniCPM selects from frames at this distance in seconds.
_MINICPM_STEP_SECONDS = 0.1


def _minicpm(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, rate, duration = video.frames, video.rate, video.duration
    if not (rate and duration):
        raise ValueError("The video's frame rate and duration are required")
    if duration <= family.max_frames:
        return [int(second * rate) for second in range(math.ceil(duration))]
    times = [round(number * _MINICPM_STEP_SECONDS, 1) for number in range(int(duration / _MINICPM_STEP_SECONDS))]
    numbers = [min(int(time * rate), frames - 1) for time in times]
    if len(numbers) <= family.max_frames:
        return numbers
    return [numbers[position] for position in np.linspace(0, len(numbers) - 1, family.max_frames, dtype=int)]


def _muse(family: SampledFamily, video: VideoLength) -> list[int]:
    frames, unit = video.frames, family.temporal_patch_size
    count = min(int(frames * family.fps / (video.rate or 24)), family.num_frames, frames)
    count = min(max(unit, count // unit * unit), frames)
    if count == 1:
        return [0]
    # Compute like PyTorch's `linspace`, in single precision and from both ends.
    step, last = np.float32((frames - 1) / (count - 1)), np.float32(frames - 1)
    numbers = np.arange(count, dtype=np.float32)
    chosen = np.where(numbers < count // 2, step * numbers, last - step * (np.float32(count - 1) - numbers))
    return [int(number) for number in chosen]


def _pe(family: SampledFamily, video: VideoLength) -> list[int]:
    if not family.num_frames:
        return _uniform(family, video)
    if family.num_frames == 1:
        raise ValueError("`num_frames` must be at least 2, because the first and the last frame are always taken")
    return [int(number * (video.frames - 1) / (family.num_frames - 1)) for number in range(family.num_frames)]


def _molmo2(family: SampledFamily, video: VideoLength) -> list[int]:
    assert isinstance(family, MolmoVideoFamily)
    _check_either(family)
    rate = video.rate or family.fps or family.max_fps
    if not rate:
        raise ValueError("The video's frame rate is required, as there is no `max_fps`")
    duration = video.duration or video.frames / rate
    if family.fps:
        count = int(duration * family.fps)
    else:
        count = family.num_frames
        if family.max_fps and rate > family.max_fps:
            count = min(count, int(duration * family.max_fps))
    return _stepped(0.0, video.frames, video.frames / max(min(count, video.frames), 1))


_RULES: dict[str, Callable[[SampledFamily, VideoLength], list[int]]] = {
    "uniform": _uniform,
    "qwen2-vl": _qwen2_vl,
    "qwen3-vl": _qwen3_vl,
    "internvl": _internvl,
    "pe": _pe,
    "glm4v": _glm4v,
    "ernie": _ernie,
    "glm5": _glm5,
    "embedding-gemma2": _embedding_gemma2,
    "minicpm": _minicpm,
    "molmo2": _molmo2,
    "muse": _muse,
    "glm46v": _glm46v,
    "glmga": _glmga,
    "smolvlm": _smolvlm,
}


def _check_either(family: SampledFamily) -> None:
    if family.fps and family.num_frames:
        raise ValueError("Set either `fps` or `num_frames`, not both")


def _check_count(count: int, frames: int) -> None:
    if not 1 <= count <= frames:
        raise ValueError(f"Cannot sample {count} frames from a video of {frames}")


# PyTorch's `arange` computes vectors of this many numbers.
_LANES = 8


def _stepped(start: float, end: float, step: float) -> list[int]:
    """Return the numbers from ``start`` to ``end`` in steps, truncated to integers, with the rounding errors of PyTorch's `arange` in
    single precision.
    """
    steps = np.arange(math.ceil((end - start) / step))
    lanes = steps % _LANES
    begins = (start + (steps - lanes) * step).astype(np.float32).astype(np.float64)
    return [int(number) for number in (begins + lanes * step).astype(np.float32)]


@dataclass(frozen=True, kw_only=True)
class VideoFamily(SampledFamily, PatchFamily):
    """Videos as patches of several frames.

    Attributes:
        cap_pixels_per_frame: must be false.
        max_video_tokens, max_image_size: accepted without effect: they are read only with that setting, or not at all.
    """

    cap_pixels_per_frame: bool = False
    max_video_tokens: int = 0
    max_image_size: object = None
    torchvision_only: bool = True
    ignored: frozenset[str] = _INERT

    names: ClassVar[tuple[str, ...]] = (_PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (_PIXELS,)
    hidden = PatchFamily.hidden | _UNSET | {"max_duration"}

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.cap_pixels_per_frame:
            raise PresetError(
                "`cap_pixels_per_frame` is not supported: presets do not limit a video's pixels by its number of frames"
            )

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        fit = Fit(height, width, height, width)
        if self.do_resize:
            fit = fitted(self.rule, height, width, self.bounds._replace(frames=frames))
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


@dataclass(frozen=True, kw_only=True)
class ErnieVideoFamily(VideoFamily):
    """Videos of ERNIE 4.5; if the number of frames is odd, the last frame is repeated.

    Attributes:
        size: the bounds of a frame's number of pixels, as in :class:`PatchFamily`.
        draw_on_frames: must be false: presets do not draw the time on frames.
        font: accepted without effect: it is read only with `draw_on_frames`.
    """

    rule: str = "qwen2-vl"
    size: Mapping[str, int] = field(
        default_factory=lambda: {"shortest_edge": 299 * 28 * 28, "longest_edge": 1196 * 28 * 28}
    )
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    min_frames: int = 16
    max_frames: int = 180
    do_sample_frames: bool = True
    draw_on_frames: bool = True
    sampling: str = "ernie"
    ignored: frozenset[str] = _INERT | {"font"}

    @property
    def frames_in_patch(self) -> int:
        return 1

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.temporal_patch_size != 2 or self.draw_on_frames:
            raise PresetError(
                "`temporal_patch_size` must be 2, and `draw_on_frames` false, as no preset draws the time on frames"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return super().process(_whole_units(data, self.temporal_patch_size), backend)

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return (frames + frames % self.temporal_patch_size) * self.tokens(height, width, model)


def _whole_units(frames: DataNode, unit: int) -> DataNode:
    """Pad frames to a multiple of ``unit`` frames by repeating the last frame."""
    total = (frames.shape()[:1] + (unit - 1)) // unit * unit
    return fn.slice(frames, start=[0], shape=fn.cast(total, dtype=types.INT32), axes=[0], out_of_bounds_policy="clamp")


# VideoLLaMA 3 keeps a token if its mean difference from the previous frame, in values up to 255, is greater than this.
_LLAMA3_MIN_DIFFERENCE = 0.1


@dataclass(frozen=True, kw_only=True)
class VideoLlama3Family(VideoFamily):
    """Videos of VideoLLaMA 3, with a mask of the tokens that differ from the same tokens of the previous frame.

    The mask equals that of transformers' processor, except for tokens whose mean difference is so near the limit that rounding decides.

    Attributes:
        size: `shortest_edge`: the smallest number of pixels of a frame; `longest_edge`: the largest number of pixels of a whole video.
        use_token_compression: whether to mask tokens that do not differ.
    """

    rule: str = "qwen2-vl-video"
    size: Mapping[str, int] = field(
        default_factory=lambda: {"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768}
    )
    temporal_patch_size: int = 1
    max_frames: int = 180
    use_token_compression: bool = True
    sampling: str = "qwen2-vl"

    names = (_PIXELS, _GRID, "video_merge_sizes", "video_compression_mask")
    concatenated = (_PIXELS, "video_compression_mask")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        patches, grid = PatchFamily.process(self, data, backend)
        _, _, merges, mask = self.names
        merge = fn.constant(idata=[self.merge_size], shape=[], dtype=types.INT64, name=merges)
        # Compute the number of tokens from sizes, because the grid may be on the GPU.
        size = fitted_sizes(data, self.rule, self.bounds)[0] if self.do_resize else data.shape()[1:3]
        times = fn.cast(data.shape()[:1] // self.frames_in_patch, dtype=types.INT32)
        tokens = fn.cast(
            size[:1] // self.patch_size * (size[1:] // self.patch_size) // self.merge_size**2, dtype=types.INT32
        )
        if not self.use_token_compression:
            return patches, grid, merge, fn.ones(shape=times * tokens, dtype=types.BOOL, name=mask)
        by_token = fn.reshape(patches, shape=fn.cat(times, tokens, [-1]))
        # Compare the first frame with values that differ from all pixels, so that all its tokens are kept.
        before = fn.slice(
            by_token, start=[-1], shape=times, axes=[0], out_of_bounds_policy="pad", fill_values=[float(1 << 20)]
        )
        change = by_token - before
        difference = fn.reductions.mean(graph_math.max(change, change * -1.0), axes=[2]) * 255.0
        is_kept = fn.cast(difference > _LLAMA3_MIN_DIFFERENCE, dtype=types.INT32)
        # Of a frame without other tokens, keep the first one.
        lacking = 1 - fn.reductions.max(is_kept, axes=[1], keep_dims=True)
        first = fn.slice(lacking, start=[0], shape=tokens, axes=[1], out_of_bounds_policy="pad")
        is_kept = graph_math.max(is_kept, first)
        return patches, grid, merge, fn.cast(fn.reshape(is_kept, shape=[-1]), dtype=types.BOOL, name=mask)


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
    """Videos of GLM-4V; for those longer than `max_duration`, the number of frames no longer grows with the duration."""

    rule: str = "qwen3-vl-video"
    size: Mapping[str, int] = field(
        default_factory=lambda: {"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 2 * 30000}
    )
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    do_sample_frames: bool = True
    fps: float = 2.0
    sampling: str = "glm4v"

    hidden = PatchFamily.hidden | _UNSET


GLM46V_VIDEO = Glm4vVideoFamily(sampling="glm46v")
GLMGA_VIDEO = Glm4vVideoFamily(
    size={"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 2 * 55790}, max_frames=640, sampling="glmga"
)


@dataclass(frozen=True, kw_only=True)
class MiniMaxVideoFamily(VideoFamily):
    """Videos of MiniMax M3, which the model receives in segments. A pipeline returns a single grid for all segments of a video.

    Attributes:
        min_pixels, max_pixels: the range of a frame's number of pixels; `size` has no effect.
        vision_segment_max_frames: the largest number of temporal patches of a segment; None: a single segment.
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
            raise PresetError(f"`vision_segment_max_frames` must be positive. Got: {longest}")
        edges = {"shortest_edge": values["min_pixels"], "longest_edge": values["max_pixels"]}
        return super().converted({**values, "size": edges})

    def joined(self, images: Sequence[Features]) -> Values:
        segments = [self._segments(*image[_GRID].tolist()) for image in images]
        grids = np.array([segment for of_video in segments for segment in of_video])
        counts = np.array([len(of_video) for of_video in segments])
        return {**super().joined(images), _GRID: grids, "num_chunks_per_video": counts}

    def _segments(self, frames: int, height: int, width: int) -> list[list[int]]:
        """Return the grid (frames, height, width) of each segment of a video, from the grid of the video."""
        max_frames = self.vision_segment_max_frames or frames
        return [[min(max_frames, frames - start), height, width] for start in range(0, frames, max_frames)]


@dataclass(frozen=True, kw_only=True)
class FrameFamily(SampledFamily, FixedFamily):
    """Base class of video processors that treat frames like images."""

    torchvision_only: bool = True
    ignored: frozenset[str] = _INERT | NO_PAD

    names: ClassVar[tuple[str, ...]] = (_PIXELS,)
    tells_by = ()
    hidden = (
        FixedFamily.hidden
        | _UNSET
        | {
            "max_duration",
            "temporal_patch_size",
            "min_frames",
            "max_frames",
        }
    )

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
        raise PresetError("Presets cannot count the tokens of these videos")


@dataclass(frozen=True, kw_only=True)
class ClipFamily(FrameFamily):
    """VideoMAE, TimeSformer and InstructBLIP, whose output has the same name as that of image processors."""

    names = (PIXELS,)


@dataclass(frozen=True, kw_only=True)
class PeVideoFamily(FrameFamily):
    """PE Video, which applies only the requested steps. It pads shorter videos of a call with frames of zeros, and returns a mask."""

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
    """V-JEPA 2, which resizes the shorter side to 256 / 224 of the crop's size, whatever `size` is."""

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
            raise PresetError(f"`crop_size` must be a number, or have `height` and `width`. Got: {crop!r}")
        return super().converted({**values, "size": {"shortest_edge": int(side * 256 / 224)}})


@dataclass(frozen=True, kw_only=True)
class Sam2VideoFamily(FrameFamily):
    """SAM 2, whose processor also returns the sizes of frames before and after resizing."""

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
    """SmolVLM: frames as square tiles, with masks. Shorter videos of a call are padded with frames of zeros.

    Attributes:
        size: `longest_edge` of frames before they are resized to squares; or `height` and `width`.
        max_image_size: `longest_edge`, which is the side of the squares.
        do_pad: whether to return masks.
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
        settings = super().converted({**values, "do_pad": False})
        square = size_of(settings["max_image_size"], False, "`max_image_size`", frozenset({"longest_edge"}))
        return settings | {"max_image_size": square, "do_pad": values["do_pad"]}

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_resize or self.size.get("longest_edge", 0) > _SMOL_MAX_EDGE:
            raise PresetError(
                f"SmolVLM's videos are supported only where they are resized, to at most {_SMOL_MAX_EDGE}"
            )

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
        # The masks of frames that are padding are ones, too.
        return {PIXELS: values, self.outputs[1]: np.ones((*values.shape[:2], *values.shape[3:]), np.int64)}


@dataclass(frozen=True, kw_only=True)
class InternVLVideoFamily(FrameFamily):
    """Videos of InternVL. With `initial_shift`, the first selected frame is not the first frame of the video."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    initial_shift: float = True
    sampling: str = "internvl"

    hidden = FrameFamily.hidden - {"initial_shift"}


@dataclass(frozen=True, kw_only=True)
class VivitVideoFamily(ClipFamily):
    """ViViT, which subtracts 1 from rescaled values."""

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
            raise PresetError("`do_rescale`: ViViT's videos are supported only where they are rescaled")

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
    """Videos of Gemma 4: patches of each frame and their positions, padded to a fixed number of patches."""

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
    hidden = (
        Gemma4Family.hidden
        | _UNSET
        | {
            "max_duration",
            "temporal_patch_size",
            "min_frames",
            "max_frames",
        }
    )

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
        # Use the shape of frames, which is on the host even if patches are on the GPU.
        extents = frames.shape()
        grid, count = extents[1:3] // side, fn.cast(extents[:1], dtype=types.INT32)
        by_frame = fn.reshape(patches, shape=fn.cat(count, [-1], [CHANNELS * side**2]))
        padded = fn.slice(by_frame, start=[0], shape=[length], axes=[1], out_of_bounds_policy="pad", name=self.names[0])
        numbers = types.Constant(list(range(length)), dtype=types.INT64, shape=[length])
        rows = numbers // grid[1]
        is_valid = fn.expand_dims(fn.cast(numbers < grid[0] * grid[1], dtype=types.INT64), axes=[1])
        positions = (fn.stack(numbers - rows * grid[1], rows, axis=1) + 1) * is_valid - 1
        of_frames = fn.ones(shape=fn.cat(count, [1, 1]), dtype=types.INT64)
        tokens = grid[0] * grid[1] * side**2 // self._bounds.factor**2
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
        counts = {name: [int(image[name]) for image in images] for name in self.names[2:]}
        return Family.joined(self, images) | counts


@dataclass(frozen=True, kw_only=True)
class UnifiedVideoFamily(Gemma4VideoFamily, UnifiedFamily):
    """Videos of Gemma 4 with a unified encoder, for which each piece of a frame becomes one token."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingGemmaFamily(Gemma4VideoFamily):
    """Videos of EmbeddingGemma 2: like those of Gemma 4, but frames are selected in another way.

    Attributes:
        add_timestamps, load_audio_from_video: accepted without effect: they do not concern frames.
    """

    fps: float = 1.0
    num_frames: int = 0
    max_frames: int = 32
    sampling: str = "embedding-gemma2"
    ignored: frozenset[str] = Gemma4VideoFamily.ignored | {"add_timestamps", "load_audio_from_video"}

    hidden = Gemma4VideoFamily.hidden - {"max_frames", "overflow_strategy"}

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.overflow_strategy not in ("uniform", "truncate"):
            raise PresetError(f"`overflow_strategy` must be 'uniform' or 'truncate'. Got: {self.overflow_strategy!r}")


@dataclass(frozen=True, kw_only=True)
class Glm5VideoFamily(SampledFamily, Glm5Family):
    """Videos of GLM-5.

    Attributes:
        min_image_tokens, max_image_tokens: the bounds of a video's number of tokens.
        max_image_size: accepted without effect: the processor in transformers does not read it.
    """

    rule: str = "glm5-video"
    max_image_tokens: int = 240000
    max_frames: int = 2048
    do_sample_frames: bool = True
    fps: float = 2.0
    num_frames: int = 16
    max_duration: int = 0
    sampling: str = "glm5"
    torchvision_only: bool = True
    ignored: frozenset[str] = Glm5Family.ignored | _INERT | {"max_image_size"}

    names = (_PIXELS, _GRID)
    concatenated = (_PIXELS,)
    hidden = Glm5Family.hidden | _UNSET | {"min_frames"}

    @property
    def bounds(self) -> SizeArguments:
        inherited, unit = super().bounds, self.temporal_patch_size
        return inherited._replace(least=inherited.least * unit, most=inherited.most * unit)

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        return VideoFamily.tokens_of(self, size, model)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class MiniCPMVideoFamily(SampledFamily, MiniCPMFamily):
    """Videos of MiniCPM-V: each frame is prepared like an image.

    Attributes:
        max_num_frames: the largest number of frames to select.
        stack_frames: must be 1.
    """

    max_num_frames: int = 128
    stack_frames: int = 1
    do_sample_frames: bool = True
    sampling: str = "minicpm"
    torchvision_only: bool = True
    ignored: frozenset[str] = MiniCPMFamily.ignored | _INERT | {"fps", "num_frames"}

    names = (_PIXELS, "target_sizes_videos", "grids_videos", "num_patches_per_frame", "num_frames_per_video")
    concatenated = names[1:4]
    hidden = MiniCPMFamily.hidden | _UNSET | {"max_duration", "temporal_patch_size", "min_frames", "max_frames"}

    def converted(self, values: Values) -> Values:
        return super().converted({**values, "max_frames": values["max_num_frames"]})

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.stack_frames != 1 or self.max_num_frames < 1:
            raise PresetError(
                "`stack_frames` must be 1, as no preset puts frames side by side, and `max_num_frames` must be positive"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        extents = data.shape(dtype=types.INT32)
        # Treat the frames as one high image, and cut that into parts, so that each frame is a sample.
        column = fn.reshape(data, shape=fn.cat([-1], extents[2:]), layout="HWC")
        frames, counts = fn.crop_boxes(column, fn.tile_boxes(column, tile=extents[1:3]))
        pixels, sizes, grids, patches = (
            fn.collect(each, counts=counts, join=join)
            for each, join in zip(self.patched(frames, backend), ("stack", "cat", "stack", "stack"))
        )
        side_by_side = fn.transpose(pixels, perm=[1, 2, 0, 3])
        return (
            fn.reshape(side_by_side, shape=[1, CHANNELS, self.patch_size, -1], name=self.names[0]),
            named(sizes, self.names[1], 2),
            named(grids, self.names[2], 2),
            fn.cast(patches, dtype=types.INT32, name=self.names[3]),
            fn.copy(data.shape()[0], name=self.names[4]),
        )

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return frames * self.tokens(height, width, model)

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, counts = self.names[0], self.names[4]
        return {
            **Family.joined(self, images),
            pixels: np.concatenate([image[pixels] for image in images], axis=-1),
            counts: [int(image[counts]) for image in images],
        }


@dataclass(frozen=True, kw_only=True)
class NemotronVideoFamily(SampledFamily, FloatFamily):
    """Videos of Nemotron Omni: the frames of a temporal patch become channels of one picture.

    Attributes:
        norm_mean, norm_std: the mean and standard deviation of each channel; required.
        patch_size: the side of a patch, in pixels.
        downsample_ratio: the number of tokens per patch along a side.
        video_target_num_patches: the approximate number of patches of a frame.
        video_maintain_aspect_ratio: preserve the aspect ratio of frames; otherwise, frames become square.
    """

    norm_mean: Sequence[float] = ()
    norm_std: Sequence[float] = ()
    patch_size: int = 16
    downsample_ratio: float = 0.5
    video_target_num_patches: int = 1024
    video_maintain_aspect_ratio: bool = True
    resample: int = 3
    torchvision_only: bool = True
    ignored: frozenset[str] = (
        _INERT
        | NO_CROP
        | NO_PAD
        | {"do_normalize", "do_rescale", "do_resize", "image_mean", "image_std", "resample", "rescale_factor", "size"}
    )

    names = (_PIXELS, "num_frames")
    unchanged = frozenset(
        {
            "norm_mean",
            "norm_std",
            "patch_size",
            "downsample_ratio",
            "video_target_num_patches",
            "video_maintain_aspect_ratio",
        }
    )
    hidden = FloatFamily.hidden | _UNSET | {"max_duration", "min_frames", "max_frames"}

    def converted(self, values: Values) -> Values:
        means, deviations = values["norm_mean"], values["norm_std"]
        if not means or not deviations:
            raise PresetError("`norm_mean` and `norm_std` must have a value for each channel")
        for key in ("patch_size", "downsample_ratio", "video_target_num_patches", "temporal_patch_size"):
            if values[key] <= 0:
                raise PresetError(f"`{key}` must be positive. Got: {values[key]}")
        return super().converted({**values, "image_mean": means, "image_std": deviations})

    @property
    def _bounds(self) -> SizeArguments:
        unit = round(1 / self.downsample_ratio)
        square = int(not self.video_maintain_aspect_ratio)
        return SizeArguments(self.patch_size, square, self.video_target_num_patches, tile=(unit, unit))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        size, _ = fitted_sizes(data, "nemotron-video", self._bounds)
        frames = self.resized(
            fn.rescale_normalize(_whole_units(data, self.temporal_patch_size), divisor=1.0), backend, size
        )
        mean, std = (
            types.Constant(list(each), dtype=types.FLOAT, shape=[1, CHANNELS, 1, 1])
            for each in (self.image_mean, self.image_std)
        )
        values = (frames / 255.0 - mean) / std
        extents = fn.cast(size, dtype=types.INT32)
        units = fn.reshape(values, shape=fn.cat([-1, CHANNELS * self.temporal_patch_size], extents), name=_PIXELS)
        return units, fn.copy(data.shape()[0], name=self.names[1])

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        fit = fitted("nemotron-video", height, width, self._bounds)
        of_frame = fit.height * fit.width // (self.patch_size * self._bounds.tile[0]) ** 2
        return -(-frames // self.temporal_patch_size) * of_frame

    def joined(self, images: Sequence[Features]) -> Values:
        if len({image[_PIXELS].shape for image in images}) > 1:
            raise ValueError(
                "All videos of a call must have the same number of frames, and the same size after resizing"
            )
        counts = self.names[1]
        return {**super().joined(images), counts: [int(image[counts]) for image in images]}


@dataclass(frozen=True, kw_only=True)
class HunYuanVideoFamily(VideoFamily):
    """Videos of HunYuan V4: frames that are never enlarged, resized to whole tokens, with a limit on the number of pixels.

    Attributes:
        size: `longest_edge`: the largest number of pixels of a video; `shortest_edge` has no effect.
        max_image_size: `longest_edge`: the largest number of pixels of a frame.
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
        longest = size_of(values["max_image_size"], False, "`max_image_size`", frozenset({"longest_edge"}))
        size = {**dict(values["size"]), "shortest_edge": longest["longest_edge"]}
        return super().converted({**values, "size": size, "max_image_size": longest})


@dataclass(frozen=True, kw_only=True)
class MuseVideoFamily(SampledFamily, MuseImageFamily):
    """Videos of Muse Glimmer.

    Attributes:
        max_video_frame_tokens: the largest number of tokens of a frame.
        frame_timestamp_format: accepted without effect: only the text processor reads it.
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
    hidden = (
        MuseImageFamily.hidden
        | _UNSET
        | {
            "max_duration",
            "min_frames",
            "max_frames",
            "max_image_tokens",
            "default_to_square",
        }
    )

    def converted(self, values: Values) -> Values:
        return super().converted({**values, "max_image_tokens": values["max_video_frame_tokens"]})

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        unit, side = self.temporal_patch_size, self.patch_size
        frames = _whole_units(data, unit)
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
    """Videos of Kimi K2.5, which the model receives in chunks. A pipeline returns a single grid for all chunks of a video."""

    max_patches: int = 4096
    temporal_patch_size: int = 4
    do_sample_frames: bool = True
    fps: float = 2.0
    ignored: frozenset[str] = KimiFamily.ignored | _INERT

    names = (_PIXELS, _GRID)
    concatenated = (_PIXELS,)
    hidden = KimiFamily.hidden | _UNSET | {"max_duration", "min_frames", "max_frames"}

    def joined(self, images: Sequence[Features]) -> Values:
        chunks = [self._chunks(*image[_GRID].tolist()) for image in images]
        grids = np.array([chunk for of_video in chunks for chunk in of_video])
        return {**super().joined(images), _GRID: grids, "num_chunks_per_video": [len(each) for each in chunks]}

    def _chunks(self, frames: int, height: int, width: int) -> list[list[int]]:
        """Return the grid (frames, height, width) of each chunk of a video, from the grid of the video."""
        max_frames = self.temporal_patch_size
        return [[min(max_frames, frames - start), height, width] for start in range(0, frames, max_frames)]

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        return frames * self.tokens(height, width, model)


# Numbers of frames are computed as two digits in this base, so they must be less than its square.
_FRAME_NUMBER_BASE = 256


@dataclass(frozen=True, kw_only=True)
class MolmoVideoFamily(SampledFamily, MolmoFamily):
    """Videos of Molmo 2: patches of each frame, and the indices of the patches to pool.

    Attributes:
        max_fps: the largest number of frames to select per second of video.
    """

    do_rescale: bool = False
    do_normalize: bool = False
    overlap_margins: Sequence[int] = (0, 0)
    pooling_size: Sequence[int] = (3, 3)
    max_fps: float = 2.0
    do_sample_frames: bool = True
    num_frames: int = 64
    sampling: str = "molmo2"
    ignored: frozenset[str] = MolmoFamily.ignored | _INERT

    names = (_PIXELS, "video_token_pooling", "video_grids")
    hidden = (
        MolmoFamily.hidden
        | _UNSET
        | {"max_crops", "max_duration", "min_frames", "max_frames", "overlap_margins", "temporal_patch_size"}
    )

    @property
    def _pooled(self) -> np.ndarray:
        """For each token of a frame, the indices of the patches that are pooled, of shape (rows, columns, patches); -1: no patch."""
        side = self.size["height"] // self.patch_size
        beyond = [-side % pool for pool in self.pooling_size]
        numbers = np.pad(
            np.arange(side**2).reshape(side, side), [(each // 2, -(-each // 2)) for each in beyond], constant_values=-1
        )
        rows, columns = (extent // pool for extent, pool in zip(numbers.shape, self.pooling_size))
        high, wide = self.pooling_size
        by_token = numbers.reshape(rows, high, columns, wide).transpose(0, 2, 1, 3)
        return by_token.reshape(rows, columns, high * wide)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        frames = self.resized(data, backend, [self.size["height"]] * 2)
        patches, _ = fn.image_patches(frames, patch=self.patch_size, channels_last=True, **self.normalizing(backend))
        pooled, of_frame = self._pooled, (self.size["height"] // self.patch_size) ** 2
        rows, columns, _ = pooled.shape
        count, digits = (
            data.shape()[:1],
            types.Constant(list(range(_FRAME_NUMBER_BASE)), dtype=types.INT64, shape=[_FRAME_NUMBER_BASE]),
        )
        all_numbers = fn.reshape(fn.expand_dims(digits, axes=[1]) * _FRAME_NUMBER_BASE + digits, shape=[-1, 1, 1])
        numbers = fn.slice(all_numbers, start=[0], shape=fn.cast(count, dtype=types.INT32), axes=[0])
        indices, valid = (
            types.Constant(each.reshape(-1).tolist(), dtype=types.INT64, shape=[1, rows * columns, pooled.shape[2]])
            for each in (pooled, (pooled >= 0) * of_frame)
        )
        return (
            fn.reshape(patches, shape=[-1, of_frame, CHANNELS * self.patch_size**2], name=self.names[0]),
            fn.reshape(numbers * valid + indices, shape=[-1, pooled.shape[2]], name=self.names[1]),
            fn.cat(count, types.Constant([rows, columns], dtype=types.INT64), name=self.names[2]),
        )

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, *_ = checked_extents(size, ("frames", "height", "width"))
        rows, columns, _ = self._pooled.shape
        return frames * rows * columns
