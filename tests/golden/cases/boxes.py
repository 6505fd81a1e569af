"""Boxes, polygon masks, random elements, and objects in label maps."""

from __future__ import annotations

import itertools

import numpy as np
from case import Family, feed

FAMILY = Family("boxes", gpu=False, exact_on_cpu=True)
BOXES = feed(
    [np.float32([[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1]]), np.float32([[0.3, 0.3, 0.4, 0.9]]), np.zeros((0, 4), np.float32)]
)
LABELS = feed([np.int32([1, 2]), np.int32([3]), np.zeros(0, np.int32)])
FAMILY.each(
    "bbox_paste",
    {
        "boxes": BOXES,
        "flat": feed([np.float32([0.1, 0.2, 0.3, 0.4])] * 3),
        "integers": feed([np.int32([[1, 2, 3, 4]])] * 3),
    },
    [
        {"ratio": 2.0},
        {"ratio": 2.0, "ltrb": True},
        {"ratio": 1.5, "paste_x": 0.1, "paste_y": 1.0},
        {"ratio": 0.5, "paste_x": 0.2},
        {"ratio": feed([np.float32(2), np.float32(1.5), np.float32(3)])},
    ],
)
FAMILY.each("bbox_paste", {"threes": feed([np.float32([[0.1, 0.2, 0.3]])] * 3)}, [{"ratio": 2.0}])

HALVES = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.25, 0.25, 0.75, 0.75]


def _grid(count: int) -> list[float]:
    steps = [step / count for step in range(count + 1)]
    pairs = list(itertools.pairwise(steps))
    return [edge for left, right in pairs for top, bottom in pairs for edge in (left, top, right, bottom)]


def _random_boxes(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 7, (count, 2))
    return (np.concatenate([starts, np.minimum(starts + rng.integers(1, 4, (count, 2)), 8)], axis=1) / 8).astype(
        np.float32
    )


def _encode(boxes, labels, **given):  # type: ignore[no-untyped-def]
    return lambda m: tuple(m.fn.box_encoder(boxes(m), labels(m), **given))


for given in (
    {},
    {"criteria": 0.2},
    {"criteria": 0.9},
    {"offset": True},
    {"offset": True, "scale": 300.0},
    {"offset": True, "means": [0.1, 0.2, 0.3, 0.4], "stds": [0.1, 0.1, 0.2, 0.2]},
    {"criteria": -1.0},
    {"criteria": 1.1},
    {"stds": [0.0, 1.0, 1.0, 1.0]},
    {"means": [0.0]},
    {"scale": 2.0},
):
    FAMILY.add(f"box_encoder {given}", _encode(BOXES, LABELS, anchors=HALVES, **given))
TIED = feed([_random_boxes(6, seed) for seed in range(3)])
SIX = feed([np.arange(1, 7, dtype=np.int32)] * 3)
for criteria in (0.0, 0.125, 0.25, 0.5, 1.0):
    anchors = _grid(4) + _grid(2) + _grid(4)
    FAMILY.add(f"box_encoder with ties {criteria}", _encode(TIED, SIX, anchors=anchors, criteria=criteria), exact=True)
FAMILY.add(
    "box_encoder labels in rows", _encode(TIED, feed([np.arange(1, 7, dtype=np.int32)[:, None]] * 3), anchors=_grid(3))
)
FAMILY.add("box_encoder wrong anchors", _encode(BOXES, LABELS, anchors=HALVES[:7]))
FAMILY.add(
    "box_encoder wrong labels",
    _encode(BOXES, feed([np.int64([1, 2]), np.int64([3]), np.zeros(0, np.int64)]), anchors=HALVES),
)

POLYGONS = feed(
    [np.int32([[0, 0, 3], [1, 3, 7]]), np.int32([[0, 0, 2], [1, 2, 4], [2, 4, 6], [2, 6, 8]]), np.int32([[0, 0, 3]])]
)
VERTICES = {
    kind: feed([np.arange(2 * count).reshape(count, 2).astype(kind) for count in (7, 8, 3)])
    for kind in ("float32", "int64", "uint8", "float64", "float16", "bool")
}


def _select(ids, polygons=POLYGONS, vertices=VERTICES["float32"], **given):  # type: ignore[no-untyped-def]
    return lambda m: tuple(m.fn.segmentation.select_masks(ids(m), polygons(m), vertices(m), **given))


IDS = feed([np.int32([1]), np.int32([0, 2]), np.int32([])])
for reindex in (False, True):
    for kind, vertices in VERTICES.items():
        FAMILY.add(f"select_masks {kind} {reindex}", _select(IDS, vertices=vertices, reindex_masks=reindex), exact=True)
ZERO, ONE = feed([np.int32([0])] * 3), feed([np.int32([[0, 0, 2]])] * 3)
for ids in ([5], [0, 0]):
    FAMILY.add(f"select_masks {ids}", _select(feed([np.int32(ids)] * 3)))
FAMILY.add(
    "select_masks in reverse", _select(feed([np.int32([1, 0]), np.int32([2, 0]), np.int32([0])]), reindex_masks=True)
)
FAMILY.add("select_masks, wide polygons", _select(ZERO, feed([np.int64([[0, 0, 3]])] * 3)))
FAMILY.add("select_masks, narrow polygons", _select(ZERO, feed([np.int32([[0, 0]])] * 3)))
FAMILY.add("select_masks past the end", _select(ZERO, feed([np.int32([[0, 0, 30]])] * 3)))
FAMILY.add("select_masks backwards", _select(ZERO, feed([np.int32([[0, 3, 1]])] * 3)))
FAMILY.add("select_masks, two-dimensional", _select(feed([np.int32([[0]])] * 3), ONE))
FAMILY.add("select_masks, int64", _select(feed([np.int64([0])] * 3), ONE))
FAMILY.add("select_masks, one-dimensional vertices", _select(ZERO, ONE, feed([np.float32([1, 2, 3])] * 3)))

MASKS = {
    "small": feed([np.uint8([[0, 0, 1], [0, 2, 0], [3, 0, 0]])] * 3),
    "ramp": feed([np.arange(30, dtype=np.int32).reshape(5, 6) - 3] * 3, "HW"),
    "volume": feed([np.arange(60, dtype=np.float32).reshape(5, 4, 3)] * 3),
}
FAMILY.each(
    "segmentation.random_mask_pixel",
    MASKS,
    [
        {"seed": 12},
        {"seed": 12, "foreground": 1},
        {"seed": 12, "foreground": 1, "value": 2},
        {"seed": 12, "foreground": 1, "value": -1},
        {"seed": 12, "foreground": 1, "threshold": 1.5},
        {"seed": 12, "foreground": 1, "threshold": 99.0},
        {"foreground": 1, "threshold": 1.0, "value": 1},
        {"foreground": feed([np.int32(0), np.int32(1), np.int32(1)]), "seed": 3},
    ],
    exact=True,
    iterations=3,
)
KINDS = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
)
for kind in KINDS:
    source = feed([np.array([[0, 1], [1, 0]], kind)] * 3)
    FAMILY.each("segmentation.random_mask_pixel", {kind: source}, [{"seed": 1, "foreground": 1}], exact=True)
    FAMILY.each("segmentation.random_object_bbox", {kind: source}, [{"seed": 1}], exact=True)


def _map() -> np.ndarray:
    labels = np.zeros((6, 9), np.int32)
    labels[0, 0] = labels[0, 2:4] = labels[2:4, 0:2] = labels[2:5, 4:9] = labels[5, 0:2] = 1
    labels[0, 6:8] = labels[5, 4:6] = 2
    labels[1, 3] = 3
    return labels


LABEL_MAPS = {
    "objects": feed([_map()] * 3),
    "negative": feed([np.int32([[0, -1, 3, 0]])] * 3),
    "empty": feed([np.zeros((2, 2), np.int32)] * 3),
    "line": feed([np.int32([0, 1, 1, 0, 3])] * 3),
    "volume": feed([np.pad(_map()[None] != 0, ((0, 1), (0, 0), (0, 0))).astype(np.uint8)] * 3),
}
FAMILY.each(
    "segmentation.random_object_bbox",
    LABEL_MAPS,
    [
        {"seed": 12} | given
        for given in (
            {},
            {"format": "box"},
            {"format": "start_end", "output_class": True},
            {"format": "nonsense"},
            {"ignore_class": True},
            {"ignore_class": True, "output_class": True},
            {"ignore_class": True, "classes": [1]},
            {"classes": [1, 2], "output_class": True},
            {"classes": [3, 1], "output_class": True},
            {"classes": [1, 7], "output_class": True},
            {"classes": [0], "output_class": True},
            {"classes": [0, 3], "output_class": True},
            {"classes": [-1, 3], "output_class": True},
            {"classes": []},
            {"classes": [1], "background": 1},
            {"classes": [2, 3], "background": 1, "output_class": True},
            {"classes": [1, 2], "class_weights": [1.0, 0.0]},
            {"classes": [1, 2], "class_weights": [1.0]},
            {"class_weights": [1.0, 2.0, 3.0], "output_class": True},
            {"class_weights": [1.0, 2.0], "background": 1, "output_class": True},
            {"class_weights": [0.0, 0.0]},
            {"foreground_prob": 0.0, "output_class": True, "background": 5},
            {"foreground_prob": 0.5},
            {"background": 1, "output_class": True},
            {"threshold": [2]},
            {"threshold": [1, 2], "output_class": True},
            {"threshold": [9, 9], "output_class": True},
            {"k_largest": 1},
            {"k_largest": 2},
            {"k_largest": 4},
            {"k_largest": 0},
            {"k_largest": 2, "cache_objects": True, "ignore_class": True},
        )
    ],
    exact=True,
    iterations=2,
)
