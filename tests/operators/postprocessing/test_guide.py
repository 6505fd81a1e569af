"""The pipelines of the guide (`docs/answers.md`) find the objects in their inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types

GUIDE = Path(__file__).parents[3] / "docs" / "answers.md"


def of_guide(name: str) -> Callable[[], Pipeline]:
    """Return the pipeline definition of that name in the guide."""
    code = next(
        own for own in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.S) if f"def {name}(" in own
    )
    names: dict[str, Any] = {"fn": fn, "types": types, "pipeline_def": pipeline_def}
    # Definitions with conditionals would fail, as the functions' source is not in a file.
    exec(compile(code, str(GUIDE), "exec"), names)
    return names[name]


def run(name: str, **inputs: list[np.ndarray]) -> list[list[np.ndarray]]:
    pipeline = of_guide(name)(prefetch_queue_depth=1)
    try:
        return [[np.array(sample) for sample in batch] for batch in pipeline.run(**inputs)]
    finally:
        pipeline.close()


def test_boxes() -> None:
    wide, high = 40.0, 30.0
    centres = np.array([[100, 80], [103, 82], [300, 200]], np.float32)
    scores = np.array([[0.9, 0.1], [0.8, 0.1], [0.2, 0.7]], np.float32)
    predicted = np.hstack([centres, np.full((3, 2), (wide, high)), scores]).astype(np.float32)
    shift, scale = np.array([0, 20], np.float32), np.array([2, 2], np.float32)
    nothing = predicted * np.float32(0)
    boxes, best, labels = run("detections", predicted=[predicted, nothing], shift=[shift] * 2, scale=[scale] * 2)
    np.testing.assert_allclose(boxes[0], [[160, 90, 240, 150], [560, 330, 640, 390]], rtol=1e-6)
    np.testing.assert_allclose(best[0], [0.9, 0.7])
    assert labels[0].tolist() == [0, 1]
    assert [len(own[1]) for own in (boxes, best, labels)] == [0, 0, 0]


@pytest.mark.parametrize("angle", [0.0, 15.0])
def test_lines_of_text(angle: float) -> None:
    page, likely = np.full((200, 300, 3), 255, np.uint8), np.zeros((200, 300), np.float32)
    for y in (50.0, 120.0):
        corners = cv2.boxPoints(((150.0, y), (160.0, 20.0), angle)).astype(np.int32)
        core = cv2.boxPoints(((150.0, y), (150.0, 10.0), angle)).astype(np.int32)
        cv2.fillPoly(page, [corners], (20, 40, 60))
        cv2.fillPoly(likely, [core], 0.95)
    crops, counts, lines, scores = run("lines_of_text", pages=[page, page], likely=[likely, likely * 0])
    assert [int(count) for count in counts] == [2, 0]
    assert lines[1].shape == (0, 4, 2)
    assert scores[0].min() > 0.6
    for crop in crops:
        high, wide, _ = crop.shape
        assert abs(high - 20) <= 6
        assert abs(wide - 160) <= 10
        np.testing.assert_array_equal(crop[high // 2, wide // 2], [20, 40, 60])


def test_spoken_parts() -> None:
    likely = np.zeros(100, np.float32)
    likely[10:20] = likely[60:90] = 0.9
    audio = np.arange(100 * 512, dtype=np.float32)
    clips, counts, segments = run("spoken_parts", audio=[audio, audio], likely=[likely, likely * 0])
    assert [int(own) for own in counts] == [1, 0]
    assert segments[0].tolist() == [[10 * 512 - 480, 90 * 512 + 480]]
    np.testing.assert_array_equal(clips[0], audio[10 * 512 - 480 : 90 * 512 + 480])
