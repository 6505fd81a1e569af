"""Each system call that opens, writes, maps or forks fails once, as on a full disk or at a limit: at most one request fails because
of it.

As in SQLite's tests, a scenario runs once to count the calls of each kind that each program makes, and then repeatedly, each time with
another call failing. The default run tests a few calls of each kind, `--exhaustive` many.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from failing_calls import ERRORS, Failed, Fault, Kind, Program
from faulty_server import COLD_START_SECONDS, ISOLATED, FaultyServer, spread, wait_until

Calls = Counter[tuple[Program, Kind]]

WHILE_SERVING = [
    (Program.TRITON, Kind.OPEN),
    (Program.TRITON, Kind.WRITE),
    (Program.TRITON, Kind.MAP),
    (Program.TRITON, Kind.FORK),
    (Program.TRITON, Kind.DESCRIPTOR),
    (Program.WORKER, Kind.OPEN),
    (Program.WORKER, Kind.CREATE),
    (Program.WORKER, Kind.WRITE),
    (Program.WORKER, Kind.MAP),
    (Program.WORKER, Kind.DESCRIPTOR),
    (Program.COMMAND, Kind.OPEN),
    (Program.COMMAND, Kind.CREATE),
    (Program.COMMAND, Kind.WRITE),
    (Program.COMMAND, Kind.DESCRIPTOR),
]
"""The system calls that may fail while requests are answered; the first request starts a decoder process."""

WHILE_LOADING = [
    (Program.TRITON, Kind.OPEN),
    (Program.TRITON, Kind.THREAD),
    (Program.TRITON, Kind.DESCRIPTOR),
    (Program.TRITON, Kind.FORK),
    (Program.STUB, Kind.OPEN),
    (Program.STUB, Kind.DESCRIPTOR),
    (Program.LAUNCHER, Kind.OPEN),
    (Program.LAUNCHER, Kind.CREATE),
]
"""The system calls that may fail while a model is loaded whose instances are separate processes."""

WHILE_STARTING = [
    (Program.COMMAND, Kind.OPEN),
    (Program.COMMAND, Kind.CREATE),
    (Program.COMMAND, Kind.WRITE),
    (Program.COMMAND, Kind.FORK),
    (Program.COMMAND, Kind.DESCRIPTOR),
    (Program.TRITON, Kind.OPEN),
    (Program.TRITON, Kind.CREATE),
    (Program.TRITON, Kind.FORK),
    (Program.TRITON, Kind.THREAD),
    (Program.TRITON, Kind.DESCRIPTOR),
]
"""The system calls that may fail before a server is ready."""

WHILE_STOPPING = [
    (Program.COMMAND, Kind.OPEN),
    (Program.COMMAND, Kind.CREATE),
    (Program.COMMAND, Kind.WRITE),
    (Program.TRITON, Kind.OPEN),
    (Program.TRITON, Kind.THREAD),
    (Program.TRITON, Kind.DESCRIPTOR),
]
"""The system calls that may fail between SIGTERM and the server's end."""

TRITONS_OWN = ("tritonserver", "libstdc++", "libtritonserver", "libevent", "libtriton_python")
"""Parts of the names of libraries in which a failing call may kill Triton, which is then restarted."""


SPARE_DESCRIPTORS = 4
"""By how much the number of Triton's open descriptors may vary without a fault."""


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    running = FaultyServer(tmp_path_factory.mktemp("faulty"))
    try:
        running.start()
        # Warm up: imports, compilation and filling of caches happen only once.
        assert running.ask(100, seconds=COLD_START_SECONDS).spotless, running.output
        yield running
    finally:
        running.kill()


@pytest.fixture
def server(shared_server: FaultyServer) -> FaultyServer:
    """Return the shared server once it answers correctly again, whatever the previous test did to it."""
    if shared_server.ended or not shared_server.answers_right():
        shared_server.kill()
        shared_server.start()
        assert shared_server.answers_right(), shared_server.output
    return shared_server


@pytest.fixture(scope="module")
def exhaustive(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--exhaustive"))


def names(program: Program, kind: Kind) -> str:
    return f"{program.name.lower()}-{kind.name.lower()}"


def pairs(given: list[tuple[Program, Kind]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("program", "kind"), given, ids=[names(*pair) for pair in given])


def faults(program: Program, kind: Kind, count: int, most: int) -> Iterator[Fault]:
    """Yield faults for at most ``most`` of ``count`` calls of a kind, evenly spread, with the kind's errors in turn."""
    for index, number in enumerate(spread(count, most)):
        yield Fault(program, kind, ERRORS[kind][index % len(ERRORS[kind])], number)


def open_descriptors(server: FaultyServer) -> int:
    return len(os.listdir(f"/proc/{server.triton()}/fd"))


def may_end_triton(failed: Failed) -> bool:
    return any(part in Path(failed.library).name for part in TRITONS_OWN)


# -- requests ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls_while_serving(shared_server: FaultyServer) -> Calls:
    assert shared_server.reload("fingerprint") == ""
    shared_server.calls.arm()
    assert shared_server.ask().spotless
    shared_server.calls.disarm()
    return shared_server.calls.counts()


@pytest.mark.every_case
@pairs(WHILE_SERVING)
def test_a_call_that_fails_costs_one_request(
    server: FaultyServer, calls_while_serving: Calls, program: Program, kind: Kind, exhaustive: bool
) -> None:
    server.ask()
    hit, descriptors = [], open_descriptors(server)
    for fault in faults(program, kind, max(calls_while_serving[program, kind], 1), 20 if exhaustive else 2):
        assert server.reload("fingerprint") == ""
        triton = server.triton()
        server.calls.arm(fault)
        counts = server.ask()
        failed = server.calls.disarm()
        if failed is None:  # the number of calls varies between runs
            continue
        hit.append(failed)
        told = f"{fault}: {failed}: {counts.mistakes}"
        assert (counts.wrong, counts.accepted) == ({}, {}), told
        if server.triton() == triton:
            assert counts.failed.total() + counts.misjudged.total() <= 1, told
            # Errors must not blame the client.
            assert not any("INVALID_ARGUMENT" in error for error in counts.failed), told
        else:
            assert may_end_triton(failed), told
        assert server.answers_right(), told
    # The supervisor makes calls once a second, which may fall between two scenarios.
    assert hit or program is Program.COMMAND
    assert server.ask().spotless
    assert wait_until(lambda: open_descriptors(server) <= descriptors + SPARE_DESCRIPTORS)


# -- loading -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls_while_loading(shared_server: FaultyServer) -> Calls:
    shared_server.calls.arm()
    assert shared_server.reload(ISOLATED) == ""
    shared_server.calls.disarm()
    return shared_server.calls.counts()


@pytest.mark.exhaustive
@pairs(WHILE_LOADING)
def test_a_call_that_fails_costs_one_load(
    server: FaultyServer, calls_while_loading: Calls, program: Program, kind: Kind
) -> None:
    for fault in faults(program, kind, max(calls_while_loading[program, kind], 1), 2):
        triton = server.triton()
        server.calls.arm(fault)
        refusal = server.reload(ISOLATED)
        failed = server.calls.disarm()
        told = f"{fault}: {failed}: {refusal}"
        if server.triton() != triton:
            assert failed is not None, told
            assert may_end_triton(failed), told
        if refusal:
            assert wait_until(lambda: server.reload(ISOLATED) == ""), told
        assert server.answers_right(), told


# -- the server's start and end ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls_at_both_ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FaultyServer, Calls, Calls]]:
    server = FaultyServer(tmp_path_factory.mktemp("faulty"))
    try:
        server.start()
        starting = server.calls.counts()
        assert server.answers_right()
        server.stop()
        assert server.leftovers() == []
        yield server, starting, server.calls.counts()
    finally:
        server.kill()


@pytest.fixture
def fresh(calls_at_both_ends: tuple[FaultyServer, Calls, Calls]) -> Iterator[FaultyServer]:
    """Yield a server that is not running; kill it after the test."""
    server, _, _ = calls_at_both_ends
    yield server
    server.kill()


@pytest.mark.exhaustive
@pairs(WHILE_STARTING)
def test_a_start_succeeds_or_says_why_not(
    fresh: FaultyServer,
    calls_at_both_ends: tuple[FaultyServer, Calls, Calls],
    program: Program,
    kind: Kind,
) -> None:
    _, starting, _ = calls_at_both_ends
    assert starting[program, kind]
    # Beyond the middle: the first files and processes are opened by Python and the loader.
    number = 1 + round(0.6 * (starting[program, kind] - 1))
    error = ERRORS[kind][number % len(ERRORS[kind])]
    failed = fresh.start(Fault(program, kind, error, number))
    if not fresh.ended:
        assert fresh.answers_right(), f"{failed}: {fresh.output}"
        fresh.stop()
        assert fresh.exit_code == 0, fresh.output
    else:
        assert failed is not None
        assert fresh.exit_code == 1
        assert "Traceback" not in fresh.output, f"{failed}: {fresh.output}"
        if program is Program.COMMAND:
            # Earlier lines show how far the start has progressed.
            line = fresh.output.splitlines()[-1]
            assert line.startswith("penstock: ")
            assert os.strerror(error) in line, failed
    assert fresh.leftovers() == [], f"{failed}: {fresh.output}"


@pytest.mark.exhaustive
@pairs(WHILE_STOPPING)
def test_an_end_is_an_end(
    fresh: FaultyServer, calls_at_both_ends: tuple[FaultyServer, Calls, Calls], program: Program, kind: Kind
) -> None:
    _, _, stopping = calls_at_both_ends
    fresh.start()
    failed = fresh.stop(Fault(program, kind, ERRORS[kind][0], max(stopping[program, kind] // 2, 1)))
    assert fresh.exit_code == 0, f"{failed}: {fresh.output}"
    assert "Traceback" not in fresh.output, f"{failed}: {fresh.output}"
    assert fresh.leftovers() == [], f"{failed}: {fresh.output}"
