"""The log of a server: it is limited in rate and size, and survives a full disk and a removed file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serving.server_log import LINES_AT_ONCE, LogFile, RateLimit


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def failure(number: int) -> bytes:
    return b'E1128 21:55:17.19%04d 1189 http_server.cc:248] "connection %d was not accepted"\n' % (number, number)


def test_lines_of_one_cause_are_written_once_a_second_and_the_others_counted() -> None:
    clock = Clock()
    limit = RateLimit(clock)
    written = b""
    for number in range(10_000):
        clock.now = 100 + number / 1000
        written += limit.admit(failure(number))
    lines = written.decode().splitlines()
    connections = [line for line in lines if "was not accepted" in line]
    assert LINES_AT_ONCE + 8 <= len(connections) <= LINES_AT_ONCE + 11
    counted = [int(line.split()[1]) for line in lines if line.startswith("[penstock: ")]
    assert len(counted) == len(connections) - LINES_AT_ONCE
    assert sum(counted) + len(connections) > 10_000 - 1100
    # After a pause, as many lines as before may be written at once.
    clock.now += 2 * LINES_AT_ONCE
    again = [limit.admit(failure(number)) for number in range(LINES_AT_ONCE)]
    assert all(again)


def test_lines_of_other_causes_and_tables_are_not_held_back() -> None:
    limit = RateLimit(Clock())
    for number in range(1000):
        limit.admit(failure(number))
    assert limit.admit(b"another cause\n") == b"another cause\n"
    table = b"| Model | Version | Status |\n"
    assert [limit.admit(table) for _ in range(1000)] == [table] * 1000


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def log(tmp_path: Path, problems: list[str]) -> Iterator[LogFile]:
    file = LogFile(tmp_path / "triton.log", problems.append, max_bytes=100, max_files=3)
    yield file
    file.close()


def test_a_large_file_is_followed_by_a_new_one(log: LogFile, tmp_path: Path) -> None:
    for number in range(10):
        log.write(b"%039d\n" % number)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(texts) == ["triton.log", "triton.log.1", "triton.log.2"]
    assert [int(line) for name in sorted(texts, reverse=True) for line in texts[name].split()] == [4, 5, 6, 7, 8, 9]


def test_a_file_that_vanishes_is_begun_again(log: LogFile, tmp_path: Path, problems: list[str]) -> None:
    log.write(b"before\n")
    (tmp_path / "triton.log").unlink()
    log._next_check = 0.0
    log.write(b"after\n")
    assert (tmp_path / "triton.log").read_text() == "after\n"
    assert problems == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_costs_the_lines_that_do_not_fit(small_disk: Path, problems: list[str]) -> None:
    log = LogFile(small_disk / "triton.log", problems.append)
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        filled = 0
        while filled < 1 << 20:
            try:
                filled += os.write(file.fileno(), bytes(4096))
            except OSError:
                break
    for _ in range(100):
        log.write(b"a line that does not fit\n")
    assert len(problems) == 1
    assert "No space left on device; lines are lost" in problems[0]
    filler.unlink()
    log.write(b"a line that does\n")
    log.close()
    text = (small_disk / "triton.log").read_text()
    assert text.endswith("[penstock: 100 lines are lost: they could not be written]\na line that does\n")
