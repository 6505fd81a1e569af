"""A program that reports which threads of PyTorch's Gloo remain after its process group: they may abort an ending process."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import time
from pathlib import Path

import torch.distributed

# In seconds: a joined thread is listed a little longer.
PATIENCE = 5


def left() -> list[str]:
    """Return the names of Gloo's threads that work on tensors."""
    names = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            names.append((thread / "comm").read_text().strip())
    return [name for name in names if "gloo_runloop" in name]


def destroy_and_tell(group: torch.distributed.ProcessGroup | None = None) -> None:
    """Destroy a process group, and print the remaining threads."""
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
