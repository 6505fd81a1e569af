"""Runs in a separate process beside a server, and cleans up if the server's owner is killed.

Its arguments are the owner's process id, the prefix of the server's shared memory regions, and the server's folder. To its standard
input, the owner writes the server's process group, in one line for each start, and ``done`` when there is nothing left to clean
up. The guardian imports only the standard library, and finishes within milliseconds of the owner's end.
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
    """Wait until the owner is done or has ended; clean up if it was killed."""
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
    """Return everything that the owner wrote before it ended or closed the pipe."""
    os.set_blocking(0, False)
    watched = [0]
    # A forked child of the owner also keeps the pipe open, so the owner's process is watched, too, if the kernel supports that.
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
    """End all remaining processes of a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def remove_shared_memory(prefix: str) -> None:
    """Remove the shared memory regions whose names begin with ``prefix``."""
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
