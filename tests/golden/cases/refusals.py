"""Types, ranks, layouts and operands that operators reject, and results just inside the limits."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images, unpacked

FAMILY = Family("refusals", gpu=False)
TYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "bool"),
)
PIXELS = images([(5, 4, 3)] * 3)
NAMED = feed(PIXELS, "HWC")
VECTOR = feed([np.float32([1, 2, 3])] * 3)
OF_ANY_TYPE = {
    "crop": {"crop": [3, 2]},
    "crop_mirror_normalize": {"crop": [3, 2]},
    "flip": {},
    "grid_mask": {"tile": 3},
    "normalize": {},
    "pad": {"axes": [0], "shape": [7]},
    "slice": {"start": [1, 1], "end": [3, 3]},
}
for kind in TYPES:
    pixels = feed([image.astype(kind) for image in PIXELS], "HWC")
    for name, given in OF_ANY_TYPE.items():
        FAMILY.each(name, {kind: pixels}, [given])
    shapes = feed([np.array([20, 30, 3], kind)] * 3)
    FAMILY.add(
        f"random_crop_generator({kind})",
        unpacked(lambda m, s=shapes: m.fn.random_crop_generator(s(m), random_area=[1.0], random_aspect_ratio=1.5)),
    )
    dali_name = {"float32": "FLOAT"}.get(kind, kind.upper())
    for data in ({"idata": [1, 2]}, {"fdata": [1.5, 2.5]}):
        FAMILY.add(
            f"constant({kind}, {data})", lambda m, t=dali_name, d=data: m.fn.constant(dtype=getattr(m.types, t), **d)
        )
    # To the left of a node, a number of NumPy is treated as a Python number, and DALI refuses arrays.
    number, array = np.dtype(kind).type(1), np.ones(3, kind)
    FAMILY.add(f"{kind} number + node", lambda m, n=number: n + VECTOR(m))
    FAMILY.add(f"{kind} number < node", lambda m, n=number: n < VECTOR(m))
    FAMILY.add(f"node < {kind} number", lambda m, n=number: VECTOR(m) < n)
    FAMILY.add(f"{kind} array + node", lambda m, a=array: a + VECTOR(m))
    FAMILY.add(f"{kind} array < node", lambda m, a=array: a < VECTOR(m))
for rank in range(1, 8):
    plain = feed(images([(2,) * rank] * 3))
    FAMILY.each("slice", {f"rank {rank}": plain}, [{"start": [0], "shape": [1], "axes": [0]}])
    FAMILY.each("pad", {f"rank {rank}": plain}, [{"axes": [0], "shape": [3]}])
FAMILY.each("crop", {"volumes of frames": feed(images([(2, 2, 3, 3, 1)] * 3), "FDHWC")}, [{"crop": [2, 2]}])
for name in ("brightness", "hsv", "color_twist", "contrast"):
    for layout in ("FHWC", "DHWC", "FDHWC", "CHW"):
        shape = [3 if letter == "C" else 2 for letter in layout]
        FAMILY.each(name, {layout: feed(images([shape] * 3), layout)}, [{}])
for given in ({}, {"element_map": None}, {"element_map": []}, {"element_map": [1]}):
    FAMILY.each("element_extract", {"frames": feed(PIXELS, "FHW")}, [given])
for number in (-1, 2, 6, 7, 100, 2.5, "x"):
    FAMILY.each("resize", {"pixels": NAMED}, [{"size": [4, 2], "interp_type": number}])
    FAMILY.each("color_space_conversion", {"pixels": NAMED}, [{"image_type": number, "output_type": "types.GRAY"}])
for number in (100, 2.5, "x"):
    FAMILY.each("cast", {"pixels": NAMED}, [{"dtype": number}])
# If a node computes a single value for all dimensions of a box, the value must be a scalar.
for text, value in (
    ("scalar", np.int32(1)),
    ("nothing", np.zeros(0, np.int32)),
    ("one", np.int32([1])),
    ("two", np.int32([1, 0])),
    ("three", np.int32([1, 0, 1])),
):
    for given in ({}, {"axes": [0]}, {"axes": [0, 1]}, {"axes": []}, {"axes": [1, 0], "shape": [2]}):
        FAMILY.add(
            f"slice from {text} {given}", lambda m, v=value, g=given: m.fn.slice(NAMED(m), start=feed([v] * 3)(m), **g)
        )
SIGNAL = feed([np.sin(np.arange(50, dtype=np.float32))] * 3)
FAMILY.each(
    "spectrogram",
    {"signal": SIGNAL},
    [
        {"nfft": 1, "window_length": 1},
        {"window_length": 0},
        {"window_fn": [], "nfft": 8, "window_length": 8},
        {"nfft": 2, "window_length": 2, "window_step": 4},
    ],
)
for area in ([0.5], 0.5, [0.3, 0.3], [0.5, 0.1], [0.1, 0.2, 0.3]):
    FAMILY.each("random_resized_crop", {"pixels": NAMED}, [{"size": [4, 4], "random_area": area, "seed": 7}])
for ratio in ([0.0, 0.0], 1.0, [1.0, 1.0]):
    FAMILY.each("random_resized_crop", {"pixels": NAMED}, [{"size": [4, 4], "random_aspect_ratio": ratio, "seed": 7}])
# If there is a mean for each element, DALI computes all deviations from the first mean.
OWN = feed(images([(2, 3), (4,) * 2, (1, 3)], np.float32))
MEANS = feed(images([(2, 3), (4,) * 2, (1, 3)], np.float32, seed=1))
for given in ({}, {"epsilon": 0.5}, {"stddev": 2.0}, {"scale": 3.0, "shift": 1.0}, {"ddof": 1}):
    FAMILY.add(f"normalize of means {given}", lambda m, g=given: m.fn.normalize(OWN(m), mean=MEANS(m), **g))
# Fill values that do not fit into bytes wrap around in some operators, and saturate in others.
for fill in (0.7, 2.5, -1.0, 300.0):
    FAMILY.each("pad", {"pixels": NAMED}, [{"axes": [0], "shape": [6], "fill_value": fill}], exact=True)
    FAMILY.each("water", {"pixels": NAMED}, [{"ampl_x": 50.0, "ampl_y": 50.0, "fill_value": fill}], exact=True)
    FAMILY.each("rotate", {"pixels": NAMED}, [{"angle": 90.0, "size": [9.0, 9.0], "fill_value": fill}], exact=True)
for extent in (0.4, 4.5, 5.5, 6.4, 0.0):
    FAMILY.each("rotate", {"pixels": NAMED}, [{"angle": 90.0, "size": [extent, 3.0]}])
for kind in TYPES:
    dali_name = {"float32": "FLOAT"}.get(kind, kind.upper())
    FAMILY.each("normalize", {"pixels": NAMED}, [{"scale": 50.0, "shift": 100.0, "dtype": f"types.{dali_name}"}])
for rank in range(1, 6):
    FAMILY.each("power_spectrum", {f"rank {rank}": feed(images([(4,) * rank] * 3, np.float32))}, [{}])
for size in (1, 2, 3):
    FAMILY.each("power_spectrum", {"signal": SIGNAL}, [{"nfft": size}])
for layout in ("H", "HWC", ""):
    FAMILY.each("reinterpret", {"pixels": NAMED}, [{"layout": layout}])
# A vector that a node computes must have an element for each dimension.
for values in ([1.0], [1.0, 2.0]):
    center = feed([np.float32(values)] * 3)
    FAMILY.add(f"rotation about {values}", lambda m, c=center: m.fn.transforms.rotation(angle=30.0, center=c(m)))
    FAMILY.add(f"scale about {values}", lambda m, c=center: m.fn.transforms.scale(scale=[2.0, 3.0], center=c(m)))
    FAMILY.add(f"shear about {values}", lambda m, c=center: m.fn.transforms.shear(shear=[2.0, 3.0], center=c(m)))
for given in ({"output_layout": ""}, {"output_layout": "", "transpose_layout": False}, {"transpose_layout": False}):
    FAMILY.each("transpose", {"pixels": NAMED}, [{"perm": [2, 0, 1], **given}])
for given in ({"output_class": False}, {"output_class": True}, {"classes": [1]}):
    FAMILY.add(
        f"random_object_bbox ignoring classes {given}",
        unpacked(
            lambda m, g=given: m.fn.segmentation.random_object_bbox(
                feed([np.ones((3, 3), np.int32)] * 3)(m), ignore_class=True, foreground_prob=1.0, **g
            )
        ),
    )
# Images without pixels.
EMPTY = feed(images([(0, 4, 3)] * 3), "HWC")
FAMILY.each("equalize", {"empty": EMPTY}, [{}])
FAMILY.each("jpeg_compression_distortion", {"empty": EMPTY}, [{"quality": 50}])
FAMILY.each("color_space_conversion", {"empty": EMPTY}, [{"image_type": "types.RGB", "output_type": "types.BGR"}])
FAMILY.each("random_resized_crop", {"empty": EMPTY}, [{"size": [3, 3]}])
# Arguments that name a dimension twice.
for given in ({"axes": [0, 0]}, {"axes": [0, 1, 0]}, {"axis_names": "WHW"}):
    corners = {"anchor": [0.0, 1.0, 3.0][: len(next(iter(given.values())))]}
    shape = {"shape": [2.0, 2.0, 1.0][: len(corners["anchor"])]}
    FAMILY.each("erase", {"pixels": NAMED}, [{**given, **corners, **shape, "fill_value": 7.0}], exact=True)
FAMILY.each("reductions.sum", {"pixels": NAMED}, [{"axes": [0, 0]}, {"axes": [1, -2]}])
# Subscripts of a node.
CUBE = feed([np.arange(24, dtype=np.int32).reshape(2, 3, 4)] * 3, "HWC")
VECTORS, FLAGS = feed([np.int32([1])] * 3), feed([np.bool_(True)] * 3)
for text, index in (
    ("True", lambda m: True),
    ("a number of numpy", lambda m: np.float32(1)),
    ("an array of one", lambda m: np.array([1])),
    ("an array", lambda m: np.array([0, 1])),
    ("a constant", lambda m: m.types.Constant(1)),
    ("a node of one dimension", VECTORS),
    ("up to a node of one dimension", lambda m: slice(None, VECTORS(m))),
    ("a node of bool", FLAGS),
    ("a real number", lambda m: 1.0),
):
    FAMILY.add(f"brackets: {text}", lambda m, i=index: CUBE(m)[i(m)], exact=True)
BOXES = np.array([[0.1, 0.2, 0.5, 0.6], [0.3, 0.3, 0.9, 0.8]])
for kind in ("float32", "int64", "int32"):
    boxes = feed([(BOXES * (1 if kind == "float32" else 10)).astype(kind)] * 3)
    FAMILY.each("bbox_rotate", {kind: boxes}, [{"angle": 30.0, "input_shape": [10, 20]}])
for given in ({"shape": [15]}, {"shape": [-1]}, {"shape": [5, 3]}, {"rel_shape": [1.0, -1.0]}, {}, {"shape": [16]}):
    FAMILY.each("reinterpret", {"pixels": NAMED}, [{"dtype": "types.INT32", **given}], exact=True)
FAMILY.each("normalize", {"pixels": NAMED}, [{"stddev": 0.0, "mean": 3.0}, {"stddev": 0.0, "dtype": "types.UINT8"}])
# A constant list of one value applies to all axes; a vector of one value that a node computes does not.
for start, end in (([1], [2]), ([1.0], [3, 4]), ([0, 1], [3]), (feed([np.float32([1])] * 3), [3, 4])):
    FAMILY.each("resize", {"pixels": NAMED}, [{"size": [2, 2], "roi_start": start, "roi_end": end}])
# Sequences without frames: some operators refuse them, others return sequences without frames that keep their height and width.
NO_FRAMES = {"no frames": feed([np.zeros((0, 5, 4, 3), np.uint8), *images([(2, 5, 4, 3)] * 2)], "FHWC")}
for name, given in (
    *(
        ("rotate", {"angle": 10.0}),
        ("warp_affine", {"matrix": [1.0, 0, 0, 0, 1, 0]}),
        ("gaussian_blur", {"sigma": 1.0}),
    ),
    *(("brightness_contrast", {}), ("color_twist", {}), ("laplacian", {}), ("equalize", {})),
    *(("debayer", {"blue_position": [0, 0]}), ("multi_paste", {"output_size": [5, 5], "in_ids": [0, 1, 2]})),
):
    FAMILY.each(name, NO_FRAMES, [given])
# Constant extents of 0.
for name in ("reshape", "reinterpret"):
    FAMILY.each(name, {"pixels": NAMED}, [{"shape": [0]}, {"shape": [0, -1]}])
for axes in ([0], [1], [3], [1, 2], []):
    FAMILY.each("expand_dims", {"pixels": NAMED}, [{"axes": axes, "new_axis_names": ""}], exact=True)
THIN = feed(images([(1, 4, 1)] * 3), "HWC")
for axes in ([2, 0], [0, -1], [-1, -1], [7, 0], [9, 9], feed([np.int32([0])] * 3)):
    FAMILY.each("squeeze", {"one row and channel": THIN}, [{"axes": axes}], exact=True)
for given in ({"axes": [], "start": [], "end": []}, {"start": [], "end": []}, {"axes": [], "start": [1], "end": [2]}):
    FAMILY.each("slice", {"pixels": NAMED}, [given], exact=True)
for columns, rows in ((6, 6), (7, 2), (2, 7)):
    points = feed([np.ones((4, columns), np.float32)] * 3)
    FAMILY.each("coord_transform", {f"points of {columns}": points}, [{"M": [1.0] * rows * columns, "T": [1.0] * rows}])
FAMILY.each("pad", {"scalars": feed([np.float32(2)] * 3)}, [{}])
FAMILY.each("paste", {"no rows": feed([np.zeros((0, 5, 3), np.uint8)] * 3, "HWC")}, [{"ratio": 2.0, "fill_value": [1]}])
for probability in (np.nan, np.inf, -np.inf, -0.3, 2.0, -1e10):
    FAMILY.add(
        f"coin_flip({probability})",
        lambda m, p=float(probability): m.fn.random.coin_flip(probability=p, shape=[20], seed=3),
        exact=True,
    )
for angle in (np.nan, np.inf):
    FAMILY.add(f"transforms.rotation({angle})", lambda m, a=float(angle): m.fn.transforms.rotation(angle=a))
FAMILY.each(
    "noise.shot", {"signed": feed([np.float32([-5, -1, 0, 3, 200])] * 3)}, [{"factor": 0.0, "seed": 3}], exact=True
)
# Computed values with a wrong number of dimensions, and values per frame for operators or arguments that do not support them.
IN_FRAMES = feed([np.stack([image, image]) for image in PIXELS], "FHWC")
for name, given, argument, value in (
    ("bb_flip", {}, "horizontal", np.int32([1])),
    ("resize_crop_mirror", {"size": [4, 2]}, "mirror", np.int32([1])),
    ("resize", {}, "size", np.float32([4])),
    ("rotate", {"angle": 30.0}, "size", np.float32([])),
    ("pad", {}, "align", np.int32([8])),
    ("pad", {}, "align", np.int32(8)),
    ("pad", {"axes": [0, 1]}, "shape", np.int32([30])),
    ("normalize", {}, "mean", np.uint8([[[120]]])),
    ("reshape", {"layout": "X"}, "shape", np.int32(-1)),
    ("experimental.warp_perspective", {}, "matrix", np.ones((9, 1), np.float32)),
    ("experimental.warp_perspective", {"matrix": [1.0, 0, 0, 0, 1, 0, 0, 0, 1]}, "size", np.float32([20])),
    ("coord_transform", {}, "M", np.uint8([[1, 0, 0], [0, 1, 0], [0, 0, 1]])),
):
    data = feed(images([(3, 4)] * 3, np.float32)) if name == "bb_flip" else NAMED
    if name == "coord_transform":
        data = feed(images([(5, 3)] * 3, np.float32))
    FAMILY.each(name, {f"{argument} of shape {value.shape}": data}, [given | {argument: feed([value] * 3)}])
for name, given, argument, value in (
    ("crop", {}, "crop", [3.0, 2.0]),
    ("slice", {"end": [4, 4]}, "start", np.int32([1, 1])),
    ("resize", {}, "size", [4.0, 2.0]),
    ("rotate", {"angle": 30.0}, "size", [4.0, 2.0]),
    ("jpeg_compression_distortion", {}, "quality", np.int32(50)),
    ("multi_paste", {"in_ids": [0, 1, 2]}, "output_size", np.int32([5, 5])),
):
    values = np.float32(value) if isinstance(value, list) else value
    for count, data in ((1, NAMED), (2, IN_FRAMES)):
        of_frames = feed([np.stack([values] * count)] * 3)
        FAMILY.each(
            name,
            {f"{argument} per frame, {count}": data},
            [given | {argument: lambda m, o=of_frames: m.fn.per_frame(o(m))}],
        )
for argument, value in (("threshold", np.uint8(0)), ("threshold", np.float32([0, 0])), ("value", np.int32([]))):
    FAMILY.add(
        f"random_mask_pixel {argument} {value!r}",
        lambda m, a=argument, v=value: m.fn.segmentation.random_mask_pixel(NAMED(m), **{a: feed([v] * 3)(m)}),
    )
FAMILY.add(
    "random_object_bbox of one threshold",
    unpacked(
        lambda m: m.fn.segmentation.random_object_bbox(
            feed([np.ones((3, 3), np.int32)] * 3)(m), threshold=feed([np.int32([1])] * 3)(m)
        )
    ),
)
for argument in ("in_shape", "roi_start", "roi_end"):
    corners = {"in_shape": [9, 9], "roi_start": [1, 1], "roi_end": [8, 8]}
    for value in (np.int32([7]), np.int32(7)):
        FAMILY.add(
            f"roi_random_crop {argument} {value!r}",
            lambda m, g=corners, a=argument, v=value: m.fn.roi_random_crop(
                crop_shape=[1, 1], **(g | {a: feed([v] * 3)(m)})
            ),
        )
FAMILY.each("resize", {"pixels": NAMED}, [{"size": [4, 2], "max_size": []}])
