"""Arguments and operands: promotion of types, clamped constants, axes, values per frame, and rejected values."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Family, feed, images

FAMILY = Family("arguments", gpu=False)
BYTES = feed([np.array([1, 2], np.uint8)] * 3)
FLAGS = feed([np.array([True, False])] * 3)
REALS = feed([np.array([1, 2], np.float32)] * 3)
PIXELS = feed(images([(5, 4, 3)] * 3), "HWC")
PLAIN = feed(images([(5, 4, 3)] * 3))


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    """Return a source whose samples are all the numbers 0, 1, 2, etc. in this shape."""
    return feed([np.arange(np.prod(shape)).reshape(shape).astype(dtype)] * 3)


# In expressions, NumPy's numbers and arrays keep their type; a `Constant` is clamped to its type.
for name, value in {
    "int64": np.int64(3),
    "uint8": np.uint8(3),
    "0-d int64": np.array(3),
    "1-d int64": np.array([3, 4]),
    "1-d uint64": np.array([3, 4], np.uint64),
    "1-d float64": np.array([3.0, 4.0]),
    "list": [3, 4],
    "nested list": [[3, 4]],
}.items():
    FAMILY.add(f"uint8 + {name}", lambda m, v=value: BYTES(m) + v, exact=True)
    FAMILY.add(f"copy of {name}", lambda m, v=value: m.fn.copy(v), exact=True)
    FAMILY.add(f"Constant of {name}", lambda m, v=value: m.fn.copy(m.types.Constant(v)), exact=True)
FAMILY.add("numpy's truth is no operand", lambda m: m.fn.copy(np.bool_(True)))
FAMILY.add("list of nodes as operand", lambda m: m.math.max([BYTES(m)], 5))
FAMILY.add("only constants", lambda m: m.math.max(3, 5))
for value, dtype in [
    (300, "UINT8"),
    (-3, "UINT16"),
    (3_000_000_000, "INT32"),
    ([-2.7, 2.5], "INT32"),
    (1e300, "FLOAT"),
]:
    FAMILY.add(
        f"constant {value} as {dtype}",
        lambda m, v=value, t=dtype: m.types.Constant(v, dtype=getattr(m.types, t)),
        exact=True,
    )
FAMILY.add("named constant", lambda m: m.types.Constant([1, 2], name="pair"), exact=True)
FAMILY.add("constant of two sizes", lambda m: m.types.Constant([1, 2, 3], shape=[2]))
FAMILY.add("idata and fdata", lambda m: m.fn.constant(idata=[1], fdata=[1.0]))
for function in ("sqrt", "abs"):
    FAMILY.add(f"{function} of booleans", lambda m, f=function: getattr(m.math, f)(FLAGS(m)))
FAMILY.add("bits of reals", lambda m: REALS(m) & BYTES(m))
SIX, SEVEN = (2, 1, 2, 1, 2, 1, 1), (2, 1, 2, 1, 2, 1, 2)
for shape in (SIX, SEVEN):
    other = tuple(3 - extent for extent in shape[:-1])
    FAMILY.add(
        f"broadcasting {shape}", lambda m, s=shape, o=other: m.fn.zeros(shape=s) + m.fn.zeros(shape=(*o, 1)), exact=True
    )
FAMILY.add("layout of lower rank", lambda m: PLAIN(m) + feed([np.ones(3, np.float32)] * 3, "C")(m))

# Joined data have the layout of the first input.
HW, WH, NONE = (feed([np.ones((2, 2), np.uint8)] * 3, layout) for layout in ("HW", "WH", None))
for name, one, other in [("HW and WH", HW, WH), ("none and WH", NONE, WH)]:
    FAMILY.add(f"cat of {name}", lambda m, a=one, b=other: m.fn.cat(a(m), b(m)))
    FAMILY.add(f"stack of {name}", lambda m, a=one, b=other: m.fn.stack(a(m), b(m), axis=1, axis_name="C"))
for axis in (-3, -2, 2, 3):
    FAMILY.add(f"stack along {axis}", lambda m, a=axis: m.fn.stack(HW(m), HW(m), axis=a))
for axes, names in [([0, -1], ""), ([2, 0, 2], "AB"), ([0, 2], "AB"), ([4], "")]:
    FAMILY.add(
        f"expand_dims({axes}, {names!r})", lambda m, a=axes, n=names: m.fn.expand_dims(HW(m), axes=a, new_axis_names=n)
    )

# An argument of `slice` with a single value applies to all axes; anchor and shape that are inputs need a value for each axis,
# and must have the same type.
for arguments in [
    {"start": [1], "axes": [0, 1]},
    {"start": [0, 1], "end": [2], "axes": [0, 1]},
    {"start": 1, "axes": []},
    {"start": [1, 1], "axes": []},
    {"start": [1], "axes": [0], "axis_names": "H"},
    {"start": [1], "axis_names": "C"},
    {"start": [1], "axes": [3]},
    {"start": [1, 1], "end": [2, 2], "shape": [1, 1]},
]:
    FAMILY.each("slice", {"pixels": PIXELS, "plain": PLAIN}, [arguments], exact=True)
for anchor, extent in [
    (np.int32([1, 1]), np.int32([2, 1])),
    (np.int32([1]), np.int32([2])),
    (np.int32([1, 1]), np.int32([2])),
    (np.int32([1, 1]), np.float32([2, 1])),
    (np.uint8([1, 1]), np.uint8([2, 1])),
]:
    FAMILY.add(
        f"slice {anchor.tolist()} {anchor.dtype} {extent.tolist()} {extent.dtype}",
        lambda m, a=anchor, e=extent: m.fn.slice(PIXELS(m), a, e),
        exact=True,
    )

# `crop` treats frames as depth; a size that is not positive means the whole extent.
FRAMES = feed(images([(5, 6, 7, 2)] * 3), "FHWC")
VOLUMES = feed(images([(5, 6, 7, 2)] * 3), "DHWC")
FAMILY.each("crop", {"frames": FRAMES, "volumes": VOLUMES}, [{"crop": [2, 3, 3]}, {"crop": [2, 3]}, {"crop": [2]}])
FAMILY.each("crop", {"pixels": PIXELS}, [{"crop": [-2, 2]}, {"crop": [9, 2, 2]}])
FAMILY.each(
    "crop_mirror_normalize", {"frames": FRAMES}, [{"crop_d": 2, "crop_h": 3, "crop_w": 3, "output_layout": "FCHW"}]
)

# Values for each frame, with frames before or after the channels.
for layout, shape in [("FHWC", (3, 6, 7, 2)), ("FCHW", (3, 2, 6, 7)), ("CFHW", (2, 3, 6, 7)), ("CHW", (3, 6, 7))]:
    data = feed(images([shape] * 3), layout)
    FAMILY.add(
        f"gaussian_blur per frame of {layout}",
        lambda m, d=data: m.fn.gaussian_blur(
            d(m), window_size=m.fn.per_frame(feed([np.int32([[3, 5], [5, 3], [7, 7]])] * 3)(m))
        ),
    )
    FAMILY.add(
        f"laplacian per frame of {layout}",
        lambda m, d=data: m.fn.laplacian(d(m), scale=m.fn.per_frame(feed([np.float32([1, 2, 3])] * 3)(m))),
    )
for layout in ("DHCW", "HFWC", "CWF", "FCCHW"):
    data = feed(images([(2,) * len(layout)] * 3), layout)
    FAMILY.each("gaussian_blur", {layout: data}, [{"sigma": 1.0}])
FAMILY.each("gaussian_blur", {"scalars": feed([np.ones(4, np.float32)] * 3, "F")}, [{"sigma": 1.0}])

# Without `axes`, `normalize` derives its axes from the mean's shape.
for shape in [(5, 1, 1), (1, 4, 1), (1, 1, 1), (1,), (), (4,)]:
    for arguments in ({}, {"axes": [1, 2]}):
        FAMILY.add(
            f"normalize with mean of {shape}, {arguments}",
            lambda m, s=shape, a=arguments: m.fn.normalize(PIXELS(m), mean=numbers(*s)(m), **a),
        )
FAMILY.each(
    "normalize",
    {"pixels": PIXELS},
    [
        {"mean": 1.0, "stddev": 2.0, "axes": [0]},
        {"axes": [-1]},
        {"axis_names": ""},
        {"mean": np.float32([3]), "axes": [0]},
    ],
)
# DALI checks the axes before it checks the mean's type.
for axes in ([5], [0, 0], [0]):
    FAMILY.add(
        f"deviation along {axes} from a mean of integers",
        lambda m, a=axes: m.fn.reductions.std_dev(PIXELS(m), numbers(4, 3, dtype=np.int32)(m), axes=a),
    )

for shape in [(2,), (2, 1), (3, 2), (6,), (3, 3)]:
    for name in ("shear", "angles"):
        FAMILY.add(f"{name} of {shape}", lambda m, n=name, s=shape: m.fn.transforms.shear(**{n: numbers(*s)(m)}))
FAMILY.add("no points", lambda m: m.fn.coord_transform(feed([np.zeros((0, 3))] * 3, "AB")(m), M=2.0))
for axis in (-1, -2, 1):
    FAMILY.each("power_spectrum", {"signals": numbers(4, 6)}, [{"axis": axis}, {"axis": axis, "nfft": 0}])
PULSE = np.zeros(21, np.int16)
PULSE[10:15] = 3000
for kind in (np.int16, np.float32):
    data = feed([PULSE.astype(kind)] * 3)
    FAMILY.add(
        f"nonsilent_region of {np.dtype(kind)}", lambda m, d=data: tuple(m.fn.nonsilent_region(d(m), window_length=5))
    )
HALVES = feed(images([(5, 4, 3)] * 3, np.float16), "HWC")
FAMILY.each("hue", {"halves": HALVES}, [{"hue": 30.0}])
FAMILY.each("crop_mirror_normalize", {"halves": HALVES}, [{"mean": [0.5], "std": [0.2]}])
FAMILY.each("paste", {"pixels": PIXELS}, [{"ratio": 1.2, "fill_value": 7, "min_canvas_size": -1.0}])
FAMILY.each("noise.shot", {"pixels": PIXELS}, [{"factor": 0.0}])
FAMILY.each(
    "resize",
    {
        "empty": feed(
            [np.zeros((0, 8, 3), np.uint8), np.zeros((4, 0, 3), np.uint8), np.zeros((2, 2, 3), np.uint8)], "HWC"
        )
    },
    [{"size": [3, 3]}],
)
