"""Converts transforms to this package's: torchvision's, of both versions and of its weights, and timm's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from penstock.plugin.torchvision._typing import Function
from penstock.plugin.torchvision.transforms import v2

_KNOWN = (
    v2.CenterCrop,
    v2.ConvertImageDtype,
    v2.GaussianBlur,
    v2.Grayscale,
    v2.Identity,
    v2.Normalize,
    v2.PILToTensor,
    v2.Pad,
    v2.RGB,
    v2.RandomAdjustSharpness,
    v2.RandomAutocontrast,
    v2.RandomEqualize,
    v2.RandomHorizontalFlip,
    v2.RandomInvert,
    v2.RandomPosterize,
    v2.RandomRotation,
    v2.RandomSolarize,
    v2.RandomVerticalFlip,
    v2.Resize,
    v2.ToDtype,
    v2.ToImage,
    v2.ToPILImage,
    v2.ToPureTensor,
    v2.ToTensor,
)
_BY_NAME = {kind.__name__: kind for kind in _KNOWN}
_OF_TIMM = {"MaybeToTensor": v2.ToTensor, "MaybePILToTensor": v2.PILToTensor}
_COMPOSED = ("Compose", "Sequential")


def _is_in(transform: object, *modules: str) -> bool:
    return type(transform).__module__.startswith(modules)


def _is_first_version(transform: object) -> bool:
    return _is_in(transform, "torchvision.transforms.") and not _is_in(transform, "torchvision.transforms.v2")


def _plain(value: Any) -> Any:
    """Return a value with tensors converted to lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _rebuilt(transform: object, kind: type) -> Function:
    """Return a transform of class ``kind``, from this package, with the same settings."""
    names = list(inspect.signature(kind.__init__).parameters)[1:]  # type: ignore[misc]
    made: Function = kind(**{name: _plain(getattr(transform, name)) for name in names if hasattr(transform, name)})
    return made


def _classification(preset: Any) -> list[Function]:
    crop = [v2.CenterCrop(preset.crop_size)]
    return [_resized(preset), *crop, v2.ToTensor(), v2.Normalize(preset.mean, preset.std)]


def _segmentation(preset: Any) -> list[Function]:
    resize = [] if preset.resize_size is None else [_resized(preset)]
    return [*resize, v2.ToTensor(), v2.Normalize(preset.mean, preset.std)]


def _resized(preset: Any) -> Function:
    return v2.Resize(preset.resize_size, preset.interpolation, antialias=preset.antialias)


_OF_WEIGHTS: dict[str, Callable[[Any], list[Function]]] = {
    "ImageClassification": _classification,
    "SemanticSegmentation": _segmentation,
    "ObjectDetection": lambda preset: [v2.ToTensor()],
}


def steps_of(transform: Function) -> list[Function]:
    """Return the steps of a transform, including those of nested compositions, as transforms of this package.

    Unknown steps are returned unchanged.

    Args:
        transform: a transform of this package, of torchvision or of timm, a preset of torchvision's weights, or a
            `torch.nn.Sequential`.
    """
    return _joined(_flattened(transform))


def _flattened(transform: Any) -> list[Function]:
    name = type(transform).__name__
    if isinstance(transform, v2.Compose) or (name in _COMPOSED and _is_in(transform, "torchvision.", "torch.nn.")):
        steps = transform.transforms if name == "Compose" else transform
        return [step for part in steps for step in _flattened(part)]
    if name in _OF_WEIGHTS and _is_in(transform, "torchvision.transforms._presets"):
        return _OF_WEIGHTS[name](transform)
    if name in _OF_TIMM and _is_in(transform, "timm.data"):
        return [_OF_TIMM[name]()]
    return [transform]


def _joined(steps: Sequence[Function]) -> list[Function]:
    """Return the steps with torchvision's converted to this package's."""
    found: list[Function] = []
    for step in steps:
        if _divides(step) and found and type(found[-1]) in (v2.PILToTensor, v2.ToImage):
            # As `ToTensor`: torchvision's first version divides by 255, and the second version multiplies by the reciprocal.
            found[-1] = v2.ToTensor()
            continue
        name = type(step).__name__
        is_known = name in _BY_NAME and _is_in(step, "torchvision.transforms.") and not _is_rounded_otherwise(step)
        found.append(_rebuilt(step, _BY_NAME[name]) if is_known else step)
    return found


def _divides(step: Any) -> bool:
    name = type(step).__name__
    return name == "ConvertImageDtype" and _is_first_version(step) and str(step.dtype) == "torch.float32"


def _is_rounded_otherwise(step: object) -> bool:
    """Return whether a transform belongs to torchvision's first version, and its results differ from those of the second version."""
    return _is_first_version(step) and type(step).__name__ in ("ConvertImageDtype", "GaussianBlur")
