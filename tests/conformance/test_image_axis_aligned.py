"""Resizing, cropping, slicing, flipping, padding and normalizing with random arguments, compared with DALI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from side_by_side import difference, source

FILTERS = ("INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC", "INTERP_LANCZOS3", "INTERP_TRIANGULAR", "INTERP_GAUSSIAN")
Arguments = dict[str, Any]


def image(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def extents(rng: np.random.Generator, rank: int, most: int = 40) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, most, rank))


def batch(rng: np.random.Generator, layout: str, dtype: Any = np.uint8, most: int = 40) -> list[np.ndarray]:
    channels = int(rng.integers(1, 6))
    frames = 2

    def shape() -> tuple[int, ...]:
        sizes = extents(rng, 3, most if "D" not in layout else 14)
        by_letter = dict(zip("DHW", sizes)) | {"C": channels, "F": frames}
        return tuple(by_letter[letter] for letter in layout)

    return [image(rng, shape(), dtype) for _ in range(3)]


def spatial_extents(samples: list[np.ndarray], layout: str) -> np.ndarray:
    """Return the smallest depth, height and width in a batch, in the order of the layout."""
    return np.min([[size for size, letter in zip(s.shape, layout) if letter in "DHW"] for s in samples], axis=0)


def size_arguments(rng: np.random.Generator, samples: list[np.ndarray], layout: str) -> Arguments:
    least = spatial_extents(samples, layout)
    axes = len(least)

    def extent(signed: bool = False) -> float:
        value = float(np.float32(rng.integers(1, 50) if rng.random() < 0.6 else rng.random() * 45 + 0.3))
        return -value if signed and rng.random() < 0.15 else value

    given: Arguments = {}
    way = rng.integers(0, 4)
    if way == 0:
        given["size"] = [extent(True) if rng.random() < 0.8 else 0.0 for _ in range(axes)]
        if rng.random() < 0.2:
            given["size"] = extent()
    elif way == 1:
        names = ["resize_x", "resize_y", "resize_z"][:axes]
        for name in names:
            if rng.random() < 0.6:
                given[name] = extent(True)
        given = given or {"resize_x": extent()}
    else:
        given["resize_shorter" if way == 2 else "resize_longer"] = extent()
    if way < 2 and rng.random() < 0.6:
        given["mode"] = str(rng.choice(["default", "stretch", "not_larger", "not_smaller"]))
    if rng.random() < 0.25:
        given["max_size"] = [extent() for _ in range(axes)] if rng.random() < 0.5 else extent()
    if rng.random() < 0.3:
        relative = bool(rng.random() < 0.5)
        # DALI crashes for regions entirely outside of the image.
        scale = 1 if relative else least
        given["roi_start"] = [float(np.float32(v)) for v in (rng.random(axes) * 1.2 - 0.1) * scale]
        given["roi_end"] = [float(np.float32(v)) for v in (rng.random(axes) * 1.2 - 0.1) * scale]
        given["roi_relative"] = relative
    if rng.random() < 0.2:
        given["subpixel_scale"] = False
    return given


def filter_arguments(rng: np.random.Generator) -> Arguments:
    given: Arguments = {}
    if rng.random() < 0.7:
        given["interp_type"] = str(rng.choice(FILTERS[1:5]))
    for name in ("min_filter", "mag_filter"):
        if rng.random() < 0.15:
            given[name] = str(rng.choice(FILTERS[1:5]))
    if rng.random() < 0.3:
        given["antialias"] = bool(rng.random() < 0.5)
    if rng.random() < 0.3:
        given["dtype"] = "FLOAT"
    return given


def crop_arguments(rng: np.random.Generator, axes: int, most: float = 20) -> Arguments:
    given: Arguments = {}
    if rng.random() < 0.6:
        given["crop"] = [float(np.float32(v)) for v in rng.random(axes) * most]
    elif rng.random() < 0.8:
        given["crop_h"], given["crop_w"] = (float(np.float32(v)) for v in rng.random(2) * most)
        if axes == 3:
            given["crop_d"] = float(np.float32(rng.random() * most))
    for name in ("crop_pos_x", "crop_pos_y", "crop_pos_z"):
        if rng.random() < 0.5:
            given[name] = float(np.float32(rng.random()))
    if rng.random() < 0.3:
        given["rounding"] = str(rng.choice(["round", "truncate"]))
    return given


def enumerations(module: Any, given: Arguments) -> Arguments:
    names = (*FILTERS, "FLOAT", "FLOAT16", "UINT8", "INT8")
    return {k: getattr(module.types, v) if isinstance(v, str) and v in names else v for k, v in given.items()}


def call(operator: str, samples: list[np.ndarray], layout: str, given: Arguments) -> Callable[[Any], Any]:
    feed = source(samples, layout)

    def define(module: Any) -> Any:
        outputs = getattr(module.fn, operator)(feed(module), **enumerations(module, given))
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return define


def check(operator: str, samples: list[np.ndarray], layout: str, given: Arguments, **settings: Any) -> None:
    found = difference(call(operator, samples, layout, given), **settings)
    assert found == "", f"{operator}({layout}, {[s.shape for s in samples]}, {given}): {found}"


def types_of(rng: np.random.Generator) -> Any:
    return rng.choice([np.uint8, np.uint8, np.uint8, np.int16, np.uint16, np.float32])


@pytest.mark.parametrize("seed", range(150))
def test_resize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "HWC", "HWC", "CHW", "FHWC", "DHWC", "CDHW", "FCHW", "CFHW"]))
    samples = batch(rng, layout, types_of(rng))
    given = size_arguments(rng, samples, layout) | filter_arguments(rng)
    if rng.random() < 0.2:
        given["save_attrs"] = True
    check("resize", samples, layout, given, exact=True)


@pytest.mark.parametrize("seed", range(60))
def test_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "CHW", "DHWC"]))
    samples = batch(rng, layout)
    # No regions are set, as DALI reads wrong rows for regions beyond the right edge.
    given = {name: value for name, value in size_arguments(rng, samples, layout).items() if not name.startswith("roi")}
    check("resize", samples, layout, given | {"interp_type": "INTERP_NN"}, exact=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("seed", range(80))
def test_resize_crop_mirror(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "HWC", "CHW", "FHWC", "DHWC"]))
    axes = 3 if "D" in layout else 2
    samples = batch(rng, layout)
    given = size_arguments(rng, samples, layout) | filter_arguments(rng) | crop_arguments(rng, axes)
    # If another dimension precedes the spatial ones, DALI mirrors an axis other than the one that the argument names.
    given["mirror"] = int(rng.integers(0, 8)) if layout in ("HWC", "DHWC") else 0
    operator = "resize_crop_mirror" if rng.random() < 0.8 else "fast_resize_crop_mirror"
    check(operator, samples, layout, given, exact=True)


@pytest.mark.parametrize("seed", range(30))
def test_random_resized_crop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "HWC", "CHW", "FHWC"]))
    given = filter_arguments(rng) | {"size": [int(n) for n in rng.integers(1, 40, 2)], "seed": seed}
    if rng.random() < 0.5:
        given["random_area"] = [float(v) for v in np.sort(rng.random(2))]
    if rng.random() < 0.5:
        given["random_aspect_ratio"] = [float(v) for v in np.sort(rng.random(2) * 2 + 0.2)]
    check("random_resized_crop", batch(rng, layout), layout, given, exact=True, iterations=3)


@pytest.mark.parametrize("seed", range(80))
def test_crop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "CHW", "FHWC", "DHWC", "CDHW", "CFHW"]))
    given = crop_arguments(rng, 3 if "D" in layout else 2, 30)
    given["out_of_bounds_policy"] = str(rng.choice(["pad", "trim_to_shape", "error"]))
    if rng.random() < 0.5:
        given["fill_values"] = [7.4]
    if rng.random() < 0.3:
        given["dtype"] = str(rng.choice(["FLOAT", "FLOAT16", "UINT8"]))
    check("crop", batch(rng, layout, rng.choice([np.uint8, np.float32, np.int32])), layout, given, exact=True)


@pytest.mark.parametrize("seed", range(120))
def test_crop_mirror_normalize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "HWC", "CHW", "FHWC", "DHWC", "CDHW"]))
    given = crop_arguments(rng, 3 if "D" in layout else 2, 25)
    samples = batch(rng, layout, rng.choice([np.uint8, np.uint8, np.int16, np.float32]))
    channels = samples[0].shape[layout.index("C")]
    given["out_of_bounds_policy"] = str(rng.choice(["pad", "trim_to_shape", "error"], p=[0.6, 0.3, 0.1]))
    given["mean"] = [float(np.float32(v)) for v in rng.random(channels if rng.random() < 0.7 else 1) * 200]
    given["std"] = [float(np.float32(v)) for v in rng.random(channels if rng.random() < 0.7 else 1) * 90 + 1]
    given["mirror"] = int(rng.integers(0, 2))
    given["scale"], given["shift"] = float(np.float32(rng.random() * 3)), float(np.float32(rng.random() * 20))
    # With padded output and more than 4 channels, DALI reads past the end of its lists of values for each channel.
    given["pad_output"] = bool(rng.random() < 0.3) and channels <= 4
    if not given["pad_output"]:
        # `fill_values` must have as many values as mean and std: otherwise, DALI reads past the end of the shorter lists.
        count = max(len(given["mean"]), len(given["std"]))
        given["fill_values"] = [float(v) for v in rng.integers(0, 9, count)]
    given["dtype"] = str(rng.choice(["FLOAT", "FLOAT16", "UINT8", "INT8"]))
    spatial = layout.replace("C", "")
    given["output_layout"] = str(rng.choice([spatial + "C", spatial.replace("HW", "CHW"), layout]))
    check("crop_mirror_normalize", samples, layout, given)


@pytest.mark.parametrize("seed", range(80))
def test_slice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "CHW", "FHWC", "DHWC"]))
    samples = batch(rng, layout)
    count = int(rng.integers(1, 3))
    given: Arguments = {"axis_names": "".join(rng.permutation(list("HW"))[:count])}
    if rng.random() < 0.5:
        given["rel_start"] = [float(np.float32(v)) for v in rng.random(count) * 0.6]
    else:
        given["start"] = [int(v) for v in rng.integers(0, 5, count)]
    name = str(rng.choice(["end", "rel_end", "shape", "rel_shape"]))
    if name.startswith("rel"):
        given[name] = [float(np.float32(v)) for v in rng.random(count) * 0.6 + 0.2]
    else:
        given[name] = [int(v) for v in rng.integers(1, 20, count)]
    given["out_of_bounds_policy"] = str(rng.choice(["pad", "trim_to_shape", "error"]))
    check("slice", samples, layout, given, exact=True)


@pytest.mark.parametrize("seed", range(40))
def test_flip_and_pad(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "CHW", "FHWC", "DHWC"]))
    samples = batch(rng, layout, rng.choice([np.uint8, np.float32, np.int64]))
    flips = {name: int(rng.integers(0, 2)) for name in ("horizontal", "vertical", "depthwise")}
    check("flip", samples, layout, flips, exact=True)
    given: Arguments = {"axis_names": "HW", "fill_value": float(rng.integers(0, 9))}
    if rng.random() < 0.5:
        given["shape"] = [int(v) for v in rng.integers(-1, 50, 2)]
    if rng.random() < 0.5:
        given["align"] = [int(v) for v in rng.integers(1, 9, 2)]
    check("pad", samples, layout, given, exact=True)


@pytest.mark.parametrize("seed", range(60))
def test_erase(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = str(rng.choice(["HWC", "CHW", "FHWC", "DHWC"]))
    samples = batch(rng, layout, rng.choice([np.uint8, np.float32, np.int16]))
    names = str(rng.choice(["HW", "WH", "W"]))
    count = int(rng.integers(1, 4)) * len(names)
    scale = 1.0
    given: Arguments = {"axis_names": names}
    if rng.random() < 0.3:
        given["normalized"] = True
        scale = 20.0
    given["anchor"] = [float(np.float32(v / scale)) for v in rng.random(count) * 20 - 2]
    given["shape"] = [float(np.float32(v / scale)) for v in rng.random(count) * 10]
    given["centered_anchor"] = bool(rng.random() < 0.3)
    channels = samples[0].shape[layout.index("C")]
    given["fill_value"] = [float(v) for v in rng.integers(0, 99, channels if rng.random() < 0.5 else 1)]
    check("erase", samples, layout, given, exact=True)


@pytest.mark.parametrize("seed", range(40))
def test_grid_mask(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = {
        "tile": int(rng.integers(1, 20)),
        "ratio": float(np.float32(rng.random())),
        "angle": float(np.float32(rng.random() * 3 * (rng.random() < 0.7))),
        "shift_x": float(np.float32(rng.random() * 30 - 15)),
        "shift_y": float(rng.integers(-9, 9)),
    }
    check("grid_mask", batch(rng, "HWC", rng.choice([np.uint8, np.float32, np.int16])), "HWC", given, exact=True)


@pytest.mark.parametrize("seed", range(40))
def test_paste(seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = batch(rng, "HWC")
    channels = samples[0].shape[2]
    given: Arguments = {"ratio": float(np.float32(1 + rng.random() * 3)), "n_channels": channels}
    given["fill_value"] = [int(v) for v in rng.integers(0, 256, channels if rng.random() < 0.5 else 1)]
    for name in ("paste_x", "paste_y"):
        if rng.random() < 0.7:
            given[name] = float(np.float32(rng.random()))
    if rng.random() < 0.4:
        given["min_canvas_size"] = float(np.float32(rng.random() * 60))
    check("paste", samples, "HWC", given, exact=True)


@pytest.mark.parametrize("seed", range(40))
def test_multi_paste(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = rng.choice([np.uint8, np.int16, np.float32])
    # DALI's operator fails on sequences, so images are tested.
    samples = [image(rng, (9, 12, 3), dtype) for _ in range(3)]
    named, count = bool(rng.random() < 0.6), int(rng.integers(1, 4))
    options: Arguments = {"output_size": (20, 25)} if rng.random() < 0.8 else {}
    if rng.random() < 0.3:
        options["dtype"] = "FLOAT"
    tensors: dict[str, list[np.ndarray]] = {}
    if named:
        tensors["in_ids"] = [rng.integers(0, 3, count, np.int32) for _ in range(3)]
    for name, most, fraction in (("in_anchors", (5, 6), 0.5), ("shapes", (4, 6), 0.5), ("out_anchors", (11, 13), 0.5)):
        if name == "out_anchors" and not options:
            continue
        way = rng.integers(0, 3)
        if way == 1:
            tensors[name] = [rng.integers(0, most, (count, 2)).astype(np.int32) for _ in range(3)]
        elif way == 2:
            tensors[name + "_rel"] = [(rng.random((count, 2)) * fraction).astype(np.float32) for _ in range(3)]

    def define(module: Any) -> Any:
        inputs = [source(samples, "HWC")(module) for _ in range(1 if named else count)]
        arguments = {name: source(values)(module) for name, values in tensors.items()}
        return module.fn.multi_paste(*inputs, **arguments, **enumerations(module, options))

    found = difference(define)
    assert found == "", f"{options}, {tensors}: {found}"
