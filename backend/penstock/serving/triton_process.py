"""A running Triton: its process, the processes of its stubs, and its log."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from penstock.serving import guardian
from penstock.serving.control import readable
from penstock.serving.lifeline import LIFELINE, Lifeline
from penstock.serving.server_log import LogFile, RateLimit
from penstock.serving.stubs import Stubs, describe_end
from penstock.serving.triton_launch import launch_command

_LINGER_SECONDS = 2.0
"""How many seconds Triton waits for clients to close idle connections before it is killed."""
_CLOSE_SECONDS = 5.0
"""How many seconds the server gets to close its models."""
_MAX_TAIL_LINES = 2000
_MAX_LINE_BYTES = 64 << 10


class TritonProcess:
    """Starts Triton. If nothing else ends it, the kernel ends it together with this process.

    Args:
        command: the command line.
        variables: the environment variables.
        log: the file to which Triton's log is appended.
        echo: whether to write the log to standard error, too.
        shared_memory: the prefix of the names of the stubs' shared memory regions, by which they are found after the stubs are gone.
        stub_records: the folder in which the launcher records each stub that it starts.
        observe: called with each line of the log, by another thread.

    Raises:
        OSError: the process could not be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        log: LogFile,
        echo: bool,
        shared_memory: str,
        stub_records: Path,
        observe: Callable[[str], None],
    ) -> None:
        self._log = log
        self._echo = echo
        self._shared_memory = shared_memory
        self._observe = observe
        self._tail: deque[str] = deque(maxlen=_MAX_TAIL_LINES)
        self.lifeline = Lifeline()
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._process: subprocess.Popen[bytes]
        # This thread starts the process, and waits for its end, because the kernel ends a process when the thread that started it
        # ends.
        self._thread = threading.Thread(
            target=self._run, args=(list(command), dict(variables)), name="penstock-triton-log", daemon=True
        )
        try:
            self._thread.start()
            self._started.wait()
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self.lifeline.close()
            raise
        self.pid = self._process.pid
        self.stubs = Stubs(self.pid, stub_records)

    @property
    def running(self) -> bool:
        """Whether Triton's process is alive."""
        return self._process.poll() is None

    def exit_status(self) -> str | None:
        """Return how the process ended, as text; None if it runs."""
        code = self._process.poll()
        return None if code is None else describe_end(code)

    def processor_seconds(self) -> float:
        """Return the processor time that Triton has used on all cores, in seconds; 0 if it has ended."""
        with contextlib.suppress(OSError):
            # The fields after the name, which may contain any characters: state, parent ... user time, system time.
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def log_lines(self) -> list[str]:
        """Return the last lines of the log, without the tables of settings."""
        return [line for line in list(self._tail) if line.strip() and line[0] not in "+|"]

    def explanation(self) -> str:
        """Return the errors in the log; if there are none, the end of the log, as a server that was killed could log no error."""
        if not self.running:
            self._thread.join(5)
        lines = self.log_lines()
        killed = not self.running and self._process.returncode < 0
        errors = [
            readable(line)
            for line in ([] if killed else lines)
            if re.match(r"E\d{4} |error: |\S+: (unrecognized|ambiguous|option|invalid) ", line)
        ]
        return "\n".join(f"  {line}" for line in (errors or lines)[-8:]).strip() or "it wrote no log"

    def end(self, orderly: bool) -> None:
        """End the server's processes, and free the memory that they leave behind; requests in flight are cut off.

        Args:
            orderly: whether to close models first.
        """
        try:
            if self.running and orderly:
                self._process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_LINGER_SECONDS)
                if self.running and self.lifeline.listens():
                    # Otherwise, Triton would unload its models only after all clients have closed their connections.
                    self.lifeline.ask("stop", _CLOSE_SECONDS, lambda: self.running)
        finally:
            guardian.end_group(self.pid)
            self._process.wait()
            self._thread.join(5)
            self.lifeline.close()
            guardian.remove_shared_memory(self._shared_memory)

    def waits_for_the_dead(self) -> bool:
        """Return whether a stub has died and none is alive: Triton would wait forever for the requests that it was running.

        Also False if processes cannot be listed, for example because no more files can be opened.
        """
        with contextlib.suppress(OSError):
            return not self.stubs.running() and self.stubs.any_dead()
        return False

    # -- the log -------------------------------------------------------------------------------------------------------

    def _run(self, command: list[str], variables: dict[str, str]) -> None:
        try:
            launch, environment = launch_command(command, variables)
            environment[LIFELINE] = str(self.lifeline.inherited)
            self._process = subprocess.Popen(
                launch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[self.lifeline.inherited],
                # A separate process group: Ctrl-C in the terminal must only reach this process, which then stops the server
                # properly.
                start_new_session=True,
            )
            self.lifeline.started()
        except Exception as error:
            self._failure = error
            return
        finally:
            self._started.set()
        assert self._process.stdout is not None
        self._copy_log(self._process.stdout)
        self._process.wait()

    def _copy_log(self, source: IO[bytes]) -> None:
        limit = RateLimit()
        with source:
            # With a size limit: a long line must not use up all memory.
            while line := source.readline(_MAX_LINE_BYTES):
                text = line.decode(errors="replace").rstrip("\n")
                self._tail.append(text)
                self._observe(text)
                admitted = limit.admit(line)
                if admitted:
                    self._log.write(admitted)
                    if self._echo:
                        with contextlib.suppress(OSError):
                            os.write(2, admitted)
