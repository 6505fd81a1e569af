"""Points, boxes and labels of samples that differ, or of which some have failed, as one kernel computes a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.operators.generic.one_hot import OneHot
from penstock.operators.geometry.bb_flip import BbFlip
from penstock.operators.geometry.coord_transform import CoordTransform
from penstock.schema import Operator, Workspace
from penstock.tensors import TensorListCPU

BOXES = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.125, 0.5]], np.float32)


def run(operator: Operator, samples: list[np.ndarray], **arguments: list[np.ndarray]) -> Workspace:
    """Run an operator; samples that fail are set aside."""
    workspace: Workspace = Workspace(
        inputs=[TensorListCPU.of_samples(samples)],
        arguments={name: TensorListCPU.of_samples(values) for name, values in arguments.items()},
        batch_size=len(samples),
        isolate=True,
    )
    operator.run(workspace)
    return workspace


def test_points_may_have_different_numbers_of_coordinates() -> None:
    samples = [np.ones((4, 2), np.float32), np.full((1, 3), 2, np.float32), np.ones((0, 2), np.float32)]
    workspace = run(CoordTransform({"M": [3.0], "T": [1.0]}), samples)
    for sample, points in zip(samples, workspace.outputs[0].samples, strict=True):
        np.testing.assert_array_equal(points, 3 * sample + 1)


def test_matrices_differ_between_samples() -> None:
    samples = [np.array([[1, 2]], np.int16), np.array([[3, 4], [5, 6]], np.int16)]
    matrices = [np.array([[1, 1, 0.25], [0, 2, 1]], np.float32), np.array([[0, 1, -1], [1, 0, 0]], np.float32)]
    workspace = run(CoordTransform(tensor_arguments=["MT"]), samples, MT=matrices)
    assert [points.tolist() for points in workspace.outputs[0].samples] == [[[3.25, 5]], [[3, 3], [5, 5]]]


def test_a_sample_without_whole_boxes_fails_alone() -> None:
    workspace = run(BbFlip(), [BOXES, BOXES[0, :3], BOXES[1:]])
    assert list(workspace.failures) == [1]
    assert "four numbers each, got 3 numbers in shape [3]" in str(workspace.failures[1])
    flipped = BOXES.copy()
    flipped[:, 0] = 1 - BOXES[:, 0] - BOXES[:, 2]
    np.testing.assert_allclose(workspace.outputs[0].samples[0], flipped, atol=1e-6)
    np.testing.assert_allclose(workspace.outputs[0].samples[2], flipped[1:], atol=1e-6)


def test_directions_differ_between_samples() -> None:
    directions = [np.array(value, np.int32) for value in (0, 1, 1)]
    operator = BbFlip({"ltrb": True}, tensor_arguments=["horizontal", "vertical"])
    workspace = run(operator, [BOXES] * 3, horizontal=directions, vertical=directions[::-1])
    left, top, right, bottom = BOXES.T
    across, down = [1 - right, top, 1 - left, bottom], [left, 1 - bottom, right, 1 - top]
    both = [1 - right, 1 - bottom, 1 - left, 1 - top]
    for boxes, expected in zip(workspace.outputs[0].samples, (down, both, across), strict=True):
        np.testing.assert_array_equal(boxes, np.stack(expected, axis=1))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_labels_of_failed_samples_are_left_out(dtype: Any) -> None:
    samples = [np.array([[0, 2], [7, 1]], dtype), np.zeros(0, dtype).reshape(0, 0), np.array([[1, 1]], dtype)]
    workspace: Workspace = Workspace(
        inputs=[TensorListCPU.of_samples(samples)], batch_size=3, isolate=True, failures={1: ValueError("before")}
    )
    OneHot({"num_classes": 3, "axis": 0}).run(workspace)
    expected = [(sample == np.arange(3).reshape(3, 1, 1)).astype(np.float32) for sample in (samples[0], samples[2])]
    np.testing.assert_array_equal(workspace.outputs[0].samples[0], expected[0])
    np.testing.assert_array_equal(workspace.outputs[0].samples[2], expected[1])
