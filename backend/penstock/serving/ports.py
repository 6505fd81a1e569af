"""Ports for a server: those that are given, and free ones for the others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping

from penstock.serving.control import ServerError


def choose_ports(host: str, given: Mapping[str, int | None]) -> dict[str, int]:
    """The port of each use.

    Args:
        host: the address to listen on.
        given: the ports by use; None: any that is free. Another program may take one before the server does.

    Raises:
        ServerError: a given port is taken.
    """
    for use, port in given.items():
        if port is not None:
            _check_free(host, port, use)
    # All are held open until every port is chosen, so that they differ.
    with contextlib.ExitStack() as held:
        return {
            use: held.enter_context(_bound(host, 0)).getsockname()[1] if port is None else port
            for use, port in given.items()
        }


def _check_free(host: str, port: int, use: str) -> None:
    try:
        _bound(host, port).close()
    except OSError as error:
        raise ServerError(
            f"port {port} for {use} cannot be had on {host}: {error.strerror}. "
            f"Choose another with --{use.lower()}-port, or stop the program that uses it."
        ) from error


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # Like servers do: lingering connections of an earlier server don't matter.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
