"""Reads pages: sends each to Triton, and prints its lines of text.

    penstock examples add ocr
    penstock serve model_repository
    python client_examples/read_page.py page.jpg

Lines may be tilted; text that stands upright is turned by a quarter, and a page upside down is not read.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http
from tritonclient.utils import InferenceServerException

MIN_SCORE = 0.5


@dataclass(frozen=True)
class Line:
    """A line of text.

    Attributes:
        corners: x and y in pixels of the page, clockwise from the upper left, float32 of shape (4, 2).
        text: the line's text.
        score: the probability of the text.
    """

    corners: np.ndarray
    text: str
    score: float


def read_page(client: Any, content: bytes) -> list[Line]:
    """Return the lines of a page, in reading order.

    Args:
        client: a Triton client.
        content: the page's file.
    """
    page = tritonclient.http.InferInput("encoded_image", [1, 1], "BYTES")
    page.set_data_from_numpy(np.array([[content]], np.object_))
    answer = client.infer("ocr", [page])
    texts, scores, corners = (answer.as_numpy(name) for name in ("text", "scores", "corners"))
    lines = [Line(own, text.decode(), float(score)) for own, text, score in zip(corners, texts.ravel(), scores.ravel())]
    return [line for line in lines if line.text and line.score >= MIN_SCORE]


def main() -> None:
    """Read the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--url", default="localhost:8000")
    options = parser.parse_args()
    client = tritonclient.http.InferenceServerClient(options.url)
    for page in options.pages:
        for line in read_page(client, page.read_bytes()):
            print(f"{page}: {line.text} ({line.score:.2f})")


if __name__ == "__main__":
    try:
        main()
    except InferenceServerException as error:
        sys.exit(f"the server refused: {error.message()}")
    except OSError as error:
        sys.exit(f"cannot read {error.filename}: {error.strerror}")
