"""Turns into Triton: raises the limit of open files, and has the kernel end Triton with its supervisor.

It is started in place of Triton, as a script: both must happen in Triton's process before it begins, where the
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
_LIBRARIES = "LD_LIBRARY_PATH"


def file_limit() -> int:
    """The number of files to which this process may raise its limit of open files."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def raise_file_limit() -> None:
    """Raises this process's limit of open files as far as allowed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def launch_command(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command line and environment variables that start this script, which turns into ``command``.

    Only ``command`` gets the search path of libraries in ``variables``: it may not suit this Python.
    """
    others = {name: value for name, value in variables.items() if name != _LIBRARIES}
    if _LIBRARIES in os.environ:
        others[_LIBRARIES] = os.environ[_LIBRARIES]
    libraries = variables.get(_LIBRARIES, "")
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), libraries, *command], others


def main() -> None:
    """Runs the command of the arguments: supervisor's process, libraries' search path, program and its arguments."""
    owner, libraries, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(owner):
        sys.exit("the supervisor ended before Triton began")
    raise_file_limit()
    variables = {name: value for name, value in os.environ.items() if name != _LIBRARIES}
    if libraries:
        variables[_LIBRARIES] = libraries
    os.execve(command[0], command, variables)


if __name__ == "__main__":
    main()
