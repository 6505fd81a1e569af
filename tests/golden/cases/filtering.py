"""laplacian, filter, equalize, clahe, debayer, jpeg_compression_distortion, warp_perspective."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Define, Family, feed, images

FAMILY = Family("filtering")
SHAPES = [(6, 8, 3), (4, 10, 3), (2, 6, 3)]
TYPES = ("int8", "uint16", "int16", "float16", "float32", "int32", "uint32", "int64", "uint64", "float64")
PIXELS = {"pixels": feed(images(SHAPES), "HWC")}
GREY = [image[..., 0].copy() for image in images(SHAPES)]


def of(layout: str | None, *shape: int, dtype: Any = np.uint8) -> Define:
    """Return a source of three images of this shape and layout."""
    return feed(images([shape] * 3, dtype, seed=3), layout)


TYPED = {
    **{kind: of("HWC", 5, 6, 2, dtype=kind) for kind in TYPES},
    "bool": feed([image > 90 for image in images(SHAPES)], "HWC"),
}
LAID_OUT = {
    "HW": of("HW", 5, 6),
    "CHW": of("CHW", 2, 5, 6),
    "HCW": of("HCW", 5, 2, 6),
    "FHWC": of("FHWC", 3, 5, 6, 2),
    "FCHW": of("FCHW", 3, 2, 5, 6),
    "CFHW": of("CFHW", 2, 3, 5, 6),
    "DHW": of("DHW", 3, 5, 6),
    "DHWC": of("DHWC", 3, 5, 6, 2),
    "FDHWC": of("FDHWC", 2, 3, 5, 6, 2),
    "XY": of("XY", 5, 6),
    "ABCD": of("ABCD", 2, 3, 4, 5),
    "X": of("X", 9),
    "plane": of(None, 5, 6),
    "cube": of(None, 3, 5, 6),
    "four": of(None, 2, 3, 5, 6),
    "nine channels": of("HWC", 4, 5, 9),
}


def per_frame(source: Define) -> Define:
    return lambda module: module.fn.per_frame(source(module))


def integers(values: Any) -> Define:
    return feed([np.array(values, np.int32)] * 3)


def floats(values: Any) -> Define:
    return feed([np.array(values, np.float32)] * 3)


DERIVATIVES: list[dict[str, Any]] = [
    {},
    *({"window_size": size} for size in (5, 23, 31, 33, 4, 1, [3, 5], [3, 5, 7])),
    *({"smoothing_size": size} for size in (1, 5, 31, 33, 4, 0, [1, 3], [3, 5, 7])),
    {"window_size": [3, 5], "smoothing_size": [1, 7]},
    *({"scale": scale} for scale in (2.0, [1.0, 0.5], [1.0, 2.0, 3.0])),
    {"normalized_kernel": True, "window_size": 5},
    {"normalized_kernel": True, "window_size": [3, 5]},
    {"normalized_kernel": True, "window_size": [3, 5], "smoothing_size": [1, 7]},
    {"normalized_kernel": True, "scale": 2.0},
]
FAMILY.each("laplacian", PIXELS, DERIVATIVES)
FAMILY.each("laplacian", PIXELS, [{"dtype": "types.FLOAT", **given} for given in DERIVATIVES])
FAMILY.each("laplacian", PIXELS, [{"dtype": "types.INT16"}])
HALVES = {"float16": TYPED.pop("float16")}
FAMILY.each("laplacian", {**HALVES, **TYPED, **LAID_OUT}, [{}])
FAMILY.each("laplacian", {**TYPED, **LAID_OUT}, [{"dtype": "types.FLOAT", "normalized_kernel": True}])
# On the CPU, DALI multiplies float16 in half precision.
FAMILY.each("laplacian", HALVES, [{"dtype": "types.FLOAT", "normalized_kernel": True}], tolerance=1e-3)
FAMILY.each("laplacian", {"frames, sizes": LAID_OUT["FHWC"]}, [{"window_size": per_frame(integers([3, 5, 7]))}])
FAMILY.each("laplacian", {"frames, scales": LAID_OUT["FHWC"]}, [{"scale": per_frame(floats([1, 2, 0.5]))}])

BLURS: list[dict[str, Any]] = [{"sigma": 1.0}, {"window_size": 5, "dtype": "types.FLOAT"}]
FAMILY.each("gaussian_blur", {**TYPED, **LAID_OUT}, BLURS)
FAMILY.each("gaussian_blur", HALVES, BLURS, tolerance=1e-3)
ON_CPU = {"float16 on CPU": HALVES["float16"]}
FAMILY.each("gaussian_blur", ON_CPU, [*BLURS, {"sigma": 2.5, "window_size": 3}], exact=True, gpu=False)
FAMILY.each("laplacian", ON_CPU, [{"scale": 0.1}, {"dtype": "types.FLOAT", "window_size": 5}], exact=True, gpu=False)

RNG = np.random.default_rng(2)
SMALL, WIDE, LARGE = (RNG.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 3), (2, 5), (13, 17)))
KERNELS = {"small": SMALL / 2, "wide": WIDE / 2, "large": LARGE / 20}


def filtered(source: Define, kernel: Define, fill: Define | None = None, name: str = "filter", **given: Any) -> Define:
    def define(module: Any) -> Any:
        arguments = {
            key: getattr(module.types, value.removeprefix("types."))
            if isinstance(value, str) and value.startswith("types.")
            else value(module)
            if callable(value)
            else value
            for key, value in given.items()
        }
        operator = module.fn.experimental.filter if name != "filter" else module.fn.filter
        return operator(source(module), kernel(module), *([fill(module)] if fill else []), **arguments)

    return define


for size, kernel in KERNELS.items():
    for border in ("reflect_101", "reflect_1001", "clamp", "wrap", "constant", "x"):
        FAMILY.add(f"filter {size}, {border}", filtered(PIXELS["pixels"], floats(kernel), border=border))
    for kind in ("uint8", "int16", "uint16", "float32"):
        source = of("HWC", 9, 11, 3, dtype=kind)
        FAMILY.add(f"filter {size} of {kind}", filtered(source, floats(kernel)))
        FAMILY.add(f"filter {size} of {kind} to floats", filtered(source, floats(kernel), dtype="types.FLOAT"))
    FAMILY.add(f"filter {size}, valid", filtered(PIXELS["pixels"], floats(kernel), mode="valid"))
    FAMILY.add(f"filter {size}, valid in 20 x 20", filtered(of("HWC", 20, 20, 3), floats(kernel), mode="valid"))
    anchors: list[Any] = [[0, 2], 1, 0, [3, 0], [-2, 0], [-1, 0], [1, 1, 1], [1, 4]]
    for anchor in anchors:
        FAMILY.add(f"filter {size}, anchor {anchor}", filtered(PIXELS["pixels"], floats(kernel), anchor=anchor))
        FAMILY.add(
            f"filter {size}, anchor {anchor} in a constant",
            filtered(PIXELS["pixels"], floats(kernel), anchor=anchor, border="constant"),
        )
TYPED |= HALVES
for name, source in {**TYPED, **LAID_OUT}.items():
    FAMILY.add(f"filter of {name}", filtered(source, floats(KERNELS["small"])))
FILLS = {
    "byte": feed([np.uint8(90)] * 3),
    "float": feed([np.float32(90)] * 3),
    "list": feed([np.uint8([90])] * 3),
}
for name, fill in FILLS.items():
    for border in ("constant", "clamp"):
        FAMILY.add(
            f"filter with a {name} around, {border}",
            filtered(PIXELS["pixels"], floats(KERNELS["wide"]), fill, border=border),
        )
for name, values in {
    "integers": integers([[1, 2], [3, 4]]),
    "list": floats([1, 2]),
    "cube": floats([[[1.0, 2.0]]]),
}.items():
    FAMILY.add(f"filter that is {name}", filtered(PIXELS["pixels"], values))
MOVING = floats(np.stack([SMALL, SMALL / 2, SMALL / 3]))
FAMILY.add("filter by frame", filtered(LAID_OUT["FHWC"], per_frame(MOVING)))
FAMILY.add("filter by frame of one image", filtered(of("HWC", 5, 6, 3), per_frame(MOVING)))
FAMILY.add("filter with a mode", filtered(PIXELS["pixels"], floats(SMALL), mode="x"))
FAMILY.add("filter to int16", filtered(PIXELS["pixels"], floats(SMALL), dtype="types.INT16"))
FAMILY.add("experimental.filter", filtered(PIXELS["pixels"], floats(SMALL), name="experimental"))
FAMILY.add(
    "filter, anchors by frame",
    filtered(LAID_OUT["FHWC"], floats(SMALL), anchor=per_frame(integers([[0, 0], [1, 2], [2, 2]]))),
)

CONSTANT = {"constant": feed([np.full((4, 5, 3), 7, np.uint8)] * 3, "HWC")}
FAMILY.each("equalize", {**PIXELS, **TYPED, **LAID_OUT, **CONSTANT}, [{}])
FAMILY.each("experimental.equalize", PIXELS, [{}])

BIG = {"big": of("HWC", 40, 50, 3), "big grey": of("HWC", 40, 50, 1)}
TILES = {"tiles_x": 3, "tiles_y": 4, "clip_limit": 2.0}
FAMILY.each("clahe", {**BIG, "CHW": LAID_OUT["CHW"], "two": of("HWC", 5, 6, 2), "plane": LAID_OUT["plane"]}, [TILES])
FAMILY.each("clahe", {**BIG, "floats": of("HWC", 5, 6, 3, dtype=np.float32)}, [{**TILES, "luma_only": False}])
for limit in (0.0, -1.0, 0.5, 40.0):
    FAMILY.each("clahe", BIG, [{**TILES, "clip_limit": limit}])
FAMILY.each("clahe", BIG, [{**TILES, "tiles_x": 60}, {**TILES, "bins": 100}, {"tiles_x": 3}])

MOSAICS = {
    "HW": feed(GREY, "HW"),
    "HWC": feed([image[..., None] for image in GREY], "HWC"),
    "uint16": feed([image.astype(np.uint16) * 100 for image in GREY], "HW"),
    "int16": feed([image.astype(np.int16) for image in GREY], "HW"),
    "plane": feed(GREY),
    "FHW": of("FHW", 3, 6, 8),
    "FHWC": of("FHWC", 3, 6, 8, 1),
    "pixels": PIXELS["pixels"],
    "odd": of("HW", 5, 6),
    "tiny": of("HW", 2, 2),
}
ALGORITHMS = [f"{name}_ocv" for name in ("bilinear", "edgeaware", "vng", "gray")]
for position in ([0, 0], [0, 1], [1, 0], [1, 1]):
    FAMILY.each("debayer", MOSAICS, [{"blue_position": position}])
    FAMILY.each(
        "debayer",
        {name: MOSAICS[name] for name in ("HW", "uint16")},
        [{"blue_position": position, "algorithm": algorithm} for algorithm in (*ALGORITHMS, "default_npp", "x", "")],
        gpu=False,
    )
BAD: list[Any] = [[1], [0, 1, 0], [0, 2], [-1, 0]]
FAMILY.each("debayer", {"HW": MOSAICS["HW"]}, [{"blue_position": position} for position in BAD])
FAMILY.each("debayer", {"HW": MOSAICS["HW"]}, [{"blue_position": integers([1, 0])}, {}])
FAMILY.each("debayer", {"frames": MOSAICS["FHW"]}, [{"blue_position": per_frame(integers([[1, 0], [0, 1], [1, 1]]))}])
FAMILY.each("experimental.debayer", {"HW": MOSAICS["HW"]}, [{"blue_position": [1, 0]}])

FAMILY.each(
    "jpeg_compression_distortion",
    {
        **BIG,
        **PIXELS,
        "CHW": LAID_OUT["CHW"],
        "plain": of(None, 9, 11, 3),
        "frames": of("FHWC", 2, 9, 11, 3),
        "floats": of("HWC", 9, 9, 3, dtype=np.float32),
    },
    [{}, *({"quality": quality} for quality in (-5, 1, 20, 95, 100, 1000))],
)
FAMILY.each("jpeg_compression_distortion", PIXELS, [{"quality": integers(30)}])

MATRIX = [0.9, 0.2, 3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0]
LIKE = {"like": of("HWC", 12, 14, 3)}
WARPS: list[dict[str, Any]] = [
    *({"border_mode": mode} for mode in ("constant", "replicate", "reflect", "reflect_101", "wrap", "x")),
    *({"border_mode": mode, "inverse_map": False} for mode in ("constant", "replicate", "reflect_101")),
    *({"fill_value": fill} for fill in (9.0, [9.0, 10.0, 11.0], [9.0, 10.0], [1.0, 2.0, 3.0, 4.0])),
    *({"interp_type": f"types.INTERP_{kind}"} for kind in ("NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR")),
    *({"size": size} for size in (9.0, [9.0, 8.0], [9.0, 8.0, 7.0], [5.5, 6.7], [0.0, 6.0], [-3.0, 6.0])),
    {"pixel_origin": "center"},
    {"pixel_origin": "x"},
    {"pixel_origin": "center", "inverse_map": False},
]
FAMILY.each("experimental.warp_perspective", LIKE, [{"matrix": MATRIX, **given} for given in WARPS])
# Many positions are on the edge between two pixels, so that rounding in single precision decides which of them is nearest. DALI
# computes the last pixels of a row in another order than the others, and GPUs compute in yet another order.
DECIMALS = [1.4, -0.2, 0.9, 0.3, 0.7, -2.1, 0.001, -0.002, 1.0]
FAMILY.each(
    "experimental.warp_perspective",
    {
        f"numbered, {width}": feed([np.arange(30 * width, dtype=np.float32).reshape(30, width, 1)] * 3, "HWC")
        for width in (7, 40)
    },
    [
        {"matrix": matrix, "interp_type": "types.INTERP_NN", "inverse_map": inverse, "pixel_origin": origin}
        for matrix in (DECIMALS, [*DECIMALS[:6], 0.0, 0.0, 1.0])
        for inverse in (True, False)
        for origin in ("corner", "center")
    ],
    gpu=False,
    exact=True,
)
FAMILY.each(
    "experimental.warp_perspective",
    {**{f"{kind}": of("HWC", 12, 14, 3, dtype=kind) for kind in TYPES}, **LAID_OUT},
    [{"matrix": MATRIX, "border_mode": "replicate"}],
)
FAMILY.each(
    "experimental.warp_perspective",
    {f"{count} channels": of("HWC", 9, 8, count) for count in (1, 2, 4, 5)},
    [{"matrix": MATRIX, "fill_value": 30.0}],
)
FAMILY.each("experimental.warp_perspective", {"CHW": LAID_OUT["CHW"]}, [{"matrix": MATRIX, "fill_value": [1.0, 2.0]}])
FAMILY.each("experimental.warp_perspective", LIKE, [{}, {"matrix": [1.0, 2.0, 3.0]}, {"matrix": [0.0] * 9}])
SQUARE = np.float32(MATRIX).reshape(3, 3)
FAMILY.each("experimental.warp_perspective", {"like, square": LIKE["like"]}, [{"matrix": floats(SQUARE)}])
FAMILY.each("experimental.warp_perspective", {"like, flat": LIKE["like"]}, [{"matrix": floats(MATRIX)}])
FAMILY.each(
    "experimental.warp_perspective",
    {"frames": LAID_OUT["FHWC"]},
    [{"matrix": per_frame(floats(np.stack([SQUARE] * 3)))}],
)
MATRICES = {
    "square": floats(SQUARE),
    "flat": floats(MATRIX),
    "integers": integers(np.eye(3)),
}
for name, matrix in MATRICES.items():
    FAMILY.add(
        f"warp_perspective with {name} as input",
        lambda m, matrix=matrix: m.fn.experimental.warp_perspective(LIKE["like"](m), matrix(m)),
    )
FAMILY.add(
    "warp_perspective with two matrices",
    lambda m: m.fn.experimental.warp_perspective(LIKE["like"](m), MATRICES["square"](m), matrix=MATRIX),
)
FAMILY.add(
    "warp_perspective with matrices by frame",
    lambda m: m.fn.experimental.warp_perspective(
        LAID_OUT["FHWC"](m), m.fn.per_frame(floats(np.stack([SQUARE, SQUARE * 2, SQUARE.T]))(m))
    ),
)
