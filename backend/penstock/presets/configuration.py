"""What a `preprocessor_config.json` says: the class of an image processor, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from penstock.errors import PenstockError, did_you_mean

FILE = "preprocessor_config.json"
_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_HALVES = (0.5, 0.5, 0.5)
# PIL's numbers for filters, and what its filters and those of torchvision are called.
_PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_TORCHVISION_FILTERS = {0: "nearest-exact", 2: "bilinear", 3: "bicubic"}
# Settings that change no pixel of an RGB image; and those that would, if they had another value than these.
_WITHOUT_EFFECT = frozenset(
    {
        "_valid_processor_keys",
        "auto_map",
        "data_format",
        "device",
        "disable_grouping",
        "do_convert_rgb",
        "feature_extractor_type",
        "image_processor_type",
        "image_seq_length",
        "input_data_format",
        "processor_class",
        "return_tensors",
    }
)
_ABSENT = ("do_pad", "pad_size", "do_reduce_labels", "do_random_cropping")


class PresetError(PenstockError, ValueError):
    """A configuration that no preset follows."""


@dataclass(frozen=True)
class ImageSettings:
    """What an image processor does to an image: resize, crop, rescale, normalize.

    Attributes:
        do_resize, do_center_crop, do_rescale, do_normalize: which steps are made.
        size: `height` and `width`, or `shortest_edge`.
        resample: PIL's number of the filter.
        crop_size: `height` and `width`.
        rescale_factor: values are multiplied with it.
        image_mean, image_std: of each channel.
        default_to_square: a size that is one number means both sides, not the shorter one.
        crop_pct: which part of the resized image ConvNeXT keeps.
    """

    size: Mapping[str, int]
    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]
    resample: int
    do_resize: bool = True
    do_center_crop: bool = False
    do_rescale: bool = True
    do_normalize: bool = True
    crop_size: Mapping[str, int] = field(default_factory=dict)
    rescale_factor: float = 1 / 255
    default_to_square: bool = True
    crop_pct: float | None = None

    def filter_of(self, backend: str) -> str:
        """The name of the filter in the library that resizes.

        Raises:
            PresetError: there is none.
        """
        names = _PIL_FILTERS if backend == "pil" else _TORCHVISION_FILTERS
        if self.resample not in names:
            raise PresetError(
                f"`resample`: {backend} is not followed with the filter {_PIL_FILTERS.get(self.resample, self.resample)}. "
                f"It is with {', '.join(names.values())}"
            )
        return names[self.resample]


_CLIP = ImageSettings(
    {"shortest_edge": 224},
    _CLIP_MEAN,
    _CLIP_STD,
    3,
    do_center_crop=True,
    crop_size={"height": 224, "width": 224},
    default_to_square=False,
)
# The classes of `transformers`, less their ending, with their own defaults.
_FAMILIES = {
    "Bit": _CLIP,
    "CLIP": _CLIP,
    "ConvNext": ImageSettings({"shortest_edge": 384}, _HALVES, _HALVES, 3, default_to_square=False, crop_pct=224 / 256),
    "DeiT": ImageSettings(
        {"height": 256, "width": 256},
        _HALVES,
        _HALVES,
        3,
        do_center_crop=True,
        crop_size={"height": 224, "width": 224},
    ),
    "Siglip": ImageSettings({"height": 224, "width": 224}, _HALVES, _HALVES, 3, default_to_square=False),
    "ViT": ImageSettings({"height": 224, "width": 224}, _HALVES, _HALVES, 2),
}
_CHANNELS = 3
_ENDINGS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


def families() -> tuple[str, ...]:
    """The image processors that presets follow, as `transformers` names them."""
    return tuple(f"{name}ImageProcessor" for name in _FAMILIES)


def read_configuration(source: str | Path | Mapping[str, object]) -> ImageSettings:
    """The settings of a configuration: a folder that holds `preprocessor_config.json`, that file, or what it holds.

    Raises:
        PresetError: no preset follows its class, or one of its settings.
        FileNotFoundError: there is no such file.
    """
    given = source if isinstance(source, Mapping) else _read(Path(source))
    name = str(given.get("image_processor_type") or given.get("feature_extractor_type") or "")
    family = next((name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending)), name)
    if family not in _FAMILIES:
        told = f"No preset follows {name!r}" if name else "The configuration names no class (`image_processor_type`)"
        raise PresetError(f"{told}. There are: {', '.join(families())}{did_you_mean(name, families())}")
    return _settings(_FAMILIES[family], given, f"{family}ImageProcessor")


def _read(path: Path) -> dict[str, object]:
    path = path / FILE if path.is_dir() else path
    try:
        held = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise PresetError(f"'{path}' is no JSON: {error}") from error
    if not isinstance(held, dict):
        raise PresetError(f"'{path}' holds no object, but {type(held).__name__}")
    return held


def _settings(defaults: ImageSettings, given: Mapping[str, object], name: str) -> ImageSettings:
    known = {each.name for each in fields(ImageSettings)} - (set() if defaults.crop_pct else {"crop_pct"})
    for key, value in given.items():
        if key in _ABSENT and not value:
            continue
        if key not in known | _WITHOUT_EFFECT:
            raise PresetError(
                f"{name}: no preset follows the setting `{key}` ({value!r}){did_you_mean(key, sorted(known))}"
            )
    own = {each.name: getattr(defaults, each.name) for each in fields(ImageSettings)}
    own |= {key: given[key] for key in known if given.get(key) is not None}
    own["size"] = _size(own["size"], bool(own["default_to_square"]), f"{name}: `size`")
    own["crop_size"] = _size(own["crop_size"], True, f"{name}: `crop_size`")
    for key in ("image_mean", "image_std"):
        own[key] = tuple(np.broadcast_to(np.asarray(own[key], np.float64), _CHANNELS).tolist())
    return ImageSettings(**own)


def _size(value: object, square: bool, what: str) -> dict[str, int]:
    if isinstance(value, int):
        return {"height": value, "width": value} if square else {"shortest_edge": value}
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return {"height": int(value[0]), "width": int(value[1])}
    if isinstance(value, Mapping) and set(value) in ({"height", "width"}, {"shortest_edge"}, set()):
        return {key: int(number) for key, number in value.items()}
    raise PresetError(f"{what} is a number, or has `height` and `width`, or `shortest_edge`. Got: {value!r}")
