"""The example ocr reads pages line by line."""

from __future__ import annotations

import importlib
import io
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from tritonclient.utils import InferenceServerException

from penstock.examples import load_example
from penstock.serving.export import export_model
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
    """Return a photograph of a page: grey paper, unevenly lit, a little tilted, blurred and noisy."""
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
    characters = (repository / "ocr" / "1" / "characters.txt").read_text(encoding="utf-8").split("\n")
    assert len(characters) == 18710
    (tmp_path / "page.jpg").write_bytes(page(TEXT, 0.7))
    # The same pipeline, saved without Python code: one file next to the networks, which may read only files in this folder.
    export_model(repository / "ocr" / "1" / "pipeline.py", repository / "saved")
    shutil.copyfile(repository / "ocr" / "config.pbtxt", repository / "saved" / "config.pbtxt")
    assert {path.name for path in (repository / "saved" / "1").iterdir()} == {
        "model.json",
        "detector.onnx",
        "recognizer.onnx",
    }
    with LocalServer(repository) as server:
        command = [sys.executable, str(ROOT / "client_examples" / "read_page.py"), str(tmp_path / "page.jpg")]
        command += ["--url", server.http_url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        client = reader.tritonclient.http.InferenceServerClient(server.http_url)
        blank = reader.read_page(client, page([""]))
        large = reader.read_page(client, page(TEXT * 4))
        sent = np.array([[page(TEXT[:2])], [page([""])], [b"not an image"]], np.object_)
        together = answer(reader, client, "saved", sent[:2])
        with pytest.raises(InferenceServerException, match=r"not an image|format"):
            answer(reader, client, "saved", sent[2:])
        client.close()
    assert done.returncode == 0, done.stderr
    assert [line.rsplit(" (", 1)[0] for line in done.stdout.splitlines()] == [
        f"{tmp_path}/page.jpg: {text}" for text in TEXT
    ]
    assert blank == []
    assert [line.text for line in large] == TEXT * 4
    # Each line must be found where it was drawn.
    for number, line in enumerate(large):
        (left, top), (right, bottom) = line.corners.min(axis=0), line.corners.max(axis=0)
        assert left == pytest.approx(100, abs=15)
        assert top < 80 + 90 * number + 30 < bottom
        assert right < 1100
    assert together.as_numpy("counts").ravel().tolist() == [2, 0]
    assert [text.decode() for text in together.as_numpy("text").ravel()] == TEXT[:2]


def answer(reader: ModuleType, client: Any, model: str, pages: np.ndarray) -> Any:
    tensor = reader.tritonclient.http.InferInput("encoded_image", list(pages.shape), "BYTES")
    tensor.set_data_from_numpy(pages)
    return client.infer(model, [tensor])
