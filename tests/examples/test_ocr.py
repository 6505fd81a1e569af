"""The example ocr: pages are read, line by line."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from penstock.examples import load_example
from penstock.serving.server import LocalServer

pytestmark = [pytest.mark.timeout(600), pytest.mark.exhaustive]

ROOT = Path(__file__).resolve().parents[2]
TEXT = [
    "Penstock: a pipe that carries water",
    "from the reservoir to the turbine.",
    "Invoice no. 2026-1129, total 1,248.50",
    "Thank you very much!",
]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "client_examples"))
    return importlib.import_module("read_page")


def page(lines: list[str], angle: float = 0.0) -> bytes:
    """A photograph of a page: grey paper, unevenly lit, a little tilted, blurred and noisy."""
    height, width = 150 + 90 * len(lines), 1100
    paper = Image.new("L", (width, height), 235)
    draw = ImageDraw.Draw(paper)
    for number, line in enumerate(lines):
        draw.text((100, 80 + 90 * number), line, fill=30, font=ImageFont.load_default(44))
    paper = paper.rotate(angle, Image.Resampling.BICUBIC, fillcolor=235).filter(ImageFilter.GaussianBlur(0.8))
    light = np.linspace(0.75, 1.05, width)[None] * np.linspace(1.0, 0.9, height)[:, None]
    noise = np.random.default_rng(0).normal(0, 4, (height, width))
    pixels = (np.asarray(paper) * light + noise).clip(0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(stream, "JPEG", quality=85)
    return stream.getvalue()


def test_pages_are_read(reader: ModuleType, tmp_path: Path) -> None:
    repository = tmp_path / "models"
    load_example("ocr").add(repository)
    characters = (repository / "ocr_recognizer" / "characters.txt").read_text(encoding="utf-8").split("\n")
    assert len(characters) == 18710
    (tmp_path / "page.jpg").write_bytes(page(TEXT, 0.7))
    with LocalServer(repository) as server:
        command = [sys.executable, str(ROOT / "client_examples" / "read_page.py"), str(tmp_path / "page.jpg")]
        command += ["--url", server.http_url, "--characters", str(repository / "ocr_recognizer" / "characters.txt")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        client = reader.tritonclient.http.InferenceServerClient(server.http_url)
        blank = reader.read_page(client, page([""]), characters)
        large = reader.read_page(client, page(TEXT * 4), characters)
        client.close()
    assert done.returncode == 0, done.stderr
    assert [line.rsplit(" (", 1)[0] for line in done.stdout.splitlines()] == [
        f"{tmp_path}/page.jpg: {text}" for text in TEXT
    ]
    assert blank == []
    assert [line.text for line in large] == TEXT * 4
    # A box is where its line was drawn.
    for number, line in enumerate(large):
        left, top, right, bottom = line.box
        assert left == pytest.approx(100, abs=15)
        assert top < 80 + 90 * number + 30 < bottom
        assert right < 1100


def test_steps_become_text(reader: ModuleType) -> None:
    characters = ["", "a", "b", " "]
    numbers, scores = np.array([1, 1, 0, 1, 3, 2, 2, 0]), np.array([0.5, 0.1, 0.9, 0.7, 0.9, 0.9, 0.2, 1.0])
    text, score = reader.decode(numbers, scores, characters)
    assert text == "aa b"
    assert score == pytest.approx(0.75)
    assert reader.decode(np.zeros(4, int), np.ones(4), characters) == ("", 0.0)


def test_boxes_are_larger_than_what_the_detector_marks(reader: ModuleType) -> None:
    text = np.zeros((64, 160), np.float32)
    text[40:48, 20:120] = 0.9
    text[10:14, 20:40] = 0.8
    text[20:30, 140:150] = 0.35  # too unsure
    text[60:62, 0:100] = 0.9  # too thin
    above, below = reader.find_boxes(text, (128, 320))
    assert above[1] < below[1]
    border = 100 * 8 * 1.6 / (2 * 108)
    np.testing.assert_allclose(below, np.array([20 - border, 40 - border, 120 + border, 48 + border]) * 2, rtol=1e-6)
    assert reader.find_boxes(np.zeros((32, 32), np.float32), (32, 32)).shape == (0, 4)
