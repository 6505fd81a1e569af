"""Reductions: dimensions removed, result types, results."""

from __future__ import annotations

import numpy as np
from case import DALI_TYPES, NUMPY_TYPES, Family, feed, feed_here, images

FAMILY = Family("reductions", exact_on_cpu=True)
SHAPES = [(3, 4, 2), (2, 5, 2), (4, 1, 2)]
TYPED = ("sum", "mean", "mean_square", "rms")
EXTREME = ("min", "max")
PIXELS = feed(images(SHAPES), "HWC")
FLOATS = feed([i * 600 - 300 for i in images(SHAPES, np.float32)], "HWC")
SMALL = {kind: feed([np.array([[2, 3], [2, 4]]).astype(kind)] * 3, "HW") for kind in NUMPY_TYPES}
EDGES = {
    "overflowing": feed([np.uint8([200, 100]), np.uint8([255, 255]), np.uint8([1, 1])]),
    "overflowing signed": feed([np.int8([-100, -100, 3]), np.int8([-100, 100, -3]), np.int8([-1, -1, -3])]),
    "large": feed([np.int32([2**31 - 1, 2**31 - 1, 3]), np.int32([-100, 100, -3]), np.int32([-1, -1, -3])]),
    "scalar": feed([np.float32(3)] * 3),
    "empty": feed([np.zeros((0, 2), np.float32)] * 3),
    "empty integers": feed([np.zeros((0, 2), np.int32)] * 3),
    "special": feed([np.float32([1, np.nan, 3]), np.float32([np.nan] * 3), np.float32([np.inf, np.inf, np.inf])]),
    "minus infinity": feed([np.float32([-np.inf] * 2)] * 3),
    "row": feed([np.float32([[1, np.nan, np.inf]])] * 3),
}
AXES = [
    {"axes": [0]},
    {"axes": 1},
    {"axes": []},
    {"axes": [-1]},
    {"axes": [2, 0]},
    {"axes": [0, 0]},
    {"axes": [0, -3]},
    {"axes": [3]},
    {"axis_names": "C"},
    {"axis_names": "WH"},
    {"axis_names": "X"},
    {"axis_names": ""},
    {"axes": [0], "axis_names": "C"},
    {"keep_dims": True},
    {"axes": [1], "keep_dims": True},
    {"axes": [], "keep_dims": True},
]
for name in (*TYPED, *EXTREME):
    FAMILY.each(f"reductions.{name}", {"pixels": PIXELS, "floats": FLOATS}, [{}, *AXES])
    FAMILY.each(f"reductions.{name}", EDGES, [{}, {"axes": [0]}])
    FAMILY.each(f"reductions.{name}", SMALL, [{}])
for name in TYPED:
    FAMILY.each(f"reductions.{name}", SMALL, [{"dtype": f"types.{kind}"} for kind in DALI_TYPES])
for edge, kind in (("overflowing", "UINT8"), ("overflowing signed", "INT8"), ("large", "INT32")):
    for name in ("sum", "mean", "rms"):
        FAMILY.each(f"reductions.{name}", {edge: EDGES[edge]}, [{"dtype": f"types.{kind}"}])
MEANS = {
    "constant": lambda m: 0.5,
    "of all": lambda m: m.fn.reductions.mean(FLOATS(m)),
    "of channels": lambda m: m.fn.reductions.mean(FLOATS(m), axis_names="HW"),
    "of channels, kept": lambda m: m.fn.reductions.mean(FLOATS(m), axis_names="HW", keep_dims=True),
    "integer": lambda m: 1,
    "double": lambda m: m.types.Constant(np.float64(1), dtype=m.types.FLOAT64, device="cpu"),
}
DEVIATIONS = [
    ("constant", {}),
    ("of all", {}),
    ("of all", {"ddof": 1}),
    ("of all", {"keep_dims": True}),
    ("of channels", {"axes": [0, 1]}),
    ("of channels", {"axis_names": "HW", "ddof": 4}),
    ("of channels", {"axis_names": "HW", "ddof": 20}),
    ("of channels", {"axis_names": "HW", "ddof": -1}),
    ("of channels, kept", {"axis_names": "HW", "keep_dims": True}),
    ("of channels, kept", {"axis_names": "HW"}),
    ("integer", {}),
    ("double", {}),
]
for name in ("variance", "std_dev"):
    for mean, given in DEVIATIONS:
        for source_name, source in (("floats", FLOATS), ("pixels", PIXELS)):
            FAMILY.add(
                f"{name} of {source_name}, mean {mean}, {given}",
                lambda m, n=name, s=source, a=mean, g=given: getattr(m.fn.reductions, n)(s(m), MEANS[a](m), **g),
                gpu=False,
            )
    for kind, source in SMALL.items():
        FAMILY.add(
            f"{name} of {kind}",
            lambda m, n=name, s=source: getattr(m.fn.reductions, n)(s(m), feed([np.float32(3)] * 3)(m)),
            gpu=False,
        )
    FAMILY.add(
        f"{name} on either device",
        lambda m, n=name: getattr(m.fn.reductions, n)(feed_here(images(SHAPES))(m), feed_here([np.float32(3)] * 3)(m)),
    )
