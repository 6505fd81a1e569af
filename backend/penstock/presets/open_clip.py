"""Models of open_clip, whose `open_clip_config.json` describes the preprocessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock import fn
from penstock.graph import DataNode
from penstock.presets.family import CHANNELS, PIXELS, Family, PresetError, Values
from penstock.presets.fixed import OPENAI

_SIDE, _SIDES = 224, 2
_MODES = ("shortest", "longest", "squash")
# The filters by open_clip's names. `random` is for training; for evaluation, open_clip uses the default filter instead.
_FILTERS = {"bicubic": "bicubic", "bilinear": "bilinear", "random": "bicubic"}
_SETTINGS = ("size", "mode", "mean", "std", "interpolation", "resize_mode", "fill_color")


@dataclass(frozen=True, kw_only=True)
class OpenClipFamily(Family):
    """Models of open_clip: images are resized like by PIL, cropped or padded, and normalized like by `ToTensor` and `Normalize`.

    Attributes:
        preprocess_cfg: `mean`, `std`, `interpolation`, `fill_color`, and `resize_mode`: `shortest` (resize the shorter side to fit, and
            crop the centre), `longest` (resize the longer side to fit, and fill the rest with the colour) or `squash` (stretch).
        model_cfg: the model's configuration; the `image_size` in its `vision_cfg` overrides the `size` of `preprocess_cfg`.
    """

    preprocess_cfg: Values = field(default_factory=dict)
    model_cfg: Values = field(default_factory=dict)

    names = (PIXELS,)
    tells_by = ("patch_size",)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for name in ("preprocess_cfg", "model_cfg"):
            if not isinstance(settings[name], Mapping):
                raise PresetError(f"`{name}` must be an object, as in `open_clip_config.json`. Got: {settings[name]!r}")
            settings[name] = dict(settings[name])
        preprocess, vision = settings["preprocess_cfg"], settings["model_cfg"].get("vision_cfg")
        size = vision.get("image_size") if isinstance(vision, Mapping) else preprocess.get("size")
        # As in open_clip, None means the default, and unknown settings are ignored.
        known = {key: value for key, value in preprocess.items() if key in _SETTINGS and value is not None}
        return {**settings, "model_cfg": {}, "preprocess_cfg": {**known, "size": _SIDE if size is None else size}}

    def _setting(self, name: str, default: Any) -> Any:
        return self.preprocess_cfg.get(name, default)

    @property
    def _size(self) -> tuple[int, ...]:
        """The height and width of the model's input."""
        size = self._setting("size", _SIDE)
        return tuple(size) if isinstance(size, (list, tuple)) else (size, size)

    def _channels(self, name: str, default: Sequence[float]) -> list[float]:
        value = self._setting(name, default)
        return list(value) if isinstance(value, (list, tuple)) else [value] * CHANNELS

    def check(self, backend: str) -> None:
        super().check(backend)
        if len(self._size) != _SIDES or not all(isinstance(side, int) and side > 0 for side in self._size):
            raise PresetError(
                f"`image_size` must be a positive integer, or a height and a width. Got: {self._setting('size', 0)!r}"
            )
        for name, default, choices in (
            ("resize_mode", "shortest", _MODES),
            ("interpolation", "bicubic", _FILTERS),
            ("mode", "RGB", ("RGB",)),
        ):
            if self._setting(name, default) not in choices:
                raise PresetError(
                    f"`{name}` must be one of {', '.join(choices)}. Got: {self._setting(name, default)!r}"
                )
        for name in ("mean", "std"):
            if len(self._channels(name, OPENAI["image_mean"])) != CHANNELS:
                raise PresetError(f"`{name}` must be a number, or one for each of {CHANNELS} channels")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        high, wide = self._size
        mode = self._setting("resize_mode", "shortest")
        filtering: Values = {"reference": "pil", "interpolation": _FILTERS[self._setting("interpolation", "bicubic")]}
        if mode == "squash":
            images = fn.resize(data, size=[high, wide], **filtering)
        elif mode == "shortest" and high == wide:
            images = fn.resize(data, resize_shorter=high, **filtering)
        else:
            rule = "within-rounded" if mode == "longest" else "around-rounded"
            # If height and width of the input differ, the mode `shortest` always uses the bicubic filter.
            filtering["interpolation"] = filtering["interpolation"] if mode == "longest" else "bicubic"
            size, _ = fn.fitted_size(data, rule=rule, canvases=[high, wide])
            images = fn.resize(data, size=size, **filtering)
        if mode != "squash":
            fill = float(self._setting("fill_color", 0)) if mode == "longest" else 0.0
            images = fn.crop(
                images, crop=[high, wide], rounding="torchvision", out_of_bounds_policy="pad", fill_values=[fill]
            )
        mean, std = self._channels("mean", OPENAI["image_mean"]), self._channels("std", OPENAI["image_std"])
        return (fn.rescale_normalize(images, mean=mean, std=std, reference="to_tensor", name=PIXELS),)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        high, wide = self._size
        return (high // model["patch_size"]) * (wide // model["patch_size"])
