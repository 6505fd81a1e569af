"""Reordered frames and samples, filled tensors, one-hot vectors, lookup tables."""

from __future__ import annotations

import numpy as np
from case import DALI_TYPES, NUMPY_TYPES, Family, feed, feed_here, images

FAMILY = Family("generic")
PIXELS = feed(images([(2, 1, 1), (1, 2, 1), (1, 1, 1)]), "HWC")
SEQUENCES = feed(images([(3, 2, 2, 1), (4, 2, 2, 1), (3, 1, 2, 1)]), "FHWC")
UNNAMED = feed(images([(3, 2, 2, 1), (4, 2, 2, 1), (3, 1, 2, 1)]))
VECTORS = feed([np.arange(3), np.arange(4), np.arange(3)])
MATRICES = feed(images([(2, 1), (2, 2), (2, 1)]))
SCALARS = feed([np.int32(2), np.int32(1), np.int32(0)])
SHAPES = feed([np.int32([2, 1]), np.int32([1, 2]), np.int32([1, 1])])
FILLS = feed([np.float32([1, 2]), np.float32([3, 4]), np.float32([5, 6])])

FAMILY.each(
    "permute_batch",
    {"pixels": PIXELS},
    [
        {"indices": [2, 0, 1]},
        {"indices": [1, 1, 1]},
        {"indices": [2, 0]},
        {"indices": [2, 0, 5]},
        {"indices": [2, 0, -1]},
        {"indices": 1},
    ],
    exact=True,
)
for text, indices in (
    ("numbers", SCALARS),
    ("vectors", feed([np.int32([2]), np.int32([1]), np.int32([0])])),
    ("floats", feed([np.float32(2), np.float32(1), np.float32(0)])),
):
    FAMILY.add(f"permute_batch by {text}", lambda m, i=indices: m.fn.permute_batch(PIXELS(m), indices=i(m)), exact=True)
FAMILY.each(
    "element_extract",
    {"sequences": SEQUENCES, "unnamed": UNNAMED, "images": PIXELS, "vectors": VECTORS, "matrices": MATRICES},
    [{"element_map": [0, 2]}, {"element_map": [1]}, {"element_map": 1}, {"element_map": [1, 1]}],
    exact=True,
)
FAMILY.each(
    "element_extract", {"sequences": SEQUENCES}, [{"element_map": [3]}, {"element_map": [-1]}, {"element_map": []}]
)
FAMILY.each(
    "sequence_rearrange",
    {"sequences": SEQUENCES, "unnamed": UNNAMED, "images": PIXELS, "vectors": VECTORS, "matrices": MATRICES},
    [
        {"new_order": [1, 0]},
        {"new_order": [2, 0, 0, 1, 1]},
        {"new_order": [3]},
        {"new_order": [-1]},
        {"new_order": []},
    ],
    exact=True,
)
for text, order in (("lists", feed([np.int32([1, 0, 1]), np.int32([1]), np.int32([0])])), ("numbers", SCALARS)):
    FAMILY.add(
        f"sequence_rearrange by {text}",
        lambda m, o=order: m.fn.sequence_rearrange(SEQUENCES(m), new_order=o(m)),
        exact=True,
    )
for name in ("zeros", "ones"):
    for given in (
        {},
        {"shape": [2]},
        {"shape": 3},
        {"shape": [2, 1], "layout": "HW"},
        {"shape": [2, 1], "layout": "H"},
        {"shape": [0]},
        {"shape": [-1]},
        {"shape": []},
    ):
        FAMILY.add(f"{name} {given}", lambda m, n=name, g=given: getattr(m.fn, n)(**g), exact=True, gpu=False)
    for kind in ("BOOL", "FLOAT16", "UINT8", "INT64", "FLOAT64"):
        FAMILY.add(
            f"{name} of {kind}",
            lambda m, n=name, k=kind: getattr(m.fn, n)(shape=[2], dtype=getattr(m.types, k)),
            gpu=False,
        )
    FAMILY.add(f"{name} of a computed shape", lambda m, n=name: getattr(m.fn, n)(shape=SHAPES(m)), gpu=False)
    FAMILY.add(f"{name} of a computed extent", lambda m, n=name: getattr(m.fn, n)(shape=SCALARS(m)), gpu=False)
    FAMILY.add(f"{name}_like", lambda m, n=name: getattr(m.fn, f"{n}_like")(PIXELS(m)), exact=True, gpu=False)
    FAMILY.add(
        f"{name}_like float", lambda m, n=name: getattr(m.fn, f"{n}_like")(PIXELS(m), dtype=m.types.FLOAT), gpu=False
    )
VALUES = {
    "int": 7,
    "float": 7.5,
    "bool": True,
    "array": np.array([1, 2], np.int16),
    "list": [1, 2],
    "column": np.array([[1], [2]], np.int16),
    "square": np.array([[1, 2], [2, 3]], np.int16),
}
for text, value in VALUES.items():
    for given in (
        {},
        {"shape": [2]},
        {"shape": [3, 2]},
        {"shape": [2, 3]},
        {"shape": [3]},
        {"shape": [2, 2], "layout": "AB"},
    ):
        FAMILY.add(f"full {text} {given}", lambda m, v=value, g=given: m.fn.full(v, **g), exact=True, gpu=False)
    if np.ndim(value) < 2:
        # DALI's results for values of more dimensions follow no rule.
        FAMILY.add(f"full_like {text}", lambda m, v=value: m.fn.full_like(PIXELS(m), v), exact=True, gpu=False)
FAMILY.add("full computed", lambda m: m.fn.full(FILLS(m), shape=[2, 2]), exact=True, gpu=False)
FAMILY.add("full computed shape", lambda m: m.fn.full(SCALARS(m), shape=SHAPES(m)), exact=True, gpu=False)
FAMILY.add("full_like computed", lambda m: m.fn.full_like(PIXELS(m), FILLS(m)), exact=True, gpu=False)
FAMILY.each(
    "one_hot",
    {
        "scalars": SCALARS,
        "vectors": feed([np.int64([2, 0]), np.int64([1]), np.int64([0, 1, -1])]),
        "named": feed([np.int64([2, 0]), np.int64([1]), np.int64([0, 1, -1])], "X"),
        "matrices": feed([np.uint8([[2, 0]]), np.uint8([[1, 3]]), np.uint8([[0], [1]])], "HW"),
        "single elements": feed([np.uint8([[2]]), np.uint8([[1]]), np.uint8([[0]])], "HW"),
        "floats": feed([np.float32([2.7, 0.5]), np.float32([1.4]), np.float32([-0.3, np.nan, 1e30])]),
    },
    [
        {"num_classes": 3},
        {"num_classes": 3, "axis": 0},
        {"num_classes": 2, "axis": 1},
        {"num_classes": 2, "axis": -2},
        {"num_classes": 2, "axis": 3},
        {"num_classes": 2, "axis_name": "C"},
        {"num_classes": 2, "axis_name": "C", "axis": 0},
        {"num_classes": 2, "axis_name": "CC"},
        {"num_classes": 0},
        {"num_classes": -1},
        {"num_classes": 2, "dtype": "types.UINT8", "on_value": 300.0, "off_value": -1.5},
    ],
    exact=True,
)
FAMILY.each(
    "one_hot",
    {"scalars": SCALARS},
    [
        {"num_classes": 2, "dtype": f"types.{kind}", "on_value": on, "off_value": off}
        for kind in DALI_TYPES
        for on, off in ((2.5, -1.5), (1e10, 70000.7), (-1e20, 0.0))
    ],
    exact=True,
)
for kind in NUMPY_TYPES:
    numbers = np.array([0, 1, 3, 100], kind)
    if numbers.dtype.kind == "i":
        numbers = np.append(numbers, -np.array([1], kind))
    FAMILY.each("one_hot", {kind: feed([numbers] * 3)}, [{"num_classes": 4}], exact=True)
    FAMILY.each(
        "lookup_table", {kind: feed([numbers] * 3)}, [{"keys": [1, 3, 100], "values": [10.5, -3.5, 1000.0]}], exact=True
    )
FAMILY.each(
    "lookup_table",
    {
        "pixels": feed([np.uint8([[0, 1, 2, 3, 100]])] * 3, "HW"),
        "numbers": feed([np.int32([65535, 65536, 70000, -1])] * 3),
    },
    [
        *(
            {"keys": [1, 3, 100], "values": [10.5, -3.5, 1000.0], "default_value": 0.5, "dtype": f"types.{kind}"}
            for kind in DALI_TYPES
        ),
        {},
        {"default_value": 3.0},
        {"keys": [1, 2], "values": [3.0]},
        {"keys": [1, 1], "values": [3.0, 4.0]},
        {"keys": [-1], "values": [3.0]},
        {"keys": [65535], "values": [3.0]},
        {"keys": [65536], "values": [3.0]},
        {"keys": 1, "values": 3.0, "output_dtype": "types.INT16"},
    ],
    exact=True,
)
FAMILY.add(
    "lookup_table on either device",
    lambda m: m.fn.lookup_table(feed_here(images([(2, 3)] * 3))(m), keys=[1], values=[2.0]),
)
for text, samples in {
    "nothing": [np.zeros((0, 3), np.float32)] * 3,
    "rows of nothing": [np.zeros((2, 0), np.float32)] * 3,
    "nothing beside something": [
        np.zeros((0, 3), np.float32),
        np.ones((1, 3), np.float32),
        images([(700, 3)], np.float32)[0],
    ],
}.items():
    for given in ({}, {"batch": True}):
        FAMILY.add(f"normalize {text} {given}", lambda m, s=samples, g=given: m.fn.normalize(feed(s)(m), **g))
for text, given in {
    "rows": {"axes": [1]},
    "columns": {"axes": [0]},
    "all": {},
    "columns of the batch": {"axes": [0], "batch": True},
}.items():
    FAMILY.add(
        f"normalize many {text}",
        lambda m, g=given: m.fn.reductions.mean_square(
            m.fn.normalize(feed(images([(400, 300)] * 3))(m), **g), axes=[0]
        ),
    )
