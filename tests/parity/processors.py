"""Configurations of image processors, and what those of `transformers` make of pictures."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

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
BACKENDS = ("torchvision", "pil")


@dataclass(frozen=True)
class Picture:
    """A picture in a file, and as PIL reads it."""

    file: np.ndarray
    image: Any


def pictures(count: int, most: int, seed: int = 0) -> Iterator[Picture]:
    """JPEGs and PNGs of noise upon a gradient, of sides from 20 to ``most`` pixels, some of them gray."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        height, width = (int(extent) for extent in rng.integers(20, most, 2))
        slope = np.add.outer(np.linspace(0, 160, height), np.linspace(0, 60, width))
        pixels = slope[:, :, None] + rng.integers(0, 36, (height, width, 3))
        image = Image.fromarray(pixels.astype(np.uint8))
        image = image.convert("L") if number % 7 == 3 else image
        held = io.BytesIO()
        image.save(held, "PNG" if number % 3 == 2 else "JPEG", quality=90)
        data = held.getvalue()
        yield Picture(np.frombuffer(data, np.uint8), Image.open(io.BytesIO(data)).convert("RGB"))


def by_transformers(configuration: Mapping[str, object], backend: str, image: Any) -> np.ndarray:
    """The `pixel_values` of one image."""
    from libraries import torchvision_functional

    torchvision_functional()
    import transformers

    transformers.logging.set_verbosity_error()
    name = str(configuration.get("image_processor_type") or configuration["feature_extractor_type"])
    name = name.replace("FeatureExtractor", "ImageProcessor") + ("Pil" if backend == "pil" else "")
    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    processor = getattr(transformers, name).from_dict(held)
    return processor(image, return_tensors="np")["pixel_values"][0]
