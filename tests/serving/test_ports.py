"""Which processes own a port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.serving import ports
from penstock.serving.ports import belongs_to_another


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture(params=["127.0.0.1", *(["::1"] if has_ipv6() else [])])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as made:
        yield made


@pytest.fixture
def other_process() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid


def test_a_port_belongs_to_who_listens_on_it(listener: socket.socket, other_process: int) -> None:
    port = listener.getsockname()[1]
    assert not belongs_to_another(port, os.getpid())
    assert belongs_to_another(port, other_process)
    listener.close()
    assert not belongs_to_another(port, other_process)


def test_who_has_a_port_and_does_not_listen_answers_nobody(other_process: int) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert not belongs_to_another(bound.getsockname()[1], other_process)


def test_whoever_listens_is_another_than_a_process_that_is_gone(listener: socket.socket) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert belongs_to_another(listener.getsockname()[1], gone.pid)


def test_a_port_belongs_to_a_group_of_which_one_process_listens() -> None:
    """Check that a port belongs to the process group of its listener: the program that is started as the server may be a script
    that waits for the server.
    """
    inner = "import socket; made = socket.create_server(('127.0.0.1', 0)); print(made.getsockname()[1], flush=True); input()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", outer], start_new_session=True, **pipes) as group:
        assert group.stdout is not None
        port = int(group.stdout.readline())
        assert not belongs_to_another(port, group.pid)
        assert belongs_to_another(port, os.getpid())


def test_of_what_nobody_is_seen_to_have_nothing_is_known(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is unknown if a port belongs to another user's program, and in sandboxes that do not show the sockets of processes."""
    monkeypatch.setattr(ports, "_processes", list)
    assert not belongs_to_another(listener.getsockname()[1], os.getpid())
