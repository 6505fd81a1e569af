"""Bounding boxes of connected components, compared with a plain search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.operators.segmentation._components_cpu import component_boxes


def searched(labels: np.ndarray, wanted: np.ndarray) -> list[list[int]]:
    """Return the boxes of the components, found by a plain search for neighbours with equal labels."""
    left = {place for place in np.ndindex(labels.shape) if wanted[place]}
    boxes = []
    for first in np.ndindex(labels.shape):
        if first not in left:
            continue
        left.remove(first)
        found, fringe = [first], [first]
        while fringe:
            place = fringe.pop()
            for axis, step in itertools.product(range(labels.ndim), (-1, 1)):
                neighbour = tuple(p + step * (a == axis) for a, p in enumerate(place))
                if neighbour in left and labels[neighbour] == labels[first]:
                    left.remove(neighbour)
                    found.append(neighbour)
                    fringe.append(neighbour)
        places = np.array(found)
        boxes.append([*places.min(axis=0).tolist(), *(places.max(axis=0) + 1).tolist()])
    return boxes


@pytest.mark.parametrize("shape", [(17,), (9, 11), (5, 6, 7), (40, 40), (0, 3), (1, 1)])
def test_equals_a_plain_search(shape: tuple[int, ...]) -> None:
    labels = np.random.default_rng(len(shape)).integers(0, 3, shape)
    for wanted in (labels != 0, labels == 1, np.ones(shape, bool)):
        assert component_boxes(labels, wanted).tolist() == searched(labels, wanted)


def test_leaves_its_input_alone() -> None:
    wanted = np.ones((3, 3), bool)
    component_boxes(np.zeros((3, 3), np.uint8), wanted)
    assert wanted.all()
