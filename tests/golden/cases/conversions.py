"""Conversion of arguments: lists for scalars, text, arrays, tensors of other shapes, values for some samples only."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Family, feed, images, resolved, unpacked

FAMILY = Family("conversions", gpu=False)
PIXELS = feed(images([(5, 4, 3)] * 3), "HWC")
PLAIN = feed(images([(5, 4, 3)] * 3))
TABLE = feed(images([(4, 6)] * 3, np.float32), "HW")
POINTS = feed([np.float32([[1, 2], [3, 4]])] * 3)
CORNERS = {
    "a list": [1],
    "an empty list": [],
    "a tuple": (1,),
    "a list of two": [1, 0],
    "a vector of one": np.array([1]),
    "a scalar array": np.array(1),
    "two values": np.array([1, 0]),
    "an empty array": np.array([], np.int32),
    "a matrix of one": np.array([[1]]),
    "a text": "1",
    "another text": "a",
    "a range": range(2),
    "infinity": float("inf"),
    "a set": {1},
    "a type": "types.UINT8",
    "a large number": 3_000_000_000,
}


def per_sample(*samples: Any, dtype: Any = np.float32) -> Any:
    """Return a source whose samples are these values, as arrays."""
    return feed([np.array(sample, dtype) for sample in samples])


ONE = per_sample(1.0, 2.0, 3.0)
ARGUMENTS: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    ("reductions.sum", "keep_dims", TABLE, {"axes": [0]}),
    ("reductions.sum", "axes", TABLE, {}),
    ("cat", "axis", TABLE, {}),
    ("flip", "horizontal", PIXELS, {}),
    ("brightness", "brightness", PIXELS, {}),
    ("expand_dims", "axes", PLAIN, {}),
    ("crop", "fill_values", PIXELS, {"crop": [7, 7], "out_of_bounds_policy": "pad"}),
    ("crop", "rounding", PIXELS, {"crop": [2, 2]}),
    ("reshape", "layout", PLAIN, {}),
    ("cast", "dtype", PLAIN, {}),
    ("resize", "interp_type", PIXELS, {"size": [4, 5]}),
)
for operator, name, source, others in ARGUMENTS:
    for text, value in CORNERS.items():
        # DALI interprets this number as a filter, and fails later.
        if (name, text) != ("interp_type", "a large number"):
            FAMILY.each(operator, {name: source}, [{**others, name: value}])
for name in ("range", "values", "shape"):
    for text, value in CORNERS.items():
        # DALI crashes if there are no values, and the largest shape takes 12 GB.
        if (name, text) not in {("values", "an empty list"), ("values", "an empty array"), ("shape", "a large number")}:
            FAMILY.add(
                f"uniform {name}={text}",
                lambda m, n=name, v=value: m.fn.random.uniform(**{n: resolved(m, v)}, seed=3),
                exact=True,
            )
# DALI checks arguments before the number of inputs, in the order in which the arguments are written.
FAMILY.add("unknown argument, no input", lambda m: m.fn.flip(nonsense=1))
FAMILY.add("a list for a number, no input", lambda m: m.fn.flip(horizontal=[1]))
FAMILY.add("wrong, then unknown", lambda m: m.fn.flip(PIXELS(m), horizontal=[1], nonsense=1))
FAMILY.add("unknown, then wrong", lambda m: m.fn.flip(PIXELS(m), nonsense=1, horizontal=[1]))
FAMILY.add("a list for a number, wrong device", lambda m: m.fn.flip(PIXELS(m), horizontal=[1], device="CPU"))
for device in ("CPU", None, 1):
    FAMILY.add(f"ops with device {device}", lambda m, d=device: m.ops.Flip(device=d)(PIXELS(m)))
# A list argument may be computed by a node, whose samples are vectors; for some arguments, all samples must have the same length.
PAIR = ([1, 2], [1, 2], [1, 2])
SHAPES = {
    "vectors": PAIR,
    "ragged": ([1], [1, 2], [1, 2]),
    "matrices": ([[1, 2]],) * 3,
    "matrices of one": ([[1]],) * 3,
    "scalars": (1, 2, 2),
}
for text, samples in SHAPES.items():
    reals, whole = per_sample(*samples), per_sample(*samples, dtype=np.int32)
    FAMILY.add(f"ones of {text}", lambda m, s=whole: m.fn.ones(shape=s(m)))
    FAMILY.add(f"uniform of {text}", lambda m, s=whole: m.fn.random.uniform(shape=s(m), seed=3), exact=True)
    FAMILY.add(f"range of {text}", lambda m, s=reals: m.fn.random.uniform(range=s(m), seed=3), exact=True)
    FAMILY.add(
        f"reshape to {text}", lambda m, s=whole: m.fn.reshape(feed([np.zeros((2, 1), np.uint8)] * 3)(m), shape=s(m))
    )
    FAMILY.add(f"translation by {text}", lambda m, s=reals: m.fn.transforms.translation(offset=s(m)))
    FAMILY.add(f"crop from {text}", lambda m, s=reals: m.fn.transforms.crop(from_end=s(m)))
    for operator, name, others in (
        ("resize", "size", {}),
        ("resize", "roi_end", {"size": [3, 3], "roi_start": [0, 0]}),
        ("crop", "crop", {}),
        ("tensor_resize", "sizes", {"axes": [0, 1]}),
        ("tensor_resize", "scales", {"axes": [0, 1]}),
        ("crop_mirror_normalize", "mean", {}),
        ("gaussian_blur", "sigma", {}),
        ("rotate", "size", {"angle": 10.0}),
        ("slice", "rel_end", {"start": [0, 0]}),
    ):
        FAMILY.add(
            f"{operator} {name}={text}",
            lambda m, s=reals, o=operator, n=name, k=others: getattr(m.fn, o)(PIXELS(m), **{n: s(m)}, **k),
        )
    for operator, name, others in (
        ("pad", "align", {"axes": [0, 1]}),
        ("pad", "axes", {"shape": [9]}),
        ("slice", "start", {"end": [4, 4]}),
        ("gaussian_blur", "window_size", {"sigma": 1.0}),
    ):
        FAMILY.add(
            f"{operator} {name}={text}",
            lambda m, s=whole, o=operator, n=name, k=others: getattr(m.fn, o)(PIXELS(m), **{n: s(m)}, **k),
        )
MATRIX = np.float32([1, 0, 1, 0, 1, 0])
for shape in ((6,), (2, 3), (1, 6), (1, 2, 3)):
    given = MATRIX.reshape(shape)
    FAMILY.add(f"warp by an array of {shape}", lambda m, g=given: m.fn.warp_affine(PIXELS(m), matrix=g))
# Sizes that a node computes are truncated to integers; sizes in lists are rounded.
for size in ([3.4, 3.6], [3.5, 2.5], np.float32([3.4, 3.6]), np.float32([3.5, 2.5])):
    FAMILY.each("rotate", {"pixels": PIXELS}, [{"angle": 30.0, "size": size}])
    FAMILY.each("warp_affine", {"pixels": PIXELS}, [{"matrix": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], "size": size}])
for size in ([29.4, 19.4], [29.6, 19.6], [30.0, 19.0], np.float32([29.6, 19.6])):
    boxes = feed([np.float32([[0.1, 0.2, 0.3, 0.4]])] * 3)
    FAMILY.each("bbox_rotate", {"boxes": boxes}, [{"angle": 30.0, "input_shape": [28, 11], "size": size}])
# Sizes that a node computes may have other types than float32.
for dtype in ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
    wanted = feed([np.array([30, 19], dtype)] * 3)
    FAMILY.each("rotate", {dtype: PIXELS}, [{"angle": 30.0, "size": wanted}])
    FAMILY.each("bbox_rotate", {dtype: boxes}, [{"angle": 30.0, "input_shape": [28, 11], "size": wanted}])
# A single value that a node computes applies to all axes if it is a scalar, but not if it is a vector of one element.
for text, few in {"vector": [0.5], "scalar": 0.5, "two": [0.5, 0.5]}.items():
    half = per_sample(few, few, few)
    for name in ("scales", "alignment", "roi_start"):
        more = {"scales": {}, "alignment": {"sizes": [3, 3]}, "roi_start": {"sizes": [3, 3], "roi_end": [3.0, 3.0]}}[
            name
        ]
        FAMILY.add(
            f"tensor_resize {name} is a {text}",
            lambda m, n=name, h=half, k=more: m.fn.tensor_resize(PIXELS(m), axes=[0, 1], **{n: h(m)}, **k),
        )
    FAMILY.add(f"coord_transform T is a {text}", lambda m, h=half: m.fn.coord_transform(POINTS(m), T=h(m)))
    FAMILY.add(f"rotation axis is a {text}", lambda m, h=half: m.fn.transforms.rotation(angle=30.0, axis=h(m)))
for kind in (np.float64, np.int32):
    FAMILY.add(
        f"shear by angles of {kind.__name__}",
        lambda m, k=kind: m.fn.transforms.shear(angles=per_sample(*[[10, 20]] * 3, dtype=k)(m)),
    )
FAMILY.each(
    "pad",
    {"pixels": PIXELS},
    [{"shape": []}, {"axes": [0], "shape": []}, {"axes": [0], "shape": np.zeros(0, np.int32)}],
)
# Images without frames take an argument per frame, too, if it has one value.
for count in (1, 2):
    frames = feed([np.full(count, 1.5, np.float32)] * 3)
    for operator, name in (("brightness", "brightness"), ("gaussian_blur", "sigma"), ("rotate", "angle")):
        for text, source in (("named", PIXELS), ("unnamed", PLAIN)):
            FAMILY.add(
                f"{operator} of {text} images by {count} per frame",
                lambda m, o=operator, n=name, f=frames, s=source: getattr(m.fn, o)(s(m), **{n: m.fn.per_frame(f(m))}),
            )
TYPES = (
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT64",
    "FLOAT16",
    "FLOAT",
    "FLOAT64",
    "BOOL",
    "INTERP_TYPE",
)
for kind in TYPES:
    FAMILY.each("shapes", {"pixels": PIXELS}, [{"dtype": f"types.{kind}"}])
for operator in ("ones_like", "zeros_like"):
    FAMILY.each(operator, {"pixels": PIXELS}, [{"dtype": "types.INTERP_TYPE"}])
FAMILY.each("one_hot", {"table": PLAIN}, [{"dtype": "types.DATA_TYPE"}])
FAMILY.each("lookup_table", {"table": PLAIN}, [{"dtype": "types.DATA_TYPE", "keys": [1], "values": [2.0]}])
KERNEL = feed([np.arange(15, dtype=np.float32).reshape(5, 3) / 100] * 3)
for border in (
    "101",
    "reflect101",
    "1001",
    "reflect1001",
    "reflect",
    "edge",
    "fill",
    "pad",
    "CLAMP",
    "Wrap",
    "mirror",
    "zero",
):
    FAMILY.add(f"filter at border {border}", lambda m, b=border: m.fn.filter(PIXELS(m), KERNEL(m), border=b))
for mode in ("SAME", "Valid", "full"):
    FAMILY.add(f"filter in mode {mode}", lambda m, o=mode: m.fn.filter(PIXELS(m), KERNEL(m), mode=o))
for anchor in ([1], [-1], [3], [4, 2], [-2]):
    for mode in ("same", "valid"):
        FAMILY.add(
            f"filter anchored at {anchor}, {mode}",
            lambda m, a=anchor, o=mode: m.fn.filter(
                PIXELS(m), feed([np.ones((2, 4), np.float32)] * 3)(m), anchor=a, mode=o
            ),
        )
# No number is drawn for an axis along which a window has only one possible position.
for seed in range(6):
    FAMILY.add(
        f"random crop with one place in a dimension, seed {seed}",
        lambda m, s=seed: m.fn.roi_random_crop(crop_shape=[2, 2, 2], roi_start=[0, 1, 0], roi_end=[5, 3, 6], seed=s),
        exact=True,
    )
for kind in ("FLOAT", "FLOAT64"):
    for parameters in ((0.5, 0.5), (0.861, 0.429), (0.05, 0.1), (0.99, 0.3)):
        FAMILY.add(
            f"beta of {parameters} as {kind}",
            lambda m, p=parameters, k=kind: m.fn.random.beta(
                alpha=p[0], beta=p[1], shape=[40], seed=5, dtype=getattr(m.types, k)
            ),
        )
for operator in ("variance", "std_dev"):
    FAMILY.add(
        f"{operator} of scalars",
        lambda m, o=operator: getattr(m.fn.reductions, o)(per_sample(15, 7, 3, dtype=np.uint8)(m), ONE(m)),
    )
MOSAIC = feed(images([(6, 4)] * 3), "HW")
for algorithm in ("default", "DEFAULT", "Bilinear_OCV", "bilinear"):
    FAMILY.each("debayer", {"mosaic": MOSAIC}, [{"blue_position": [0, 1], "algorithm": algorithm}])
FAMILY.each(
    "debayer",
    {"mosaic": MOSAIC},
    [{"blue_position": value} for value in (1, [1], per_sample([1], [1], [0], dtype=np.int32))],
)
# Variance and standard deviation over no dimensions.
MEANS = feed(images([(4, 6)] * 3, np.float32, seed=1))
for given in ({"axes": []}, {"axis_names": ""}, {"axes": [], "ddof": 1}):
    for operator in ("variance", "std_dev"):
        for text, mean in (("means", MEANS), ("one mean", ONE)):
            FAMILY.add(
                f"{operator} about {text} {given}",
                lambda m, o=operator, a=mean, g=given: getattr(m.fn.reductions, o)(TABLE(m), a(m), **g),
            )
for given in ({"axes": []}, {"axis_names": ""}):
    for sizes in ([3], [3, 3], []):
        FAMILY.each("tensor_resize", {"table": TABLE}, [{"sizes": sizes, **given}])
FAMILY.each("expand_dims", {"plain": PLAIN}, [{"axes": [0], "new_axis_names": ""}])
FAMILY.each("expand_dims", {"pixels": PIXELS}, [{"axes": [0], "new_axis_names": ""}])
FAMILY.each("reductions.max", {"doubles": feed([np.ones(3)] * 3)}, [{"axes": [1]}, {"axes": [0]}])
FAMILY.each("erase", {"pixels": PIXELS}, [{"axis_names": "H", "axes": [1], "anchor": [1.0], "shape": [2.0]}])
# Extents computed from relative shapes are rounded, halves upwards.
ROWS = feed(images([(5, 12)] * 3))
for given in ([0.5, -1], [0.1, -1], [0.4, 2.5], [1.0, -1], [-1, 0.5], [1.0, 0.5], [1.0, 1.0]):
    FAMILY.each("reshape", {"rows": ROWS}, [{"rel_shape": given}])
    FAMILY.each("reinterpret", {"rows": ROWS}, [{"rel_shape": given}, {"rel_shape": given, "dtype": "types.INT16"}])
for dims in ([0, 1], [1, 0], [0], [0, -1], [-1, 0, 1]):
    FAMILY.each("reinterpret", {"rows": ROWS}, [{"src_dims": dims, "dtype": "types.INT16"}])
FAMILY.each("reinterpret", {"rows": ROWS}, [{"rel_shape": [1.0, 1.0], "shape": [5, 12]}])
for shape in (np.float32([-1]), np.int64([-1]), np.bool_([True]), np.int32(60)):
    for operator in ("reshape", "reinterpret"):
        FAMILY.add(
            f"{operator} to {shape!r}",
            lambda m, o=operator, s=shape: getattr(m.fn, o)(ROWS(m), feed([s] * 3)(m)),
        )
# Fill values are truncated to integers, and wrap around if the type cannot represent them.
for kind in ("uint8", "int8", "int16", "int32", "float32"):
    typed = feed([image.astype(kind) for image in images([(2, 2, 3)] * 3)], "HWC")
    for fill in (2.5, -0.5, -5.0, 300.0, 70000.0):
        outside = {"crop": [2, 3], "out_of_bounds_policy": "pad", "fill_values": fill}
        FAMILY.each("crop", {kind: typed}, [outside, {**outside, "dtype": "types.UINT8"}], exact=True)
        FAMILY.each(
            "crop_mirror_normalize",
            {kind: typed},
            [{**outside, "dtype": f"types.{output}"} for output in ("UINT8", "INT8", "FLOAT16", "FLOAT")],
            exact=True,
        )
        FAMILY.each(
            "erase", {kind: typed}, [{"anchor": [0.0, 0.0], "shape": [1.0, 1.0], "fill_value": fill}], exact=True
        )
BOXES = feed([np.float32([[0.1, 0.2, 0.3, 0.4]])] * 3)
for place in (-0.5, 0.0, 1.0, 1.5):
    for ratio in (0.5, 1.0, 2.0):
        for ltrb in (False, True):
            FAMILY.each("bbox_paste", {"boxes": BOXES}, [{"ratio": ratio, "paste_x": place, "ltrb": ltrb}])
FAMILY.each("mel_filter_bank", {"two bins": feed([np.ones((2, 1), np.float32)] * 3)}, [{"nfilter": 2}, {"nfilter": 4}])
for shape, layout in (((0, 5), "HW"), ((3, 0, 5), "CHW"), ((0, 5, 3), "HWC"), ((0, 5, 1), "HWC")):
    FAMILY.each("equalize", {f"{layout} {shape}": feed([np.zeros(shape, np.uint8)] * 3, layout)}, [{}])
FAMILY.add(
    "nonsilent region about no number",
    unpacked(lambda m: m.fn.nonsilent_region(feed([np.float32([0, 1, 0])] * 3)(m), reference_power=float("nan"))),
)
