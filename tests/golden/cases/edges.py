"""Empty data, and values of arguments at the edge of the ranges that DALI accepts."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from case import Family, feed, images
from PIL import Image

FAMILY = Family("edges", gpu=False)
EMPTY = ((0, 4), (4, 0), (0, 0))


def beside_unfed(module: Any, cycle: object) -> Any:
    """Return a constant; also define a source that is never fed, as no output depends on it."""
    module.fn.external_source(name="unfed", cycle=cycle)
    return module.types.Constant(1)


for shape in ((0,), (0, 0), (0, 5), (5, 0), (3, 0, 3), (0, 3, 3)):
    spectra = feed([np.zeros(shape, np.float32)] * 3)
    FAMILY.each("mel_filter_bank", {f"{shape}": spectra}, [{}])
    FAMILY.each("mfcc", {f"{shape}": spectra}, [{}, {"lifter": 2.0}])
for extents in EMPTY:
    for channels in (1, 2, 3, 4):
        nothing = {f"{extents} of {channels}": feed([np.zeros((*extents, channels), np.uint8)] * 3, "HWC")}
        for operator in ("brightness", "contrast", "hsv", "hue", "saturation", "color_twist"):
            FAMILY.each(operator, nothing, [{}])
        for source, target in (("RGB", "YCbCr"), ("YCbCr", "GRAY"), ("GRAY", "YCbCr"), ("RGB", "GRAY"), ("RGB", "BGR")):
            given = {"image_type": f"types.{source}", "output_type": f"types.{target}"}
            FAMILY.each("color_space_conversion", nothing, [given])
    plane = feed([np.zeros(extents, np.uint8)] * 3, "HW")
    for algorithm in ("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv"):
        FAMILY.each("debayer", {f"{extents}": plane}, [{"blue_position": [0, 0], "algorithm": algorithm}])
    for border in ("reflect_101", "reflect_1001", "clamp"):
        FAMILY.add(
            f"filter({extents}, {border})",
            lambda m, p=plane, b=border: m.fn.filter(p(m), feed([np.ones((3, 3), np.float32)] * 3)(m), border=b),
        )
IMAGE = images([(8, 9, 3)] * 3)
for size in ([-1, 2], [2, -1], [-1, -1], [-1], -1, [-3, 4], [2], [2, 2, 2], []):
    FAMILY.each("random_resized_crop", {"images": feed(IMAGE, "HWC")}, [{"size": size, "seed": 7}])
SOUND = np.float32([0, 0, 1, 1, 0.5, 0, 0, 0, 2, 0])
for kind in ("float32", "int16", "uint8"):
    sound = feed([SOUND.astype(kind)] * 3)
    FAMILY.each("nonsilent_region", {kind: sound}, [{"window_length": 0, "reset_interval": -1}])
for kind in ("uint8", "int8", "uint16", "int32", "float32", "bool"):
    pictures = feed([image.astype(kind) for image in IMAGE], "HWC")
    FAMILY.add(
        f"ssd_random_crop({kind})",
        lambda m, p=pictures: tuple(
            m.fn.ssd_random_crop(
                p(m), feed([np.float32([[0.1, 0.1, 0.5, 0.5]])] * 3)(m), feed([np.int32([1])] * 3)(m), seed=3
            )
        ),
    )
for widths in ((2, 3, 2), (1, 2, 3), (2, 2, 2)):
    points = feed([np.full((1, width), 0.2, np.float32) for width in widths])
    FAMILY.each("coord_flip", {f"{widths}": points}, [{}, {"layout": "xyz"}])
_file = io.BytesIO()
Image.fromarray(images([(8, 10, 3)])[0]).save(_file, "PNG")
PNG = np.frombuffer(_file.getvalue() + bytes(len(_file.getvalue()) % 2), np.uint8)
for name, data in {"bytes": PNG, "a row": PNG[None], "rows": PNG.reshape(2, -1), "int8": PNG.view(np.int8)}.items():
    FAMILY.each("peek_image_shape", {name: feed([data] * 3)}, [{}])
for start, end in (([0, 0], [0, 0]), ([1, 1], [1, 4]), ([1, 1], [4, 1]), ([10, 8], [10, 8]), ([1, 1], [4, 4])):
    FAMILY.each("decoders.image_slice", {"PNG": feed([PNG] * 3)}, [{"start": start, "end": end}])
BATCHES = [[np.float32([number])] * 3 for number in range(2)]
for cycle in (0, 1, 2, 0.0, None, False, True, "no", "quiet", "raise", "x", []):
    FAMILY.add(f"external_source(batches, cycle={cycle!r})", lambda m, c=cycle: m.fn.external_source(BATCHES, cycle=c))
    FAMILY.add(f"external_source(cycle={cycle!r})", lambda m, c=cycle: beside_unfed(m, c))
# The extreme values of types.
NUMBERS = {
    "halves": np.float16([0, -0.5, 65504, np.inf, -np.inf, 1e-7]),
    "floats": np.float32([0, -0.5, 3e38, 2147483904, -2.5, 1e-40]),
    "int16": np.int16([0, -1, 32767, -32768, 255, 256]),
    "int32": np.int32([0, -1, 2**31 - 1, -(2**31), 65535, 65536]),
    "uint8": np.uint8([0, 1, 127, 128, 254, 255]),
    "int64": np.int64([0, -1, 2**31 + 1, 2**53 + 1, 2**63 - 1, -(2**63)]),
}
TYPES = ("UINT8", "INT16", "INT32", "FLOAT")
for name, numbers in NUMBERS.items():
    row = {name: feed([numbers.reshape(1, 6, 1)] * 3, "HWC")}
    FAMILY.each("crop", row, [{"dtype": f"types.{kind}"} for kind in (*TYPES, "FLOAT16")], exact=True)
    outside = {"matrix": [1.0, 0, 3, 0, 1, 0], "interp_type": "types.INTERP_NN"}
    FAMILY.each(
        "warp_affine",
        row,
        [{**outside, "fill_value": fill, "dtype": f"types.{kind}"} for fill in (-300.5, 70000.5) for kind in TYPES],
        exact=True,
    )
    if name != "halves":
        FAMILY.each(
            "preemphasis_filter",
            {name: feed([numbers] * 3)},
            [{"preemph_coeff": 0.0, "dtype": f"types.{kind}"} for kind in (*TYPES, "INT64")],
            exact=True,
        )
for shape in ((0, 4, 3), (3, 0, 3), (3, 4, 0), (0, 3), (4, 0)):
    FAMILY.each("coord_transform", {f"{shape}": feed([np.zeros(shape, np.float32)] * 3)}, [{}, {"M": 2.0}])
