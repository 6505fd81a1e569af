"""A running Triton: its process, those of its models' stubs, and its log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from penstock.serving import guardian
from penstock.serving.control import readable
from penstock.serving.stubs import Stubs, describe_end

_STILL_COUNTED = re.compile(r"Found [1-9]\d* live models and 0 in-flight non-inference requests")
"""What Triton says at its end once a second, when all requests have been answered."""


class TritonProcess:
    """Starts a Triton.

    Args:
        command: the command line.
        variables: the environment variables.
        log: the file that its log is appended to.
        echo: also write the log to standard error.
        shared_memory: the prefix of the shared memory of its stubs, to find it when they are gone.
        stub_records: the folder where the stubs' launcher records each one that it starts.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        log: Path,
        echo: bool,
        shared_memory: str,
        stub_records: Path,
    ) -> None:
        self._log = log
        self._shared_memory = shared_memory
        self._process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A separate process group: Ctrl-C in the terminal must reach only us, so that we can stop the server
            # properly.
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.stubs = Stubs(self.pid, stub_records)
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=_copy_log, args=(self._process.stdout, log.open("ab"), echo), name="penstock-triton-log", daemon=True
        )
        self._reader.start()

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def exit_status(self) -> str | None:
        """How the process ended, as text, or None if it runs."""
        code = self._process.poll()
        return None if code is None else describe_end(code)

    def explanation(self) -> str:
        """The errors of the log, or its end: a server that was killed had no time to call anything an error."""
        if not self.running:
            self._reader.join(5)
        lines = log_lines(self._log)
        killed = not self.running and self._process.returncode < 0
        errors = [
            readable(line)
            for line in ([] if killed else lines)
            if re.match(r"E\d{4} |error: |\S+: (unrecognized|ambiguous|option|invalid) ", line)
        ]
        return "\n".join(f"  {line}" for line in (errors or lines)[-8:]).strip() or "it wrote no log"

    def end(self, patience: float, loaded: Collection[tuple[str, str]] | None = None) -> None:
        """Ends the server's processes and frees the memory they leave behind.

        Args:
            patience: seconds in which requests in flight may be answered.
            loaded: name and version of each model that is loaded; None: unknown.
        """
        if self.running and patience:
            said = self._log.stat().st_size
            self._process.send_signal(signal.SIGINT)
            self._wait_for_end(patience, lambda: loaded is not None and self._is_left_without_models(loaded, said))
        guardian.end_group(self.pid)
        self._process.wait()
        self._reader.join(5)
        guardian.remove_shared_memory(self._shared_memory)

    def _wait_for_end(self, patience: float, pointless: Callable[[], bool]) -> None:
        """Waits until the server has ended, or only waits for what will never come."""
        deadline = time.monotonic() + patience
        idle_since = None
        while self.running and time.monotonic() < deadline and not pointless():
            # It would wait forever for a model that died while handling a request; then that process and all others
            # are gone.
            idle = not self.stubs.running() and self.stubs.any_dead()
            idle_since = (idle_since or time.monotonic()) if idle else None
            if idle_since is not None and time.monotonic() - idle_since > 1.0:
                return
            time.sleep(0.05)

    def _is_left_without_models(self, loaded: Collection[tuple[str, str]], since: int) -> bool:
        """Whether the server has unloaded its models, and counts some all the same.

        To Triton, a version that failed to load in place of a loaded one lives forever (`background_models_` in its
        `ModelLifeCycle`), so that it waits until its exit timeout.

        Args:
            loaded: name and version of each model that was loaded.
            since: where its log of the end begins.
        """
        with self._log.open("rb") as file:
            file.seek(since)
            log = file.read().decode(errors="replace")
        ends = [log.find(f"successfully unloaded '{name}' version {version}") for name, version in loaded]
        return -1 not in ends and _STILL_COUNTED.search(log, max(ends, default=0)) is not None


def log_lines(log: Path) -> list[str]:
    """The lines of a server's log, without its tables of settings."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return [line for line in lines if line.strip() and line[0] not in "+|"]


def _copy_log(source: BinaryIO, file: BinaryIO, echo: bool) -> None:
    with source, file:
        for line in source:
            file.write(line)
            file.flush()
            if echo:
                os.write(2, line)
