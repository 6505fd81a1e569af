"""Worker processes: after a crash or time-out, one task has failed and nothing is left running."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from penstock.errors import DecoderDiedError, DecoderTimeoutError, PenstockError
from penstock.kernels.codecs import isolated_images, worker_pool
from penstock.kernels.codecs.decoding import Decoding
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.worker_pool import DecoderPool

# The offset of the tiles' width in JPEG 2000, counted from the marker SIZ.
_TILE_WIDTH = 4 + 18


def jpeg2000(tile_width: int | None = None) -> np.ndarray:
    """Return a codestream. With tiles of width 0, and without Penstock's check of headers, nvImageCodec divides by zero."""
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(buffer, "JPEG2000", no_jp2=True)
    data = bytearray(buffer.getvalue())
    if tile_width is not None:
        place = data.index(b"\xff\x51") + _TILE_WIDTH
        data[place : place + 4] = tile_width.to_bytes(4, "big")
    return np.frombuffer(bytes(data), np.uint8)


KILLER = jpeg2000(tile_width=0)


def read(pool: DecoderPool, data: np.ndarray) -> Any:
    """Make a worker parse a header, without Penstock's check."""
    return pool.run("read_image_header", "JPEG 2000", data)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid: int) -> None:
    limit = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < limit, f"the process {pid} is still there"
        time.sleep(0.01)


@pytest.fixture
def pool() -> Iterator[DecoderPool]:
    made = DecoderPool(2)
    yield made
    made.close()


def test_a_file_that_kills_its_decoder_costs_a_worker(pool: DecoderPool) -> None:
    assert read(pool, jpeg2000())[:4] == ["jpeg2k", 48, 64, 3]
    (first,) = pool.pids()
    with pytest.raises(DecoderDiedError, match=r"decoder of JPEG 2000 died on this file \(\d+ bytes\).*SIGFPE"):
        read(pool, KILLER)
    assert not is_running(first)
    assert read(pool, jpeg2000())[:4] == ["jpeg2k", 48, 64, 3]
    assert (pool.decodes, pool.deaths, pool.timeouts) == (2, 1, 0)


def test_a_bad_file_is_its_own_error_and_the_worker_stays(pool: DecoderPool) -> None:
    with pytest.raises(CorruptImageError, match="damaged or cut short"):
        read(pool, np.arange(100, dtype=np.uint8))
    (first,) = pool.pids()
    read(pool, jpeg2000())
    assert pool.pids() == [first]
    assert (pool.decodes, pool.deaths) == (2, 0)


def test_a_decoder_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = DecoderPool(1)
    try:
        # A worker's first task loads libraries, which takes longer than the time limit of the task to be stopped.
        read(pool, jpeg2000())
        (first,) = pool.pids()
        os.kill(first, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(pool, "_seconds", 0.3)
            with pytest.raises(DecoderTimeoutError, match="took more than 0 s"):
                read(pool, jpeg2000())
        assert not is_running(first)
        assert read(pool, jpeg2000())[0] == "jpeg2k"
        assert (pool.decodes, pool.deaths, pool.timeouts) == (2, 1, 1)
    finally:
        pool.close()


def test_many_threads_each_get_their_own_answer(pool: DecoderPool) -> None:
    wrong: list[Any] = []

    def ask(number: int) -> None:
        size = 16 + number
        buffer = io.BytesIO()
        Image.fromarray(np.full((size, 8, 3), number, np.uint8)).save(buffer, "TIFF")
        data = np.frombuffer(buffer.getvalue(), np.uint8)
        for turn in range(4):
            try:
                if turn % 4 == number % 4:
                    with pytest.raises(DecoderDiedError):
                        read(pool, KILLER)
                elif (answer := read(pool, data))[:3] != ["tiff", size, 8]:
                    wrong.append(answer)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(pool.pids()) <= 2
    assert (pool.decodes, pool.deaths) == (6 * 3, 6)


def test_closing_ends_the_workers_and_fails_what_waits() -> None:
    pool = DecoderPool(2)
    read(pool, jpeg2000())
    (first,) = pool.pids()
    os.kill(first, signal.SIGSTOP)
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            read(pool, jpeg2000())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while pool._free:  # until the thread has taken the worker
        time.sleep(0.01)
    pool.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(errors[0], DecoderDiedError)
    assert not is_running(first)
    assert pool.pids() == []
    with pytest.raises(RuntimeError, match="closed"):
        read(pool, jpeg2000())


def test_a_forked_process_leaves_the_workers_alone(pool: DecoderPool) -> None:
    read(pool, jpeg2000())
    (first,) = pool.pids()
    child = os.fork()
    if child == 0:
        pool.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert is_running(first)
    assert read(pool, jpeg2000())[0] == "jpeg2k"


def test_nothing_is_left_open() -> None:
    DecoderPool(1).close()
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        pool = DecoderPool(1)
        read(pool, jpeg2000())
        with pytest.raises(DecoderDiedError):
            read(pool, KILLER)
        read(pool, jpeg2000())
        pool.close()
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("call", ["pipe", "memfd_create", "ftruncate"])
def test_a_call_that_fails_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*values: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    DecoderPool(1).close()
    before = set(os.listdir("/proc/self/fd"))
    pool = DecoderPool(1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            with pytest.raises((OSError, worker_pool.WorkerStartError), match="Too many open files"):
                read(pool, jpeg2000())
        assert read(pool, jpeg2000())[0] == "jpeg2k"
        # Data of another size need new shared memory, for which the call may fail, too.
        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            with contextlib.suppress(OSError):
                read(pool, np.concatenate([jpeg2000(), np.zeros(2 << 20, np.uint8)]))
        assert read(pool, jpeg2000())[0] == "jpeg2k"
    finally:
        pool.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_large_memory_is_given_back() -> None:
    pool = DecoderPool(1)
    try:
        read(pool, np.concatenate([jpeg2000(), np.zeros(100 << 20, np.uint8)]))
        (worker,) = pool._all
        assert worker._memory is not None
        assert worker._memory.size > 100 << 20
        read(pool, jpeg2000())
        assert worker._memory.size == 1 << 20
    finally:
        pool.close()


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_no_worker_outlives_its_parent(busy: bool) -> None:
    program = (
        "import sys, time, numpy as np\n"
        "from penstock.kernels.codecs.worker_pool import DecoderPool\n"
        "pool = DecoderPool(1)\n"
        "try: pool.run('read_image_header', 'nothing', np.zeros(9, np.uint8))\n"
        "except ValueError: pass\n"
        "print(*pool.pids(), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        if busy:
            # A stopped process cannot check whether its parent is alive: the kernel has to.
            os.kill(pid, signal.SIGSTOP)
        parent.kill()
    if busy:
        os.kill(pid, signal.SIGCONT)
    wait_until_gone(pid)


def test_a_worker_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_WORKER", "penstock.no_such_module")
    pool = DecoderPool(1)
    with pytest.raises(worker_pool.WorkerStartError, match="no_such_module"):
        read(pool, jpeg2000())
    pool.close()


def test_a_worker_starts_while_another_thread_imports_opencv(
    pool: DecoderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, OpenCV's own folder, with `cv2/typing`, is in the module search path."""
    folder = os.path.dirname(cv2.__file__)
    assert os.path.isdir(os.path.join(folder, "typing"))
    monkeypatch.setattr(sys, "path", [sys.path[0], folder, *sys.path[1:]])
    assert read(pool, jpeg2000())[0] == "jpeg2k"


def test_a_worker_finds_this_package_wherever_it_is(pool: DecoderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    own = str(Path(worker_pool.__file__).parents[3])
    monkeypatch.setattr(sys, "path", [path for path in sys.path if os.path.abspath(path) != own])
    assert read(pool, jpeg2000())[0] == "jpeg2k"


def test_an_interpreter_is_found_where_python_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("", "/opt/tritonserver/backends/python/triton_python_backend_stub"):
        monkeypatch.setattr(sys, "executable", program)
        found = worker_pool._interpreter()
        version = subprocess.run(
            [found, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True
        )
        assert version.stdout.strip() == str(tuple(sys.version_info[:2]))
        pool = DecoderPool(1)
        assert read(pool, jpeg2000())[0] == "jpeg2k"
        pool.close()


@pytest.mark.exhaustive
def test_a_decoder_that_takes_more_than_was_estimated_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = DecoderPool(1)
    decoding = Decoding(isolate="all", pool=pool)
    # Decoding this 16-bit PNG takes 12.7 bytes per pixel, 286 MB; with an estimate of 0, a worker may take only 256 MiB.
    encoded = cv2.imencode(".png", np.zeros((4500, 5000, 3), np.uint16))[1].reshape(-1)
    header, output = read_header(encoded, decoding), np.empty((4500, 5000, 3), np.uint8)
    with monkeypatch.context() as patched:
        patched.setattr(isolated_images, "image_memory", lambda *_: 0)
        with pytest.raises(PenstockError):
            decode(encoded, header, output, decoding=decoding)
    decode(encoded, header, output, decoding=decoding)
    assert not output.any()
    pool.close()
