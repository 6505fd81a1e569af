"""`penstock serve` in a separate process whose system calls can be made to fail, and clients that check the answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from failing_calls import Failed, FailingCalls, Fault
from free_ports import free_ports
from traffic_clients import Client, GrpcClient, HttpClient
from traffic_models import write_model
from traffic_process import Counts
from traffic_requests import RequestMaker

MODELS = ("fingerprint", "crossing", "twins")
"""The models that are served. The first decodes in worker processes, and the second runs in Triton's stub."""

ISOLATED = "crossing"
REQUESTS = 20
SEED = 5
"""The seed of requests that run most of the code: images of all formats, two of which are decoded in worker processes,
and bad files.
"""

PATIENCE = 90.0
"""The time limit for steps that take one or two seconds on an idle machine."""

MIN_START_SECONDS = 45
"""Seconds after which `penstock serve` reports that models are not ready: after some failed calls, Triton waits forever.

On a busy machine, the limit is five times as long as the last start without a failure took.
"""

COLD_START_SECONDS = 600
"""The time limit for a start, and for a first answer, if no call fails: kernels may have to be compiled, on a busy machine."""

RETRY_SECONDS = 20.0
"""Seconds after which a request is sent again if it only matters that there is a right answer."""

EXIT_SECONDS = 10.0
"""The seconds within which the processes and files of a server that has ended disappear: the kernel removes a killed process a
moment later.
"""


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait until a condition is true; return False if it is not true within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class FaultyServer:
    """A server whose calls can be made to fail.

    Args:
        folder: the folder for its repository, its temporary files and its output.

    Attributes:
        calls: makes the server's calls fail, and counts them.
        temporary: the folder of the server's temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._repository, self.temporary, control = (folder / name for name in ("models", "temporary", "control"))
        for made in (self._repository, self.temporary, control):
            made.mkdir()
        for model in MODELS:
            write_model(self._repository, model)
        with (self._repository / ISOLATED / "config.pbtxt").open("a") as config:
            config.write('parameters [ { key: "isolation" value: { string_value: "process" } } ]\n')
        self.calls = FailingCalls(control)
        self._output = folder / "output"
        self._ports = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None
        self._seeds = itertools.count(SEED + 1)
        self._shared_memory: set[str] = set()
        self._start_limit = MIN_START_SECONDS

    # -- the server's life ---------------------------------------------------------------------------------------------

    def start(self, fault: Fault | None = None) -> Failed | None:
        """Start the server, and wait until it serves or ends; meanwhile, ``fault`` happens. Return the call that failed."""
        options = [f"--{use}-port={port}" for use, port in zip(("http", "grpc", "metrics"), self._ports)]
        seconds = self._start_limit if fault else COLD_START_SECONDS
        options += [f"--timeout={seconds}", "--model-control-mode=explicit", "--load-model=*"]
        command = [sys.executable, "-m", "penstock", "serve", str(self._repository), *options]
        variables = os.environ | self.calls.variables | {"TMPDIR": str(self.temporary)}
        self.calls.arm(fault)
        began = time.monotonic()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
        started = wait_until(lambda: self.ended or "Ctrl-C" in self.output, seconds + PATIENCE)
        assert started, f"it does not start:\n{self.output}"
        if fault is None:
            self._start_limit = max(MIN_START_SECONDS, round(5 * (time.monotonic() - began)))
        self._note_shared_memory()
        return self.calls.disarm()

    def stop(self, fault: Fault | None = None) -> Failed | None:
        """Stop the server with SIGTERM, and wait for its end; meanwhile, ``fault`` happens. Return the call that failed."""
        self._note_shared_memory()
        self.calls.arm(fault)
        self._running.terminate()
        assert wait_until(lambda: self.ended), f"it does not end:\n{self.output}"
        return self.calls.disarm()

    def kill(self) -> None:
        """Kill all processes of the server, and remove what they leave behind."""
        self._note_shared_memory()
        # Repeat until no process is left: the supervisor and Triton may start processes in the meantime.
        assert wait_until(self._killed), f"processes survive SIGKILL: {self._remains()}"
        if self._process is not None:
            self._process.wait(PATIENCE)
        for region in self._regions():
            region.unlink(missing_ok=True)
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()

    def _killed(self) -> bool:
        """Send SIGKILL to all processes of the server; return whether there were none."""
        living = self.calls.processes()
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not living

    @property
    def ended(self) -> bool:
        """Whether the server has ended."""
        return self._running.poll() is not None

    @property
    def exit_code(self) -> int:
        """The server's exit code."""
        return self._running.wait(PATIENCE)

    @property
    def output(self) -> str:
        """The server's output."""
        return self._output.read_text(errors="replace")

    def triton(self) -> int | None:
        """Return the id of Triton's process; None if it does not run."""
        found = (pid for pid, line in self.calls.processes().items() if line and line[0].endswith("/tritonserver"))
        return next(found, None)

    def leftovers(self) -> list[str]:
        """Return what the server left behind: processes, temporary files and shared memory."""
        wait_until(lambda: not self._remains(), EXIT_SECONDS)
        return self._remains()

    def _remains(self) -> list[str]:
        processes = [" ".join(line)[:200] for line in self.calls.processes().values() if line]
        return processes + [str(path) for path in (*self._regions(), *self.temporary.iterdir())]

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _regions(self) -> list[Path]:
        return [path for prefix in self._shared_memory for path in Path("/dev/shm").glob(f"{prefix}*")]

    def _note_shared_memory(self) -> None:
        """Store the prefix of the server's shared memory, which only its command line contains."""
        flag = "shm-region-prefix-name="
        for line in self.calls.processes().values():
            self._shared_memory.update(word.rpartition(flag)[2] for word in line if flag in word)

    # -- requests ------------------------------------------------------------------------------------------------------

    def ask(self, requests: int = REQUESTS, seed: int = SEED, seconds: float = PATIENCE) -> Counts:
        """Send requests one after the other, each over a new connection; a seventh of them are bad.

        Raises:
            TimeoutError: a request was not answered within ``seconds``.
        """
        return asyncio.run(self._ask(requests, seed, seconds))

    async def _ask(self, requests: int, seed: int, seconds: float) -> Counts:
        maker, counts = RequestMaker(seed, models=MODELS), Counts()
        for number in range(requests):
            client: Client = (
                GrpcClient(f"127.0.0.1:{self._ports[1]}") if number % 2 else HttpClient(f"127.0.0.1:{self._ports[0]}")
            )
            request = maker.bad() if number % 7 == 6 else maker.good()
            began = time.time()
            try:
                answer = await asyncio.wait_for(client.ask(request), seconds)
            finally:
                await client.close()
            counts.judge(request, answer, began)
        return counts

    def reload(self, model: str) -> str:
        """Reload a model; return the error message, or an empty string."""
        for action in ("unload", "load"):
            url = f"http://127.0.0.1:{self._ports[0]}/v2/repository/models/{model}/{action}"
            try:
                with urllib.request.urlopen(urllib.request.Request(url, b"{}", method="POST"), timeout=PATIENCE):
                    pass
            except urllib.error.HTTPError as error:
                return str(json.load(error)["error"])
            except OSError as error:
                return str(error)
        return ""

    def answers_right(self) -> bool:
        """Send requests until all are answered correctly; return False if that takes too long."""

        def asked() -> bool:
            with contextlib.suppress(asyncio.TimeoutError):
                if self.ask(2 * len(MODELS), next(self._seeds), RETRY_SECONDS).spotless:
                    return True
            return False

        return asked() or wait_until(asked)


def spread(count: int, most: int) -> list[int]:
    """Return up to ``most`` evenly spread numbers from 1 to ``count``, including the first and the last."""
    step = (count - 1) / max(most - 1, 1)
    return sorted({1 + round(step * index) for index in range(min(most, count))})
