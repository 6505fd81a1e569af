"""Objects are read from a faulty web server: temporary failures are retried, permanent ones reported."""

from __future__ import annotations

import io
import logging
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from flaky_server import FlakyServer, serving

from penstock import fn, pipeline_def
from penstock.storage import ANYWHERE, Retries, StorageError, configure, remote

DATA = np.random.default_rng(0).integers(0, 256, 20_000_000, np.uint8)
SAMPLES = 12


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for index in range(SAMPLES):
            member = tarfile.TarInfo(f"{index:04}.bin")
            member.size = 100_000
            tar.addfile(member, io.BytesIO(bytes([index]) * member.size))
    return packed.getvalue()


# An answer may take a while on a busy machine, so the time limit is short only in tests in which some answers never come.
PATIENT = Retries(attempts=4, first_pause=0.01)
IMPATIENT = replace(PATIENT, timeout=2.0, seconds_per_mib=0.05)


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    configure(PATIENT)
    files = {"large.bin": DATA.tobytes(), "small.bin": b"small", "empty.bin": b"", "data.tar": archive()}
    with serving(files | {f"{index}.bin": bytes([index]) for index in range(SAMPLES)}) as started:
        yield started
    configure(Retries())


@pytest.mark.parametrize(
    "faults",
    [
        ["drop"],
        ["503", "503"],
        ["408", "408"],
        ["425", "425"],
        ["429", "429"],
        ["stall"],
        ["half"],
        ["drop", "503", "half"],
    ],
    ids=str,
)
def test_faults_that_pass(server: FlakyServer, faults: list[str]) -> None:
    configure(IMPATIENT if "stall" in faults else PATIENT)
    server.faults["/small.bin"] = list(faults)
    assert ANYWHERE.read_text(server.url("small.bin")) == "small"
    assert server.requests["/small.bin"] == len(faults) + 1


def test_tries_are_logged(server: FlakyServer, caplog: pytest.LogCaptureFixture) -> None:
    server.faults["/small.bin"] = ["503", "half"]
    with caplog.at_level(logging.WARNING):
        ANYWHERE.read(server.url("small.bin"))
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("attempt 1 of 4 to read 'http://127.0.0.1:")
    assert "503" in first
    assert second.startswith("attempt 2 of 4")


@pytest.mark.parametrize(("fault", "reason"), [("drop", ""), ("503", "503"), ("stall", "no answer in time")])
def test_faults_that_last(server: FlakyServer, fault: str, reason: str) -> None:
    configure(replace(IMPATIENT, timeout=1.0) if fault == "stall" else PATIENT)
    server.faults["/small.bin"] = [fault] * 100
    with pytest.raises(StorageError, match=rf"small\.bin' could not be read in 4 attempts and .* s: .*{reason}"):
        ANYWHERE.read(server.url("small.bin"))
    # aiohttp may repeat a request whose connection was dropped, in addition to Penstock's attempts.
    assert server.requests["/small.bin"] in (4, 8)


def test_a_request_that_is_refused_is_not_tried_again(server: FlakyServer) -> None:
    server.faults["/small.bin"] = ["410"] * 100
    with pytest.raises(Exception, match="410"):
        ANYWHERE.read(server.url("small.bin"))
    assert server.requests["/small.bin"] < PATIENT.attempts


def test_what_is_missing_is_not_tried_again(server: FlakyServer) -> None:
    with pytest.raises(FileNotFoundError):
        ANYWHERE.read(server.url("none.bin"))
    assert server.requests["/none.bin"] == 1


def test_large_objects_come_in_pieces_of_which_one_may_fail(server: FlakyServer) -> None:
    server.faults["/large.bin"] = ["", "half"]
    np.testing.assert_array_equal(ANYWHERE.read(server.url("large.bin")), DATA)
    assert server.requests["/large.bin"] == 4


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_ranges(server: FlakyServer, knows_ranges: bool) -> None:
    server.knows_ranges = knows_ranges
    part = ANYWHERE.read_range(server.url("large.bin"), 9_000_000, 1000)
    np.testing.assert_array_equal(part, DATA[9_000_000:9_001_000])
    np.testing.assert_array_equal(ANYWHERE.read(server.url("large.bin")), DATA)
    assert ANYWHERE.read(server.url("empty.bin")).size == 0
    with pytest.raises(OSError, match="ends before byte 9"):
        ANYWHERE.read_range(server.url("small.bin"), 2, 7)


def test_an_opened_object_is_read_by_need(server: FlakyServer) -> None:
    with ANYWHERE.open(server.url("large.bin")) as file:
        file.seek(-5, 2)
        assert file.read() == DATA[-5:].tobytes()
        file.seek(10_000_000)
        assert file.read(3) == DATA[10_000_000:10_000_003].tobytes()
    assert server.requests["/large.bin"] == 2


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"timeout": 0}, {"first_pause": -1}], ids=str)
def test_settings_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Retries(**wrong)  # type: ignore[arg-type]


def test_pauses_grow_up_to_a_limit() -> None:
    retries = Retries(first_pause=1, max_pause=5)
    for failures, longest in enumerate([1, 2, 4, 5, 5], 1):
        assert 0.75 * longest <= retries.pause(failures) <= longest


def test_an_epoch_survives(server: FlakyServer) -> None:
    configure(IMPATIENT)
    server.faults = {"/3.bin": ["drop"], "/5.bin": ["503", "stall"], "/data.tar": ["503", "half", "", "drop"]}

    @pipeline_def(batch_size=4, num_threads=4, device_id=None)
    def files_and_archive():
        names = [server.url(f"{index}.bin") for index in range(SAMPLES)]
        whole, _ = fn.readers.file(files=names)
        return whole, fn.readers.webdataset(paths=[server.url("data.tar")], ext=["bin"])

    pipe = files_and_archive()
    seen = []
    for _ in range(SAMPLES // 4):
        whole, packed = pipe.run()
        seen += [(int(np.asarray(one)[0]), int(np.asarray(other)[99_999])) for one, other in zip(whole, packed)]
    assert seen == [(index, index) for index in range(SAMPLES)]


@pytest.mark.parametrize("threads", [1, 6])
def test_threads_wait_side_by_side(server: FlakyServer, threads: int) -> None:
    asking, most = 0, 0
    changed = threading.Condition()

    def answer_late(path: str) -> None:
        nonlocal asking, most
        with changed:
            asking += 1
            most = max(most, asking)
            changed.notify_all()
            # Wait until more threads have begun, which may take long on a busy machine.
            changed.wait_for(lambda: most > threads // 2, 10)
        time.sleep(0.1)
        with changed:
            asking -= 1

    server.before_answer = answer_late

    @pipeline_def(batch_size=SAMPLES, num_threads=threads, device_id=None)
    def files():
        return fn.readers.file(files=[server.url(f"{index}.bin") for index in range(SAMPLES)])[0]

    files().run()
    assert threads // 2 < most <= threads


def test_a_protocol_without_its_library() -> None:
    with pytest.raises((ImportError, ValueError), match=r"nonsense"):
        remote.read("nonsense://bucket/a")
