"""transforms, coord_transform, coord_flip, bb_flip, bbox_rotate."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Define, Family, feed, images

FAMILY = Family("coordinates")
RNG = np.random.default_rng(5)


def numbers(*shape: int, dtype: Any = np.float32) -> Define:
    """Return a source of three samples of numbers from -1 to 1."""
    return feed([RNG.uniform(-1, 1, shape).astype(dtype) for _ in range(3)])


def per_frame(source: Define) -> Define:
    return lambda module: module.fn.per_frame(source(module))


PLANE, SPACE = numbers(2, 3), numbers(3, 4)
TRANSFORMS: dict[str, list[dict[str, Any]]] = {
    "rotation": [
        {"angle": 30.0},
        {"angle": -77.5, "center": [1.0, 2.0]},
        {"angle": 30.0, "center": [1.0]},
        {"angle": 30.0, "center": [1.0, 2.0, 3.0]},
        {"angle": 30.0, "reverse_order": True},
        {"angle": 20.0, "axis": [1.0, 2.0, 3.0]},
        {"angle": 20.0, "axis": [1.0, -2.0, 0.5], "center": [3.0, 4.0, 5.0]},
        {"angle": 20.0, "axis": [1.0, 2.0]},
        {"angle": 20.0, "axis": []},
        {"angle": numbers()},
        {"angle": per_frame(numbers(4))},
        {"angle": per_frame(numbers(4)), "center": per_frame(numbers(4, 2))},
        {"angle": per_frame(numbers(4)), "center": numbers(2)},
        {"angle": per_frame(numbers(4)), "center": per_frame(numbers(3, 2))},
        {},
    ],
    "scale": [
        {"scale": [2.0, 3.0]},
        {"scale": [2.0, -3.0], "center": [1.0, 2.0]},
        {"scale": [2.0, 3.0], "center": [1.0]},
        {"scale": [2.0, 3.0], "center": [1.0, 2.0, 3.0]},
        {"scale": [2.0]},
        {"scale": 2.0, "ndim": 3},
        {"scale": 2.0, "ndim": 7},
        {"scale": [2.0, 3.0], "ndim": 3},
        {"scale": [2.0, 1.0, 2.0, 3.0, 4.0, 6.0]},
        {"scale": [2.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0]},
        {"scale": numbers(2), "reverse_order": True},
        {"scale": numbers(1, 2)},
        {"scale": per_frame(numbers(4, 2))},
    ],
    "shear": [
        {"shear": [2.0, 3.0]},
        {"shear": [2.0, 3.0], "center": [1.0, 2.0]},
        {"shear": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        {"shear": [float(i) for i in range(12)]},
        {"shear": [2.0]},
        {"shear": []},
        {"shear": [2.0, 3.0, 4.0]},
        {"angles": [20.0, 30.0]},
        {"angles": [90.0, -30.0]},
        {"angles": [100.0, -30.0]},
        {"angles": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "center": [1.0, 2.0, 3.0]},
        {"angles": [20.0, 30.0], "shear": [1.0, 2.0]},
        {"shear": numbers(2), "reverse_order": True},
        {"angles": per_frame(numbers(4, 2))},
        {},
    ],
    "translation": [
        {"offset": [2.0, 3.0]},
        {"offset": [2.0, 3.0], "reverse_order": True},
        {"offset": [2.0]},
        {"offset": [2.0, 3.0, 4.0]},
        {"offset": []},
        {"offset": [1.0] * 7},
        {"offset": numbers(2)},
        {"offset": per_frame(numbers(4, 2))},
        {},
    ],
    "crop": [
        {"from_start": [1.0, 2.0], "from_end": [3.0, 5.0], "to_start": [0.0, 1.0], "to_end": [10.0, 20.0]},
        {},
        {"from_start": [1.0], "from_end": [3.0, 5.0]},
        {"from_start": [1.0, 2.0, 3.0], "from_end": [3.0, 5.0]},
        {"from_start": [1.0, 2.0, 3.0], "from_end": [3.0, 5.0, 7.0]},
        {"from_start": [3.0, 2.0], "from_end": [1.0, 5.0], "to_start": [0.0, 7.0], "to_end": [10.0, 2.0]},
        {
            "from_start": [3.0, 2.0],
            "from_end": [1.0, 5.0],
            "to_start": [0.0, 7.0],
            "to_end": [10.0, 2.0],
            "absolute": True,
        },
        {"from_start": [3.0, 2.0], "from_end": [3.0, 5.0]},
        {"from_start": [], "from_end": [3.0, 5.0]},
        {"to_start": numbers(2)},
        {"to_start": per_frame(numbers(4, 2)), "reverse_order": True},
    ],
}


def transform(operator: str, source: Define | None, given: dict[str, Any]) -> Define:
    def define(module: Any) -> Any:
        arguments = {key: value(module) if callable(value) else value for key, value in given.items()}
        inputs = [] if source is None else [source(module)]
        return getattr(module.fn.transforms, operator)(*inputs, **arguments)

    return define


SOURCES = {
    "": None,
    "plane": PLANE,
    "space": SPACE,
    "square": numbers(2, 2),
    "flat": numbers(6),
    "doubles": numbers(2, 3, dtype=np.float64),
}
for operator, settings in TRANSFORMS.items():
    for number, given in enumerate(settings):
        for name in list(SOURCES)[:3]:
            FAMILY.add(f"{operator} {number} of {name or 'nothing'}", transform(operator, SOURCES[name], given))
for name in list(SOURCES)[3:]:
    FAMILY.add(f"translation of {name}", transform("translation", SOURCES[name], {"offset": [1.0, 2.0]}))
FAMILY.add("translation of frames", transform("translation", per_frame(numbers(4, 2, 3)), {"offset": [1.0, 2.0]}))
FAMILY.add(
    "translation of frames by frame",
    transform("translation", per_frame(numbers(4, 2, 3)), {"offset": per_frame(numbers(4, 2))}),
)
FAMILY.add("transform_translation", lambda m: m.fn.transform_translation(offset=[1.0, 2.0]))
COMBINED: dict[str, list[Define]] = {
    "two": [PLANE, numbers(2, 3)],
    "three": [PLANE, numbers(2, 3), numbers(2, 3)],
    "space": [SPACE, numbers(3, 4)],
    "unlike": [PLANE, SPACE],
    "squares": [SOURCES["square"], SOURCES["square"]],  # type: ignore[list-item]
    "frames and one": [per_frame(numbers(4, 2, 3)), PLANE],
    "one and frames": [PLANE, per_frame(numbers(4, 2, 3))],
    "frames": [per_frame(numbers(4, 2, 3)), per_frame(numbers(4, 2, 3))],
}
for name, parts in COMBINED.items():
    for reverse in (False, True):
        FAMILY.add(
            f"combine {name}, reverse_order={reverse}",
            lambda m, parts=parts, reverse=reverse: m.fn.transforms.combine(
                *(part(m) for part in parts), reverse_order=reverse
            ),
        )

POINTS = {"points": numbers(5, 2)}
OTHER_POINTS = {
    "points in space": numbers(5, 3),
    "one coordinate": numbers(5, 1),
    "grid": feed([np.float32(RNG.uniform(-1, 1, (3, 4, 2))) for _ in range(3)], "HWC"),
    "frames": feed([np.float32(RNG.uniform(-1, 1, (4, 3, 2))) for _ in range(3)], "FNX"),
    "vector": numbers(2),
    "number": numbers(),
}
MAPS: list[dict[str, Any]] = [
    {},
    {"M": [1.0, 2.0, 3.0, 4.0]},
    {"M": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
    {"M": 2.0},
    {"M": [2.0, 3.0]},
    {"M": [1.0, 2.0, 3.0]},
    {"M": []},
    {"T": [2.0, 3.0]},
    {"T": 2.0},
    {"T": [1.0, 2.0, 3.0]},
    {"M": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "T": [1.0, 2.0, 3.0]},
    {"M": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "T": 4.0},
    {"MT": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
    {"MT": 3.0},
    {"MT": [1.0, 2.0, 3.0, 4.0, 5.0]},
    {"MT": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "T": 1.0},
    {"M": numbers(2, 2)},
    {"M": numbers(3, 2), "T": numbers(3)},
    {"M": numbers(4)},
    {"M": numbers(2, 3)},
    {"M": numbers()},
    {"MT": numbers(2, 3)},
    {"T": numbers()},
    {"T": numbers(1, 2)},
    {"M": per_frame(numbers(4, 2, 2))},
    {"T": per_frame(numbers(4, 2))},
]
for number, given in enumerate(MAPS):
    named = {f"{name} {number}": source for name, source in {**POINTS, **OTHER_POINTS}.items()}
    FAMILY.each("coord_transform", named, [given])
for kind in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "float16", "float64"):
    source = {kind: feed([i[..., 0] for i in images([(4, 2, 1)] * 3, kind)])}
    FAMILY.each("coord_transform", source, [{"M": [0.7, 0.2, 0.4, -0.1]}])
    if "float" not in kind:
        same = {"M": [0.7, 0.2, 0.4, -0.1], "dtype": f"types.{kind.upper()}"}
        FAMILY.each("coord_transform", source, [same])
FAMILY.each("coord_transform", POINTS, [{"dtype": "types.INT32"}])

FLIPS: list[dict[str, Any]] = [
    {},
    {"flip_x": 0, "flip_y": 1, "center_y": 2.0},
    {"flip_x": 1, "flip_y": 1, "center_y": 2.0, "layout": "yx"},
    {"flip_x": 2},
    {"flip_x": -1},
    {"flip_z": 1, "center_z": 2.0},
    {"layout": "zyx", "flip_z": 1},
    {"layout": "xz"},
    {"layout": "xq"},
    {"center_x": numbers()},
]
FAMILY.each(
    "coord_flip",
    {**POINTS, **OTHER_POINTS, "four": numbers(5, 4), "doubles": numbers(5, 2, dtype=np.float64)},
    FLIPS[:1],
)
FAMILY.each("coord_flip", {**POINTS, "points in space": OTHER_POINTS["points in space"]}, FLIPS[1:])

BOXES = {
    "boxes": feed([np.float32(np.sort(RNG.uniform(0, 1, (4, 2, 2)), axis=1).reshape(4, 4)) for _ in range(3)]),
    "far boxes": feed([np.float32(np.sort(RNG.uniform(-1, 2, (9, 2, 2)), axis=1).reshape(9, 4)) for _ in range(3)]),
}
FAMILY.each(
    "bb_flip",
    {**BOXES, "one box": numbers(4), "boxes in rows": numbers(2, 3, 4), "integers": numbers(2, 4, dtype=np.int32)},
    [{}, {"vertical": 1}, {"horizontal": 0, "vertical": 1, "ltrb": True}, {"ltrb": True}, {"horizontal": 2}],
)

LABELS = feed([np.arange(9, dtype=np.int32) + 10 * i for i in range(3)])
SIZE = {"input_shape": [100, 200]}
TURNS: list[dict[str, Any]] = [
    *({"angle": float(angle), **SIZE} for angle in (30, -30, 45, 90, 135, 0, 180, 211)),
    *({"angle": 30.0, "mode": mode, **SIZE} for mode in ("fixed", "halfway", "x")),
    *({"angle": 30.0, "remove_threshold": t, **SIZE} for t in (0.0, 0.5, 0.9, 1.0, -1.0)),
    {"angle": 30.0, "bbox_layout": "xyWH", **SIZE},
    {"angle": 30.0, "bbox_layout": "xywh", **SIZE},
    {"angle": 30.0, "bbox_normalized": False, "input_shape": [2, 1]},
    {"angle": 30.0, "input_shape": [100, 200, 3]},
    {"angle": 30.0, "input_shape": [3, 100, 201], "shape_layout": "CHW"},
    {"angle": 30.0, "input_shape": [100]},
    {"angle": 30.0, "size": [50.0], **SIZE},
    {"angle": numbers(), **SIZE},
]
for turn in TURNS:
    for extra in ({}, {"keep_size": True}, {"size": [50.0, 70.0]}):
        if not ("size" in turn and extra):
            FAMILY.each("bbox_rotate", BOXES, [{**turn, **extra}], gpu=False)
BOTH_SIZES = {"angle": 30.0, "keep_size": True, "size": [5.0, 7.0], **SIZE}
FAMILY.each("bbox_rotate", {"boxes": BOXES["boxes"]}, [BOTH_SIZES], gpu=False)


def labelled(labels: Define, **given: Any) -> Define:
    return lambda m: tuple(m.fn.bbox_rotate(BOXES["far boxes"](m), labels(m), angle=30.0, **SIZE, **given))


for keep in (False, True):
    FAMILY.add(f"bbox_rotate with labels, keep_size={keep}", labelled(LABELS, keep_size=keep, remove_threshold=0.3))
FAMILY.add(
    "bbox_rotate with a column of labels",
    labelled(feed([np.arange(9, dtype=np.int32)[:, None]] * 3), keep_size=True, remove_threshold=0.3),
)
FAMILY.add("bbox_rotate with float labels", labelled(numbers(9)))
FAMILY.add("bbox_rotate with few labels", labelled(feed([np.arange(4, dtype=np.int32)] * 3)))

# Boxes that are points or lines along either axis, or that are only partly in the image. Each is tested alone, and all together.
DEGENERATE = np.array(
    [
        [0, 0, 0, 0],
        [0.5, 0.5, 0.5, 0.5],
        [0.2, 0.3, 0.2, 0.6],
        [0.2, 0.3, 0.7, 0.3],
        [0, 0, 1, 0],
        [0.1, 0.1, 0.4, 0.5],
        [1, 1, 1, 1],
        [0, 0, 1e-5, 0.5],
    ],
    np.float32,
)
NO_EXTENT = {"zeros": feed([np.zeros((4, 4), np.float32)] * 3), "degenerate boxes": feed([DEGENERATE] * 3)}
FAMILY.each(
    "bbox_rotate",
    NO_EXTENT,
    [
        {"angle": angle, "mode": mode, "remove_threshold": threshold, "keep_size": True, **SIZE}
        for angle in (0.0, 30.0, -35.0, 60.0)
        for mode in ("expand", "fixed", "halfway")
        for threshold in (0.0, 0.1)
    ],
    gpu=False,
)
