"""Configurations of image processors, and what those of `transformers` make of pictures."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

# With sizes as models have them, and small, for what is recorded.
CONFIGURATIONS: dict[str, Mapping[str, object]] = {
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": 224, "crop_size": 224},
    "clip-old": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 32, "crop_size": 27, "do_resize": True},
    "clip-plain": {"image_processor_type": "CLIPImageProcessor", "size": 40, "crop_size": 33, "do_normalize": False},
    "clip-unscaled": {"image_processor_type": "CLIPImageProcessor", "size": 40, "crop_size": 33, "do_rescale": False},
    "siglip": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 37, "width": 41}},
    "siglip-384": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}},
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224}},
    "vit-nearest": {"image_processor_type": "ViTImageProcessor", "size": 36, "resample": 0},
    "vit-tf": {
        "image_processor_type": "ViTImageProcessor",
        "size": 30,
        "rescale_factor": 1 / 127.5,
        "do_normalize": False,
    },
    "dinov2": {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 256},
        "crop_size": {"height": 224, "width": 224},
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    },
    "dinov2-small": {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 40},
        "crop_size": {"height": 33, "width": 32},
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    },
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": 38, "crop_size": 33},
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}},
    "convnext-384": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}},
    "convnext-small": {"image_processor_type": "ConvNextImageProcessor", "size": 33, "crop_pct": 0.9},
    "qwen2-vl": {"image_processor_type": "Qwen2VLImageProcessor"},
    "qwen3-vl": {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"longest_edge": 1 << 20, "shortest_edge": 65536},
        "patch_size": 16,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    },
    "qwen2-vl-small": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 64,
        "max_pixels": 1600,
        "patch_size": 4,
    },
    "glm4v": {"image_processor_type": "Glm4vImageProcessor"},
    "glm4v-small": {
        "image_processor_type": "Glm4vImageProcessor",
        "size": {"shortest_edge": 64, "longest_edge": 3000},
        "patch_size": 4,
    },
    "paddleocr-vl": {"image_processor_type": "PaddleOCRVLImageProcessor"},
    "paddleocr-vl-small": {
        "image_processor_type": "PaddleOCRVLImageProcessor",
        "size": {"shortest_edge": 300, "longest_edge": 1600},
        "patch_size": 5,
    },
    "siglip2": {"image_processor_type": "Siglip2ImageProcessor"},
    "siglip2-small": {"image_processor_type": "Siglip2ImageProcessor", "patch_size": 5, "max_num_patches": 30},
    "pixtral": {"image_processor_type": "PixtralImageProcessor"},
    "pixtral-small": {
        "image_processor_type": "PixtralImageProcessor",
        "size": {"longest_edge": 50},
        "patch_size": {"height": 7, "width": 7},
    },
    "llava-next": {
        "image_processor_type": "LlavaNextImageProcessor",
        "size": {"shortest_edge": 336},
        "crop_size": {"height": 336, "width": 336},
    },
    "llava-next-small": {
        "image_processor_type": "LlavaNextImageProcessor",
        "size": {"shortest_edge": 12},
        "crop_size": {"height": 12, "width": 12},
        "image_grid_pinpoints": [[12, 24], [24, 12], [24, 24], [36, 12]],
    },
    "onevision": {"image_processor_type": "LlavaOnevisionImageProcessor"},
    "onevision-small": {
        "image_processor_type": "LlavaOnevisionImageProcessor",
        "size": {"height": 10, "width": 10},
        "image_grid_pinpoints": [[10, 10], [10, 20], [30, 10], [20, 20]],
    },
    "internvl": {
        "image_processor_type": "GotOcr2ImageProcessor",
        "size": {"height": 448, "width": 448},
        "crop_to_patches": True,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    },
    "internvl-small": {
        "image_processor_type": "GotOcr2ImageProcessor",
        "size": {"height": 14, "width": 14},
        "crop_to_patches": True,
        "max_patches": 6,
    },
    "got-ocr2": {"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 30, "width": 40}},
    "idefics3": {"image_processor_type": "Idefics3ImageProcessor"},
    "smolvlm": {
        "image_processor_type": "SmolVLMImageProcessor",
        "size": {"longest_edge": 1024},
        "max_image_size": {"longest_edge": 512},
    },
    "smolvlm-small": {
        "image_processor_type": "SmolVLMImageProcessor",
        "size": {"longest_edge": 40},
        "max_image_size": {"longest_edge": 18},
    },
    "idefics3-whole": {
        "image_processor_type": "Idefics3ImageProcessor",
        "size": {"longest_edge": 40},
        "max_image_size": {"longest_edge": 25},
        "do_image_splitting": False,
    },
    "llama4": {"image_processor_type": "Llama4ImageProcessor"},
    "llama4-small": {
        "image_processor_type": "Llama4ImageProcessor",
        "size": {"height": 12, "width": 12},
        "max_patches": 6,
    },
    "llama4-large": {
        "image_processor_type": "Llama4ImageProcessor",
        "size": {"height": 20, "width": 20},
        "max_patches": 4,
        "resize_to_max_canvas": True,
    },
    "detr": {"image_processor_type": "DetrImageProcessor"},
    "detr-small": {"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 30, "longest_edge": 50}},
    "rt-detr": {"image_processor_type": "RTDetrImageProcessor"},
    "rt-detr-small": {"image_processor_type": "RTDetrImageProcessor", "size": {"height": 31, "width": 37}},
    "rt-detr-within": {
        "image_processor_type": "RTDetrImageProcessor",
        "size": {"max_height": 40, "max_width": 50},
    },
    "sam": {"image_processor_type": "SamImageProcessor"},
    "sam-small": {
        "image_processor_type": "SamImageProcessor",
        "size": {"longest_edge": 32},
        "pad_size": {"height": 32, "width": 36},
    },
    "sam2": {"image_processor_type": "Sam2ImageProcessor"},
    "sam2-small": {"image_processor_type": "Sam2ImageProcessor", "size": {"height": 33, "width": 33}},
    "gemma3": {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}},
    "gemma3-small": {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 32, "width": 32}},
    "gemma3-pan-small": {
        "image_processor_type": "Gemma3ImageProcessor",
        "size": {"height": 32, "width": 32},
        "do_pan_and_scan": True,
        "pan_and_scan_min_crop_size": 9,
        "pan_and_scan_max_num_crops": 4,
        "pan_and_scan_min_ratio_to_activate": 1.2,
    },
    "dinov3": {"image_processor_type": "DINOv3ViTImageProcessor"},
    "dinov3-small": {"image_processor_type": "DINOv3ViTImageProcessor", "size": {"height": 29, "width": 33}},
}
SMALL = (
    "clip-old",
    "clip-plain",
    "clip-unscaled",
    "siglip",
    "vit-nearest",
    "vit-tf",
    "dinov2-small",
    "deit",
    "convnext-small",
)
# What is recorded of these is digests.
_TINY = ("-small", "-whole", "-within", "-large", "-ocr2")
FAMILIES = tuple(name for name in CONFIGURATIONS if name not in SMALL and name.endswith(_TINY))
# Where images differ in size, so that the class takes one at a time.
APART = ("rt-detr-within",)
# Of these classes there is no variant with PIL.
TORCHVISION_ONLY = ("DINOv3ViTImageProcessor", "Llama4ImageProcessor", "Sam2ImageProcessor")
BACKENDS = ("torchvision", "pil")


def backends_of(name: str) -> tuple[str, ...]:
    """Those for which the class of a configuration exists."""
    kind = CONFIGURATIONS[name].get("image_processor_type")
    return BACKENDS[:1] if kind in TORCHVISION_ONLY else BACKENDS


VIDEOS: dict[str, Mapping[str, object]] = {
    "qwen2-vl": {
        "video_processor_type": "Qwen2VLVideoProcessor",
        "size": {"shortest_edge": 400, "longest_edge": 4000},
        "patch_size": 4,
        "do_sample_frames": False,
    },
    "qwen3-vl": {
        "video_processor_type": "Qwen3VLVideoProcessor",
        "size": {"shortest_edge": 400, "longest_edge": 9000},
        "patch_size": 5,
        "do_sample_frames": False,
    },
}


def videos() -> list[np.ndarray]:
    """Frames of noise: so many, of such heights and widths."""
    rng = np.random.default_rng(4)
    shapes = (2, 30, 41), (5, 60, 33), (4, 90, 100)
    return [rng.integers(0, 256, (*shape, 3), np.uint8) for shape in shapes]


def by_video_processor(configuration: Mapping[str, object], given: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What the class gives of videos in one call."""
    from libraries import torchvision_functional

    torchvision_functional()
    import torch
    import transformers

    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    processor = getattr(transformers, str(configuration["video_processor_type"]))(**held)
    planes = [torch.from_numpy(video).permute(0, 3, 1, 2) for video in given]
    return dict(processor(planes, return_tensors="np"))


@dataclass(frozen=True)
class Picture:
    """A picture in a file, and as PIL reads it."""

    file: np.ndarray
    image: Any


def pictures(count: int, most: int, seed: int = 0, slender: bool = False) -> Iterator[Picture]:
    """JPEGs and PNGs of noise upon a gradient, of sides from 20 to ``most`` pixels, some of them gray.

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
    """A file, and what `transformers.image_utils.load_image` makes of it."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return Picture(np.frombuffer(data, np.uint8), image.convert("RGB"))


def strange_files() -> dict[str, bytes]:
    """Files of which little is left, or whose colours are stored otherwise, all without transparency."""
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
    return files | {"16 bits": bytes(cv2.imencode(".png", deep)[1])}


REFUSED = "refused"


def result_or_refusal(compute: Callable[[], Mapping[str, Any]]) -> str:
    """A digest of all that is computed, or that it was refused."""
    try:
        result = compute()
    except (ValueError, RuntimeError, ZeroDivisionError):
        return REFUSED
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(result):
        array = np.ascontiguousarray(result[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array)
    return digest.hexdigest()


def photographs(folder: Path, count: int, seed: int = 0) -> Iterator[Picture]:
    """As many pictures of different shapes, made of the photographs of 8 bits in a folder.

    Parts of them, of a side of 40 to 1280 pixels and ratios of up to 6 to 1, turned or mirrored, in color or gray, as JPEG of
    several kinds or PNG.
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
    """What a preset gives of files, or of videos, joined as its processor does."""
    outputs = [list(map(np.array, batch)) for batch in pipeline.run(**{family.kind: given})]
    return family.joined([dict(zip(family.outputs, values)) for values in zip(*outputs)])


def differing(expected: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """The outputs that are not equal, in type, shape and every value."""

    def same(one: Any, other: Any) -> bool:
        if isinstance(one, list) and isinstance(other, list) and one and isinstance(one[0], np.ndarray):
            return len(one) == len(other) and all(map(same, one, other))
        one, other = np.asarray(one), np.asarray(other)
        return one.dtype == other.dtype and np.array_equal(one, other)

    names = expected.keys() | given.keys()
    return [
        name for name in names if name not in given or name not in expected or not same(expected[name], given[name])
    ]


def by_transformers(configuration: Mapping[str, object], backend: str, images: list[Any]) -> dict[str, Any]:
    """What the class gives of images in one call; bfloat16 as float32."""
    from libraries import torchvision_functional

    torchvision_functional()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    name = str(configuration.get("image_processor_type") or configuration["feature_extractor_type"])
    name = name.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast") + ("Pil" if backend == "pil" else "")
    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    given = getattr(transformers, name).from_dict(held)(images, return_tensors="pt")

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(torch.float32).numpy() if value.dtype == torch.bfloat16 else value.numpy()
        return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

    return {key: plain(value) for key, value in given.items()}
