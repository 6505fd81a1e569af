"""resize in all its modes and filters."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("resizing", exact_on_cpu=True)
SHAPES = [(10, 15, 3), (8, 5, 3), (4, 22, 3)]
PIXELS = feed(images(SHAPES), "HWC")
FLOATS = feed(images(SHAPES, np.float32), "HWC")
FILTERS = [f"types.INTERP_{name}" for name in ("NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN")]
SIZES = [
    {"resize_x": 7},
    {"resize_shorter": 6},
    {"size": [20, 5]},
    {"resize_longer": 12.5},
    {"resize_shorter": 9, "max_size": 11},
    {"resize_x": 9, "mode": "stretch"},
    {"size": [7, 9], "mode": "not_larger"},
    {"size": [7, 9], "mode": "not_smaller"},
    {"size": [6, 6], "roi_start": [1, 1.5], "roi_end": [3, 4]},
    {"resize_x": -9},
    {"size": [6, 6], "roi_start": [0.9, 0.1], "roi_end": [0.1, 0.8], "roi_relative": True},
    {"resize_x": 10.5, "subpixel_scale": False},
]
# With this size, centres of output pixels are exactly on edges between two input pixels, so that rounding in single precision decides
# which of them is nearest. GPUs add the region's start in another order.
TIE = SIZES[-2]
for kind in FILTERS:
    sizes = [size for size in SIZES if size is not TIE]
    FAMILY.each("resize", {"pixels": PIXELS}, [{"interp_type": kind, **size} for size in sizes])
    FAMILY.each("resize", {"pixels": PIXELS}, [{"interp_type": kind, **TIE}], gpu=not kind.endswith("NN"))
    FAMILY.each("resize", {"floats": FLOATS}, [{"interp_type": kind, **size} for size in SIZES[:3]])
    # Regions without extent, which DALI enlarges to a thousandth of a pixel.
    stretched = [
        {"interp_type": kind, "size": [6, 6], "roi_start": [3.0, 2.5], "roi_end": [3.0, 2.5]},
        {"interp_type": kind, "resize_x": 4, "roi_start": [0.4, 0.1], "roi_end": [0.4, 0.8], "roi_relative": True},
    ]
    FAMILY.each("resize", {"pixels": PIXELS, "floats": FLOATS}, stretched, gpu=not kind.endswith("NN"))
FAMILY.each(
    "resize", {"pixels": PIXELS}, [{"interp_type": kind, "size": 7, "antialias": False} for kind in FILTERS[:5]]
)
FAMILY.each(
    "resize",
    {"pixels": PIXELS},
    [
        {"resize_x": 7, "dtype": "types.FLOAT"},
        {"resize_x": 7, "dtype": "types.INT8"},
        {"resize_x": 7, "save_attrs": True},
        {},
        {"size": [2, 2], "resize_x": 3},
        {"resize_shorter": 3, "mode": "stretch"},
        {"resize_x": 3, "mode": "nonsense"},
        {"size": [5, 30], "min_filter": "types.INTERP_CUBIC", "mag_filter": "types.INTERP_LINEAR"},
    ],
)
PLANES = feed([np.ascontiguousarray(i.transpose(2, 0, 1)) for i in images(SHAPES)], "CHW")
FAMILY.each("resize", {"planes": PLANES}, [{"size": [6, 8]}])
FAMILY.each("resize", {"frames": feed(images([(2, 7, 9, 3)] * 3), "FHWC")}, [{"size": [9, 5]}])
VOLUMES = feed(images([(4, 6, 7, 2)] * 3), "DHWC")
FAMILY.each("resize", {"volumes": VOLUMES}, [{"size": [3, 8, 5]}, {"resize_x": 5}, {"resize_shorter": 3}])
FAMILY.each("resize", {"HW": feed(images([(5, 6)] * 3), "HW")}, [{"size": [3, 3]}])
FAMILY.each("resize", {"no layout": feed(images(SHAPES))}, [{"size": [3, 3]}])
FAMILY.each("resize", {"int32": feed(images(SHAPES, np.int32), "HWC")}, [{"size": [3, 3]}])
FAMILY.each(
    "resize",
    {"int16": feed(images(SHAPES, np.int16), "HWC"), "uint16": feed(images(SHAPES, np.uint16), "HWC")},
    [{"size": [3, 9]}],
)
# Without a size, limits do not apply.
FAMILY.each(
    "resize",
    {"pixels": PIXELS},
    [{"size": [0, 0], "max_size": 3, "mode": mode} for mode in ("default", "stretch", "not_larger", "not_smaller")],
)
# If extents grow by whole factors, many interpolated values end in .5; DALI rounds them up or down, depending on their position.
LARGER = images([(40, 30, 3), (33, 17, 1), (20, 41, 4)])
SIGNED = [image.astype(np.int16) - 128 for image in LARGER]
FAMILY.each(
    "resize",
    {"larger": feed(LARGER, "HWC"), "signed": feed(SIGNED, "HWC")},
    [{"size": size, "interp_type": kind} for kind in FILTERS[1:3] for size in ([100, 90], [13, 60])],
)
FAMILY.each(
    "resize",
    {"larger volumes": feed(images([(7, 10, 6, 2), (6, 9, 8, 1), (8, 6, 7, 3)]), "DHWC")},
    [{"size": size, "interp_type": kind} for kind in FILTERS[1:3] for size in ([14, 20, 3], [4, 5, 16], [16, 9, 9])],
)
