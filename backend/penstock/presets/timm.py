"""Models of timm, whose configurations describe the preprocessing for evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from penstock import fn
from penstock.graph import DataNode
from penstock.presets.family import PIXELS, Family, PresetError, Values
from penstock.presets.fixed import IMAGENET

_FILTERS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")
_MODES = ("center", "squash", "border")
_CROP = 0.875
_CHANNELS = 3
_Setting = TypeVar("_Setting")


@dataclass(frozen=True, kw_only=True)
class TimmFamily(Family):
    """Models of timm: images are resized like by PIL, cropped, and normalized like by torchvision's `ToTensor` and `Normalize`.

    Attributes:
        pretrained_cfg: timm's settings of the model: `input_size`, `interpolation`, `crop_pct`, `crop_mode`, `mean`, `std`.
        ignored: the other settings in timm's configurations, which have no effect on values.
    """

    pretrained_cfg: Values = field(default_factory=dict)
    ignored: frozenset[str] = frozenset(
        {
            "architecture",
            "architectures",
            "data_config",
            "do_pooling",
            "dtype",
            "global_pool",
            "initializer_range",
            "label_descriptions",
            "label_names",
            "model_args",
            "model_type",
            "num_classes",
            "num_features",
            "torch_dtype",
            "transformers_version",
        }
    )

    names = (PIXELS,)
    tells_by = ("patch_size",)
    hidden = frozenset({"ignored"})

    def converted(self, values: Values) -> Values:
        if not isinstance(values["pretrained_cfg"], Mapping) or not values["pretrained_cfg"]:
            raise PresetError(
                "`pretrained_cfg` must hold `input_size`, `mean` and other settings, as in timm's `config.json`"
            )
        return super().converted({**values, "pretrained_cfg": dict(values["pretrained_cfg"])})

    def _told(self, name: str, default: _Setting) -> _Setting:
        value = self.pretrained_cfg.get(name)
        return default if value is None else value

    @property
    def _size(self) -> tuple[int, int]:
        """The height and width of the model's input."""
        _, height, width = self._told("input_size", (_CHANNELS, 224, 224))
        return height, width

    @property
    def _resized(self) -> tuple[int, int]:
        """The height and width to which images are resized before they are cropped."""
        part = self._told("crop_pct", _CROP)
        height, width = (math.floor(side / part) for side in self._size)
        return height, width

    def check(self, backend: str) -> None:
        super().check(backend)
        size = self._told("input_size", (_CHANNELS, 224, 224))
        if len(size) != _CHANNELS or size[0] != _CHANNELS or min(size) < 1:
            raise PresetError(f"`input_size` must have {_CHANNELS} channels, a height and a width. Got: {size!r}")
        for name, default, choices in (("interpolation", "bicubic", _FILTERS), ("crop_mode", "center", _MODES)):
            if self._told(name, default) not in choices:
                raise PresetError(f"`{name}` must be one of {', '.join(choices)}. Got: {self._told(name, default)!r}")
        for name in ("mean", "std"):
            if len(self._told(name, IMAGENET["image_mean"])) != _CHANNELS:
                raise PresetError(f"`{name}` must have {_CHANNELS} numbers. Got: {self._told(name, None)!r}")
        if not self._told("crop_pct", _CROP) > 0:
            raise PresetError(f"`crop_pct` must be positive. Got: {self._told('crop_pct', _CROP)!r}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        (high, wide), (rows, columns) = self._size, self._resized
        mode, fill = self._told("crop_mode", "center"), [0.0]
        filtering: Values = {"reference": "pil", "interpolation": self._told("interpolation", "bicubic")}
        if mode == "squash":
            images = fn.resize(data, size=[rows, columns], **filtering)
        elif mode == "center" and rows == columns:
            images = fn.resize(data, resize_shorter=rows, **filtering)
        else:
            rule = "within-rounded" if mode == "border" else "around-rounded"
            size, _ = fn.fitted_size(data, rule=rule, canvases=[rows, columns])
            images = fn.resize(data, size=size, **filtering)
        mean, std = self._told("mean", IMAGENET["image_mean"]), self._told("std", IMAGENET["image_std"])
        if mode == "border":
            fill = [float(round(255 * value)) for value in mean]
        images = fn.crop(
            images, crop=[high, wide], rounding="torchvision", out_of_bounds_policy="pad", fill_values=fill
        )
        return (fn.rescale_normalize(images, mean=list(mean), std=list(std), reference="to_tensor", name=PIXELS),)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        high, wide = self._size
        return (high // model["patch_size"]) * (wide // model["patch_size"])
