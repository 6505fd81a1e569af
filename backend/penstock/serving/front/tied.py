"""Replaces this process by a program that the kernel ends when the thread that started this process ends.

Plain Python without packages: ``python -I -S tied.py OWNER PROGRAM [ARGUMENT]...``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""The number of the option `PR_SET_PDEATHSIG` in the kernel's interface."""


def main() -> None:
    """Tie this process to its owner, then replace it by the program."""
    owner, program = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != owner:  # the parent ended before the option was set
        return
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
