"""Replaces this process by a program, and has the kernel end it with the thread that started it.

Plain Python without packages: ``python -I -S tied.py OWNER PROGRAM [ARGUMENT]...``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""The kernel's number of the option `PR_SET_PDEATHSIG`."""


def main() -> None:
    """Tie this process to its owner, then become the program."""
    owner, program = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != owner:  # the parent ended before the option was set
        return
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
