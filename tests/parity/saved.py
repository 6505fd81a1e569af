"""Results of transformers' classes, and of presets, for a few inputs, with a saved or published configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from classes import CASES, arguments_of
from PIL import Image
from processors import as_arrays, class_of, result_or_refusal

from penstock.plugin.transformers import FeatureExtractor, ImageProcessor, VideoProcessor
from penstock.presets import read_configuration
from penstock.presets.configuration import class_name

_SAMPLED = ("7 x 5", "4 x 300", "grey", "alpha", "two", "5 x 60 x 33", "700 samples", "three, filled")
_KINDS = {
    "images": ("images", ImageProcessor),
    "videos": ("videos", VideoProcessor),
    "audio": ("sounds", FeatureExtractor),
}
# Classes that put transparent images on a background other than white: Inkling 2 puts them on a checkerboard.
_OWN_BACKGROUNDS = ("Inkling2ImageProcessor",)
_VALUES = 16
FAILED = "failed"


def results_of_class(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in each case of the class of transformers that a configuration names."""
    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    return _results(configuration, _class_of(configuration).from_dict(copy.deepcopy(held)), "pt")


def _class_of(configuration: Mapping[str, Any]) -> Any:
    if read_configuration(configuration).kind == "images":
        return class_of(configuration, "torchvision")
    import transformers

    return getattr(transformers, class_name(configuration))


def results_of_preset(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in each case of the preset for a configuration."""
    _, processor = _KINDS[read_configuration(configuration).kind]
    return _results(configuration, processor(configuration), "np")


def _results(configuration: Mapping[str, Any], processor: Any, tensors: str) -> dict[str, Any]:
    kind, _ = _KINDS[read_configuration(configuration).kind]
    told = {}
    for what, given, call in CASES[kind](SimpleNamespace(sampling_rate=configuration.get("sampling_rate", 16000))):
        if what not in _SAMPLED:
            continue
        converts = getattr(processor, "do_convert_rgb", False) and class_name(configuration) not in _OWN_BACKGROUNDS
        if kind == "images" and not converts:
            # Convert images to RGB as presets do, because the class does not, or puts transparent images on another background.
            given = _converted(given)
        # The seed is for classes that choose at random; presets make the first choice after this seed.
        np.random.seed(0)
        told[what] = _result(processor, given, {**call, "return_tensors": tensors}, exact=kind != "sounds")
    return told


def _converted(image: Any) -> Any:
    if isinstance(image, list):
        return [_converted(each) for each in image]
    opaque = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return (opaque if image.mode == "RGBA" else image).convert("RGB")


def _result(processor: Any, given: Any, call: Mapping[str, Any], exact: bool) -> Any:
    """Return a digest of all outputs if ``exact``, or else a summary of each output; `FAILED` if the call fails."""
    try:
        values = processor(given, **arguments_of(processor, call))
        values = as_arrays(dict(values)) if call["return_tensors"] == "pt" else values
    except Exception:  # classes raise any exception for input that they do not expect
        return FAILED
    if exact:
        return result_or_refusal(lambda: dict(values))
    return {name: _summary(np.asarray(value)) for name, value in sorted(values.items())}


def _summary(array: np.ndarray) -> dict[str, Any]:
    """Return an array's type, its shape, and evenly spaced values of it, at most `_VALUES`."""
    places = np.linspace(0, max(array.size - 1, 0), _VALUES).astype(int)
    values = array.reshape(-1)[places].astype(np.float64) if array.size else np.zeros(0)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": values.round(7).tolist()}


def unequal(expected: Mapping[str, Any], given: Mapping[str, Any], tolerance: float) -> list[str]:
    """Return a line for each case in which a preset's result differs from that of transformers' class, unless the class fails."""
    return [
        f"{what}: expected {wanted}, got {given[what]}"
        for what, wanted in expected.items()
        if wanted != FAILED and not _is_equal(wanted, given[what], tolerance)
    ]


def _is_equal(expected: Any, given: Any, tolerance: float) -> bool:
    if not (isinstance(expected, Mapping) and isinstance(given, Mapping)):
        return bool(expected == given)
    return expected.keys() == given.keys() and all(
        (one["dtype"], one["shape"]) == (other["dtype"], other["shape"])
        and np.allclose(one["values"], other["values"], rtol=0, atol=tolerance, equal_nan=True)
        for one, other in ((expected[name], given[name]) for name in expected)
    )
