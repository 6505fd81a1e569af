"""`decoders.image(scale=...)` through Triton: requests are batched, and each gets the pixels that its file has alone."""

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

from penstock import Pipeline, fn, pipeline_def
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

SIDE = 48
CONFIG = 'backend: "penstock"\ndynamic_batching { max_queue_delay_microseconds: 50000 }\n'
DEFINITION = """
@autoserialize
@pipeline_def(batch_size=8, num_threads=2)
def reduced():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return {}
"""
HALF, FAST = "half", "fast"
BODIES = {
    HALF: 'fn.decoders.image(encoded, scale="1/2", name="pixels")',
    FAST: f'fn.resize(fn.decoders.image(encoded, scale="fast"), size=({SIDE}, {SIDE}), name="pixels")',
    "wrong": 'fn.decoders.image(encoded, scale="1/3", name="pixels")',
}


def _file(number: int, kind: str = "JPEG", **options: Any) -> bytes:
    coarse = np.random.default_rng(number).integers(0, 256, (9, 11, 3), np.uint8)
    file = io.BytesIO()
    size = 301 + 8 * number, 280 + number
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(file, kind, **options)
    return file.getvalue()


FILES = [_file(0), _file(1, progressive=True), _file(2, subsampling=0), _file(3, quality=40)]
CUT_SHORT = FILES[0][: len(FILES[0]) // 3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: Any) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("models")
    for name, body in BODIES.items():
        add_model(folder, name, CONFIG, HEADER + DEFINITION.format(body))
    with stopped_later(LocalServer(folder, allow_failures=True, model_host=model_host)) as running:
        yield running


def answers(server: LocalServer, model: str, files: list[bytes]) -> list[Any]:
    """Send a request for each file concurrently; return the pixels or the error for each."""

    def answer(file: bytes) -> Any:
        with tritonclient.http.InferenceServerClient(server.http_url, network_timeout=300) as client:
            try:
                return ask(client, model, encoded=np.frombuffer(file, np.uint8)[None]).as_numpy("pixels")[0]
            except InferenceServerException as error:
                return error

    with ThreadPoolExecutor(len(files)) as pool:
        return list(pool.map(answer, files))


def draft(file: bytes, scale: int) -> np.ndarray:
    image = Image.open(io.BytesIO(file))
    image.draft(image.mode, (image.width // scale, image.height // scale))
    return np.asarray(image)


def alone(scale: str, file: bytes) -> np.ndarray:
    """Return the pixels that a pipeline in this process makes of one file."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        encoded = fn.external_source(name="encoded")
        return fn.resize(fn.decoders.image(encoded, scale=scale), size=(SIDE, SIDE))

    running: Pipeline = pipeline()
    (pixels,) = running.run(encoded=[np.frombuffer(file, np.uint8)])
    return np.array(pixels[0])


def test_a_scale_gives_the_pixels_of_pillows_draft(server: LocalServer) -> None:
    for pixels, file in zip(answers(server, HALF, FILES), FILES, strict=True):
        np.testing.assert_array_equal(pixels, draft(file, 2))


def test_other_formats_are_averaged(server: LocalServer) -> None:
    (pixels,) = answers(server, HALF, [_file(4, "PNG")])
    assert pixels.shape == (142, 167, 3)


def test_fast_pixels_are_those_of_the_file_alone(server: LocalServer) -> None:
    for pixels, file in zip(answers(server, FAST, FILES), FILES, strict=True):
        np.testing.assert_array_equal(pixels, alone("fast", file))
        assert not np.array_equal(pixels, alone("exact", file))


@pytest.mark.parametrize("model", [HALF, FAST])
def test_a_file_that_is_cut_short_fails_alone(server: LocalServer, model: str) -> None:
    good = answers(server, model, FILES)
    *others, refused = answers(server, model, [*FILES, CUT_SHORT])
    for pixels, expected in zip(others, good, strict=True):
        np.testing.assert_array_equal(pixels, expected)
    assert isinstance(refused, InferenceServerException)
    assert "Failed to decode" in str(refused)


def test_an_unknown_scale_is_refused_when_the_model_is_loaded(server: LocalServer) -> None:
    (reason,) = (model.reason for model in server.models() if model.name == "wrong")
    assert "`scale` must be one of 'exact', 'fast', '1/2', '1/4', '1/8'. Got: '1/3'" in reason
