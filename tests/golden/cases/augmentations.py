"""Automatic augmentation: each augmentation alone, and the random policies."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from case import Define, Family, feed, images

FAMILY = Family("augmentations")
SOURCE = feed(images([(19, 25, 3), (32, 21, 3), (15, 16, 3)], seed=3), layout="HWC")
CONDITIONAL = {"options": {"enable_conditionals": True}}


def part(module: Any, name: str) -> Any:
    return importlib.import_module(f"{module.__name__}.auto_aug.{name}")


def alone(name: str, bin: Any, bins: int = 11, **settings: Any) -> Define:
    def define(module: Any) -> Any:
        augmentation = getattr(part(module, "augmentations"), name).augmentation(**settings)
        data = SOURCE(module)
        keywords = {"shape": data.shape()} if name in ("translate_x", "translate_y") else {}
        given = bin(module) if callable(bin) else bin
        with warnings.catch_warnings():
            # Without signed magnitudes, augmentations warn that they draw the signs themselves.
            warnings.simplefilter("ignore", UserWarning)
            return augmentation(data, magnitude_bin=given, num_magnitude_bins=bins, **keywords)

    return define


def drawn(module: Any) -> Any:
    return module.fn.random.uniform(values=[1, 5, 9], dtype=module.types.INT32)


def drawn_signed(module: Any) -> Any:
    return part(module, "core").signed_bin(drawn(module), seed=7)


def policy(name: str, function: str, *arguments: Any, shape: bool = False, **keywords: Any) -> Define:
    def define(module: Any) -> Any:
        data = SOURCE(module)
        # With linear interpolation, values may differ by 1, which later augmentations such as equalization would multiply.
        given = dict(keywords, interp_type=module.types.INTERP_NN)
        if shape:
            given["shape"] = data.shape()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return getattr(part(module, name), function)(data, *arguments, **given)

    return define


def own_policy(module: Any) -> Any:
    a, core = part(module, "augmentations"), part(module, "core")
    sub_policies = [
        [(a.rotate, 0.7, 3), (a.equalize, 0.3, None)],
        [(a.invert, 0.5, None)],
        [(a.rotate, 1.0, 2), (a.shear_x, 0.5, 4), (a.color, 0.5, 9)],
    ]
    return part(module, "auto_augment").apply_auto_augment(
        core.Policy("own", 11, sub_policies), SOURCE(module), interp_type=module.types.INTERP_NN
    )


def selected(module: Any) -> Any:
    fn, core = module.fn, part(module, "core")

    def flipped(data: Any, axis: Any) -> Any:
        return fn.flip(data, horizontal=1)

    def darker(data: Any, amount: Any) -> Any:
        return fn.brightness(data, brightness=amount)

    index = fn.random.uniform(values=[0, 1, 2], dtype=module.types.INT32)
    return core.select([flipped, darker, flipped], index, SOURCE(module), 0.5)


for _name in (
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "translate_x_no_shape",
    "translate_y_no_shape",
    "rotate",
):
    FAMILY.add(f"{_name} drawn", alone(_name, drawn), iterations=2)
    FAMILY.add(f"{_name} signed", alone(_name, drawn_signed))
    FAMILY.add(f"{_name} constant", alone(_name, 4), iterations=2)
for _name in ("brightness", "contrast", "color", "sharpness"):
    FAMILY.add(f"{_name} drawn", alone(_name, drawn), iterations=2)
    FAMILY.add(f"{_name} constant", alone(_name, 4), iterations=2)
    FAMILY.add(f"{_name} positive", alone(_name, drawn, randomly_negate=False))
for _name in ("posterize", "solarize", "solarize_add", "invert", "equalize", "auto_contrast", "identity"):
    FAMILY.add(f"{_name} drawn", alone(_name, drawn))
    FAMILY.add(f"{_name} constant", alone(_name, 4))
FAMILY.add("a bin too far", alone("rotate", 11))
FAMILY.add("no bin", alone("rotate", None))

for _policy in ("image_net", "reduced_image_net", "svhn", "reduced_cifar10"):
    for _seed in (None, 11):
        FAMILY.add(
            f"auto_augment {_policy}, seed {_seed}",
            policy("auto_augment", "auto_augment", _policy, seed=_seed),
            iterations=6,
            **CONDITIONAL,
        )
FAMILY.add(
    "auto_augment with shapes",
    policy("auto_augment", "auto_augment", "svhn", shape=True, max_translate_rel=0.4),
    iterations=6,
    **CONDITIONAL,
)
FAMILY.add("auto_augment unknown", policy("auto_augment", "auto_augment", "nothing"), **CONDITIONAL)
FAMILY.add("own policy", own_policy, iterations=6, **CONDITIONAL)
FAMILY.add("select", selected, iterations=4, **CONDITIONAL)
for _n, _m, _keywords in (
    (1, 5, {}),
    (2, 17, {"seed": 3}),
    (3, 30, {"monotonic_mag": False}),
    (2, 9, {"shape": True}),
    (2, 9, {"excluded": ["translate_x", "rotate"], "fill_value": 0}),
    (2, 9, {"max_translate_abs": (10, 20), "num_magnitude_bins": 10}),
    (0, 1, {}),
    (1, 31, {}),
    (1, -1, {}),
    (1, 1, {"excluded": ["nothing"]}),
    (1, 1, {"max_translate_rel": 0.5}),
):
    FAMILY.add(
        f"rand_augment n={_n} m={_m} {_keywords}",
        policy("rand_augment", "rand_augment", n=_n, m=_m, **_keywords),
        iterations=4,
        **CONDITIONAL,
    )
for _keywords in (
    {},
    {"seed": 5},
    {"shape": True},
    {"num_magnitude_bins": 7},
    {"excluded": ["identity"]},
    {"num_magnitude_bins": 0},
    {"max_translate_abs": 3, "max_translate_rel": 0.1},
):
    FAMILY.add(
        f"trivial_augment_wide {_keywords}",
        policy("trivial_augment", "trivial_augment_wide", **_keywords),
        iterations=6,
        **CONDITIONAL,
    )
FAMILY.add("rand_augment without conditionals", policy("rand_augment", "rand_augment", n=1, m=1))
