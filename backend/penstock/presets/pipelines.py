"""Pipelines that reproduce the processors of `transformers`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock import fn, types
from penstock.graph import DataNode
from penstock.pipeline import Pipeline, pipeline_def
from penstock.presets.configuration import read_configuration
from penstock.presets.family import ARITHMETIC, Family, PresetError
from penstock.presets.videos import SampledFamily, VideoLength

# Increased when a preset's values change, so that cache keys change.
_VERSION = 1
_DEVICES = ("cpu", "gpu")
Configuration = str | Path | Mapping[str, object]


def preset(
    configuration: Configuration,
    *,
    batch_size: int = 8,
    backend: str = "torchvision",
    device: str = "cpu",
    device_id: int | None = None,
    encoded: bool = True,
    drop_alpha: bool = False,
    num_threads: int = 1,
    prefetch_queue_depth: int = 1,
) -> Pipeline:
    """Return a pipeline from a model's configuration, with results equal bit for bit to those of its processor.

    Its input is called `images`, `videos` or `audio`. Its outputs have the processor's names, such as `pixel_values`;
    data whose size depends on the image, such as the number of its patches or tiles, varies from sample to sample.

    Args:
        configuration: a folder with `preprocessor_config.json`, that file, or its contents.
        batch_size: the largest number of images at a time.
        backend: the library whose arithmetic to use: `torchvision`, which `transformers` takes where it is installed, or `pil`.
        device: the device of the outputs and of most computations: `cpu` or `gpu`, which give the same bytes. A GPU
            decodes baseline JPEGs; the CPU decodes other files, and computes everything for sounds and for YOLO's
            letterbox.
        device_id: the number of the GPU; by default, the current one.
        encoded: whether the input is files (JPEG, PNG and so on; sounds as WAV, FLAC or OGG); else images of uint8, of
            layout HWC, in RGB, or signals of float32 at the model's sampling rate. Videos are always frames of uint8,
            of layout FHWC: those that :func:`sampled_frames` returns.
        drop_alpha: transparent pixels of files become the colours stored for them, as where the processor is called with
            images from transformers' `load_image`, which chat templates do; by default, they are put on white, as
            where it is called with `PIL.Image.open(file)`.
        num_threads, prefetch_queue_depth: the pipeline's number of threads and prefetch queue depth.

    Raises:
        PresetError: no preset follows the class named in the configuration, or one of its settings.
        ValueError: the device is neither `cpu` nor `gpu`.

    Example:
        >>> pipeline = preset({"image_processor_type": "ViTImageProcessor", "size": 224}, batch_size=4)
        >>> pipeline.feed_input("images", photographs)  # doctest: +SKIP
        >>> (pixel_values,) = pipeline.run()  # doctest: +SKIP
    """
    followed = checked(configuration, backend)
    if device not in _DEVICES:
        raise ValueError(f"`device` is {' or '.join(_DEVICES)}. Got: {device!r}")
    on_gpu = device == "gpu"

    @pipeline_def(
        batch_size=batch_size,
        num_threads=num_threads,
        prefetch_queue_depth=prefetch_queue_depth,
        device_id=device_id if on_gpu else None,
    )
    def preprocessing() -> tuple[DataNode, ...]:
        source = _Source(followed, encoded, drop_alpha, on_gpu and not followed.on_host)
        data = _SOURCES[followed.kind](source)
        outputs = followed.process(data, backend)
        return tuple(output.gpu() for output in outputs) if on_gpu else outputs

    pipeline: Pipeline = preprocessing()
    return pipeline


def checked(configuration: Configuration, backend: str) -> Family:
    """Return the settings of a configuration, after checking that a preset supports them all.

    Raises:
        PresetError: a setting is not supported.
    """
    if backend not in ARITHMETIC:
        raise PresetError(f"`backend` is {' or '.join(ARITHMETIC)}. Got: {backend!r}")
    followed = read_configuration(configuration)
    # Fail now rather than at the first batch.
    followed.check(backend)
    return followed


@dataclass(frozen=True)
class _Source:
    """The source of a preset's data.

    Attributes:
        family: the family whose data it is.
        encoded: whether the data are encoded files.
        drop_alpha: whether transparent pixels of files become the colours stored for them.
        on_gpu: whether the data are decoded on a GPU, or copied to one.
    """

    family: Family
    encoded: bool
    drop_alpha: bool
    on_gpu: bool


def _images(source: _Source) -> DataNode:
    if source.encoded:
        files = fn.external_source(name="images", dtype=types.UINT8, ndim=1)
        device = "mixed" if source.on_gpu else "cpu"
        return fn.decoders.on_white(files, device=device, drop_alpha=source.drop_alpha)
    return _given("images", "HWC", source.on_gpu)


def _sounds(source: _Source) -> DataNode:
    if source.encoded:
        files = fn.external_source(name="audio", dtype=types.UINT8, ndim=1)
        rate = source.family.sampling_rate  # type: ignore[attr-defined]
        return fn.decoders.audio(files, sample_rate=float(rate), downmix=True)[0]
    return fn.external_source(name="audio", dtype=types.FLOAT, ndim=1)


def _videos(source: _Source) -> DataNode:
    return _given("videos", "FHWC", source.on_gpu)


def _given(name: str, layout: str, on_gpu: bool) -> DataNode:
    """Return an input of pixels, which are used unchanged."""
    pixels = fn.external_source(name=name, dtype=types.UINT8, layout=layout)
    return pixels.gpu() if on_gpu else pixels


_SOURCES: dict[str, Callable[[_Source], DataNode]] = {
    "images": _images,
    "videos": _videos,
    "audio": _sounds,
}


def sampled_frames(
    configuration: Configuration, frames: int, rate: float | None = None, duration: float | None = None
) -> list[int]:
    """Return the numbers of the frames that a video processor takes, so that only these need to be decoded.

    Args:
        configuration: as for :func:`preset`; its `fps`, `num_frames` and others select the frames.
        frames: the number of the video's frames.
        rate: its frames per second, if known.
        duration: its seconds as its decoder reports them, which SmolVLM and the GLM models use. By default `frames /
            rate`, as transformers' decoders compute it; 0: the decoder reports none.

    Returns:
        All of them if the configuration says `do_sample_frames: false`.

    Raises:
        PresetError: the configuration is not for videos.
        ValueError: the processor refuses the video.

    Example:
        >>> sampled_frames({"video_processor_type": "Qwen3VLVideoProcessor"}, frames=300, rate=30)[:3]
        [0, 16, 31]
    """
    family = read_configuration(configuration)
    if not isinstance(family, SampledFamily):
        raise PresetError(f"The configuration is for {family.kind}, not for videos of which frames are sampled")
    if not family.do_sample_frames:
        return list(range(frames))
    if duration is None and rate:
        duration = frames / rate
    return family.sampled(VideoLength(frames, rate, duration))


def count_tokens(configuration: Configuration, sizes: Sequence[Sequence[int]], **model: int) -> list[int]:
    """Return the number of vision tokens of images or videos, computed from their sizes alone.

    Args:
        configuration: as for :func:`preset`.
        sizes: height and width of each image; frames, height and width of each video.
        model: settings of the model's configuration that the count depends on besides the sizes: `patch_size` (CLIP, LLaVA
            and others), `image_seq_length` of a tile (InternVL), `image_seq_len` (Idefics3, SmolVLM),
            `mm_tokens_per_image` (Gemma 3), `spatial_merge_size` (Pixtral), `max_tiles` (OneVision, 9 of
            `anyres_max_9`), `pixel_shuffle_ratio_inverse` (Llama 4, 2 for a ratio of 0.5).

    Raises:
        PresetError: no preset follows the configuration, or the model's values are not those that are needed.
        ValueError: the processor refuses an image of such a size, or the argument is not a size.

    Example:
        >>> count_tokens({"image_processor_type": "Qwen2VLImageProcessor"}, [(853, 1280)])
        [1247]
        >>> count_tokens({"video_processor_type": "Qwen2VLVideoProcessor"}, [(16, 720, 1280)])
        [5760]
    """
    family = read_configuration(configuration)
    if set(model) != set(family.tells_by):
        required = ", ".join(f"`{name}`" for name in family.tells_by) or "nothing"
        raise PresetError(
            f"To count tokens, pass these settings of the model: {required}. Got: {', '.join(model) or 'nothing'}"
        )
    return [family.tokens_of(size, model) for size in sizes]


def content_key(
    configuration: Configuration, data: bytes, backend: str = "torchvision", *, drop_alpha: bool = False
) -> str:
    """Return a cache key for a preset's result on a file: equal for equal settings and bytes.

    Args:
        configuration, backend, drop_alpha: as for :func:`preset`.
        data: the file.

    Returns:
        64 hexadecimal digits, which depend on nothing else but the presets' version.

    Example:
        >>> len(content_key({"image_processor_type": "ViTImageProcessor"}, b"..."))
        64
    """
    family = checked(configuration, backend)
    named = [_VERSION, type(family).__name__, backend, asdict(family), *["drop_alpha"] * drop_alpha]
    settings = json.dumps(named, sort_keys=True, default=list)
    digest = hashlib.blake2b(settings.encode(), digest_size=32)
    digest.update(b"\0")
    digest.update(data)
    return digest.hexdigest()
