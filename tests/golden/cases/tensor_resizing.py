"""tensor_resize: sizes, scales, regions, alignments, any dimensions."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("tensor_resizing", exact_on_cpu=True)
SHAPES = [(4, 6, 5), (5, 3, 4), (2, 7, 6)]
FLOATS = feed(images(SHAPES, np.float32))
NAMED = feed(images(SHAPES, np.float32), "HWC")
PIXELS = feed(images(SHAPES), "XYZ")
LINES = feed(images([(9,), (7,), (4,)], np.float32))
FAMILY.each(
    "tensor_resize",
    {"floats": FLOATS, "named": NAMED, "pixels": PIXELS},
    [
        {"sizes": [4, 6, 8]},
        {"sizes": [4, 0, 8]},
        {"sizes": [4, -1, 8]},
        {"sizes": [4]},
        {"sizes": [4, 5]},
        {"scales": [2, 1, 0.5]},
        {"scales": [1.7]},
        {"scales": [0, 2, 1]},
        {"scales": [-1, 1.5, 1]},
        {"sizes": [4, 6], "axes": [0, 1]},
        {"sizes": [6, 4], "axes": [1, 0]},
        {"sizes": [6, 4], "axes": [2, 0]},
        {"sizes": [4], "axes": [1]},
        {"sizes": [4], "axes": [0]},
        {"sizes": [9], "axes": [-1]},
        {"sizes": [9], "axes": [3]},
        {"sizes": [9, 9], "axes": [0, 0]},
        {"sizes": [4, 5], "axis_names": "HW"},
        {"sizes": [4], "axis_names": "H", "axes": [0]},
        {"sizes": [4, 5, 6], "scales": [1, 1, 1]},
        {},
        *(
            {"scales": [1.3, 0.7, 1.5], "size_rounding": rounding}
            for rounding in ("round", "truncate", "ceil", "floor")
        ),
        *(
            {"sizes": [4, 4, 4], "mode": mode}
            for mode in ("default", "stretch", "not_larger", "not_smaller", "nonsense")
        ),
        {"sizes": [4, 0, 4], "mode": "stretch"},
        {"sizes": [8, 0, 0], "max_size": [5, 5, 5]},
        {"scales": [2, 2, 2], "max_size": [5]},
        {"scales": [2, 2, 2], "mode": "not_larger"},
        {"sizes": [3, 2, 2], "roi_start": [0, 1, 1], "roi_end": [1, 3, 3]},
        {"sizes": [3], "axes": [2], "roi_start": [1], "roi_end": [3]},
        {"sizes": [3], "axes": [1], "roi_start": [0.25], "roi_end": [0.75], "roi_relative": True},
        {"scales": [2.2], "axes": [2], "roi_start": [3], "roi_end": [1]},
        {"scales": [2.2], "axes": [2], "roi_start": [3]},
        {"scales": [1.5, 1.9, 1.06]},
        {"sizes": [3, 4, 5], "dtype": "types.FLOAT"},
        {"sizes": [3, 4, 5], "dtype": "types.INT32"},
        *(
            {"sizes": [3, 8, 5], "interp_type": f"types.INTERP_{kind}"}
            for kind in ("NN", "CUBIC", "LANCZOS3", "TRIANGULAR")
        ),
        {"sizes": [3, 8, 5], "min_filter": "types.INTERP_NN", "mag_filter": "types.INTERP_CUBIC", "antialias": False},
    ],
)
FAMILY.each(
    "tensor_resize",
    {"lines": LINES},
    [
        {"alignment": [point], "antialias": False} | given
        for point in (0.0, 0.3, 0.5, 1.0)
        for given in (
            {"sizes": [3]},
            {"sizes": [2.6]},
            {"sizes": [-2.6]},
            {"scales": [0.6]},
            {"scales": [-0.6]},
            {"scales": [0.6], "subpixel_scale": False},
            {"scales": [1.6]},
            {"scales": [1.1], "roi_start": [4], "roi_end": [1]},
        )
    ],
)
FAMILY.add(
    "tensor_resize by computed sizes",
    lambda m: m.fn.tensor_resize(
        FLOATS(m), axes=[0, 1], sizes=feed([np.float32([3, 4]), np.float32([5, 4]), np.float32([2, 9])])(m)
    ),
)
FAMILY.add(
    "tensor_resize by a computed scale",
    lambda m: m.fn.tensor_resize(FLOATS(m), scales=feed([np.float32(2), np.float32(0.7), np.float32(1)])(m)),
)
for shape, given in (
    ((2, 2, 2, 2), {"sizes": [3, 3, 3, 3]}),
    ((2, 3, 2, 2), {"sizes": [3, 2, 3], "axes": [0, 1, 2]}),
    ((2, 3, 2, 2), {"sizes": [3, 2, 3], "axes": [1, 2, 3]}),
    ((2, 2, 2, 2), {"sizes": [3, 3, 3], "axes": [0, 1, 3]}),
    ((2, 2, 2, 2, 2), {"sizes": [3, 3], "axes": [2, 4]}),
    ((2, 2, 2, 2, 2), {"sizes": [3, 3], "axes": [0, 4]}),
):
    source = feed(images([shape] * 3, np.float32))
    FAMILY.each("tensor_resize", {str(shape): source}, [given])
for kind in ("int8", "int16", "uint16", "int32", "float16", "float64"):
    FAMILY.each("tensor_resize", {kind: feed(images(SHAPES, np.dtype(kind)))}, [{"sizes": [3, 4, 5]}])
# Dimensions that `axes` does not name keep their size, but `mode` takes them into account, too.
FOUR = feed(images([(4, 5, 6, 2), (3, 6, 4, 2), (5, 4, 4, 2)], np.float32))
FAMILY.each(
    "tensor_resize",
    {"floats": FLOATS, "four": FOUR},
    [
        {"mode": mode, **given}
        for mode in ("default", "stretch", "not_larger", "not_smaller")
        for given in (
            {"sizes": [3], "axes": [1]},
            {"sizes": [3, 0], "axes": [1, 2]},
            {"sizes": [0, 0], "axes": [1, 0], "max_size": 2},
            {"sizes": [3, 4], "axes": [0, 1], "max_size": [2, 9]},
            {"sizes": [3, 7], "axes": [0, 1], "roi_start": [0.5], "roi_end": [1.5]},
        )
    ],
)
# A dimension whose scaled size is rounded to the input's size is not resampled, unless it is grouped with a dimension that changes.
FAMILY.each(
    "tensor_resize",
    {"floats": FLOATS, "four": FOUR},
    [
        {"scales": [0.5, 0], "axes": [0, 1]},
        {"scales": [0.96], "axes": [0]},
        {"scales": [0.96], "axes": [0], "alignment": 0.0},
        {"scales": [0.96, 0.5], "axes": [1, 2]},
        {"scales": [0.5, 0.96, 0.96], "axes": [0, 1, 2]},
        {"sizes": [0, 0, 0], "axes": [0, 1, 2], "max_size": 3},
    ],
)
