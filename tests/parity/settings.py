"""Compares presets with transformers' classes for every setting of every class, with values other than the default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from configurations import CONFIGURATIONS
from processors import by_transformers, class_of, ours, pictures, result_or_refusal

from penstock.presets import PresetError, preset, read_configuration

# Settings that do not affect the result's values for a picture from a file; presets determine the device and form of results.
_ELSEWHERE = ("return_tensors", "device", "data_format", "input_data_format")
_SIZES: tuple[object, ...] = (
    40,
    [30, 34],
    {"height": 30, "width": 34},
    {"height": 90, "width": 95},
    {"shortest_edge": 35},
    {"shortest_edge": 30, "longest_edge": 50},
    {"longest_edge": 48},
    {"max_height": 33, "max_width": 44},
)
# Changes of several settings, each of which has an effect only together with the others.
_TOGETHER: tuple[dict[str, object], ...] = (
    {"do_center_crop": True, "crop_size": {"height": 29, "width": 33}},
    {"do_center_crop": True, "crop_size": {"height": 91, "width": 94}},
    {"do_pad": True, "pad_size": {"height": 91, "width": 94}},
    {"do_pad": True, "pad_size": {"height": 91, "width": 94}, "do_normalize": False},
    {"do_pad": True, "pad_size": {"height": 91, "width": 94}, "do_rescale": False, "do_normalize": False},
    {"do_pad": True, "do_resize": False},
    {"do_rescale": False, "do_normalize": False},
    {"do_resize": False, "do_normalize": False},
    {"do_resize": False, "do_rescale": False, "do_normalize": False},
)
UNCHANGED, REFUSED = "", "-"
# Settings that presets support although transformers' class fails, as `Gemma3Processor` implements them.
_BEYOND = ({"do_pan_and_scan": True},)


def settings_of(name: str, backend: str) -> dict[str, Any]:
    """Return the settings that a configuration's class in transformers declares, with their values in the configuration or, if it
    does not contain them, their defaults.
    """
    kind = class_of(CONFIGURATIONS[name], backend)
    held = {key: CONFIGURATIONS[name].get(key, getattr(kind, key, None)) for key in kind.valid_kwargs.__annotations__}
    return json.loads(json.dumps(held, default=_plain))


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int) else dict(value) if isinstance(value, Mapping) else str(value)


def variations(settings: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Yield dictionaries of changed settings to try, for a class with these settings."""
    for together in _TOGETHER:
        if together.keys() <= settings.keys():
            yield together
    for key, value in settings.items():
        for other in () if key in _ELSEWHERE else _others(key, value):
            yield {key: other}


def _others(key: str, value: Any) -> Sequence[object]:
    """Return values to try for a setting whose value is ``value``."""
    if isinstance(value, bool) or (value is None and not key.endswith(("_size", "_length", "_pixels", "size"))):
        return (not value,)
    if isinstance(value, Mapping) or key in ("size", "crop_size", "pad_size"):
        return _SIZES
    if key == "resample":
        return range(6)
    if key in ("image_mean", "image_std"):
        return 0.3, [0.1, 0.2, 0.3]
    if isinstance(value, (int, float)):
        return value + 1, value * 2, value / 2 if isinstance(value, float) else value * 3
    if isinstance(value, list) and value and isinstance(value[0], int):
        return ([number + 1 for number in value],)
    return (3,) if value is None else ()


def picture() -> Any:
    """Return the picture that is processed with each variation."""
    return next(iter(pictures(1, 90)))


def recorded(name: str, backend: str) -> dict[str, Any]:
    """Return the settings of transformers' class, and its results for the picture.

    `plain` is the digest of the result without changes. `results` has, for each variation in order and separated by spaces, a digest,
    `UNCHANGED` if the result is the same as without changes, or `REFUSED`.
    """
    settings, image = settings_of(name, backend), picture().image

    def made(changed: Mapping[str, object]) -> str:
        return digest(lambda: by_transformers({**CONFIGURATIONS[name], **changed}, backend, [image]))

    plain = made({})
    results = [made(changed) for changed in variations(settings)]
    return {
        "settings": settings,
        "plain": plain,
        "results": " ".join(UNCHANGED if result == plain else result for result in results),
    }


def digest(compute: Callable[[], Mapping[str, Any]]) -> str:
    """Return a short digest of all outputs of a function, or `REFUSED` if it raises an error."""
    try:
        told = result_or_refusal(compute)
    except (TypeError, AttributeError, LookupError, AssertionError, ImportError, NameError, OSError):
        # transformers' classes raise these errors, too, for input that they do not expect.
        return REFUSED
    return REFUSED if told == "refused" else told[:8]


def wrong(name: str, backend: str, held: Mapping[str, Any]) -> list[str]:
    """Return a line for each variation of settings that a preset ignores, or interprets differently from transformers' class."""
    file = np.array(picture().file)
    told = []
    for changed, result in zip(variations(held["settings"]), held["results"].split(" "), strict=True):
        expected = held["plain"] if result == UNCHANGED else result
        got = _by_preset({**CONFIGURATIONS[name], **changed}, backend, file)
        if got not in (None, expected) and (expected != REFUSED or changed not in _BEYOND):
            told.append(f"{name}, {backend}: {changed}: expected {expected}, got {got}")
    return told


def _by_preset(configuration: Mapping[str, object], backend: str, file: np.ndarray) -> str | None:
    """Return a digest of a preset's result, or None if no preset supports the configuration."""
    try:
        pipeline = preset(configuration, batch_size=1, backend=backend)
    except PresetError:
        return None
    family = read_configuration(configuration)
    got = digest(lambda: ours(pipeline, family, [file]))
    pipeline.close()
    return got
