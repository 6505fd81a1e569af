"""Reads a page: sends it to Triton, finds the lines in the answer, and sends their boxes to get their text.

    penstock examples add ocr
    penstock serve model_repository
    python client_examples/read_page.py page.jpg

Lines are found as horizontal boxes; text that is rotated by more than a few degrees is not read.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tritonclient.http
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parent.parent
CHARACTERS = ROOT / "model_repository" / "ocr_recognizer" / "characters.txt"
# Of PP-OCR: what is text, how sure a line must be, and how much larger it is than what the detector marks.
MIN_TEXT, MIN_LINE, ENLARGE = 0.3, 0.6, 1.6
MIN_SIDE_PIXELS = 3
MIN_SCORE = 0.5


@dataclass(frozen=True)
class Line:
    """A line of text.

    Attributes:
        box: left, top, right, bottom in pixels of the page.
        text: of the line.
        score: the mean probability of its characters.
    """

    box: np.ndarray
    text: str
    score: float


def find_boxes(text: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Boxes of lines, from top to bottom, float32 of shape (lines, 4).

    Args:
        text: how probably each pixel belongs to a line, of shape (height, width).
        size: height and width of the page.
    """
    contours, _ = cv2.findContours((text > MIN_TEXT).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    scale = np.array([size[1] / text.shape[1], size[0] / text.shape[0]] * 2)
    limits = np.array([size[1], size[0]] * 2)
    boxes = []
    for contour in contours:
        left, top, width, height = cv2.boundingRect(contour)
        if min(width, height) < MIN_SIDE_PIXELS or text[top : top + height, left : left + width].mean() < MIN_LINE:
            continue
        # The detector marks the middle of a line; the rest is as wide as the line's area tells.
        border = width * height * ENLARGE / (2 * (width + height))
        box = np.array([left - border, top - border, left + width + border, top + height + border]) * scale
        boxes.append(box.clip(0, limits))
    boxes.sort(key=lambda box: (box[1], box[0]))
    return np.array(boxes, np.float32).reshape(-1, 4)


def decode(numbers: np.ndarray, scores: np.ndarray, characters: list[str]) -> tuple[str, float]:
    """The text of a line and its mean probability: steps that repeat the one before, and steps without a character, are left out."""
    is_new = np.diff(numbers, prepend=0) != 0
    read = is_new & (numbers != 0)
    return "".join(characters[number] for number in numbers[read]), float(scores[read].mean()) if read.any() else 0.0


def read_page(client: Any, content: bytes, characters: list[str]) -> list[Line]:
    """The lines of a page, in two requests.

    Args:
        client: of Triton.
        content: the page's file.
        characters: of the recognizer.
    """
    page = tritonclient.http.InferInput("encoded_image", [1, 1], "BYTES")
    page.set_data_from_numpy(np.array([[content]], np.object_))
    found = client.infer("ocr_detect", [page])
    boxes = find_boxes(found.as_numpy("text")[0, 0], tuple(found.as_numpy("size")[0]))
    if not len(boxes):
        return []
    tensor = tritonclient.http.InferInput("boxes", [1, *boxes.shape], "FP32")
    tensor.set_data_from_numpy(boxes[None])
    answer = client.infer("ocr_recognize", [page, tensor])
    read = zip(boxes, answer.as_numpy("characters"), answer.as_numpy("scores"))
    lines = [Line(box, *decode(numbers, scores, characters)) for box, numbers, scores in read]
    return [line for line in lines if line.score >= MIN_SCORE]


def main() -> None:
    """Reads the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--url", default="localhost:8000")
    parser.add_argument("--characters", type=Path, default=CHARACTERS, help="the recognizer's characters, one a line")
    options = parser.parse_args()
    characters = options.characters.read_text(encoding="utf-8").split("\n")
    client = tritonclient.http.InferenceServerClient(options.url)
    for page in options.pages:
        for line in read_page(client, page.read_bytes(), characters):
            print(f"{page}: {line.text} ({line.score:.2f})")


if __name__ == "__main__":
    try:
        main()
    except InferenceServerException as error:
        sys.exit(f"the server refused: {error.message()}")
    except OSError as error:
        sys.exit(f"cannot read {error.filename}: {error.strerror}")
