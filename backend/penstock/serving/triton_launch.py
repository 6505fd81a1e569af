"""Raises the limit of open files, makes the kernel end this process with its supervisor, and becomes Triton.

This script is started instead of Triton: both settings must be made in Triton's process before Triton begins, and the supervisor, which
has threads, must not run Python code between fork and exec. The script imports only the standard library.
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
    """Return the largest limit of open files that this process may set."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def raise_file_limit() -> None:
    """Raise this process's limit of open files as far as allowed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def launch_command(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment variables that start this script, which then becomes ``command``.

    Only ``command`` gets the variables for the library loader, as these do not suit the Python that runs this script.
    """
    others = {name: value for name, value in variables.items() if name not in _LOADER_VARIABLES}
    others |= {name: os.environ[name] for name in _LOADER_VARIABLES if name in os.environ}
    loader = [variables.get(name, "") for name in _LOADER_VARIABLES]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *loader, *command], others


def main() -> None:
    """Become the program in the arguments, which are the supervisor's process id, the loader's variables, and the command."""
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
