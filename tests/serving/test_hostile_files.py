"""Malicious files in a real Triton: each fails alone, with a specific error, and the server continues."""

from __future__ import annotations

import io
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

pytestmark = pytest.mark.exhaustive

DECODED = """
@autoserialize
@pipeline_def(batch_size=4, num_threads=2)
def decoded():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.decoders.image(encoded, name="pixels")
"""
# The check of headers is disabled, as it would refuse the file before it can kill its decoder.
UNCHECKED = """
from penstock.kernels.codecs import image_header
from penstock.kernels.codecs.decoder_memory import GIF
from penstock.kernels.codecs.headers.declared import Declared
from penstock.kernels.codecs.headers.images import ImageFormat

image_header.image_format = lambda data: ImageFormat("JPEG 2000", lambda data: Declared(40, 60), GIF)
"""
CONFIG = """backend: "penstock"
max_batch_size: 4
input [ { name: "encoded" data_type: TYPE_UINT8 dims: [ -1 ] } ]
output [ { name: "pixels" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } ]
instance_group [ { kind: KIND_CPU } ]
dynamic_batching { max_queue_delay_microseconds: 2000 }
parameters [ { key: "max_pixels" value: { string_value: "100000" } } ]
"""


def image(kind: str, height: int = 40, width: int = 60) -> np.ndarray:
    pixels = np.add.outer(np.arange(height), np.arange(width))[..., np.newaxis] + np.array([0, 40, 90])
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def killer() -> np.ndarray:
    """Return a JPEG 2000 file whose tiles have a width of 0."""
    data = image("JPEG2000").copy()
    place = data.tobytes().index(b"\xff\x51") + 22
    data[place : place + 4] = 0
    return data


def bomb() -> np.ndarray:
    """Return a file of 33 bytes that declares an image of a gigapixel."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 32768, 32768, 8, 2, 0, 0, 0)
    return np.frombuffer(
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)), np.uint8
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    add_model(repository, "decoded", CONFIG, HEADER + DECODED)
    with stopped_later(LocalServer(repository)) as running:
        yield running


def pixels_of(server: LocalServer, model: str, data: np.ndarray) -> np.ndarray:
    # Closed at the end, because a server that is stopped waits for open connections.
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        return ask(client, model, encoded=data[np.newaxis]).as_numpy("pixels")[0]


def error_of(server: LocalServer, model: str, data: np.ndarray) -> str:
    with pytest.raises(InferenceServerException) as raised:
        pixels_of(server, model, data)
    return str(raised.value)


def is_worker(pid: int) -> bool:
    try:
        return b"penstock.kernels.codecs.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def own_workers() -> list[int]:
    """Return the ids of the decoder processes that this process has started."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(pid)] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = []
    for pid in filter(is_worker, parents):
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid():
            found.append(pid)
    return found


def test_hostile_files_fail_with_their_own_error(server: LocalServer) -> None:
    assert "its tiles are of 40x0 pixels" in error_of(server, "decoded", killer())
    assert "cannot hold the 32768x32768 pixels" in error_of(server, "decoded", bomb())
    too_large = error_of(server, "decoded", image("PNG", 400, 300))
    assert "400x300 = 120000 pixels" in too_large
    assert "`max_pixels`" in too_large
    assert "not an image of a known format" in error_of(
        server, "decoded", np.frombuffer(b"%!PS-Adobe-3.0 EPSF", np.uint8)
    )
    assert pixels_of(server, "decoded", image("TIFF")).shape == (40, 60, 3)


def test_a_file_that_kills_its_decoder_fails_alone_among_many(tmp_path: Path) -> None:
    # A separate server, because this model changes Penstock itself.
    add_model(tmp_path, "unchecked", CONFIG, HEADER + UNCHECKED + DECODED)
    good, bad = image("JPEG2000"), killer()
    with stopped_later(LocalServer(tmp_path, settings={"trust_repository": "true"})) as server:
        expected = pixels_of(server, "unchecked", good)

        def one(number: int) -> None:
            if number % 5:
                np.testing.assert_array_equal(pixels_of(server, "unchecked", good), expected)
            else:
                assert "The decoder of JPEG 2000 died on this file" in error_of(server, "unchecked", bad)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(15)))


def test_no_worker_outlives_the_server(tmp_path: Path) -> None:
    add_model(tmp_path, "decoded", CONFIG, HEADER + DECODED)
    others = own_workers()
    with LocalServer(tmp_path) as running:
        pixels_of(running, "decoded", image("GIF"))
        workers = [pid for pid in own_workers() if pid not in others]
        assert workers
    limit = time.monotonic() + 10
    while any(map(is_worker, workers)):
        assert time.monotonic() < limit, f"of the workers {workers} some are still there"
        time.sleep(0.05)
