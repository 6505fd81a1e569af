"""A program that prints the threads of PyTorch's Gloo that remain after a process group: they may abort an ending process."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import time
from pathlib import Path

import torch.distributed

# In seconds: a thread may still be listed for a short time after it was joined.
PATIENCE = 5


def left() -> list[str]:
    """Return the names of this process's threads in which Gloo works on tensors."""
    names = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            names.append((thread / "comm").read_text().strip())
    return [name for name in names if "gloo_runloop" in name]


def destroy_and_tell(group: torch.distributed.ProcessGroup | None = None) -> None:
    """Destroy a process group, and print the Gloo threads that remain."""
    destroy(group)
    until = time.monotonic() + PATIENCE
    while left() and time.monotonic() < until:
        time.sleep(0.05)
    print(f"rank {os.environ['RANK']}: left {left()}", flush=True)


if __name__ == "__main__":
    destroy = torch.distributed.destroy_process_group
    torch.distributed.destroy_process_group = destroy_and_tell
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
