"""What a `preprocessor_config.json` says: the class of a processor, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import did_you_mean
from penstock.presets.detection import SAM, DetectionFamily, LetterboxFamily
from penstock.presets.family import Family, PresetError, settings_from
from penstock.presets.fixed import CLIP, IMAGENET, DinoFamily, FixedFamily, GemmaFamily
from penstock.presets.patches import (
    GLM4V,
    PADDLEOCR_VL,
    QWEN2_VL,
    QWEN2_VL_VIDEO,
    QWEN3_VL_VIDEO,
    PixtralFamily,
    SigLIP2Family,
)
from penstock.presets.speech import WaveFamily, WhisperFamily
from penstock.presets.tiles import (
    LLAVA_NEXT,
    ONEVISION_PINPOINTS,
    GridFamily,
    LlamaFamily,
    OnevisionFamily,
    SplitFamily,
)

FILE = "preprocessor_config.json"
# The classes of `transformers`, less their ending, with their own defaults; and YOLO's letterbox, which it does not have.
_FAMILIES: dict[str, Family] = {
    "Bit": CLIP,
    "CLIP": CLIP,
    "ConvNext": FixedFamily(size={"shortest_edge": 384}, resample=3, default_to_square=False, crop_pct=224 / 256),
    "ConditionalDetr": DetectionFamily(),
    "DINOv3ViT": DinoFamily(size={"height": 224, "width": 224}, **IMAGENET),
    "DeformableDetr": DetectionFamily(),
    "DeiT": FixedFamily(
        size={"height": 256, "width": 256}, resample=3, do_center_crop=True, crop_size={"height": 224, "width": 224}
    ),
    "Detr": DetectionFamily(),
    "Gemma3": GemmaFamily(),
    "Glm46V": GLM4V,
    "Glm4v": GLM4V,
    "GotOcr2": GridFamily(),
    "GroundingDino": DetectionFamily(),
    "Idefics3": SplitFamily(size={"longest_edge": 4 * 364}, max_image_size={"longest_edge": 364}),
    "Llama4": LlamaFamily(),
    "LlavaNext": LLAVA_NEXT,
    "LlavaOnevision": OnevisionFamily(size={"height": 384, "width": 384}, image_grid_pinpoints=ONEVISION_PINPOINTS),
    "PaddleOCRVL": PADDLEOCR_VL,
    "Pixtral": PixtralFamily(),
    "Qwen2VL": QWEN2_VL,
    "Qwen2VLVideo": QWEN2_VL_VIDEO,
    "Qwen2_5_VL": QWEN2_VL,
    "Qwen3VL": QWEN2_VL,
    "Qwen3VLVideo": QWEN3_VL_VIDEO,
    "RTDetr": DetectionFamily(
        size={"height": 640, "width": 640}, image_mean=IMAGENET["image_mean"], do_normalize=False, do_pad=False
    ),
    "Sam": SAM,
    "Sam2": FixedFamily(size={"height": 1024, "width": 1024}, tells_sizes=True, **IMAGENET),
    "Siglip": FixedFamily(size={"height": 224, "width": 224}, resample=3, default_to_square=False),
    "Siglip2": SigLIP2Family(),
    "SmolVLM": SplitFamily(size={"longest_edge": 4 * 364}, max_image_size={"longest_edge": 364}),
    "ViT": FixedFamily(size={"height": 224, "width": 224}),
    "Wav2Vec2": WaveFamily(),
    "YoloLetterbox": LetterboxFamily(),
    "Whisper": WhisperFamily(),
}
# What classes end with, and what is left of it: a family.
_ENDINGS = {
    "ImageProcessorFast": "",
    "ImageProcessorPil": "",
    "ImageProcessor": "",
    "FeatureExtractor": "",
    "VideoProcessor": "Video",
}
_KINDS = {"images": "ImageProcessor", "videos": "Processor", "audio": "FeatureExtractor"}
_TYPES = ("image_processor_type", "feature_extractor_type", "video_processor_type")


def families() -> tuple[str, ...]:
    """The processors that presets follow, as `transformers` names them."""
    return tuple(name + _KINDS[family.kind] for name, family in _FAMILIES.items())


def read_configuration(source: str | Path | Mapping[str, object]) -> Family:
    """The settings of a configuration: a folder that holds `preprocessor_config.json`, that file, or what it holds.

    Raises:
        PresetError: no preset follows its class, or one of its settings.
        FileNotFoundError: there is no such file.
    """
    given = source if isinstance(source, Mapping) else _read(Path(source))
    name = str(next(filter(None, map(given.get, _TYPES)), ""))
    family = next((name.removesuffix(end) + left for end, left in _ENDINGS.items() if name.endswith(end)), name)
    if family not in _FAMILIES:
        told = f"No preset follows {name!r}" if name else "The configuration names no class (`image_processor_type`)"
        raise PresetError(f"{told}. There are: {', '.join(families())}{did_you_mean(name, families())}")
    return settings_from(_FAMILIES[family], given, name)


def _read(path: Path) -> dict[str, object]:
    path = path / FILE if path.is_dir() else path
    try:
        held = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise PresetError(f"'{path}' is no JSON: {error}") from error
    if not isinstance(held, dict):
        raise PresetError(f"'{path}' holds no object, but {type(held).__name__}")
    return held
