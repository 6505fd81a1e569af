"""Requests that would take too much memory in a real Triton: each is refused, and the server's memory remains bounded."""

from __future__ import annotations

import io
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

pytestmark = pytest.mark.exhaustive

MEBIBYTE = 1 << 20
# The memory limit of a request, and of all requests together.
MAX_MEMORY, BUDGET = 384 * MEBIBYTE, 640 * MEBIBYTE
# The memory of loaded libraries, threads, request buffers, and blocks that pools retain.
SLACK = 384 * MEBIBYTE
INSTANCES = 4

MODELS = """
@autoserialize
@pipeline_def(batch_size=4, num_threads=2, output_dtype=types.UINT8, output_ndim=3)
def decoded():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    size = fn.external_source(name="size", dtype=types.FLOAT, ndim=1)
    images = fn.decoders.image(encoded)
    return fn.resize(images, size=size, name="pixels")
"""
SOUNDS = """
@autoserialize
@pipeline_def(batch_size=4, num_threads=2, output_dtype=types.FLOAT, output_ndim=1)
def heard():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.reductions.mean(fn.decoders.audio(encoded)[0], axes=[0], name="mean")
"""
CONFIG = f"""backend: "penstock"
max_batch_size: 4
instance_group [ {{ kind: KIND_CPU count: {INSTANCES} }} ]
"""


def png(height: int, width: int, *more: bytes) -> np.ndarray:
    """Return a 16-bit RGBA PNG of zeros, a thousandth of the size of its pixels."""
    rows = bytes(1 + 8 * width)
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(rows) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    ]
    return np.frombuffer(b"".join([b"\x89PNG\r\n\x1a\n", *parts]), np.uint8)


def metadata_beyond_the_end() -> np.ndarray:
    """Return 44 bytes that declare metadata of 4 GiB."""
    start = png(8, 8)[:33].tobytes()
    return np.frombuffer(start + struct.pack(">I4s", 0xFFFFFFFF, b"eXIf") + b"xxx", np.uint8)


def saved(kind: str, pixels: np.ndarray, **options: object) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def silence(seconds: int) -> np.ndarray:
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 48_000, 2, format="OGG", subtype="VORBIS") as sound:
        for _ in range(seconds):
            sound.write(np.zeros((48_000, 2), np.float32))
    return np.frombuffer(file.getvalue(), np.uint8)


SMALL = np.add.outer(np.arange(40), np.arange(60))[..., np.newaxis].astype(np.uint8) + np.array([0, 40, 90], np.uint8)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    add_model(repository, "decoded", CONFIG, HEADER + MODELS)
    add_model(repository, "heard", CONFIG, HEADER + SOUNDS)
    settings = {"max_memory": str(MAX_MEMORY), "memory_budget": str(BUDGET), "memory_wait_seconds": "60"}
    with stopped_later(LocalServer(repository, settings=settings)) as running:
        assert_good_requests_are_answered(running)
        yield running


def decoded(server: LocalServer, encoded: np.ndarray, size: tuple[int, int] = (40, 60)) -> np.ndarray:
    with tritonclient.http.InferenceServerClient(server.http_url, network_timeout=300) as client:
        answer = ask(client, "decoded", encoded=encoded[np.newaxis], size=np.array([size], np.float32))
        return answer.as_numpy("pixels")[0]


def heard(server: LocalServer, encoded: np.ndarray) -> np.ndarray:
    with tritonclient.http.InferenceServerClient(server.http_url, network_timeout=300) as client:
        return ask(client, "heard", encoded=encoded[np.newaxis]).as_numpy("mean")[0]


def assert_good_requests_are_answered(server: LocalServer) -> None:
    np.testing.assert_array_equal(decoded(server, saved("PNG", SMALL)), SMALL)


class Watched:
    """Measures by how much the memory of a server's processes grows during the context."""

    def __init__(self, server: LocalServer) -> None:
        self._root, self._done = server.pid, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self._start = self._most = self._resident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self._most - self._start

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self._most = max(self._most, self._resident())

    def _resident(self) -> int:
        """Return the anonymous memory of Triton and its decoder processes, in bytes."""
        parents, resident = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            except OSError:
                continue
            parents[int(folder.name)] = int(lines["PPid"])
            resident[int(folder.name)] = int(lines.get("RssAnon", "0 kB").split()[0]) << 10

        def is_below(pid: int) -> bool:
            return pid == self._root or (pid in parents and is_below(parents[pid]))

        return sum(size for pid, size in resident.items() if is_below(pid))


BOMBS = {
    "PNG with metadata beyond its end": (metadata_beyond_the_end, "beyond"),
    "PNG of 16 bits": (lambda: png(5000, 5000), "max_memory"),
    "TIFF": (
        lambda: saved("TIFF", np.zeros((5000, 5000, 3), np.uint8), compression="tiff_adobe_deflate"),
        "max_memory",
    ),
    "progressive JPEG": (
        lambda: saved("JPEG", np.zeros((8000, 8000, 3), np.uint8), progressive=True, subsampling=0),
        "max_memory",
    ),
    "lossless WebP": (lambda: saved("WEBP", np.zeros((6000, 6000, 3), np.uint8), lossless=True), "max_memory"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_files_that_take_too_much_are_refused(server: LocalServer, name: str) -> None:
    make, message = BOMBS[name]
    bomb = make()
    with Watched(server) as watched, pytest.raises(InferenceServerException, match=message):
        decoded(server, bomb)
    assert watched.growth < SLACK
    assert_good_requests_are_answered(server)


def test_recordings_that_take_too_much_are_refused(server: LocalServer) -> None:
    bomb = silence(900)
    with Watched(server) as watched, pytest.raises(InferenceServerException, match="max_memory"):
        heard(server, bomb)
    assert watched.growth < SLACK
    np.testing.assert_allclose(heard(server, silence(2)), 0, atol=1e-4)


def test_results_that_take_too_much_are_refused(server: LocalServer) -> None:
    with Watched(server) as watched, pytest.raises(InferenceServerException) as raised:
        decoded(server, saved("PNG", SMALL), (14_000, 14_000))
    assert "resize" in str(raised.value)
    assert "588000000 bytes for its result of 14000x14000x3" in str(raised.value)
    assert f"the model's `max_memory` allows a request only {MAX_MEMORY}" in str(raised.value)
    assert watched.growth < SLACK


def test_a_batch_with_a_large_request_answers_the_others(server: LocalServer) -> None:
    with ThreadPoolExecutor(8) as pool:
        large = [pool.submit(decoded, server, png(5000, 5000)) for _ in range(4)]
        small = [pool.submit(assert_good_requests_are_answered, server) for _ in range(12)]
        for good in small:
            good.result()
        for answer in large:
            with pytest.raises(InferenceServerException, match="max_memory"):
                answer.result()


def test_ten_at_once_wait_for_each_other(server: LocalServer) -> None:
    # Each request stays below the limit of a request, and takes half of the limit of all requests together.
    bomb = png(4000, 3800)
    with Watched(server) as watched, ThreadPoolExecutor(11) as pool:
        large = [pool.submit(decoded, server, bomb, (8, 8)) for _ in range(10)]
        for _ in range(10):
            assert_good_requests_are_answered(server)
        for answer in large:
            np.testing.assert_array_equal(answer.result(), np.zeros((8, 8, 3), np.uint8))
    assert watched.growth < BUDGET + SLACK


def test_those_that_wait_too_long_are_told_to_come_later(tmp_path: Path) -> None:
    add_model(tmp_path, "decoded", CONFIG, HEADER + MODELS)
    settings = {"memory_budget": str(MAX_MEMORY), "memory_wait_seconds": "0"}
    bomb = png(4000, 3800)
    with stopped_later(LocalServer(tmp_path, settings=settings)) as server:
        assert_good_requests_are_answered(server)

        def answered() -> str | None:
            try:
                decoded(server, bomb, (8, 8))
            except InferenceServerException as error:
                return f"{error.status()} {error.message()}"
            return None

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: answered(), range(10)))
        refused = [answer for answer in answers if answer is not None]
        assert 0 < len(refused) < len(answers)
        for answer in refused:
            assert answer.startswith("503")
            assert "Send the request again later" in answer
        assert_good_requests_are_answered(server)
