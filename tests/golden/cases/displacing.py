"""sphere, water."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Family, feed, images

FAMILY = Family("displacing")
SHAPES = [(20, 31, 3), (18, 12, 3), (5, 9, 3)]
INPUTS = {
    "pixels": feed(images(SHAPES), "HWC"),
    "floats": feed(images(SHAPES, np.float32), "HWC"),
    "five channels": feed(images([(9, 8, 5)] * 3), "HWC"),
    "plain": feed(images(SHAPES)),
    "int16": feed(images(SHAPES, np.int16), "HWC"),
    "frames": feed(images([(2, 6, 7, 3)] * 3), "FHWC"),
    "planes": feed(images([(3, 6, 7)] * 3), "CHW"),
}
WAVES: dict[str, Any] = {
    "ampl_x": 3.0,
    "ampl_y": 2.5,
    "freq_x": 0.3,
    "freq_y": 0.21,
    "phase_x": 0.7,
    "phase_y": -1.1,
}
for kind in ("NN", "LINEAR", "CUBIC"):
    given = {"interp_type": f"types.INTERP_{kind}"}
    for operator, more in {"sphere": {}, "water": WAVES}.items():
        FAMILY.each(operator, INPUTS, [{**given, **more}, {**given, **more, "fill_value": 42.7}])
MASK = feed([np.int32(flag) for flag in (1, 0, 1)])
for operator in ("sphere", "water"):
    FAMILY.each(operator, {"pixels": INPUTS["pixels"]}, [{}, {"mask": 0}, {"mask": MASK}])
# Images that are so wide or high that a wave of the default frequency changes its sign within them.
WIDE = feed(images([(12, 140, 3), (140, 9, 3), (40, 50, 1)]), "HWC")
FAMILY.each("water", {"wide": WIDE}, [{"interp_type": f"types.INTERP_{kind}"} for kind in ("NN", "LINEAR")])
