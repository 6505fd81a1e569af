"""Runs beside a server in a separate process: cleans up after the server's owner if that is killed.

It is started with the owner's process, the prefix of the server's shared memory and the server's folder. The owner
writes the server's process group to its standard input, one line per start, and ``done`` when there is nothing to clean
up any more. It imports only the standard library, and finishes within milliseconds of the owner's end.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
from pathlib import Path

DONE = b"done"


def main() -> None:
    """Wait for the owner's message or its end."""
    owner, prefix, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    words = _listen(owner).split()
    if DONE in words:
        return
    for group in words[-1:]:
        end_group(int(group))
    remove_shared_memory(prefix)
    shutil.rmtree(folder, ignore_errors=True)


def _listen(owner: int) -> bytes:
    """Return everything the owner wrote before it ended, or closed its end."""
    os.set_blocking(0, False)
    watched = [0]
    # A forked child of the owner keeps the pipe open, too, so the owner itself is watched if the kernel supports that.
    with contextlib.suppress(OSError):
        watched.append(os.pidfd_open(owner))
    if os.getppid() != owner:
        watched = []
    received = b""
    while True:
        ready = select.select(watched, [], [])[0] if watched else [-1]
        try:
            while part := os.read(0, 4096):
                received += part
            return received
        except BlockingIOError:
            if DONE in received.split() or ready != [0]:
                return received


def end_group(group: int) -> None:
    """End the rest of a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def remove_shared_memory(prefix: str) -> None:
    """Remove the regions whose names begin with ``prefix``."""
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
