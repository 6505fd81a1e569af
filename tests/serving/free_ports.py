"""Ports for programs that tests start and that do not choose a port."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST = 20_000


def free_ports(count: int) -> list[int]:
    """Return ports that are free now and below the range from which the system assigns ports when a program, such as another
    test, asks for any port.
    """
    first = int(_RANGE.read_text().split()[0])
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        # Use the system's random numbers: two test processes may have the same seed.
        for port in random.SystemRandom().sample(range(max(1024, first - _MOST), first), 1000):
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"of 1000 ports below {first}, only {len(ports)} are free")
