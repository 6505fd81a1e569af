"""crop, slice, flip, pad, crop_mirror_normalize."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("windows")
SHAPES = [(10, 15, 3), (8, 5, 3), (4, 22, 3)]
PIXELS = feed(images(SHAPES), "HWC")
FLOATS = feed(images(SHAPES, np.float32), "HWC")
PLANES = feed([np.ascontiguousarray(i.transpose(2, 0, 1)) for i in images(SHAPES)], "CHW")
FRAMES = feed(images([(2, 7, 9, 3)] * 3), "FHWC")
VOLUMES = feed(images([(4, 6, 7, 2)] * 3), "DHWC")

WINDOWS = [
    {"crop": [3, 4]},
    {"crop": [3.5, 4.7], "crop_pos_x": 0.3, "crop_pos_y": 0.8},
    {"crop_h": 3, "crop_w": 4},
    {"crop_h": 3},
    {"crop": [12, 12]},
    {"crop": [12, 12], "out_of_bounds_policy": "pad"},
    {"crop": [12, 12], "out_of_bounds_policy": "trim_to_shape"},
    {"crop": [3, 4], "crop_pos_x": 1.5},
    {"crop": [3, 4], "rounding": "truncate", "crop_pos_x": 0.33},
    {"crop": [3, 4], "rounding": "nonsense"},
    {"crop": [3, 4], "out_of_bounds_policy": "nonsense"},
    {},
    {"crop": [0, 4]},
    {"crop": [2, 3, 4]},
    {"crop": [3, 4], "crop_h": 3, "crop_w": 4},
    {"crop": [3]},
]
FAMILY.each("crop", {"pixels": PIXELS}, WINDOWS)
FAMILY.each("crop", {"floats": FLOATS, "planes": PLANES, "frames": FRAMES}, WINDOWS[:3])
FAMILY.each(
    "crop", {"volumes": VOLUMES}, [{"crop": [2, 3, 4]}, {"crop_d": 2, "crop_h": 3, "crop_w": 3, "crop_pos_z": 1.0}]
)
FAMILY.each(
    "crop",
    {"pixels": PIXELS},
    [{"crop": [3, 3], "dtype": f"types.{t}"} for t in ("FLOAT", "FLOAT16", "UINT8", "INT16")],
)
FAMILY.each(
    "crop",
    {"pixels": PIXELS},
    [{"crop": [12, 12], "out_of_bounds_policy": "pad", "fill_values": f} for f in ([7], [1, 2, 3])],
)
# Sizes that do not fit into 32 bits stand for the whole extent.
for text in ("inf", "-inf", "nan", "3e9", "2.9"):
    width = feed([np.float32(text)] * 3)
    for name in ("crop", "crop_mirror_normalize"):
        FAMILY.each(name, {f"pixels {text} wide": PIXELS}, [{"crop_h": 3, "crop_w": width}])
# Values halfway between two numbers of float16; GPUs round to the even one, unlike DALI on the CPU.
TIES = {"ties": feed([np.array([2049, 2051, -2049, 4098], np.float32).reshape(1, 4, 1) * 2.0**-11] * 3, "HWC")}
FAMILY.each("crop", TIES, [{"crop": [1, 3], "dtype": "types.FLOAT16"}], exact=True, gpu=False)
FAMILY.each("crop_mirror_normalize", TIES, [{"dtype": "types.FLOAT16"}], exact=True, gpu=False)
FAMILY.each("crop_mirror_normalize", {"pixels": PIXELS}, WINDOWS)
FAMILY.each(
    "crop_mirror_normalize",
    {"pixels": PIXELS},
    [
        {"output_layout": layout, "dtype": f"types.{dtype}", "mirror": mirror, **given}
        for layout in ("CHW", "HWC", "")
        for dtype in ("FLOAT", "FLOAT16", "UINT8", "INT8", "INT16")
        for mirror in (0, 1)
        for given in (
            {"mean": [1.0, 2.0, 3.0], "std": [2.0, 3.0, 4.0], "crop": [3, 4]},
            {"mean": 128.0, "std": [50.0], "scale": 2.0, "shift": 1.0, "crop": [3, 4]},
            {"pad_output": True, "crop": [3, 3]},
            {"crop": [9, 9], "out_of_bounds_policy": "pad", "fill_values": [9], "pad_output": True},
            {"crop": [3, 4], "fill_values": [9], "pad_output": True},
        )
    ],
)
# Only with the policy "pad", added channels have fill values, and 0 where fill values are missing. (There is no case with one mean
# for all channels, as DALI then reads beyond the end of the mean.)
FAMILY.each(
    "crop_mirror_normalize",
    {"pixels": PIXELS},
    [
        {"crop": crop, "out_of_bounds_policy": policy, "fill_values": fill, "pad_output": padded, **normalization}
        for crop in ([3, 3], [9, 9])
        for policy in ("pad", "trim_to_shape")
        for fill in ([7], [7, 8], [7, 8, 9], [7, 8, 9, 10], [7, 8, 9, 10, 11])
        for padded in (True, False)
        for normalization in (
            {"mean": [1.0, 2.0, 3.0]},
            {"std": [1.0, 2.0, 3.0], "output_layout": "HWC"},
            {"mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]},
            {"mean": [0.0, 0.0, 0.0], "shift": 1.0},
            {"std": [1.0, 1.0, 1.0], "scale": 2.0},
            {},
        )
    ],
)
FAMILY.each("crop_mirror_normalize", {"frames": FRAMES}, [{"output_layout": "FCHW", "crop": [3, 3]}, {"crop": [3, 3]}])
FAMILY.each("crop_mirror_normalize", {"planes": PLANES}, [{"output_layout": "HWC", "crop": [3, 4], "mirror": 1}])
FAMILY.each("crop_mirror_normalize", {"pixels": PIXELS}, [{"mean": [1.0, 2.0]}])
FAMILY.each(
    "slice",
    {"pixels": PIXELS},
    [
        {"start": [2, 1], "end": [5, 3]},
        {"rel_start": [0.1, 0.2], "rel_end": [0.5, 0.66]},
        {"start": [2, 1], "shape": [3, 3]},
        {"rel_start": [0.3, 0.3], "rel_shape": [0.45, 0.2]},
        {"start": [1], "end": [3], "axes": [0]},
        {"start": [1], "end": [2], "axes": [-1]},
        {"start": [2, 1], "end": [4, 3], "axis_names": "HC"},
        {"start": [2, 1], "end": [50, 300]},
        {"start": [2, 1], "end": [12, 13], "out_of_bounds_policy": "pad", "fill_values": [7]},
        {"start": [2, 1], "end": [50, 300], "out_of_bounds_policy": "trim_to_shape"},
        {"end": [3, 3]},
        {"start": [1, 1]},
        {"start": [5, 5], "end": [2, 2]},
        {"start": [1], "rel_start": [0.2]},
        {"start": [1, 2, 1], "end": [4, 4, 3], "axes": []},
        {"start": [2, 2], "end": [4, 4], "axis_names": "XY"},
        {"rel_start": [0.1, 0.2], "rel_end": [0.5, 0.66], "dtype": "types.FLOAT"},
        {},
    ],
)
for anchor, shape, given in (
    ([0.1, 0.2], [0.3, 0.4], {}),
    ([1.0, 2.0], [3.0, 2.0], {"normalized_anchor": False, "normalized_shape": False}),
    ([0.1], [0.5], {"axes": [0]}),
    ([0.5, 0.5], [0.6, 0.6], {}),
    ([1.0, 2.0], [0.3, 0.2], {"normalized_anchor": False}),
):
    FAMILY.add(
        f"slice at {anchor}, {shape}, {given}", lambda m, a=anchor, s=shape, g=given: m.fn.slice(PIXELS(m), a, s, **g)
    )
FAMILY.add(
    "slice at integers",
    lambda m: m.fn.slice(PIXELS(m), m.types.Constant(np.int32([1, 2])), m.types.Constant(np.int32([3, 2]))),
)
FAMILY.add("slice with an anchor alone", lambda m: m.fn.slice(PIXELS(m), [0.1, 0.1]))
FLIPS = [{}, {"horizontal": 0, "vertical": 1}, {"horizontal": 1, "vertical": 1}, {"depthwise": 1}]
FAMILY.each("flip", {"pixels": PIXELS, "planes": PLANES, "frames": FRAMES, "volumes": VOLUMES}, FLIPS, exact=True)
FAMILY.each(
    "pad",
    {"pixels": PIXELS, "floats": FLOATS},
    [
        {},
        {"axes": [0, 1]},
        {"axis_names": "HW", "align": [8, 16]},
        {"axis_names": "W", "shape": [30]},
        {"axes": [0, 1], "shape": [12, -1], "fill_value": 5},
        {"fill_value": 3.7},
        {"axes": [0], "align": [7]},
        {"axes": [0, 0]},
        {"axes": [5]},
        {"axis_names": "X"},
        {"axes": [0], "align": [0]},
        {"axes": [-1], "shape": [4]},
        {"axes": [0, 1], "shape": [5]},
        {"align": [4]},
    ],
)
# Positions that are whole numbers or end in .5 if they are computed in single precision, but not in double precision.
TALL = feed([np.arange(90 * 80, dtype=np.int32).reshape(90, 80, 1)] * 3, "HWC")
PLACES = [feed([np.float32(place) for place in places]) for places in ([0.7, 0.9, 0.35], [0.65, 0.95, 0.1])]
for rounding in ("round", "truncate"):
    given = {"crop_pos_y": PLACES[0], "crop_pos_x": PLACES[1], "rounding": rounding}
    FAMILY.each("crop", {"tall": TALL}, [{"crop": [45, 50], **given}, {"crop": [50, 20], **given}], exact=True)
ANCHORS = feed([np.float32(place) for place in ([0.35, 0.65], [0.45, 0.0625], [0.05, 0.31])])
PARTS = feed([np.float32(part) for part in ([0.55, 0.2], [0.3, 0.9], [0.9, 0.4])])
FAMILY.add("slice(tall, by inputs)", lambda m: m.fn.slice(TALL(m), ANCHORS(m), PARTS(m), axes=(0, 1)), exact=True)
FAMILY.each("slice", {"tall": TALL}, [{"rel_start": ANCHORS, "rel_shape": PARTS, "axes": [0, 1]}], exact=True)
STARTS = feed([np.int32(start) for start in ([3, 7], [11, 2], [0, 20])])
FAMILY.each("slice", {"tall": TALL}, [{"start": STARTS, "rel_shape": PARTS, "axes": [0, 1]}], exact=True)
FAMILY.each("slice", {"tall": TALL}, [{"rel_start": ANCHORS, "shape": STARTS, "axes": [0, 1]}], exact=True)
FAMILY.each("slice", {"tall": TALL}, [{"rel_start": ANCHORS, "rel_end": PARTS, "axes": [0, 1]}], exact=True)
# Policies, and their aliases, that continue an image beyond its borders, for windows near the image and far from it.
POLICIES = ("clamp", "edge", "reflect", "reflect_1001", "reflect_101", "wrap", "constant", "CONST")
CONTINUED = [{"crop": [25, 40], "out_of_bounds_policy": policy} for policy in POLICIES]
FAMILY.each("crop", {"pixels": PIXELS}, CONTINUED, exact=True)
FAMILY.each("crop", {"planes": PLANES, "frames": FRAMES, "floats": FLOATS}, CONTINUED[2:6:3], exact=True)
FAMILY.each("crop", {"pixels": PIXELS}, [CONTINUED[0] | {"dtype": "types.FLOAT"}], exact=True)
FAMILY.each(
    "slice",
    {"pixels": PIXELS, "tall": TALL},
    [
        {"start": start, "end": end, "axes": [0, 1], "out_of_bounds_policy": policy}
        for policy in POLICIES
        for start, end in (([-2, -3], [12, 30]), ([-50, 30], [-40, 39]))
    ],
    exact=True,
)
# An image of one pixel has no neighbouring pixels that could be mirrored.
SINGLE = feed([np.uint8([[[7]]])] * 3, "HWC")
FAMILY.each("crop", {"one": SINGLE}, [{"crop": [3, 4], "out_of_bounds_policy": p} for p in POLICIES[:6]], exact=True)
FAMILY.each("crop_mirror_normalize", {"pixels": PIXELS}, [CONTINUED[0], CONTINUED[6]])
