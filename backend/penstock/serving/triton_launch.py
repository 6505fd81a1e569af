"""Turns into Triton: raises the limit of open files, and has the kernel end Triton with its supervisor.

It is started instead of Triton, as a script: both must happen in Triton's process before it begins, where the
supervisor, which has threads, must not run Python code. It imports only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG = 1
_LOADER_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def file_limit() -> int:
    """Return the number of files to which this process may raise its limit of open files."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def raise_file_limit() -> None:
    """Raise this process's limit of open files as far as allowed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def launch_command(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line and environment variables that start this script, which turns into ``command``.

    Only ``command`` gets the variables for the loader of libraries: those do not suit this Python.
    """
    others = {name: value for name, value in variables.items() if name not in _LOADER_VARIABLES}
    others |= {name: os.environ[name] for name in _LOADER_VARIABLES if name in os.environ}
    loader = [variables.get(name, "") for name in _LOADER_VARIABLES]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *loader, *command], others


def main() -> None:
    """Run the command of the arguments: the supervisor's process, the loader's variables, the program and its arguments."""
    owner, *rest = sys.argv[1:]
    loader, command = rest[: len(_LOADER_VARIABLES)], rest[len(_LOADER_VARIABLES) :]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(owner):
        sys.exit("the supervisor ended before Triton began")
    raise_file_limit()
    variables = {name: value for name, value in os.environ.items() if name not in _LOADER_VARIABLES}
    variables |= {name: value for name, value in zip(_LOADER_VARIABLES, loader) if value}
    os.execve(command[0], command, variables)


if __name__ == "__main__":
    main()
