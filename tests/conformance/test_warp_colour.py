"""Warps, colours and filters with random arguments, the same in each run, compared with DALI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from side_by_side import difference, source

Draw = np.random.Generator
Sources = Callable[[Any], Any]
TYPES = ("UINT8", "INT16", "INT32", "FLOAT")
NUMPY = {"UINT8": np.uint8, "INT16": np.int16, "INT32": np.int32, "FLOAT": np.float32}
SEEDS = range(12)


def samples(draw: Draw, layout: str, dtype: str, channels: int = 3, equal: bool = False) -> list[np.ndarray]:
    """Return three samples of smooth content; their extents are random, and if ``equal`` the same for all three."""
    made = []
    extents: dict[str, int] = {}
    for _ in range(3):
        if not (equal and extents):
            extents = {letter: int(draw.integers(2, 24)) for letter in layout} | {"C": channels, "F": 3, "D": 5}
        shape = [extents[letter] for letter in layout]
        waves = sum(np.sin(index / draw.uniform(2, 6)) for index in np.indices(shape)) / len(shape)
        values = np.clip((waves + 1) / 2 + draw.uniform(-0.1, 0.1, shape), 0, 1)
        # Numbers of at most 24 bits, which single precision, in which both libraries compute, represents exactly.
        top = {"UINT8": 255, "INT16": 20000, "INT32": 1 << 20, "FLOAT": 1}[dtype]
        made.append((values * top).astype(NUMPY[dtype]))
    return made


def drawn(draw: Draw, low: float, high: float, *shape: int) -> Any:
    """Return either a random constant or a list of a random value for each sample, between ``low`` and ``high``."""
    if draw.random() < 0.5:
        return [np.float32(draw.uniform(low, high, shape)) for _ in range(3)]
    return draw.uniform(low, high, shape).tolist() if shape else float(draw.uniform(low, high))


def given(module: Any, value: Any) -> Any:
    """Return a value as an operator of ``module`` takes it: values for each sample as an output, names of types as members."""
    if isinstance(value, list) and value and isinstance(value[0], (np.ndarray, np.generic)):
        return module.fn.external_source(lambda: value)
    if isinstance(value, str) and value.startswith("types."):
        return getattr(module.types, value.removeprefix("types."))
    return value


def compare(operator: str, data: Sources, arguments: dict[str, Any], *inputs: Sources) -> None:
    def define(module: Any) -> Any:
        function = module.fn
        for part in operator.split("."):
            function = getattr(function, part)
        further = [each(module) for each in inputs]
        return function(data(module), *further, **{key: given(module, value) for key, value in arguments.items()})

    assert difference(define) == "", (operator, arguments)


def output_type(draw: Draw, dtype: str) -> dict[str, Any]:
    return {"dtype": "types.FLOAT"} if draw.random() < 0.3 else {}


def edges(draw: Draw) -> dict[str, Any]:
    kind = "types.INTERP_NN" if draw.random() < 0.3 else "types.INTERP_LINEAR"
    return {"interp_type": kind} | ({"fill_value": float(draw.integers(0, 100))} if draw.random() < 0.5 else {})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
def test_rotate(seed: int, dtype: str, layout: str) -> None:
    draw = np.random.default_rng(seed)
    data = source(samples(draw, layout, dtype, int(draw.integers(1, 5))), layout)
    canvas: list[dict[str, Any]] = [{}, {"keep_size": True}, {"size": [float(n) for n in draw.integers(2, 30, 2)]}]
    arguments = {"angle": drawn(draw, -400, 400), **canvas[int(draw.integers(3))], **edges(draw)}
    compare("rotate", data, arguments | output_type(draw, dtype))


@pytest.mark.parametrize("seed", SEEDS)
def test_rotate_frame_by_frame(seed: int) -> None:
    draw = np.random.default_rng(seed)
    frames, angles = samples(draw, "FHWC", "UINT8"), [np.float32(draw.uniform(-180, 180, 3)) for _ in range(3)]

    def define(module: Any) -> Any:
        per_frame = module.fn.per_frame(module.fn.external_source(lambda: angles))
        return module.fn.rotate(source(frames, "FHWC")(module), angle=per_frame, keep_size=True)

    assert difference(define) == ""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
def test_rotate_volumes(seed: int, layout: str) -> None:
    draw = np.random.default_rng(seed)
    data = source(samples(draw, layout, "UINT8", 2), layout)
    arguments = {"angle": drawn(draw, -180, 180), "axis": drawn(draw, -1, 1, 3), "keep_size": bool(seed % 2)}
    compare("rotate", data, arguments | edges(draw))


def affine(draw: Draw, rank: int) -> np.ndarray:
    matrix = np.eye(rank, rank + 1) + draw.uniform(-0.4, 0.4, (rank, rank + 1))
    matrix[:, -1] = draw.uniform(-4, 4, rank)
    return matrix.astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", ["constant", "argument", "input"])
def test_warp_affine(seed: int, dtype: str, form: str) -> None:
    draw = np.random.default_rng(seed)
    data = source(samples(draw, "HWC", dtype, int(draw.integers(1, 5))), "HWC")
    arguments = edges(draw) | output_type(draw, dtype) | {"inverse_map": bool(seed % 3)}
    if draw.random() < 0.5:
        arguments["size"] = [float(n) for n in draw.integers(2, 30, 2)]
    matrices = [affine(draw, 2) for _ in range(3)]
    if form == "input":
        compare("warp_affine", data, arguments, source(matrices))
    else:
        matrix = matrices if form == "argument" else matrices[0].reshape(-1).tolist()
        compare("warp_affine", data, arguments | {"matrix": matrix})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
def test_warp_volumes(seed: int, layout: str) -> None:
    draw = np.random.default_rng(seed)
    data = source(samples(draw, layout, "FLOAT", 2), layout)
    arguments = {"matrix": [affine(draw, 3) for _ in range(3)], **edges(draw)}
    compare("warp_affine", data, arguments)


COLOURS: dict[str, dict[str, tuple[float, float]]] = {
    "brightness_contrast": {"brightness": (0, 2), "brightness_shift": (-1, 1), "contrast": (-0.5, 2)},
    "brightness": {"brightness": (0, 2), "brightness_shift": (-1, 1)},
    "contrast": {"contrast": (-0.5, 2), "contrast_center": (0, 200)},
    "hsv": {"hue": (-400, 400), "saturation": (0, 2), "value": (0, 2)},
    "hue": {"hue": (-400, 400)},
    "saturation": {"saturation": (0, 2)},
    "color_twist": {"hue": (-400, 400), "saturation": (0, 2), "contrast": (0, 2), "brightness": (0, 2)},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["HWC", "FHWC", "DHWC"])
@pytest.mark.parametrize("operator", COLOURS)
def test_colours(seed: int, layout: str, operator: str) -> None:
    draw = np.random.default_rng(seed)
    dtype = TYPES[int(draw.integers(len(TYPES)))]
    data = source(samples(draw, layout, dtype), layout)
    arguments = {name: drawn(draw, *limits) for name, limits in COLOURS[operator].items() if draw.random() < 0.7}
    target = TYPES[int(draw.integers(len(TYPES)))]
    if draw.random() < 0.5:
        arguments["dtype"] = f"types.{target}"
    result = target if "dtype" in arguments else ("UINT8" if operator == "hsv" else dtype)

    def define(module: Any) -> Any:
        changed = getattr(module.fn, operator)(
            data(module), **{name: given(module, value) for name, value in arguments.items()}
        )
        # The lowest 8 bits are dropped, as single precision does not represent all integers of 32 bits.
        return changed // 256 if result == "INT32" else changed

    assert difference(define) == "", arguments


@pytest.mark.parametrize("source_space", ["RGB", "BGR", "GRAY", "YCbCr"])
@pytest.mark.parametrize("target_space", ["RGB", "BGR", "GRAY", "YCbCr"])
@pytest.mark.parametrize("layout", ["HWC", "FHWC", "DHWC"])
def test_colour_spaces(source_space: str, target_space: str, layout: str) -> None:
    draw = np.random.default_rng(1)
    data = source(samples(draw, layout, "UINT8", 1 if source_space == "GRAY" else 3), layout)
    compare(
        "color_space_conversion",
        data,
        {"image_type": f"types.{source_space}", "output_type": f"types.{target_space}"},
    )


LAYOUTS = {"HWC": 2, "CHW": 2, "HW": 2, "FHWC": 2, "FCHW": 2, "DHWC": 3, "CDHW": 3, "X": 1}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gaussian_blur(seed: int, layout: str) -> None:
    draw = np.random.default_rng(seed)
    dtype = TYPES[int(draw.integers(len(TYPES)))]
    data = source(samples(draw, layout, dtype), layout)
    arguments: dict[str, Any] = output_type(draw, dtype)
    if draw.random() < 0.6:
        arguments["sigma"] = (
            drawn(draw, 0.3, 3, LAYOUTS[layout]) if draw.random() < 0.5 else float(draw.uniform(0.3, 3))
        )
    if "sigma" not in arguments or draw.random() < 0.4:
        arguments["window_size"] = [int(n) * 2 + 1 for n in draw.integers(1, 5, LAYOUTS[layout])]
    compare("gaussian_blur", data, arguments)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_laplacian(seed: int, layout: str) -> None:
    draw = np.random.default_rng(seed)
    dtype = TYPES[int(draw.integers(len(TYPES)))]
    data = source(samples(draw, layout, dtype), layout)
    arguments: dict[str, Any] = {"dtype": "types.FLOAT"}
    if draw.random() < 0.7:
        arguments["window_size"] = [int(n) * 2 + 1 for n in draw.integers(1, 5, LAYOUTS[layout])]
    if draw.random() < 0.7:
        arguments["smoothing_size"] = [int(n) * 2 + 1 for n in draw.integers(0, 5, LAYOUTS[layout])]
    if draw.random() < 0.5:
        arguments["normalized_kernel"] = True
    elif draw.random() < 0.5:
        arguments["scale"] = drawn(draw, -2, 2, LAYOUTS[layout])
    compare("laplacian", data, arguments)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW", "FHWC", "FCHW"])
@pytest.mark.parametrize("border", ["reflect_101", "reflect_1001", "clamp", "wrap", "constant", "valid"])
def test_filter(seed: int, layout: str, border: str) -> None:
    draw = np.random.default_rng(seed)
    dtype = ("UINT8", "INT16", "FLOAT")[int(draw.integers(3))]
    shape = draw.integers(1, 7, 2) if border != "valid" else draw.integers(1, 3, 2)
    kernels = source([draw.uniform(-1, 1, shape).astype(np.float32) / max(shape) for _ in range(3)])
    arguments: dict[str, Any] = {"mode": "valid"} if border == "valid" else {"border": border}
    if border != "valid" and draw.random() < 0.5:
        arguments["anchor"] = [int(draw.integers(-1, extent)) for extent in shape]
    compare("filter", source(samples(draw, layout, dtype), layout), arguments | output_type(draw, dtype), kernels)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW", "FHWC", "FCHW"])
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_warp_perspective(seed: int, layout: str, border: str) -> None:
    draw = np.random.default_rng(seed)
    dtype = ("UINT8", "INT16", "FLOAT")[int(draw.integers(3))]
    matrix = np.vstack([affine(draw, 2), [*draw.uniform(-0.01, 0.01, 2), 1]])
    arguments: dict[str, Any] = {
        "matrix": matrix.reshape(-1).tolist(),
        "border_mode": border,
        "inverse_map": bool(seed % 3),
        "pixel_origin": ("corner", "center")[seed % 2],
        "interp_type": f"types.INTERP_{('NN', 'LINEAR', 'CUBIC')[int(draw.integers(3))]}",
        "fill_value": float(draw.integers(0, 100)),
    }
    if draw.random() < 0.5:
        arguments["size"] = [float(n) for n in draw.integers(2, 30, 2)]
    compare("experimental.warp_perspective", source(samples(draw, layout, dtype), layout), arguments)
