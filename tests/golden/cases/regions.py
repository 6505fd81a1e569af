"""resize_crop_mirror, random_resized_crop, erase, grid_mask, paste, multi_paste."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Family, feed, images, placed

FAMILY = Family("regions", exact_on_cpu=True)
SHAPES = [(10, 15, 3), (8, 5, 3), (4, 22, 3)]
PIXELS = feed(images(SHAPES), "HWC")
FLOATS = feed(images(SHAPES, np.float32), "HWC")
PLANES = feed([np.ascontiguousarray(i.transpose(2, 0, 1)) for i in images(SHAPES)], "CHW")
FRAMES = feed(images([(2, 7, 9, 3)] * 3), "FHWC")
PLANES_OF_FRAMES = feed(images([(2, 3, 7, 9)] * 3), "FCHW")
VOLUMES = feed(images([(4, 6, 7, 2)] * 3), "DHWC")

CROPS = [
    {"size": [12, 16], "crop": [7, 9]},
    {"resize_shorter": 12, "crop": [7, 9], "crop_pos_x": 0.2, "mirror": 1},
    {"resize_shorter": 6.4, "crop": [5, 4], "mirror": 2, "dtype": "types.FLOAT"},
    {"resize_longer": 20, "crop_h": 4, "crop_w": 3, "rounding": "truncate", "interp_type": "types.INTERP_CUBIC"},
    {"size": [6, 8], "crop": [9, 11], "mirror": 3},
    {"size": [6, 8], "crop": [9, 11], "rounding": "truncate", "crop_pos_y": 0.4},
    {"resize_x": -9, "crop": [3, 4], "mirror": 1},
    {"size": [6, 6], "roi_start": [1, 1.5], "roi_end": [3, 4], "crop": [4, 4]},
    {"size": [6, 8]},
    {"crop": [3, 3]},
    {"size": [6, 8], "crop_w": 3},
]
FAMILY.each("resize_crop_mirror", {"pixels": PIXELS}, CROPS)
FAMILY.each("resize_crop_mirror", {"planes": PLANES, "frames": FRAMES}, [CROPS[0], CROPS[1], CROPS[3], CROPS[4]])
VOLUME_CROPS = [{"size": [3, 8, 5], "crop": [2, 5, 4], "mirror": m} for m in (0, 1, 6)]
FAMILY.each("resize_crop_mirror", {"volumes": VOLUMES}, VOLUME_CROPS)
# Each dimension before the height shifts the bits of `mirror` by one; bits that are shifted out wrap around.
MIRRORS = [{"size": [6, 8], "crop": [5, 6], "mirror": m} for m in (2, -2)]
FAMILY.each("resize_crop_mirror", {"planes": PLANES, "frames": FRAMES, "planes of frames": PLANES_OF_FRAMES}, MIRRORS)
FAMILY.each("fast_resize_crop_mirror", {"pixels": PIXELS}, CROPS[:3])
FAMILY.each(
    "random_resized_crop",
    {"pixels": PIXELS, "floats": FLOATS},
    [
        {"size": [7, 9]},
        {"size": [7, 9], "seed": 3, "random_area": [0.3, 0.5], "random_aspect_ratio": [0.5, 0.9]},
        {"size": 6, "interp_type": "types.INTERP_CUBIC", "antialias": False},
        {"size": [4, 5, 6]},
        {"size": [4, 5], "random_area": [0.5, 0.2]},
    ],
    iterations=2,
)
FAMILY.each("random_resized_crop", {"planes": PLANES, "frames": FRAMES}, [{"size": [5, 6], "seed": 8}], iterations=2)
# A region whose end is before its start mirrors the axis, unless the axis's output extent is derived from the other axes.
REVERSED = {"roi_start": [0.9, 0.8], "roi_end": [0.1, 0.2], "roi_relative": True}
FAMILY.each(
    "resize",
    {"pixels": PIXELS},
    [{"size": [0, 6], **REVERSED}, {"size": [0, -6], **REVERSED}, {"size": [0, 6], "mode": "not_larger", **REVERSED}],
)
TIES = [
    {"resize_shorter": 9, "max_size": 11},
    {"size": [7, 9], "mode": "not_smaller"},
    {"resize_longer": 31},
    {"resize_x": 24},
]
FAMILY.each("resize", {"pixels": PIXELS}, [{"interp_type": "types.INTERP_NN", **size} for size in TIES], exact=True)
BOXES = [
    {"anchor": [2.0, 3.0], "shape": [4.5, 5.4]},
    {"anchor": [0.25, 0.1], "shape": [0.5, 0.55], "normalized": True, "fill_value": [1.6]},
    {"anchor": [5.0, 5.0], "shape": [3.0, 4.0], "centered_anchor": True, "fill_value": [1, 2, 300]},
    {"anchor": [0.0, 0, 6, 6], "shape": [2.0, 2, 3, 30], "fill_value": 9},
    {"anchor": [-2.0], "shape": [5.0], "axis_names": "W"},
    {"anchor": [3.0, 1], "shape": [2.0, 4], "axes": [1, 0]},
    {"shape": [2.0, 8]},
    {"anchor": [2.0, 8]},
    {"anchor": [2.0, 8, 1], "shape": [2.0, 3, 3]},
    {"anchor": [1.0, 1], "shape": [2.0, 2], "fill_value": [1.0, 2]},
    {"anchor": [1.0, 1], "shape": [2.0, 2], "normalized": True, "normalized_shape": False},
    {},
]
FAMILY.each("erase", {"pixels": PIXELS}, BOXES, exact=True)
FAMILY.each("erase", {"planes": PLANES, "floats": FLOATS}, BOXES[:3], exact=True)
FAMILY.each("erase", {"frames": FRAMES}, [{"anchor": [0.0, 1, 2], "shape": [1.0, 3, 4]}], exact=True)
GRIDS = [
    {"tile": 4},
    {"tile": 5, "ratio": 0.3, "angle": 0.4, "shift_x": 2.0, "shift_y": 1.5},
    {"tile": 3, "ratio": 1.0},
    {"tile": 0},
]
FAMILY.each("grid_mask", {"pixels": PIXELS, "floats": FLOATS}, GRIDS, exact=True)
CANVASES = [
    {"ratio": 2.0, "fill_value": [1, 2, 3]},
    {"ratio": 1.5, "fill_value": [7], "paste_x": 0.0, "paste_y": 0.3},
    {"ratio": 1.3, "fill_value": [300, -1, 2], "min_canvas_size": 20.0},
    {"ratio": 0.5, "fill_value": [1, 2, 3]},
    {"ratio": 2.0, "fill_value": [1, 2]},
    {"ratio": 2.0, "fill_value": [1, 2, 3], "paste_x": 2.0},
]
FAMILY.each("paste", {"pixels": PIXELS}, CANVASES, exact=True)
FAMILY.each("paste", {"floats": FLOATS}, CANVASES[:1])


def _mosaic(tensors: dict[str, Any], inputs: int = 1, height: int = 6, **options: Any) -> Any:
    same_size = images([(6, 8, 3), (6, 8, 3), (height, 8, 3)])

    def define(module: Any) -> Any:
        given = {name: feed([np.array(values)] * 3)(module) for name, values in tensors.items()}
        sources = [placed(module, feed(same_size, "HWC")(module)) for _ in range(inputs)]
        return module.fn.multi_paste(*sources, **given, **options)

    return define


IDS = np.int32([0, 2, 1])
CORNERS = np.int32([[0, 0], [3, 4], [5, 9]])
PARTS = np.float32([[0.5, 0.34], [0.2, 0.7], [1.0, 0.1]])
for name, case in {
    "ids": _mosaic({"in_ids": IDS, "out_anchors": CORNERS}, output_size=(12, 20)),
    "fractions": _mosaic(
        {"in_ids": IDS, "in_anchors_rel": PARTS * np.float32(0.5), "shapes_rel": PARTS * np.float32(0.5)},
        output_size=(12, 20),
    ),
    "two inputs": _mosaic({"in_anchors": CORNERS[:2]}, 2),
    "outside": _mosaic({"in_ids": IDS, "out_anchors": CORNERS}, output_size=(7, 9)),
    "no such sample": _mosaic({"in_ids": IDS + np.int32(1)}),
    "too few rows": _mosaic({"in_ids": IDS, "out_anchors": CORNERS[:2]}, output_size=(20, 20)),
    "two inputs of unlike samples": _mosaic({}, 2, height=7),
    "unlike samples of a given size": _mosaic({}, 2, height=7, output_size=(9, 9)),
    "an unlike sample that is not pasted": _mosaic({"in_ids": np.int32([0, 1])}, height=7),
}.items():
    FAMILY.add(f"multi_paste: {name}", case, exact=True)
