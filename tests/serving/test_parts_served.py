"""Images are split through Triton: an ensemble detects, crops and classifies, with the crops of all images in one batch."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

# The first test waits for the server.

MOST = 6
# Coloured squares on black: the objects to find, and their descriptions.
DETECT = f"""
import numpy as np


def squares(image):
    from scipy import ndimage

    labels, count = ndimage.label(image.max(axis=2) > 100)
    boxes = np.zeros(({MOST}, 4), np.float32)
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels)[:{MOST}]):
        boxes[number] = columns.start, rows.start, columns.stop, rows.stop
    return boxes, np.array(min(count, {MOST}), np.int32)


@pipeline_def(batch_size=8)
def detect():
    images = fn.decoders.image(fn.external_source(name="image", dtype=types.UINT8, ndim=1))
    boxes, found = fn.python_function(images, function=squares, num_outputs=2)
    return fn.copy(boxes, name="boxes"), fn.copy(found, name="found")
"""
CROP = """
@pipeline_def(batch_size=8)
def crop():
    images = fn.decoders.image(fn.external_source(name="image", dtype=types.UINT8, ndim=1))
    boxes = fn.external_source(name="boxes", dtype=types.FLOAT, ndim=2)
    found = fn.external_source(name="found", dtype=types.INT32, ndim=0)
    crops, counts = fn.crop_boxes(images, boxes[:found])
    crops = fn.resize(crops, size=[16, 16], reference="pil", name="crops")
    return crops, fn.copy(counts, name="counts")
"""
CLASSIFY = """
@pipeline_def(batch_size=32)
def classify():
    crops = fn.external_source(name="crops", dtype=types.UINT8, layout="HWC")
    return fn.reductions.mean(crops, axes=[0, 1], name="colour")
"""
_ENCODED = 'name: "image" data_type: TYPE_STRING dims: [ 1 ]'
CONFIGS = {
    "detect": f"""backend: "penstock" max_batch_size: 8 input [ {{ {_ENCODED} }} ]
output [ {{ name: "boxes" data_type: TYPE_FP32 dims: [ {MOST}, 4 ] }}, {{ name: "found" data_type: TYPE_INT32 dims: [ 1 ] }} ]
dynamic_batching {{ max_queue_delay_microseconds: 20000 }}""",
    "crop": f"""backend: "penstock" max_batch_size: 8
input [ {{ {_ENCODED} }}, {{ name: "boxes" data_type: TYPE_FP32 dims: [ {MOST}, 4 ] }}, {{ name: "found" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "crops" data_type: TYPE_UINT8 dims: [ 16, 16, 3 ] }}, {{ name: "counts" data_type: TYPE_INT32 dims: [ 1 ] }} ]
dynamic_batching {{ max_queue_delay_microseconds: 20000 }}""",
    "classify": """backend: "penstock" max_batch_size: 32
input [ { name: "crops" data_type: TYPE_UINT8 dims: [ 16, 16, 3 ] } ]
output [ { name: "colour" data_type: TYPE_FP32 dims: [ 3 ] } ]
dynamic_batching { }""",
}
ENSEMBLE = f"""
name: "find"
platform: "ensemble"
max_batch_size: 8
input [ {{ {_ENCODED} }} ]
output [ {{ name: "colour" data_type: TYPE_FP32 dims: [ 3 ] }}, {{ name: "counts" data_type: TYPE_INT32 dims: [ 1 ] }} ]
ensemble_scheduling {{
  step [
    {{
      model_name: "detect" model_version: -1
      input_map {{ key: "image" value: "image" }}
      output_map {{ key: "boxes" value: "boxes" }}
      output_map {{ key: "found" value: "found" }}
    }},
    {{
      model_name: "crop" model_version: -1
      input_map {{ key: "image" value: "image" }}
      input_map {{ key: "boxes" value: "boxes" }}
      input_map {{ key: "found" value: "found" }}
      output_map {{ key: "crops" value: "crops" }}
      output_map {{ key: "counts" value: "counts" }}
    }},
    {{
      model_name: "classify" model_version: -1
      input_map {{ key: "crops" value: "crops" }}
      output_map {{ key: "colour" value: "colour" }}
    }}
  ]
}}
"""


def picture(number: int, squares: int) -> tuple[bytes, list[list[float]]]:
    """Return a PNG with ``squares`` squares, and the colours of the squares from top to bottom."""
    rng = np.random.default_rng(number)
    pixels = np.zeros((40 * max(squares, 1), 60 + number % 5, 3), np.uint8)
    colours = rng.integers(101, 256, (squares, 3))
    for place, colour in enumerate(colours):
        side = int(rng.integers(5, 35))
        pixels[40 * place + 2 : 40 * place + 2 + side, 7 : 7 + side] = colour
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue(), colours.astype(float).tolist()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, model_host: Any) -> Iterator[str]:
    repository = tmp_path_factory.mktemp("models")
    for name, source in (("detect", DETECT), ("crop", CROP), ("classify", CLASSIFY)):
        add_model(repository, name, CONFIGS[name], HEADER + source)
    (repository / "find" / "1").mkdir(parents=True)
    (repository / "find" / "config.pbtxt").write_text(ENSEMBLE)
    with stopped_later(LocalServer(repository, model_host=model_host)) as server:
        yield server.http_url


def found(url: str, numbers: list[int], squares: list[int]) -> tuple[list[list[float]], list[int], list[list[float]]]:
    """Send some pictures in one request; return the ensemble's colours, its counts, and the right colours."""
    pictures = [picture(number, count) for number, count in zip(numbers, squares)]
    files = np.array([[file] for file, _ in pictures], np.object_)
    with tritonclient.http.InferenceServerClient(url) as client:
        answer = ask(client, "find", image=files)
    expected = [colour for _, colours in pictures for colour in colours]
    return answer.as_numpy("colour").tolist(), answer.as_numpy("counts").ravel().tolist(), expected


def test_every_box_of_every_image_is_classified(url: str) -> None:
    colours, counts, expected = found(url, [1, 2, 3], [3, 1, 5])
    assert counts == [3, 1, 5]
    assert colours == expected


def test_images_without_boxes_among_others(url: str) -> None:
    colours, counts, expected = found(url, [4, 5, 6], [2, 0, 1])
    assert counts == [2, 0, 1]
    assert colours == expected


def test_requests_share_batches_and_nobody_gets_anothers_crops(url: str) -> None:
    def one(number: int) -> bool:
        colours, counts, expected = found(url, [number, number + 100], [number % MOST + 1, number % 3 + 1])
        return counts == [number % MOST + 1, number % 3 + 1] and colours == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(48)))


def test_a_bad_image_is_refused_alone(url: str) -> None:
    def bad(_: int) -> str:
        with (
            pytest.raises(InferenceServerException) as caught,
            tritonclient.http.InferenceServerClient(url) as client,
        ):
            ask(client, "find", image=np.array([[b"no image"]], np.object_))
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        refused = [pool.submit(bad, number) for number in range(6)]
        good = [pool.submit(found, url, [number], [2]) for number in range(20)]
        assert all(
            colours == expected and counts == [2] for colours, counts, expected in (each.result() for each in good)
        )
        assert all("decoders.image" in told.result() for told in refused)


def test_images_of_which_none_has_a_box(url: str) -> None:
    with tritonclient.http.InferenceServerClient(url) as client:
        files = np.array([[picture(1, 0)[0]], [picture(2, 0)[0]]], np.object_)
        boxes, counts = np.zeros((2, MOST, 4), np.float32), np.zeros((2, 1), np.int32)
        answer = ask(client, "crop", image=files, boxes=boxes, found=counts)
        assert answer.as_numpy("crops").shape == (0, 16, 16, 3)
        assert answer.as_numpy("counts").tolist() == [[0], [0]]
    # Triton refuses an empty batch for a step of an ensemble.
    with pytest.raises(InferenceServerException, match="input 'crops' for model 'classify'"):
        found(url, [1, 2], [0, 0])
