"""Results of the image processors of `transformers`, and of the presets that replace them."""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from configurations import CONFIGURATIONS
from PIL import Image, ImageOps

from penstock.presets import Family, PresetError, read_configuration

BACKENDS = ("torchvision", "pil")


def backends_of(name: str) -> tuple[str, ...]:
    """Return the backends with which presets support a configuration.

    These are all for which transformers has a class, except `pil` for a few configurations, such as Chameleon's and Perceiver's.
    """
    family = read_configuration(CONFIGURATIONS[name])
    return tuple(backend for backend in BACKENDS if _is_followed(family, backend))


def _is_followed(family: Family, backend: str) -> bool:
    try:
        family.check(backend)
    except PresetError:
        return False
    return True


def videos() -> list[np.ndarray]:
    """Return videos of noise, with different numbers of frames, heights and widths."""
    rng = np.random.default_rng(4)
    shapes = (2, 30, 41), (5, 60, 33), (4, 90, 100)
    return [rng.integers(0, 256, (*shape, 3), np.uint8) for shape in shapes]


def by_video_processor(configuration: Mapping[str, object], given: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of transformers' video processor for one call with these videos."""
    from libraries import torchvision_functional

    torchvision_functional()
    import torch
    import transformers

    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    processor = getattr(transformers, str(configuration["video_processor_type"]))(**held)
    planes = [torch.from_numpy(video).permute(0, 3, 1, 2) for video in given]
    return dict(processor(planes, return_tensors="np"))


def sounds() -> list[np.ndarray]:
    """Return signals of noise, of different lengths."""
    rng = np.random.default_rng(6)
    return [rng.uniform(-1, 1, samples).astype(np.float32) for samples in (1, 640, 990, 991, 2500)]


SOUND_CALLS: tuple[dict[str, Any], ...] = (
    {},
    {"padding": True},
    {"padding": False},
    {"padding": "max_length", "max_length": 3},
    {"padding": "max_length", "max_length": 2600},
    {"truncation": True, "max_length": 2},
    {"truncation": True, "max_length": 1000},
)
"""The arguments of each call with all sounds."""


def by_feature_extractor(
    configuration: Mapping[str, object], given: list[np.ndarray], **call: Any
) -> dict[str, np.ndarray]:
    """Return the outputs of transformers' feature extractor for one call with these sounds.

    Raises:
        ValueError: the sounds do not fit into one tensor, or the class refuses them.
    """
    from libraries import torchvision_functional

    torchvision_functional()
    import transformers

    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    extractor = getattr(transformers, str(configuration["feature_extractor_type"]))(**held)
    try:
        told = dict(extractor(given, sampling_rate=extractor.sampling_rate, return_tensors="np", **call))
    except IndexError as error:
        # DAC's feature extractor accesses a second axis before it checks whether there is one.
        raise ValueError("The sounds do not fit into one tensor") from error
    if any(value.dtype == object for value in told.values()):
        raise ValueError("The sounds do not fit into one tensor")
    return told


def frame_cases() -> Iterator[tuple[dict[str, object], int, float | None, float | None]]:
    """Yield settings that select frames, and a video's number of frames, frames per second, and duration in seconds.

    The duration is None, the quotient of frames and rate, as decoders compute it, or another one, as a container may state it.
    """
    for settings in ({}, {"num_frames": 7}, {"fps": 2}, {"fps": 3.5}):
        for frames in (1, 2, 5, 31, 300, 2111):
            for rate in (None, 7.5, 24, 29.97):
                durations = [None, frames / rate, frames / rate * 1.07 + 0.04] if rate else [None]
                for duration in durations:
                    yield {"do_sample_frames": True, **settings}, frames, rate, duration


def frames_by_class(configuration: Mapping[str, object]) -> list[str]:
    """Return a digest of the frames that transformers' video processor selects in each case."""
    from libraries import torchvision_functional

    torchvision_functional()
    import transformers
    from transformers.video_utils import VideoMetadata

    kind = getattr(transformers, str(configuration["video_processor_type"]))

    def taken(settings: Mapping[str, object], frames: int, rate: float | None, duration: float | None) -> list[int]:
        held = {key: value for key, value in {**configuration, **settings}.items() if not key.endswith("_type")}
        processor = kind(**copy.deepcopy(held))
        given = {key: getattr(processor, key, None) for key in kind.valid_kwargs.__annotations__}
        metadata = VideoMetadata(frames, fps=rate, duration=duration)
        return [int(frame) for frame in processor.sample_frames(metadata=metadata, **given)]

    return [frames_digest(taken, *case) for case in frame_cases()]


def frames_digest(taken: Callable[..., list[int]], *case: Any) -> str:
    """Return a digest of the frames selected in a case, or that the video is refused."""
    try:
        frames = taken(*case)
    except (ValueError, TypeError, ZeroDivisionError):
        return REFUSED
    return hashlib.blake2b(str(frames).encode(), digest_size=4).hexdigest()


@dataclass(frozen=True)
class Picture:
    """A picture as a file, and as a PIL image."""

    file: np.ndarray
    image: Any


def pictures(count: int, most: int, seed: int = 0, slender: bool = False) -> Iterator[Picture]:
    """Yield JPEGs and PNGs of noise on a gradient, with sides from 20 to ``most`` pixels, some of them gray.

    With ``slender``, some have a side of 1 to 12 pixels.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        height, width = (int(extent) for extent in rng.integers(20, most, 2))
        if slender and number % 5 == 4:
            height, width = (1 + number % 12, width) if number % 2 else (height, 1 + number % 12)
        slope = np.add.outer(np.linspace(0, 160, height), np.linspace(0, 60, width))
        pixels = slope[:, :, None] + rng.integers(0, 36, (height, width, 3))
        image = Image.fromarray(pixels.astype(np.uint8))
        image = image.convert("L") if number % 7 == 3 else image
        held = io.BytesIO()
        image.save(held, "PNG" if number % 3 == 2 else "JPEG", quality=90)
        yield picture_of(held.getvalue())


def picture_of(data: bytes) -> Picture:
    """Return the picture of a file: the image is what `transformers.image_utils.load_image` returns for it."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return Picture(np.frombuffer(data, np.uint8), image.convert("RGB"))


def strange_files() -> dict[str, bytes]:
    """Return files with unusual colour spaces, bit depths or extents, by name; all are without transparency."""
    import cv2

    rng = np.random.default_rng(9)
    pixels = rng.integers(0, 256, (37, 53, 4), np.uint8)
    plain = Image.fromarray(pixels[..., :3])
    extents = ((1, 1), (1, 2), (30, 1), (1, 200), (201, 1), (2, 400), (401, 2), (700, 3))
    images = {f"{height} x {width}": rng.integers(0, 256, (height, width, 3), np.uint8) for height, width in extents}
    given = {
        **{name: (Image.fromarray(image), "PNG") for name, image in images.items()},
        "a pixel": (Image.fromarray(images["1 x 1"]), "JPEG"),
        "palette": (plain.quantize(30), "PNG"),
        "gray": (plain.convert("L"), "JPEG"),
        "1 bit": (plain.convert("1"), "PNG"),
        "CMYK": (Image.fromarray(pixels, "CMYK"), "JPEG"),
        "CMYK, TIFF": (Image.fromarray(pixels, "CMYK"), "TIFF"),
    }
    files = {}
    for name, (image, kind) in given.items():
        held = io.BytesIO()
        image.save(held, kind)
        files[name] = held.getvalue()
    deep = rng.integers(0, 65536, (37, 53, 3), np.uint16)
    return files | {
        "16 bits": bytes(cv2.imencode(".png", deep)[1]),
        "gray of 16 bits": bytes(cv2.imencode(".png", deep[..., 0] // 99)[1]),
    }


REFUSED = "refused"


def result_or_refusal(compute: Callable[[], Mapping[str, Any]]) -> str:
    """Return a digest of all results of a function, or "refused"."""
    try:
        result = compute()
    except (ValueError, RuntimeError, ZeroDivisionError, IndexError):
        return REFUSED
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(result):
        for array in _arrays(result[name]):
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array)
    return digest.hexdigest()


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the value as an array; for a list of arrays that do not fit into one array, yield each of them."""
    try:
        yield np.ascontiguousarray(value)
    except ValueError:
        for each in value:
            yield from _arrays(each)


def photographs(folder: Path, count: int, seed: int = 0) -> Iterator[Picture]:
    """Yield ``count`` pictures of different shapes, made from the 8-bit photographs in a folder.

    Each picture is a part of a photograph, resized so that its longer side has 40 to 1280 pixels. The ratio of its sides is at most
    6. Pictures are in colour or grey, some with an orientation tag, as JPEGs of several kinds or PNGs.
    """
    rng = np.random.default_rng(seed)
    originals = [path for path in sorted(folder.rglob("*")) if _is_photograph(path)]
    for number in range(count):
        image = Image.open(originals[number % len(originals)])
        ratio, part = 6 ** rng.uniform(-1, 1), rng.uniform(0.3, 1)
        width, height = image.width, image.height
        width, height = min(width, int(height * ratio)), min(height, int(width / ratio))
        width, height = max(int(width * part), 1), max(int(height * part), 1)
        left, top = (int(rng.integers(0, room + 1)) for room in (image.width - width, image.height - height))
        longer = 40 * 32 ** rng.uniform(0, 1)
        size = tuple(max(round(side * longer / max(width, height)), 1) for side in (width, height))
        image = image.resize(size, Image.Resampling.LANCZOS, (left, top, left + width, top + height))
        image = image.convert("L") if number % 17 == 3 else image.convert("RGB")
        exif = Image.Exif()
        if number % 4 == 1:
            exif[_ORIENTATION] = 1 + int(rng.integers(8))
        held = io.BytesIO()
        if number % 5 == 4:
            image.save(held, "PNG", exif=exif)
        else:
            subsampling, quality = int(rng.integers(3)), int(rng.integers(50, 98))
            image.save(held, "JPEG", subsampling=subsampling, quality=quality, progressive=number % 9 == 2, exif=exif)
        yield picture_of(held.getvalue())


_ORIENTATION = 0x0112


def _is_photograph(path: Path) -> bool:
    if path.suffix.lower() not in (".jpg", ".jpeg", ".png"):
        return False
    with Image.open(path) as image:
        return image.mode in ("RGB", "L") and min(image.size) >= 200


def ours(pipeline: Any, family: Any, given: list[np.ndarray]) -> dict[str, Any]:
    """Run a preset on a batch of inputs, and join the outputs of all samples as transformers' processor does."""
    outputs = [list(map(np.array, batch)) for batch in pipeline.run(**{family.kind: given})]
    return family.joined([dict(zip(family.outputs, values)) for values in zip(*outputs)])


def differing(expected: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return the names of the outputs that are missing on one side, or differ in type, shape or any value."""

    def same(one: Any, other: Any) -> bool:
        if isinstance(one, list) and isinstance(other, list) and one and isinstance(one[0], np.ndarray):
            return len(one) == len(other) and all(map(same, one, other))
        one, other = np.asarray(one), np.asarray(other)
        return one.dtype == other.dtype and np.array_equal(one, other)

    names = expected.keys() | given.keys()
    return [
        name for name in names if name not in given or name not in expected or not same(expected[name], given[name])
    ]


def class_of(configuration: Mapping[str, object], backend: str) -> Any:
    """Return the class of transformers that a configuration names, or its variant for the backend."""
    from libraries import torchvision_functional

    torchvision_functional()
    import transformers

    transformers.logging.set_verbosity_error()
    name = str(configuration.get("image_processor_type") or configuration["feature_extractor_type"])
    name = name.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
    # Classes without a variant for PIL compute as PIL does themselves.
    own = getattr(transformers, name)
    return getattr(transformers, f"{name}Pil", own) if backend == "pil" else own


def by_transformers(configuration: Mapping[str, object], backend: str, images: list[Any]) -> dict[str, Any]:
    """Return the outputs of transformers' image processor for one call with these images; bfloat16 as float32."""
    # Copy the configuration, which some classes modify.
    held = copy.deepcopy({key: value for key, value in configuration.items() if not key.endswith("_type")})
    return as_arrays(class_of(configuration, backend).from_dict(held)(images, return_tensors="pt"))


def as_arrays(given: Any) -> dict[str, Any]:
    """Return the outputs of a class as arrays, by name; a tensor without a name becomes `pixel_values`."""
    return plain(given if isinstance(given, Mapping) else {"pixel_values": given})


def difference(expected: Mapping[str, Any], given: Mapping[str, Any], tolerance: float) -> tuple[str, str]:
    """Compare outputs; return `equal`, `close` (within ``tolerance``) or `different`, and a description of the difference."""
    names = differing(expected, given)
    if not names:
        return "equal", ""
    apart = 0.0
    for name in names:
        one, other = (np.asarray(each[name]) if name in each else np.zeros(0) for each in (expected, given))
        if one.shape != other.shape or one.dtype != other.dtype or one.dtype.kind != "f":
            return "different", f"{name}: {one.dtype} {one.shape}, got {other.dtype} {other.shape}"
        if one.size and not np.array_equal(np.isfinite(one), np.isfinite(other)):
            return "different", f"{name}: not finite"
        apart = max(apart, float(np.nanmax(np.abs(one - other), initial=0)))
    return ("close" if apart < tolerance else "different"), f"{', '.join(names)}: up to {apart:.2g} apart"


def plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a class with tensors converted to arrays; bfloat16 becomes float32."""
    import torch

    def arrays(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(torch.float32).numpy() if value.dtype == torch.bfloat16 else value.numpy()
        return [arrays(each) for each in value] if isinstance(value, (list, tuple)) else value

    return {key: arrays(value) for key, value in given.items()}
