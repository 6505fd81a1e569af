"""brightness, contrast, hue, saturation, colour spaces, blur."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("colours")
SHAPES = [(5, 7, 3), (4, 3, 3), (2, 9, 3)]
TYPES = [
    {},
    *({"dtype": f"types.{name}"} for name in ("FLOAT", "UINT8", "INT16", "INT32", "UINT16", "FLOAT16", "INT8")),
]
INPUTS = {
    "pixels": feed(images(SHAPES), "HWC"),
    "floats": feed(images(SHAPES, np.float32), "HWC"),
    "int16": feed(images(SHAPES, np.int16), "HWC"),
    "uint16": feed(images(SHAPES, np.uint16), "HWC"),
}
FRAMES = {"frames": feed(images([(2, 4, 5, 3)] * 3), "FHWC")}
CHANGES = {
    "brightness_contrast": {"brightness": 1.2, "contrast": 0.7, "brightness_shift": 0.1},
    "brightness": {"brightness": 1.2, "brightness_shift": 0.1},
    "contrast": {"contrast": 1.2, "contrast_center": 20.0},
    "hsv": {"hue": 30.0, "saturation": 0.7, "value": 1.1},
    "hue": {"hue": 50.0},
    "saturation": {"saturation": 0.3},
    "color_twist": {"hue": 30.0, "saturation": 0.7, "brightness": 1.1, "contrast": 0.8},
}
for operator, change in CHANGES.items():
    FAMILY.each(operator, INPUTS, [{**change, **dtype} for dtype in TYPES])
    FAMILY.each(operator, FRAMES, [change, {}])
    FAMILY.each(operator, {"float16": feed(images(SHAPES, np.float16), "HWC")}, [change])
SPACES = ["types.RGB", "types.BGR", "types.GRAY", "types.YCbCr", "types.ANY_DATA"]
GREY = {"grey": feed(images([(4, 5, 1)] * 3), "HWC")}
CONVERSIONS = [{"image_type": a, "output_type": b} for a in SPACES for b in SPACES]
FAMILY.each("color_space_conversion", {"pixels": INPUTS["pixels"], **GREY}, CONVERSIONS)
FAMILY.each("color_space_conversion", {"floats": INPUTS["floats"], **FRAMES}, CONVERSIONS[1:2])
BLURS = [
    {"sigma": 1.0},
    {"sigma": 0.5},
    {"window_size": 5},
    {"window_size": 7, "sigma": 1.3},
    {"sigma": [1.0, 2.0]},
    {"window_size": [3, 5]},
    {"window_size": 4},
    {},
    {"sigma": 0.0},
    {"sigma": [1.0, 2.0, 3.0]},
    {"sigma": -1.0},
]
BLURRED = {
    "pixels": INPUTS["pixels"],
    "floats": INPUTS["floats"],
    "int16": INPUTS["int16"],
    "planes": feed([np.ascontiguousarray(i.transpose(2, 0, 1)) for i in images(SHAPES)], "CHW"),
    "no layout": feed([i[..., 0].copy() for i in images(SHAPES)]),
    "HW": feed([i[..., 0].copy() for i in images(SHAPES)], "HW"),
    "frames": FRAMES["frames"],
    "volumes": feed(images([(3, 4, 5, 2)] * 3), "DHWC"),
}
FAMILY.each("gaussian_blur", BLURRED, BLURS)
FAMILY.each(
    "gaussian_blur",
    {"pixels": INPUTS["pixels"]},
    [{"sigma": 1.0, "dtype": "types.FLOAT"}, {"sigma": 1.0, "dtype": "types.INT16"}],
)
