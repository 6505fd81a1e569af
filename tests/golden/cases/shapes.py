"""cast, transpose, reshape, squeeze, expand_dims, cat, stack, normalize, indexing, constants."""

from __future__ import annotations

import numpy as np
from case import DALI_TYPES, Family, feed, feed_here, images

FAMILY = Family("shapes")
SHAPES = [(3, 4, 2), (2, 5, 2), (4, 1, 2)]
PIXELS = feed(images(SHAPES), "HWC")
HERE = feed_here(images(SHAPES), "HWC")
FLOATS = feed([i * 600 - 300 for i in images(SHAPES, np.float32)], "HWC")
PLAIN = feed(images([(2, 6)] * 3))
EQUAL = feed(images([(2, 3, 4)] * 3), "HWC")
INPUTS = {"pixels": PIXELS, "floats": FLOATS}
SPECIAL = {
    name: feed([np.array(values, dtype)] * 3)
    for name, values, dtype in (
        ("halves", [0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 300, -1, 1e9, np.inf, -np.inf, np.nan], np.float32),
        ("doubles", [0.5, 0.3, 1e300, -1e300, np.nan], np.float64),
        ("int64", [300, -1, 70000, 2**40, -(2**40)], np.int64),
        ("uint64", [300, 2**63, 5], np.uint64),
        ("bool", [True, False], np.bool_),
        ("float16", [0.5, 2.5, -3.5, 100], np.float16),
    )
}
FAMILY.each("cast", {**INPUTS, **SPECIAL}, [{"dtype": f"types.{name}"} for name in DALI_TYPES], exact=True)
# Values halfway between two numbers of float16; GPUs round to the even one, unlike DALI on the CPU.
TIES = {
    kind: feed([(np.array([2049, 2051, -2049, 4098]) * scale).astype(kind).reshape(2, 2, 1)] * 3, "HWC")
    for kind, scale in (("int32", 1), ("uint16", 1), ("float32", 2.0**-11), ("float64", 2.0**-30))
}
FAMILY.each(
    "cast",
    {f"ties of {kind}": ties for kind, ties in TIES.items()},
    [{"dtype": "types.FLOAT16"}],
    exact=True,
    gpu=False,
)
FAMILY.add("cast_like", lambda m: m.fn.cast_like(FLOATS(m), PIXELS(m)), exact=True)
FAMILY.each(
    "transpose",
    INPUTS,
    [
        {"perm": [2, 0, 1]},
        {},
        {"perm": [1, 0, 2], "transpose_layout": False},
        {"perm": [2, 0, 1], "output_layout": "ABC"},
        {"perm": [0, 1]},
        {"perm": [0, 0, 1]},
        {"perm": [2, 0, 1], "output_layout": "AB"},
        {"perm": []},
    ],
    exact=True,
)
FAMILY.each(
    "reshape",
    {"plain": PLAIN, "equal": EQUAL, "pixels": PIXELS},
    [
        {"shape": [3, 4]},
        {"shape": [-1]},
        {"shape": [4, -1], "layout": "XY"},
        {"shape": [5, 5]},
        {"rel_shape": [0.5, 2]},
        {"rel_shape": [1, -1]},
        {"src_dims": [1, 0]},
        {"src_dims": [0, -1, 1]},
        {"src_dims": [0, 7]},
        {"layout": ""},
        {"layout": "AB"},
        {"layout": "ABC"},
        {},
        {"shape": [-1, -1]},
        {"shape": [3, 4], "rel_shape": [1, 1]},
        {"rel_shape": [2, 1], "src_dims": [1, 0]},
        {"shape": []},
    ],
    exact=True,
)
FAMILY.add("reshape to an input", lambda m: m.fn.reshape(PLAIN(m), m.types.Constant(np.int32([3, 4]))), exact=True)
for name in ("reshape", "reinterpret"):
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float32"):
        extents = feed([np.array([4, 3]).astype(kind)] * 3)
        FAMILY.add(
            f"{name} to {kind} extents",
            lambda m, n=name, e=extents: getattr(m.fn, n)(PLAIN(m), shape=e(m)),
            exact=True,
        )
FAMILY.each(
    "reinterpret",
    {"plain": PLAIN, "floats": FLOATS},
    [
        {"dtype": "types.UINT16"},
        {"dtype": "types.INT8"},
        {"dtype": "types.FLOAT64"},
        {"dtype": "types.INT32"},
        {"dtype": "types.UINT8", "shape": [-1]},
        {},
    ],
    exact=True,
)
FAMILY.each(
    "squeeze",
    {"row": feed(images([(1, 4, 1)] * 3), "HWC"), "pixels": PIXELS},
    [
        {"axes": [0]},
        {"axes": [0, 2]},
        {"axis_names": "C"},
        {"axes": [1]},
        {},
        {"axes": [-1]},
        {"axes": [5]},
        {"axis_names": "X"},
    ],
    exact=True,
)
FAMILY.each(
    "expand_dims",
    {"plain": PLAIN, "pixels": PIXELS},
    [
        {"axes": [0]},
        {"axes": 0, "new_axis_names": "F"},
        {"axes": [0, 2], "new_axis_names": "AB"},
        {"axes": [3]},
        {"axes": [9]},
        {"axes": []},
        {"axes": [0, 0]},
        {"axes": [-1]},
        {"axes": [0], "new_axis_names": "AB"},
        {},
    ],
    exact=True,
)
for operator in ("cat", "stack"):
    for given in (
        {},
        {"axis": 1},
        {"axis": -1},
        {"axis": 9},
        {"axis_name": "W"},
        {"axis_name": "X"},
        {"axis_name": "XY"},
        {"axis": 0, "axis_name": "H"},
    ):
        FAMILY.add(
            f"{operator} {given}",
            lambda m, o=operator, g=given: getattr(m.fn, o)(PIXELS(m), PIXELS(m), **g),
            exact=True,
        )
        FAMILY.add(
            f"{operator} plain {given}",
            lambda m, o=operator, g=given: getattr(m.fn, o)(PLAIN(m), PLAIN(m), PLAIN(m), **g),
            exact=True,
        )
    FAMILY.add(f"{operator} one", lambda m, o=operator: getattr(m.fn, o)(PIXELS(m)), exact=True)
    FAMILY.add(f"{operator} types", lambda m, o=operator: getattr(m.fn, o)(PIXELS(m), FLOATS(m)))
    FAMILY.add(f"{operator} ranks", lambda m, o=operator: getattr(m.fn, o)(PIXELS(m), PLAIN(m)))
    FAMILY.add(f"{operator} extents", lambda m, o=operator: getattr(m.fn, o)(PIXELS(m), EQUAL(m)))
FAMILY.each(
    "normalize",
    {**INPUTS, "equal": EQUAL},
    [
        {},
        {"axes": [0, 1]},
        {"axis_names": "HW"},
        {"batch": True},
        {"batch": True, "axes": [0, 1]},
        {"mean": 100.0},
        {"stddev": 2.0},
        {"mean": 3.0, "stddev": 2.0, "scale": 3.0, "shift": 1.0},
        {"ddof": 1, "epsilon": 0.5},
        {"dtype": "types.UINT8", "scale": 50.0, "shift": 100.0},
        {"axes": [0], "axis_names": "H"},
        {"axes": [7]},
        {"stddev": 2.0, "epsilon": 1.0},
        {"axes": []},
    ],
)
INDICES = {
    "0": lambda x: x[0],
    "-1": lambda x: x[-1],
    "1:": lambda x: x[1:],
    ":, 0": lambda x: x[:, 0],
    ":, :, 1": lambda x: x[:, :, 1],
    "::-1": lambda x: x[::-1],
    "::2, -1:": lambda x: x[::2, -1:],
    ":100": lambda x: x[:100],
    "0, 0, 0": lambda x: x[0, 0, 0],
    "9": lambda x: x[9],
    ":": lambda x: x[:],
    ":, :, :, :": lambda x: x[:, :, :, :],
    "None": lambda x: x[None],
    "3:1": lambda x: x[3:1],
}
for text, index in INDICES.items():
    FAMILY.add(f"x[{text}]", lambda m, i=index: i(HERE(m)), exact=True)
FAMILY.add("x[newaxis]", lambda m: HERE(m)[m.newaxis], exact=True)
FAMILY.add("x[:, newaxis('F'), 0]", lambda m: HERE(m)[:, m.newaxis("F"), 0], exact=True)
FAMILY.add("x[::0]", lambda m: HERE(m)[::0])
FAMILY.add("x[n]", lambda m: HERE(m)[feed([np.int32(0), np.int32(1), np.int32(-1)])(m)], exact=True)
FAMILY.add(
    "shape", lambda m: (PIXELS(m).shape(), PIXELS(m).shape(dtype=m.types.FLOAT), m.fn.shapes(PIXELS(m))), exact=True
)
FAMILY.add("layout property", lambda m: PIXELS(m).property("layout"), exact=True)
FAMILY.add("unknown property", lambda m: PIXELS(m).property("nonsense"))
FAMILY.add("per_frame", lambda m: (m.fn.per_frame(PLAIN(m)), m.fn.per_frame(PIXELS(m), replace=True)), exact=True)
FAMILY.add("per_frame refused", lambda m: m.fn.per_frame(PIXELS(m)))
FAMILY.add("copy", lambda m: m.fn.copy(HERE(m)), exact=True)
CONSTANTS = {
    "int": 3,
    "float": 0.1,
    "bool": True,
    "list": [1, 2, 3],
    "floats": [1.5, 2.5],
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "float64 array": np.array([0.1, 0.2]),
    "int64 array": np.array([1, 2]),
    "uint8 array": np.array([1, 200], np.uint8),
    "bool array": np.array([True, False]),
    "too large": np.array([2**40]),
}
for name, value in CONSTANTS.items():
    FAMILY.add(f"constant {name}", lambda m, v=value: m.types.Constant(v, device="cpu"), exact=True)
FAMILY.add("constant shaped", lambda m: m.types.Constant(7, shape=[2, 2], dtype=m.types.INT16), exact=True)
FAMILY.add("constant with layout", lambda m: m.types.Constant(np.zeros((2, 2), np.uint8), layout="HW"), exact=True)
FAMILY.add("constants as outputs", lambda m: (1, 2.5, True, np.array([1, 2]), [1, 2]), exact=True)
EMPTY = {"no columns": feed([np.zeros((32, 0), np.float32)] * 3), "no rows": feed([np.zeros((0, 4), np.float32)] * 3)}
FAMILY.each("reshape", EMPTY, [{"rel_shape": given} for given in ([-1, 1], [1, -1], [-1, 0.5], [-1, 2], [-1])])
