"""Ports for a server: those that the user sets, and free ones for the others."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.serving.control import ServerError

_LISTENING = "0A"
"""The kernel's code of a listening socket."""


def choose_ports(host: str, requested: Mapping[str, int | None]) -> dict[str, int]:
    """Return the port for each use.

    Args:
        host: the address to listen on.
        requested: the ports by use; None: any free port, which another program may take before the server does.

    Raises:
        ServerError: a requested port is in use.
    """
    for use, port in requested.items():
        if port is not None:
            _check_free(host, port, use)
    # All ports are held open until every port is chosen, so that they differ.
    with contextlib.ExitStack() as held:
        return {
            use: held.enter_context(_bound(host, 0)).getsockname()[1] if port is None else port
            for use, port in requested.items()
        }


def belongs_to_another(port: int, group: int) -> bool:
    """Return whether a process outside of process group ``group`` listens on a port; False if that cannot be determined."""
    listening = set(_listening(port))
    if not listening:
        return False
    theirs = False
    for process in _processes():
        # The files of other users' processes cannot be listed.
        with contextlib.suppress(OSError):
            if not listening.isdisjoint(_open_files(process)):
                if group in (process, os.getpgid(process)):
                    return False
                theirs = True
    return theirs


def _listening(port: int) -> Iterator[str]:
    """Yield the sockets that listen on a port, by the names that the links in `/proc/<process>/fd` have."""
    for protocol in ("tcp", "tcp6"):
        table = Path("/proc/net", protocol)
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, address, _, state, *_, inode = line.split()[:10]
            if state == _LISTENING and int(address.rpartition(":")[2], 16) == port:
                yield f"socket:[{inode}]"


def _processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _open_files(process: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the file was closed in the meantime
            yield os.readlink(descriptor)


def _check_free(host: str, port: int, use: str) -> None:
    try:
        _bound(host, port).close()
    except OSError as error:
        raise ServerError(
            f"{use} port {port} cannot be used on {host}: {error.strerror}. "
            f"Choose another with --{use.lower()}-port, or stop the program that uses it."
        ) from error


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # As servers do, so that lingering connections of an earlier server do not prevent this.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
