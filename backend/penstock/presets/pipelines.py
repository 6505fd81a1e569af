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

# Must be increased when the values of a preset change, so that cache keys change.
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
    """Return a pipeline for a model's configuration. The results equal those of the model's processor bit for bit.

    The pipeline's input is called `images`, `videos` or `audio`. The outputs have the names that the processor uses, such as
    `pixel_values`. Outputs whose size depends on the image, such as on the number of its patches or tiles, differ in shape from sample to
    sample.

    Args:
        configuration: a folder with `preprocessor_config.json`, that file, or its contents.
        batch_size: the largest number of images in a batch.
        backend: the library whose arithmetic to use: `torchvision`, which `transformers` uses if it is installed, or `pil`.
        device: the device of the outputs and of most computations: `cpu` or `gpu`, which give the same bytes. A GPU
            decodes baseline JPEGs; the CPU decodes other files, and computes everything for sounds and for YOLO's
            letterbox.
        device_id: the number of the GPU; by default, the current one.
        encoded: whether the input consists of files (JPEG, PNG and so on; sounds as WAV, FLAC or OGG). Otherwise, images must be uint8, in
            the layout HWC and RGB order, and sounds float32 at the model's sampling rate. Videos must always be uint8 frames in the
            layout FHWC: the frames whose numbers :func:`sampled_frames` returns.
        drop_alpha: use the colours that files store for transparent pixels, as processors do when they are called with images from
            transformers' `load_image`, such as by chat templates. By default, transparent images are put on white, as when processors
            are called with `PIL.Image.open(file)`.
        num_threads, prefetch_queue_depth: the pipeline's number of threads and prefetch queue depth.

    Raises:
        PresetError: there is no preset for the configuration's class, or a setting is not supported.
        ValueError: the device is neither `cpu` nor `gpu`.

    Example:
        >>> pipeline = preset({"image_processor_type": "ViTImageProcessor", "size": 224}, batch_size=4)
        >>> pipeline.feed_input("images", photographs)  # doctest: +SKIP
        >>> (pixel_values,) = pipeline.run()  # doctest: +SKIP
    """
    followed = checked(configuration, backend)
    if device not in _DEVICES:
        raise ValueError(f"`device` must be {' or '.join(_DEVICES)}. Got: {device!r}")
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
    """Return the settings of a configuration, after checking that presets support them with the arithmetic of ``backend``.

    Raises:
        PresetError: a setting is not supported.
    """
    if backend not in ARITHMETIC:
        raise PresetError(f"`backend` must be {' or '.join(ARITHMETIC)}. Got: {backend!r}")
    followed = read_configuration(configuration)
    # Check now, so that errors do not show only with the first batch.
    followed.check(backend)
    return followed


@dataclass(frozen=True)
class _Source:
    """How a preset gets its data.

    Attributes:
        family: the preset's settings.
        encoded: whether the input consists of encoded files.
        drop_alpha: whether to use the colours that files store for transparent pixels.
        on_gpu: whether to decode on a GPU or, if data are not encoded, to copy them to one.
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
    """Return an input of decoded pixels, on the GPU if ``on_gpu``."""
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
    """Return the numbers of the frames that a video processor selects, so that only these need to be decoded.

    Args:
        configuration: as for :func:`preset`; `fps`, `num_frames` and other settings select the frames.
        frames: the number of frames of the video.
        rate: the video's frames per second, if known.
        duration: the video's duration in seconds as the decoder reports it; some models use it, such as SmolVLM and GLM. By default
            `frames / rate`, which transformers' decoders report; 0: the decoder reports none.

    Returns:
        The numbers of the frames; of all frames if the configuration contains `do_sample_frames: false`.

    Raises:
        PresetError: the configuration is not for videos.
        ValueError: the processor would refuse the video.

    Example:
        >>> sampled_frames({"video_processor_type": "Qwen3VLVideoProcessor"}, frames=300, rate=30)[:3]
        [0, 16, 31]
    """
    family = read_configuration(configuration)
    if not isinstance(family, SampledFamily):
        raise PresetError(f"The configuration is for {family.kind}, not for videos from which frames are sampled")
    if not family.do_sample_frames:
        return list(range(frames))
    if duration is None and rate:
        duration = frames / rate
    return family.sampled(VideoLength(frames, rate, duration))


def count_tokens(configuration: Configuration, sizes: Sequence[Sequence[int]], **model: int) -> list[int]:
    """Return the number of vision tokens of each image or video, computed from sizes alone.

    Args:
        configuration: as for :func:`preset`.
        sizes: the height and width of each image; or the number of frames, the height and the width of each video.
        model: the settings of the model's configuration that are needed, too: `patch_size` (CLIP, LLaVA
            and others), `image_seq_length` of a tile (InternVL), `image_seq_len` (Idefics3, SmolVLM),
            `mm_tokens_per_image` (Gemma 3), `spatial_merge_size` (Pixtral), `max_tiles` (OneVision; 9 for
            `anyres_max_9`), `pixel_shuffle_ratio_inverse` (Llama 4; 2 for a ratio of 0.5).

    Raises:
        PresetError: there is no preset for the configuration, tokens cannot be counted for it, or other settings of the model are needed.
        ValueError: the processor would refuse an image of such a size, or a size has another number of extents.

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
    """Return a key for caching a preset's result for a file. Equal settings and equal bytes give equal keys.

    Args:
        configuration, backend, drop_alpha: as for :func:`preset`.
        data: the bytes of the file.

    Returns:
        64 hexadecimal digits. They depend on the arguments and on the version of the presets only.

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
