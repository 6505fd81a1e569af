"""PaddleOCR's preprocessing and postprocessing in OpenCV and numpy, for a client that calls the detector and the recognizer itself.

This module imports nothing of Penstock, so that models in Triton's Python backend can use it as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import cv2
import numpy as np

Detect = Callable[[np.ndarray], np.ndarray]
"""The detector: takes an image, float32 of shape (1, 3, height, width); returns the probability that each pixel is
text, float32 of shape (height, width).
"""
Recognize = Callable[[np.ndarray], np.ndarray]
"""The recognizer: takes images of lines, float32 of shape (lines, 3, 48, width); returns the number of the most likely
character at each step, of shape (lines, steps).
"""


class PageReader:
    """Reads the text of pages.

    Args:
        detect: calls the network that detects text.
        recognize: calls the network that recognizes characters.
        characters: the characters, at the indices by which the recognizer returns them.
        together: whether the lines of a page are padded to the widest one and recognized in a single call; otherwise, each line is
            recognized in a separate call.
    """

    def __init__(
        self, detect: Detect, recognize: Recognize, characters: Sequence[str], *, together: bool = False
    ) -> None:
        self._detect, self._recognize, self._characters, self._together = detect, recognize, characters, together

    def read(self, content: bytes) -> list[str]:
        """Return the text of each line of an encoded page, in reading order."""
        page = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
        if page is None:
            raise ValueError("the page is in no format that OpenCV decodes")
        lines = [_prepared(line) for line in self._lines(page)]
        if not lines:
            return []
        if not self._together:
            return [self._text(self._recognize(_padded([line]))[0]) for line in lines]
        return [self._text(best) for best in self._recognize(_padded(lines))]

    def _lines(self, page: np.ndarray) -> list[np.ndarray]:
        height, width = page.shape[:2]
        ratio = min(1.0, 960 / max(height, width))
        seen = tuple(max(round(int(extent * ratio) / 32) * 32, 32) for extent in (height, width))
        values = cv2.resize(page, seen[::-1]).astype(np.float32) / 255
        values = (values - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
        likely = self._detect(np.ascontiguousarray(values.transpose(2, 0, 1)[None]))
        contours, _ = cv2.findContours((likely > 0.3).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        boxes = []
        for contour in contours:
            centre, (wide, high), angle = cv2.minAreaRect(contour)
            if min(wide, high) < 3:
                continue
            mask = cv2.fillPoly(
                np.zeros(likely.shape, np.uint8), [cv2.boxPoints((centre, (wide, high), angle)).astype(np.int32)], 1
            )
            if cv2.mean(likely, mask)[0] < 0.6:
                continue
            border = wide * high * 1.6 / (2 * (wide + high))
            corners = cv2.boxPoints((centre, (wide + 2 * border, high + 2 * border), angle))
            by_x = corners[np.argsort(corners[:, 0], kind="stable")]
            left, right = by_x[:2][np.argsort(by_x[:2, 1])], by_x[2:][np.argsort(by_x[2:, 1])]
            corners = np.array([left[0], right[0], right[1], left[1]], np.float32)
            boxes.append(corners * np.array([width / seen[1], height / seen[0]], np.float32))
        boxes.sort(key=lambda own: own[:, 1].mean())
        return [_cut(page, own) for own in boxes]

    def _text(self, best: np.ndarray) -> str:
        kept = (np.diff(best, prepend=-1) != 0) & (best != 0)
        return "".join(self._characters[number] for number in best[kept])


def _cut(page: np.ndarray, corners: np.ndarray) -> np.ndarray:
    width = int(max(np.linalg.norm(corners[0] - corners[1]), np.linalg.norm(corners[2] - corners[3])))
    height = int(max(np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2])))
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, target)
    line = cv2.warpPerspective(page, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.rot90(line) if height >= 1.5 * width else line


def _prepared(line: np.ndarray) -> np.ndarray:
    height, width = line.shape[:2]
    values = cv2.resize(line, (math.ceil(48 * width / height), 48)).astype(np.float32).transpose(2, 0, 1)
    return (values / 255 - 0.5) / 0.5


def _padded(lines: Sequence[np.ndarray]) -> np.ndarray:
    padded = np.zeros((len(lines), 3, 48, max(320, *(line.shape[2] for line in lines))), np.float32)
    for row, line in zip(padded, lines):
        row[:, :, : line.shape[2]] = line
    return padded
