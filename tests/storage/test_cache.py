"""Pieces of remote objects are cached on local disk: each is fetched once, and the cache is never partial, stale or too large."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flaky_server import FlakyServer, serving

from penstock import fn, pipeline_def
from penstock.storage import ANYWHERE, Cache, Retries, StorageError, configure, use_cache

LARGE = np.random.default_rng(0).integers(0, 256, 20_000_000, np.uint8)
OBJECTS = 12


def contents(number: int, size: int = 100_000) -> bytes:
    return np.random.default_rng(number).bytes(size)


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    configure(Retries(attempts=4, timeout=5, seconds_per_mib=0.05, first_pause=0.01))
    files = {f"{number}.bin": contents(number) for number in range(OBJECTS)}
    with serving(files | {"large.bin": LARGE.tobytes(), "small.bin": b"small", "empty.bin": b""}) as started:
        started.tells = "ETag"
        yield started
    use_cache(None)
    configure(Retries())


@pytest.fixture
def folder(server: FlakyServer, tmp_path: Path) -> Path:
    return tmp_path / "cache"


def cached(folder: Path, max_bytes: int = 100_000_000, check_after: float = 60) -> Cache:
    """Make a cache in a folder, as a new process would, and make this process use it; return the cache."""
    cache = Cache(folder, max_bytes, check_after)
    use_cache(cache)
    return cache


def pieces(folder: Path) -> list[Path]:
    return [path for path in folder.glob("??/*") if path.is_file()]


def taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != "used")


def test_what_was_fetched_is_not_fetched_again(server: FlakyServer, folder: Path) -> None:
    for _ in range(3):
        cache = cached(folder)
        assert ANYWHERE.read(server.url("0.bin")).tobytes() == contents(0)
        assert ANYWHERE.read(server.url("empty.bin")).size == 0
        np.testing.assert_array_equal(ANYWHERE.read(server.url("large.bin")), LARGE)
        assert (
            ANYWHERE.read_range(server.url("large.bin"), 9_000_000, 10).tobytes()
            == LARGE[9_000_000:9_000_010].tobytes()
        )
        with ANYWHERE.open(server.url("large.bin")) as file:
            file.seek(-5, 2)
            assert file.read() == LARGE[-5:].tobytes()
    assert (cache.hits, cache.misses) == (7, 0)
    # `large.bin` was requested five times: three pieces, a part, and the opened object.
    assert server.requests == {"/0.bin": 1, "/empty.bin": 1, "/large.bin": 5}


def test_what_is_kept_may_be_written_to(server: FlakyServer, folder: Path) -> None:
    for _ in range(2):
        cached(folder)
        data = ANYWHERE.read(server.url("small.bin"))
        part = ANYWHERE.read_range(server.url("small.bin"), 1, 3)
        assert (data.tobytes(), part.tobytes()) == (b"small", b"mal")
        data[:] = 0
        part[:] = 0


def test_an_object_is_asked_about_once_in_a_while(server: FlakyServer, folder: Path) -> None:
    cached(folder, check_after=60)
    for start in range(10):
        ANYWHERE.read_range(server.url("0.bin"), start * 100, 100)
    assert server.asked["/0.bin"] == 1
    # The pieces were fetched after the server was asked for the object's version, so it is asked again before they are used.
    for start in range(10):
        ANYWHERE.read_range(server.url("0.bin"), start * 100, 100)
    assert server.asked["/0.bin"] == 2
    assert server.requests["/0.bin"] == 10
    cached(folder, check_after=0)
    for _ in range(3):
        ANYWHERE.read_range(server.url("0.bin"), 0, 100)
    assert server.asked["/0.bin"] == 5
    assert server.requests["/0.bin"] == 10


@pytest.mark.parametrize("sign", ["ETag", "Last-Modified"])
def test_a_changed_object_is_noticed(server: FlakyServer, folder: Path, sign: str) -> None:
    server.tells = sign
    cached(folder, check_after=0)
    for number, content in enumerate([b"first", b"other", b"another"]):
        server.files["/small.bin"] = content
        server.written["/small.bin"] = 1e9 + number
        for _ in range(2):
            assert ANYWHERE.read(server.url("small.bin")).tobytes() == content
    assert server.requests["/small.bin"] == 3


def test_a_shrunk_object_ends_where_it_ends_now(server: FlakyServer, folder: Path) -> None:
    cached(folder, check_after=0)
    ANYWHERE.read_range(server.url("small.bin"), 1, 4)
    server.files["/small.bin"] = b"sma"
    with pytest.raises(OSError, match="ends before byte 5"):
        ANYWHERE.read_range(server.url("small.bin"), 1, 4)
    del server.files["/small.bin"]
    with pytest.raises(FileNotFoundError):
        ANYWHERE.read(server.url("small.bin"))


def test_an_object_that_changes_between_question_and_answer(server: FlakyServer, folder: Path) -> None:
    cached(folder, check_after=60)
    server.before_answer = lambda path: server.files.update({path: b"other"})
    url = server.url("small.bin")
    assert [ANYWHERE.read(url).tobytes() for _ in range(3)] == [b"other"] * 3
    # The first answer is of a different version than the HEAD request said, so it must not be cached, for any process.
    assert server.requests["/small.bin"] == 2
    server.before_answer = lambda path: None
    server.files["/small.bin"] = b"small"
    cached(folder)
    assert ANYWHERE.read(url).tobytes() == b"small"


def test_objects_without_a_version_are_not_kept(server: FlakyServer, folder: Path) -> None:
    server.tells = ""
    cached(folder)
    for content in (b"first", b"other"):
        server.files["/small.bin"] = content
        assert ANYWHERE.read(server.url("small.bin")).tobytes() == content
    assert not pieces(folder)


def test_the_least_recently_used_goes_first(server: FlakyServer, folder: Path) -> None:
    room = 1_000_000
    cached(folder, room)
    for number in range(8):
        ANYWHERE.read(server.url(f"{number}.bin"))
    for number in range(4):
        ANYWHERE.read(server.url(f"{number}.bin"))
    for number in range(8, 11):
        ANYWHERE.read(server.url(f"{number}.bin"))
        assert taken(folder) <= room
    before = dict(server.requests)
    for number in range(4):
        assert ANYWHERE.read(server.url(f"{number}.bin")).tobytes() == contents(number)
    assert server.requests == before
    ANYWHERE.read(server.url("4.bin"))
    assert server.requests["/4.bin"] == 2


def test_what_is_larger_than_the_cache_passes_through(server: FlakyServer, folder: Path) -> None:
    cached(folder, 150_000)
    ANYWHERE.read(server.url("0.bin"))
    np.testing.assert_array_equal(ANYWHERE.read(server.url("large.bin")), LARGE)
    assert len(pieces(folder)) == 1


@pytest.mark.parametrize("damage", ["a bit", "an end", "all", "a header"])
def test_damaged_pieces_are_fetched_again(
    server: FlakyServer, folder: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cached(folder)
    ANYWHERE.read(server.url("0.bin"))
    (piece,) = pieces(folder)
    content = bytearray(piece.read_bytes())
    content[70_000] ^= 1 if damage == "a bit" else 0
    piece.write_bytes({"a bit": content, "an end": content[:50_000], "all": b"", "a header": content[:20]}[damage])
    for _ in range(2):
        cached(folder)
        assert ANYWHERE.read(server.url("0.bin")).tobytes() == contents(0)
    assert server.requests["/0.bin"] == 2
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("faults", [["drop"], ["503", "503"], ["half"], ["drop", "503", "half"]], ids=str)
def test_failed_requests_leave_nothing(server: FlakyServer, folder: Path, faults: list[str]) -> None:
    server.faults["/0.bin"] = list(faults)
    server.faults["/1.bin"] = ["half"] * 100
    cached(folder)
    with pytest.raises(StorageError):
        ANYWHERE.read(server.url("1.bin"))
    assert taken(folder) == 0
    for _ in range(2):
        cached(folder)
        assert ANYWHERE.read(server.url("0.bin")).tobytes() == contents(0)
    assert server.requests["/0.bin"] == len(faults) + 1


def test_questions_that_fail_are_asked_again(server: FlakyServer, folder: Path) -> None:
    # fsspec sends a HEAD request and, if that fails, a GET request; if both fail, it reports that there is no such file.
    server.refusals["/0.bin"] = 2
    server.faults["/0.bin"] = ["503", "drop", "drop"]
    cached(folder)
    assert ANYWHERE.size(server.url("0.bin")) == 100_000
    assert ANYWHERE.read(server.url("0.bin")).tobytes() == contents(0)


def test_a_folder_that_cannot_be_written_to(
    server: FlakyServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    cached(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            assert ANYWHERE.read(server.url(f"{number}.bin")).tobytes() == contents(number)
    (record,) = caplog.records
    assert "cannot be cached in" in record.getMessage()


def test_epochs_after_the_first_fetch_nothing(server: FlakyServer, folder: Path) -> None:
    cached(folder, check_after=0)
    names = [server.url(f"{number}.bin") for number in range(OBJECTS)]

    @pipeline_def(batch_size=4, num_threads=4, device_id=None)
    def files():
        data, label = fn.readers.file(files=names, labels=list(range(OBJECTS)), random_shuffle=True, seed=1)
        return data, label, fn.io.file.read(np.frombuffer(names[0].encode(), np.uint8))

    with files() as pipe:
        for _ in range(3 * OBJECTS // 4):
            for data, label, first in zip(*pipe.run()):
                assert np.asarray(data).tobytes() == contents(int(np.asarray(label)[0]))
                assert np.asarray(first).tobytes() == contents(0)
    # Threads that request the first object at the same time may fetch it more than once.
    assert {path: count for path, count in server.requests.items() if path != "/0.bin"} == {
        f"/{number}.bin": 1 for number in range(1, OBJECTS)
    }
    assert server.requests["/0.bin"] <= 6


_READING = """
import random, sys, time
import numpy as np
from penstock.storage import ANYWHERE

root, seed, until = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
expected = [np.random.default_rng(number).bytes(100_000) for number in range(12)]
choice = random.Random(seed)
print("begun", flush=True)
count = 0
while time.monotonic() < until or count < 6:
    number, start = choice.randrange(12), choice.randrange(4) * 20_000
    size = choice.choice([500, 20_000, 40_000])
    part = ANYWHERE.read_range(f"{root}/{number}.bin", start, size)
    assert part.tobytes() == expected[number][start : start + size], (number, start, size)
    count += 1
print(count)
"""


def _reader(server: FlakyServer, folder: Path, seed: int, seconds: float) -> subprocess.Popen[str]:
    environment = os.environ | {
        "PENSTOCK_CACHE": str(folder),
        "PENSTOCK_CACHE_BYTES": "600000",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.Popen(
        [sys.executable, "-c", _READING, server.url("")[:-1], str(seed), str(seconds)],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _begun(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_processes_share_a_folder_though_some_are_killed(server: FlakyServer, folder: Path) -> None:
    readers = [_begun(_reader(server, folder, seed, 4)) for seed in range(2)]
    most = killed = 0
    until = time.monotonic() + 3
    while time.monotonic() < until:
        victim = _begun(_reader(server, folder, 100 + killed, 60))
        for _ in range(random.Random(killed).randrange(1, 20)):
            time.sleep(0.01)
            most = max(most, _taken_now(folder))
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        killed += 1
    for reader in readers:
        told, _ = reader.communicate(timeout=60)
        assert reader.returncode == 0
        assert int(told) > 5  # even on a busy machine, the readers make progress
    assert killed
    assert 0 < most <= 600_000
    # Partial files of killed processes are removed when they are old enough, so they are made older here.
    for path in (folder / "writing").iterdir():
        os.utime(path, (0, 0))
    cached(folder, 600_000)
    for number in range(OBJECTS):
        assert ANYWHERE.read(server.url(f"{number}.bin")).tobytes() == contents(number)
    assert not list((folder / "writing").iterdir())
    assert taken(folder) <= 600_000


def _taken_now(folder: Path) -> int:
    """Return the total size of all files at one moment.

    The cache is locked meanwhile, so no process removes files, and files that are renamed are counted once.
    """
    sizes: dict[int, int] = {}
    if not (folder / "used").exists():
        return 0
    with (folder / "used").open() as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                if path.name != "used" and path.is_file():
                    sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


@pytest.mark.parametrize(("name", "value"), [("max_bytes", 0), ("max_bytes", -1), ("check_after", -1)])
def test_settings_that_make_no_sense(tmp_path: Path, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"`{name}`.*, got .*{value}"):
        Cache(tmp_path, **{name: value})


def test_a_variable_that_makes_no_sense() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import penstock.storage"],
        env=os.environ
        | {"PENSTOCK_CACHE": "/tmp", "PENSTOCK_CACHE_BYTES": "1GB", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert "PENSTOCK_CACHE_BYTES must be a number of bytes, got '1GB'" in told.stderr
