"""rotate, warp_affine."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("warping", exact_on_cpu=True)
SHAPES = [(10, 15, 3), (8, 5, 3), (4, 22, 3)]
INPUTS = {
    "pixels": feed(images(SHAPES), "HWC"),
    "floats": feed(images(SHAPES, np.float32), "HWC"),
    "int16": feed(images(SHAPES, np.int16), "HWC"),
    "grey": feed(images([(6, 7, 1)] * 3), "HWC"),
    "frames": feed(images([(2, 7, 9, 3)] * 3), "FHWC"),
}
PIXELS = {"pixels": INPUTS["pixels"]}
VOLUMES = {"volumes": feed(images([(4, 6, 7, 2)] * 3), "DHWC")}
ANGLES = feed([np.float32(a) for a in (10, -33, 90)])
KINDS = [
    {"interp_type": f"types.INTERP_{kind}", **fill} for kind in ("NN", "LINEAR") for fill in ({}, {"fill_value": 42.0})
]
MATRIX = [0.7, 0.3, 2.0, -0.2, 1.1, 1.0]
for kind in KINDS:
    FAMILY.each("rotate", INPUTS, [{"angle": 31.5, **kind}, {"angle": ANGLES, "keep_size": True, **kind}])
    FAMILY.each("rotate", PIXELS, [{"angle": ANGLES, "size": [6, 9], **kind}])
    FAMILY.each("warp_affine", INPUTS, [{"matrix": MATRIX, **kind}])
    FAMILY.each(
        "warp_affine",
        VOLUMES,
        [{"matrix": [0.7, 0.3, 0.1, 2, -0.2, 1.1, 0, 3, 0.1, 0.1, 0.9, 1], **kind}],
    )
    FAMILY.each("rotate", VOLUMES, [{"angle": 20, "axis": axis, **kind} for axis in ([0, 0, 1], [1, 0, 0], [1, 2, 3])])
FAMILY.each("rotate", PIXELS, [{"angle": float(a)} for a in range(0, 360, 15)])
FAMILY.each("rotate", PIXELS, [{"angle": 30.0, "dtype": "types.FLOAT"}, {"angle": 3.0, "dtype": "types.INT16"}])
FAMILY.each(
    "rotate",
    PIXELS,
    [{"angle": 3.0, "interp_type": "types.INTERP_CUBIC"}, {}, {"angle": 5.0, "keep_size": True, "size": [3, 3]}],
)
for source, kinds in (("floats", ("UINT8", "INT16", "INT32")), ("int16", ("FLOAT",)), ("pixels", ("FLOAT",))):
    FAMILY.each(
        "warp_affine",
        {source: INPUTS[source]},
        [
            {"matrix": MATRIX, "dtype": f"types.{kind}", "fill_value": -300.5, "interp_type": f"types.INTERP_{how}"}
            for kind in kinds
            for how in ("NN", "LINEAR")
        ],
    )
FAMILY.each("rotate", VOLUMES, [{"angle": 3.0}])
FAMILY.each("warp_affine", PIXELS, [{}, {"matrix": [1.0, 2.0]}])
FAMILY.each("warp_affine", PIXELS, [{"matrix": MATRIX, "inverse_map": False, "size": [9, 8]}])
FAMILY.add(
    "warp_affine with the matrix as an input",
    lambda m: m.fn.warp_affine(INPUTS["pixels"](m), m.types.Constant(np.float32([[1, 0, 3], [0, 1, 2]]))),
)
SINGULAR = np.float32([[1, 2, 0], [2, 4, 0]])
for name, matrix in {
    "singular": SINGULAR,
    "double": SINGULAR.astype(np.float64),
    "flat": SINGULAR.reshape(-1),
    "volumetric": np.eye(3, 4, dtype=np.float32),
}.items():
    FAMILY.add(
        f"warp_affine with a {name} matrix as an input",
        lambda m, matrix=matrix: m.fn.warp_affine(INPUTS["pixels"](m), feed([matrix] * 3)(m), inverse_map=False),
    )
FAMILY.each("warp_affine", PIXELS, [{"matrix": SINGULAR.reshape(-1).tolist(), "inverse_map": False}])
CLIPS = feed(images([(3, 6, 5, 3), (2, 7, 4, 3), (1, 5, 5, 3)]), "FHWC")
TURNS = feed([np.float32([10, 45, 90]), np.float32([30, -20]), np.float32([180])])
FEW = feed([np.float32([10, 45]), np.float32([30]), np.float32([180])])
for given in ({"keep_size": True}, {}):
    FAMILY.add(
        f"rotate frames by their own angles {given}",
        lambda m, g=given: m.fn.rotate(CLIPS(m), angle=m.fn.per_frame(TURNS(m)), fill_value=7.0, **g),
    )
FAMILY.add("rotate too few angles", lambda m: m.fn.rotate(CLIPS(m), angle=m.fn.per_frame(FEW(m))))
