"""A Triton server on this machine, as an object: started, watched and stopped."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from penstock.errors import PenstockError
from penstock.serving.environment import Environment, count_gpus, describe, find_environment
from penstock.serving.installation import Installation, check_stub, find_installation, lay_out

__all__ = ["LocalServer", "ModelState", "ServerError"]

_GPU_POOL_BYTES = 1 << 30
"""For outputs on the GPU: what does not fit is served wrong, and Triton's own 64 MB hold no batch of photographs."""

_STUB_NAME = "triton_python_b"  # the kernel keeps 15 characters of a process's name


class ServerError(PenstockError):
    """The server cannot start, or has died; the message tells why, from its log where it says so."""


@dataclass(frozen=True)
class ModelState:
    """A model as the server sees it.

    Attributes:
        name: of the model.
        version: of the model, or empty where not even that is known.
        state: ``READY``, ``UNAVAILABLE`` or ``LOADING``.
        reason: why it is not ready, or empty.
    """

    name: str
    version: str
    state: str
    reason: str

    @property
    def ready(self) -> bool:
        """The model answers requests."""
        return self.state == "READY"


class LocalServer:
    """Triton, run on this machine with the backend ``penstock`` and a model repository.

    A context manager: it starts on entering and stops on leaving.

    Args:
        repository: the folder of models; several are possible.
        environment: the environment to serve from, or its folder; found by itself if not given.
        http_port, grpc_port, metrics_port: where to listen; a free port is taken if not given.
        host: the address to listen on: by default this machine only, ``0.0.0.0`` for all interfaces.
        flags: Triton's own, e.g. ``["--log-verbose=1"]``. One that is given here replaces the one set by default.
        gpu_pool_bytes: memory on each GPU for the outputs in flight; what does not fit is served wrong by Triton.
        allow_failures: start even if models cannot be loaded; by default that is an error.
        timeout: seconds for the server to get ready.
        log: a file for the server's log; by default a temporary one, gone when it stops.
        echo: also show the log on standard error.

    Example:
        >>> with LocalServer("model_repository") as server:
        ...     print(server.http_url, [model.name for model in server.models()])
    """

    def __init__(
        self,
        repository: str | Path | Sequence[str | Path],
        *,
        environment: Environment | str | Path | None = None,
        http_port: int | None = None,
        grpc_port: int | None = None,
        metrics_port: int | None = None,
        host: str = "127.0.0.1",
        flags: Sequence[str] = (),
        gpu_pool_bytes: int = _GPU_POOL_BYTES,
        allow_failures: bool = False,
        timeout: float = 180.0,
        log: str | Path | None = None,
        echo: bool = False,
    ) -> None:
        folders = [repository] if isinstance(repository, (str, Path)) else list(repository)
        self.repositories = [Path(folder) for folder in folders]
        self.host = host
        self._environment = environment
        self._given_ports = {"HTTP": http_port, "gRPC": grpc_port, "metrics": metrics_port}
        self._flags = list(flags)
        self._gpu_pool_bytes = gpu_pool_bytes
        self._allow_failures = allow_failures
        self._timeout = timeout
        self._given_log = Path(log) if log else None
        self._echo = echo
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._reader: threading.Thread | None = None
        self._stubs: set[int] = set()
        # Names the shared memory of this server's stubs, so that what they leave behind can be found.
        self._shared_memory = f"penstock_{uuid.uuid4().hex[:12]}_"
        self.ports: dict[str, int] = {}
        self.log: Path | None = None

    # -- what users do with it -------------------------------------------------------------------------------------

    def __enter__(self) -> LocalServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def http_url(self) -> str:
        """``host:port`` of HTTP, as Triton's clients take it."""
        return f"{self._reachable_host()}:{self.ports['HTTP']}"

    @property
    def grpc_url(self) -> str:
        """``host:port`` of gRPC, as Triton's clients take it."""
        return f"{self._reachable_host()}:{self.ports['gRPC']}"

    @property
    def metrics_url(self) -> str:
        """The address of the metrics."""
        return f"http://{self._reachable_host()}:{self.ports['metrics']}/metrics"

    @property
    def running(self) -> bool:
        """The server's process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._live().pid

    def start(self) -> LocalServer:
        """Starts the server and waits until its models are ready.

        Raises:
            ServerError: it did not start, or a model did not load.
            ServingEnvironmentError, InstallationError: there is nothing to start, or nothing to start it from.
        """
        if self.running:
            raise ServerError("the server runs already")
        for repository in self.repositories:
            if not repository.is_dir():
                raise ServerError(f"there is no model repository at '{repository}'")
        environment, installation = self._find()
        self._take_ports()
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-serve-"))
        atexit.register(self.stop)
        try:
            variables = _variables(environment)
            if installation.from_wheel:
                check_stub(installation, variables)
            backends = lay_out(installation, self._folder)
            self._launch(installation, backends, variables)
            self._wait()
        except BaseException:
            self.stop()
            raise
        self._stubs = set(self._living_stubs())
        return self

    def stop(self, patience: float = 20.0) -> None:
        """Stops the server: requests in flight are answered, then it is ended, by force after ``patience`` seconds."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
            _end_group(process.pid)
            process.wait()
            if self._reader is not None:
                self._reader.join(5)
            _remove_shared_memory(self._shared_memory)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        atexit.unregister(self.stop)

    def models(self) -> list[ModelState]:
        """Each model of the repository and its state.

        Raises:
            ServerError: the server does not answer.
        """
        listed = self._ask("POST", "/v2/repository/index")
        if not isinstance(listed, list):
            raise ServerError(f"the server does not answer: {listed}")
        return [
            ModelState(
                item["name"], item.get("version", ""), item.get("state") or "UNAVAILABLE", item.get("reason", "")
            )
            for item in listed
        ]

    def dead_stubs(self) -> list[int]:
        """Processes of models that have died since the start.

        Triton does not start such a process again, and goes on calling the model ready while its requests fail.
        """
        return sorted(self._stubs - set(self._living_stubs())) if self.running else []

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the server's log, without the tables that it draws of its settings."""
        return "\n".join(self._log_lines()[-lines:])

    def _log_lines(self) -> list[str]:
        if self.log is None or not self.log.is_file():
            return []
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if line.strip() and line[0] not in "+|"]

    # -- starting --------------------------------------------------------------------------------------------------

    def _find(self) -> tuple[Environment, Installation]:
        if isinstance(self._environment, Environment):
            environment = self._environment
        elif not _installed_triton():
            environment = find_environment(self._environment)
        else:
            # An installed Triton brings the Python that its stub was made for: the machine's own.
            environment = describe(self._environment or shutil.which("python3") or "python3")
        return environment, find_installation(environment)

    def _take_ports(self) -> None:
        self.ports = {}
        for use, port in self._given_ports.items():
            if port is not None:
                _check_free(self.host, port, use)
        # Held open together until all are chosen, so that they differ.
        held = []
        for use, port in self._given_ports.items():
            if port is None:
                held.append(_bound(self.host, 0))
                port = held[-1].getsockname()[1]
            self.ports[use] = port
        for one in held:
            one.close()

    def _launch(self, installation: Installation, backends: Path, variables: dict[str, str]) -> None:
        assert self._folder is not None
        self.log = self._given_log or self._folder / "triton.log"
        file = self.log.open("wb")
        self._process = subprocess.Popen(
            [str(installation.binary), *self._all_flags(backends)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C in the terminal must reach us alone, so that we stop the server in order.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=_copy_log, args=(self._process.stdout, file, self._echo), name="penstock-triton-log", daemon=True
        )
        self._reader.start()

    def _all_flags(self, backends: Path) -> list[str]:
        own = [f"--model-repository={repository}" for repository in self.repositories]
        own += [
            f"--backend-directory={backends}",
            f"--http-address={self.host}",
            f"--http-port={self.ports['HTTP']}",
            f"--grpc-address={self.host}",
            f"--grpc-port={self.ports['gRPC']}",
            f"--metrics-address={self.host}",
            f"--metrics-port={self.ports['metrics']}",
            # Models that cannot be loaded are reported by us, all of them and by name.
            "--exit-on-error=false",
            "--exit-timeout-secs=10",
            f"--backend-config=python,shm-region-prefix-name={self._shared_memory}",
        ]
        own += [f"--cuda-memory-pool-byte-size={gpu}:{self._gpu_pool_bytes}" for gpu in range(count_gpus())]
        # Those that may be given several times add up instead.
        replaced = {_name_of(flag) for flag in self._flags} - {"--model-repository", "--backend-config"}
        return [flag for flag in own if _name_of(flag) not in replaced] + self._flags

    def _wait(self) -> None:
        deadline = time.monotonic() + self._timeout
        while self._ask("GET", "/v2/health/live") is not True:
            process = self._live()
            if process.poll() is not None:
                if self._reader is not None:
                    self._reader.join(5)
                raise ServerError(f"the server ended with code {process.returncode}: {self._explanation()}")
            if time.monotonic() > deadline:
                raise ServerError(f"the server was not ready after {self._timeout:.0f} s: {self._explanation()}")
            time.sleep(0.05)
        models = self.models()
        while any(model.state == "LOADING" for model in models) and time.monotonic() < deadline:
            time.sleep(0.1)
            models = self.models()
        failed = [model for model in models if not model.ready]
        if failed and not self._allow_failures:
            details = "\n".join(f"  {model.name}: {readable(model.reason) or 'no reason given'}" for model in failed)
            raise ServerError(f"{len(failed)} of {len(models)} models cannot be served:\n{details}")

    def _explanation(self) -> str:
        """The errors of the log, or its end."""
        lines = self._log_lines()
        errors = [
            readable(line)
            for line in lines
            if re.match(r"E\d{4} |error: |\S+: (unrecognized|ambiguous|option|invalid) ", line)
        ]
        return "\n".join(f"  {line}" for line in (errors or lines)[-8:]).strip() or "it wrote no log"

    def _live(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError("the server does not run")
        return self._process

    # -- asking it -------------------------------------------------------------------------------------------------

    def _reachable_host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)

    def _ask(self, method: str, path: str) -> Any:
        """The answer: parsed JSON, True for an empty one, or the error's text."""
        connection = http.client.HTTPConnection(self._reachable_host(), self.ports["HTTP"], timeout=10)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                return body.decode(errors="replace") or f"status {response.status}"
            return json.loads(body) if body else True
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error)
        finally:
            connection.close()

    def _living_stubs(self) -> list[int]:
        """The server's children that run models."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            # pid (name) state parent ...; the name may hold anything, so the last parenthesis ends it.
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            if name == _STUB_NAME and int(rest[1]) == self.pid and rest[0] not in "ZX":
                found.append(int(entry.name))
        return found


def readable(text: str) -> str:
    """An error of Triton without its dressing: log prefixes, repeated causes and tracebacks.

    >>> readable("Internal: ValueError: no file\\n\\nAt:\\n  backend.py(3): initialize\\n")
    'ValueError: no file'
    """
    text = re.sub(r"^[EWI]\d{4} [\d:.]+ \d+ \S+:\d+\] ", "", text).strip().strip('"')
    text = re.split(r"(?:\\n|\n)+At:(?:\\n|\n)", text)[0]
    text = re.sub(r"^(?:(?:Internal|Unavailable): )+(?=\S)", "", text)
    return re.sub(r"^(?:\w+Error: )?Invalid argument: ", "", text).replace("\\n", "\n").strip()


# glibc's malloc otherwise keeps what many threads have freed, each in an arena of its own, and raises the size from which
# memory goes back to the system with the largest block that it has seen.
_ALLOCATOR = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072"}


def _variables(environment: Environment) -> dict[str, str]:
    """The environment variables of a server that takes its Python from an environment."""
    variables = _ALLOCATOR | dict(os.environ)
    for name in ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "PYENV_VERSION"):
        variables.pop(name, None)
    variables["PATH"] = os.pathsep.join([str(environment.programs), variables.get("PATH", os.defpath)])
    variables["VIRTUAL_ENV"] = str(environment.programs.parent)
    if environment.libraries is not None:
        known = [variables["LD_LIBRARY_PATH"]] if variables.get("LD_LIBRARY_PATH") else []
        variables["LD_LIBRARY_PATH"] = os.pathsep.join([str(environment.libraries), *known])
    return variables


def _installed_triton() -> bool:
    return shutil.which("tritonserver") is not None or Path("/opt/tritonserver/bin/tritonserver").is_file()


def _name_of(flag: str) -> str:
    return flag.split("=", 1)[0]


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # As servers do: connections of an earlier server that are still closing are no obstacle.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def _check_free(host: str, port: int, use: str) -> None:
    try:
        _bound(host, port).close()
    except OSError as error:
        raise ServerError(
            f"port {port} for {use} cannot be had on {host}: {error.strerror}. "
            f"Choose another with --{use.lower()}-port, or stop the program that uses it."
        ) from error


def _copy_log(source: BinaryIO, file: BinaryIO, echo: bool) -> None:
    with source, file:
        for line in source:
            file.write(line)
            file.flush()
            if echo:
                os.write(2, line)


def _end_group(group: int) -> None:
    """Ends what is left of a process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _remove_shared_memory(prefix: str) -> None:
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)
