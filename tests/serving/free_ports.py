"""Chooses ports for programs that tests start and that cannot choose a free port themselves."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST = 20_000


def free_ports(count: int) -> list[int]:
    """Return ports that are free now. They are below the range from which the system assigns ports, so that no other program,
    such as another test, gets one of them when it asks for any port.
    """
    first = int(_RANGE.read_text().split()[0])
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        # The system's random numbers are used, because two test processes may have the same seed.
        for port in random.SystemRandom().sample(range(max(1024, first - _MOST), first), 1000):
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"of 1000 ports below {first}, only {len(ports)} are free")
