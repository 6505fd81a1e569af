"""random_bbox_crop: random windows, and the boxes that remain in them."""

from __future__ import annotations

import numpy as np
from case import Family, feed, images

FAMILY = Family("box_cropping", gpu=False)
THREE = feed([np.float32([[0.1, 0.1, 0.3, 0.3], [0.5, 0.5, 0.9, 0.6], [0.7, 0.1, 0.8, 0.9]])] * 3)
EXTENTS = feed([np.float32([[0.1, 0.1, 0.3, 0.3], [0.5, 0.5, 0.4, 0.1], [0.7, 0.1, 0.1, 0.8]])] * 3)
LARGE = feed([np.float32([[0.1, 0.1, 0.9, 0.9], [0.05, 0.2, 0.9, 0.95]])] * 3)
MANY = feed([np.float32([[x / 20, y / 20, x / 20 + 0.05, y / 20 + 0.05] for x in range(20) for y in range(20)])] * 3)
NONE = feed([np.zeros((0, 4), np.float32)] * 3)
VOLUME = feed([np.float32([[0.5, 0.5, 0.6, 0.7, 0.8, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])] * 3)
LABELS = feed([np.int32([1, 2, 3])] * 3)
FREE = {"scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0]}
CUT = {"allow_no_crop": False}


def _crop(name, inputs, **given):  # type: ignore[no-untyped-def]
    FAMILY.add(
        f"{name} {given}",
        lambda m: tuple(m.fn.random_bbox_crop(*(source(m) for source in inputs), **({"seed": 12} | given))),
        iterations=2,
    )


# With fixed aspect ratios other than powers of 2, DALI rejects some windows because of rounding errors.
for name, boxes in {"three": THREE, "large": LARGE, "many": MANY, "none": NONE}.items():
    for given in (
        {},
        FREE,
        CUT,
        CUT | FREE,
        CUT | FREE | {"num_attempts": 3},
        CUT | FREE | {"num_attempts": 10, "all_boxes_above_threshold": False},
        CUT | {"scaling": [0.3, 1.0]},
        CUT | {"scaling": [0.3, 1.0], "aspect_ratio": [2.0, 2.0]},
        CUT | {"scaling": [0.5, 0.5], "aspect_ratio": [0.5, 2.0]},
        FREE | {"thresholds": [0.0, 0.1, 0.3], "total_num_attempts": 20, "quiet": True},
        FREE | {"thresholds": [0.0, 0.1, 0.3], "threshold_type": "overlap", "num_attempts": 5},
        FREE | {"thresholds": [0.1, 0.3, 0.5, 0.7, 0.9], "num_attempts": 5, "all_boxes_above_threshold": False},
        *(
            CUT | FREE | {"thresholds": [0.3, 0.9], "num_attempts": n, "total_num_attempts": total, "quiet": True}
            for n in (1, 2, 5)
            for total in (1, 3, 7)
        ),
        CUT | FREE | {"thresholds": [0.8], "total_num_attempts": 9, "quiet": True, "all_boxes_above_threshold": False},
        CUT | {"scaling": [0.5, 1.0], "aspect_ratio": [5.0, 6.0], "total_num_attempts": 4, "quiet": True},
        CUT | FREE | {"bbox_prune_threshold": 0.9},
        CUT | FREE | {"bbox_prune_threshold": 0.0},
        CUT | {"crop_shape": [50, 60], "input_shape": [100, 200]},
        {"crop_shape": [50, 60], "input_shape": [100, 200]},
        CUT | {"crop_shape": [50, 60], "input_shape": [100, 200], "shape_layout": "HW"},
        CUT | {"crop_shape": [150, 60], "input_shape": [100, 200]},
        CUT | FREE | {"input_shape": [100, 200]},
        CUT | {"scaling": [0.3, 1.0], "input_shape": [100, 200]},
        CUT | FREE | {"input_shape": [100, 200], "shape_layout": "HW"},
        CUT | FREE | {"output_bbox_indices": True},
    ):
        _crop(name, [boxes], **given)
for given in ({}, CUT | FREE, CUT | FREE | {"output_bbox_indices": True}):
    _crop("labelled", [THREE, LABELS], **given)
_crop("labels in rows", [THREE, feed([np.int32([[1, 2], [2, 3], [3, 4]])] * 3)], **FREE)
for kind in ("int64", "uint8", "float32"):
    _crop(f"labels of {kind}", [THREE, feed([np.array([1, 2, 3], kind)] * 3)])
_crop("extents", [EXTENTS], ltrb=False, **CUT, **FREE)
for layout in ("xyWH", "xWyH", "yxHW"):
    _crop("extents", [EXTENTS], bbox_layout=layout, **CUT, **FREE)
for layout in ("xyXY", "YXyx", "xy", "xyzXYZ"):
    _crop("corners", [feed([np.float32([[0.6, 0.6, 0.6, 0.6]])] * 3)], bbox_layout=layout, **CUT, **FREE)
for given in (
    CUT,
    CUT | FREE,
    CUT | {"scaling": [0.5, 1.0]},
    {"aspect_ratio": [0.5, 2.0, 0.4, 1.5, 0.5, 3.0], "scaling": [0.5, 1.0]},
):
    _crop("volume", [VOLUME], **given)
_crop("volume", [VOLUME], crop_shape=[5, 6, 7], input_shape=[10, 11, 12], **CUT)
for wrong in ([0.5, 0.5, 1.1, 0.6], [-0.1, 0.5, 0.9, 0.6], [0.5, 0.5, 0.6], [0.5, 0.5, 0.5, 0.6]):
    _crop(f"wrong {wrong}", [feed([np.float32([wrong])] * 3)])
_crop("flat", [feed([np.float32([0.5, 0.5, 0.6, 0.6])] * 3)])
for given in (
    {"scaling": [0.5]},
    {"scaling": [1.0, 0.5]},
    {"aspect_ratio": 2.0},
    {"aspect_ratio": [2.0, 1.0]},
    {"thresholds": [-1.0]},
    {"thresholds": [1.5]},
    {"thresholds": []},
    {"num_attempts": 0},
    {"total_num_attempts": 0},
    {"threshold_type": "nonsense"},
    {"bbox_prune_threshold": 2.0},
    {"bbox_layout": "xyXY", "ltrb": True},
    {"crop_shape": [5, 5]},
    {"crop_shape": [5, 5], "input_shape": [10, 10], "scaling": [0.5, 1.0]},
    {"crop_shape": [5, 5], "input_shape": [10, 10], "aspect_ratio": [0.5, 1.0]},
    {"crop_shape": [5], "input_shape": [10, 10]},
    {"crop_shape": [5, 5], "input_shape": [10, 10, 10]},
    {"crop_shape": [5, 5], "input_shape": [10, 10], "shape_layout": "AB"},
):
    _crop("refused", [THREE], **given)


def _ramp(height: int, width: int) -> np.ndarray:
    values = np.arange(height * width).reshape(height, width)
    return np.stack([values // 256, values % 256, values % 7], axis=-1).astype(np.uint8)


# No window contains these boxes, so that images are not cropped: to crop data that are not images (H, W, C), DALI would read
# beyond the end of their shapes.
NEVER = feed([np.float32([[20.0, 30.0, 21.0, 31.0]])] * 3)
for layout, shape in {"HW": (6, 8), "FHWC": (2, 6, 8, 3)}.items():
    FAMILY.add(
        f"ssd_random_crop {layout}",
        lambda m, s=shape, name=layout: tuple(
            m.fn.ssd_random_crop(feed(images([s] * 3), name)(m), NEVER(m), feed([np.int32([1, 2])] * 3)(m), seed=3)
        ),
        gpu=False,
    )
IMAGES = feed([_ramp(30, 40), _ramp(33, 21), _ramp(9, 50)], "HWC")
BEYOND = feed([np.float32([[-0.2, 0.1, 0.5, 0.6], [0.4, 0.3, 1.4, 1.2], [0.2, 0.2, 0.8, 0.7]])] * 3)
for name, boxes in {"three": THREE, "large": LARGE, "beyond": BEYOND}.items():
    for given in ({}, {"num_attempts": 3}, {"num_attempts": 50}):
        FAMILY.add(
            f"ssd_random_crop {name} {given}",
            lambda m, b=boxes, g=given: tuple(
                m.fn.ssd_random_crop(
                    IMAGES(m), b(m), feed([np.arange(2 if b is LARGE else 3, dtype=np.int32)] * 3)(m), seed=3, **g
                )
            ),
            iterations=6,
        )
