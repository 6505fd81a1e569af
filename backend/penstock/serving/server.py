"""Starts, supervises and stops a Triton server on this machine."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from penstock.serving.control import Control, ModelState, ServerError, readable
from penstock.serving.draining import ReadinessSwitch, drain, queued_requests
from penstock.serving.environment import Environment, count_gpus
from penstock.serving.flags import ALL_MODELS, DEFAULT_EXIT_TIMEOUT, Flags
from penstock.serving.front.front import Front
from penstock.serving.front.options import FrontOptions
from penstock.serving.guard import Guard
from penstock.serving.installation import BACKEND, Hosted, Installation, check_stub, lay_out
from penstock.serving.isolation import Isolation
from penstock.serving.load_failures import LoadFailures
from penstock.serving.mirrors import Amendment, Mirrors
from penstock.serving.model_hosts import (
    MODEL_HOST_VARIABLE,
    MODEL_HOSTS,
    ModelHost,
    find_host,
    host_variables,
    strings_in_stub,
    with_stub,
)
from penstock.serving.model_records import MODEL_RECORDS, ModelRecords
from penstock.serving.ports import belongs_to_another, choose_ports
from penstock.serving.server_folder import ServerFolder, remove_leftovers
from penstock.serving.server_log import MAX_FILE_BYTES, MAX_FILES, LogFile
from penstock.serving.settings import SERVER_SETTINGS, Settings, server_settings
from penstock.serving.shim import SHIM, preloaded_shim, shim
from penstock.serving.start_progress import StartProgress
from penstock.serving.stub_launcher import Trusted, lay_out_launcher
from penstock.serving.stubs import Stub
from penstock.serving.supervisor import Report, Supervisor, undisturbed
from penstock.serving.triton_launch import file_limit
from penstock.serving.triton_process import TritonProcess
from penstock.serving.trust import check_native_code, check_repositories, repositories_variable
from penstock.serving.without_gpus import request_cpu

__all__ = ["LocalServer", "ModelState", "ServerError"]

_log = logging.getLogger("penstock.serving")

_GPU_POOL_BYTES = 1 << 30
"""The bytes of Triton's pool for outputs on each GPU. If outputs from the stub do not fit, Triton returns wrong results;
Triton's default of 64 MB is less than a batch of photos.
"""

MIN_OPEN_FILES = 256
"""The smallest limit of open files that suffices for Triton's libraries, threads and models, and a hundred connections."""

_MAX_START_ATTEMPTS = 3
"""How often to try to start on automatically chosen ports, which another program may take before Triton does."""


class LocalServer:
    """A Triton server on this machine with the backend ``penstock`` and a model repository.

    A context manager: it starts the server on entering, and stops it on leaving. In between, the server is supervised: a model whose
    process dies is unloaded and loaded again, while the other models continue; a Triton that dies is restarted.

    Args:
        repository: the folder of models, or a list of several.
        environment: the serving environment, or its folder; found automatically by default.
        http_port, grpc_port, metrics_port: ports to listen on; by default free ones.
        host: the address on which Triton listens; by default only for this machine. Anyone who reaches Triton can end it, so
            if the network must reach the server, use ``front``.
        front: the settings of a proxy between the network and Triton; None: no proxy. With a proxy, Triton only listens on this
            machine, on free ports, and the ports above are the proxy's.
        flags: Triton's flags, e.g. ``["--log-verbose=1"]``; they replace default flags. Models are managed by
            ``--model-control-mode``: ``none`` (the default), ``poll`` or ``explicit``. Only in the mode ``explicit`` can clients
            load models, and request the index of the repository.
        settings: the settings of all models of the backend, e.g. ``{"max_pixels": "1000000"}``; the parameters of a model
            take precedence, except over what the server grants (see
            :class:`~penstock.serving.settings.Scope`).
        model_host: where models run, one of :data:`MODEL_HOSTS`; by default natively or, if that is not possible, in the stub.
        backends: names for this backend in models' configurations.
        gpu_pool_bytes: the bytes of memory on each GPU for outputs in flight. Outputs that do not fit are copied to the host; if they
            come from models in the stub, Triton returns wrong results for them.
        allow_failures: whether to start even if models cannot be loaded; by default, that is an error.
        timeout: how many seconds the server may take to become ready.
        log: a file for the server's log; by default a temporary file, which is removed when the server stops.
        echo: whether to write the log to standard error, too.
        restarts: how often in a row to restart a server that dies soon after its start; None: no limit.
        report: called with a line of text on what has died, and what is done about it; by default, the line is logged.
        progress: called with a line of text for each step of starting the server; by default, the line is logged.
        log_bytes: the size of a log file, in bytes, from which a new file is begun.
        log_files: the number of log files that are retained, including the current one.

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
        front: FrontOptions | None = None,
        flags: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        model_host: str | None = None,
        backends: Sequence[str] = (BACKEND,),
        gpu_pool_bytes: int = _GPU_POOL_BYTES,
        allow_failures: bool = False,
        timeout: float = 180.0,
        log: str | Path | None = None,
        echo: bool = False,
        restarts: int | None = None,
        report: Report = _log.warning,
        progress: Report = _log.info,
        log_bytes: int = MAX_FILE_BYTES,
        log_files: int = MAX_FILES,
    ) -> None:
        folders = [repository] if isinstance(repository, (str, Path)) else list(repository)
        self._flags = Flags.parse(flags)
        self._own_repositories = [Path(folder).absolute() for folder in folders]
        self.repositories = [*self._own_repositories, *self._flags.repositories]
        self.host = host
        self._environment = environment
        self._given_ports = {"HTTP": http_port, "gRPC": grpc_port, "metrics": metrics_port}
        self.front = Front(front, self._given_ports, report) if front is not None else None
        if self.front is not None:
            self._given_ports = dict.fromkeys(self._given_ports)
        self._settings = dict(settings or {})
        self._mirrors: Mirrors | None = None
        self._asked_model_host = model_host or os.environ.get(MODEL_HOST_VARIABLE) or None
        if self._asked_model_host not in (*MODEL_HOSTS, None):
            raise ServerError(f"the host of models must be {' or '.join(MODEL_HOSTS)}, not '{self._asked_model_host}'")
        self.model_host = self._asked_model_host or MODEL_HOSTS[0]
        self._backends = tuple(backends)
        self._gpu_pool_bytes = gpu_pool_bytes
        self._allow_failures = allow_failures
        self._timeout = timeout
        self._given_log = Path(log) if log else None
        self._echo = echo
        self._restarts = restarts
        self._report = undisturbed(report)
        self._show_progress = undisturbed(progress)
        self._progress = StartProgress(self._show_progress)
        self._log_bytes = log_bytes
        self._log_files = log_files
        self._installation: Installation | None = None
        self._backend_directory: Path | None = None
        self._variables: dict[str, str] = {}
        self._process: TritonProcess | None = None
        self._stub_records: Path | None = None
        self._guard: Guard | None = None
        self._supervisor: Supervisor | None = None
        self._folder: ServerFolder | None = None
        self._log_file: LogFile | None = None
        self._failures = LoadFailures({})
        self.model_records = ModelRecords(None)
        self.readiness: ReadinessSwitch | None = None
        self._stopping = threading.Event()
        # The prefix of the names of the stubs' shared memory, by which it is found after the stubs are gone.
        self.shared_memory = f"penstock_{uuid.uuid4().hex[:12]}_"
        self.ports: dict[str, int] = {}
        self.log: Path | None = None

    # -- public interface ------------------------------------------------------------------------------------------

    def __enter__(self) -> LocalServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def http_url(self) -> str:
        """``host:port`` of the HTTP interface, in the form that Triton's clients accept."""
        return f"{self._reachable_host()}:{self.ports['HTTP']}"

    @property
    def grpc_url(self) -> str:
        """``host:port`` of the gRPC interface, in the form that Triton's clients accept."""
        return f"{self._reachable_host()}:{self.ports['gRPC']}"

    @property
    def metrics_url(self) -> str:
        """The URL of the metrics."""
        return f"http://{self._reachable_host()}:{self.ports['metrics']}/metrics"

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""
        process = self._process
        return process is not None and process.running

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        if self._process is None:
            raise ServerError("the server is not running")
        return self._process.pid

    @property
    def control(self) -> Control:
        """The server's model control interface, with permission to load and unload models."""
        return Control(self.http_url, self._flags.headers)

    @property
    def clients_load(self) -> bool:
        """Whether clients may load and unload models."""
        return self._flags.mode == "explicit"

    def start(self) -> LocalServer:
        """Start the server and wait until its models are ready.

        Raises:
            ServerError: the server did not start, or a model did not load.
            ServingEnvironmentError, InstallationError: there is no Triton, or no serving environment.
        """
        if self.running:
            raise ServerError("the server is already running")
        for repository in self._own_repositories:
            if not repository.is_dir():
                raise ServerError(f"there is no model repository at '{repository}'")
        if self._refuses_uploads:
            check_repositories(self.repositories)
        if self._flags.caches_responses:
            self._report(
                "--cache-config: of plain Python models with response_cache, Triton also repeats requests that failed or were cancelled, "
                "as successes without outputs"
            )
        check_file_limit()
        self._progress = StartProgress(self._show_progress)
        self._progress.begin("looking for Triton and an environment to serve from")
        host = find_host(self._asked_model_host, self._environment, self._report)
        self.model_host = host.name
        self._stopping.clear()
        for folder in remove_leftovers():
            self._report(f"removed what a server left behind that was killed: {folder}")
        self._folder = ServerFolder(self.shared_memory)
        atexit.register(self._stop_at_exit, os.getpid())
        try:
            self._prepare(host, self._folder.path)
            self._guard = Guard(self.shared_memory, self._folder.path)
            self._progress.begin("starting Triton")
            self._start_on_free_ports()
            if not self._allow_failures:
                self._refuse_failures()
            if self.front is not None:
                triton = {use: f"{self._reachable_host()}:{port}" for use, port in self.ports.items()}
                self.front.start(triton, self._folder.path / "front")
            every = self._flags.poll_interval if self._flags.mode == "poll" else None
            self._supervisor = Supervisor(self, self._report, self._restarts, every)
        except OSError as error:
            self.stop()
            file = f": '{error.filename}'" if error.filename else ""
            raise ServerError(
                f"the server's files could not be created, or its programs not started{file}: {error.strerror or error}"
            ) from error
        except BaseException:
            self.stop()
            raise
        self._progress.end()
        return self

    def restart(self, models: Sequence[str]) -> None:
        """Restart the server on the same ports; models that cannot be loaded then are not an error.

        Args:
            models: the models to load, if clients may load models; otherwise, all models are loaded.

        Raises:
            ServerError: the server did not start.
        """
        self._end(orderly=False)
        self._progress = StartProgress(self._show_progress)
        self._launch(models if self.clients_load else (ALL_MODELS,))
        self._await_models()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server has stopped; return False if it still runs after ``timeout`` seconds.

        Raises:
            ServerError: the server keeps dying, and is no longer restarted.
        """
        return self._supervisor is None or self._supervisor.wait(timeout)

    def stop(self) -> None:
        """Stop the server: refuse new requests, answer those in flight, and end the process.

        Requests still in flight after Triton's ``--exit-timeout-secs`` (here 10 by default) are refused.
        """
        self._stopping.set()
        # The steps run in reverse order; each runs even if another one fails.
        with contextlib.ExitStack() as steps:
            steps.callback(atexit.unregister, self._stop_at_exit)
            if self._guard is not None:
                steps.callback(self._guard.dismiss)
            if self._folder is not None:
                steps.callback(self._folder.remove)
            if self._log_file is not None:
                steps.callback(self._log_file.close)
            if self._mirrors is not None:
                steps.callback(self._mirrors.close)
            if self._supervisor is not None:
                steps.callback(self._supervisor.remove_sent_files)
            steps.callback(self._end, orderly=self._supervisor is not None or self._answers())
            if self.front is not None:
                steps.callback(self.front.stop)
            if self._supervisor is not None:
                steps.callback(self._supervisor.stop)
            self._guard = self._folder = self._log_file = self._mirrors = self._supervisor = None

    def models(self) -> list[ModelState]:
        """Return the state of each model in the repositories.

        Raises:
            ServerError: the server does not answer.
        """
        return [
            model
            if model.state != "UNAVAILABLE" or model.reason
            else replace(model, reason=self.load_failure(model.name))
            for model in self.control.models()
        ]

    def load_failure(self, model: str) -> str:
        """Return why a model could not be loaded, as found in the log; an empty string if the log has no reason."""
        return self._failures.reasons.get(model, "")

    def stubs(self) -> list[Stub]:
        """Return the living processes that run models, one for each instance."""
        process = self._process
        return process.stubs.running() if process is not None and process.running else []

    def check_native_code(self, model: str | None = None) -> None:
        """Raise ServerError if Triton would load a library from a model's folder as its backend, unless repositories are trusted."""
        if not self._server_settings().trust_repository:
            check_native_code(self.repositories, self._backends, model)

    def started_stubs(self) -> list[Stub]:
        """Return the stubs that were started since the last call, whether or not they still run."""
        return self._process.stubs.started() if self._process is not None else []

    def end(self) -> str:
        """Return the exit status of the server's process, as text."""
        process = self._process
        return (process and process.exit_status()) or "is not there"

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the server's log, without the tables of settings."""
        return "" if self._process is None else "\n".join(self._process.log_lines()[-lines:])

    # -- starting --------------------------------------------------------------------------------------------------

    def _prepare(self, host: ModelHost, folder: Path) -> None:
        """Create the files that Triton needs, and its log.

        Args:
            host: where models run.
            folder: the folder for the files.
        """
        self.log = self._given_log or folder / "triton.log"
        self._log_file = self._open_log(self.log)
        hosted_environment = host.environment
        if self._native and not SHIM.is_built():
            self._progress.begin("compiling the library with which Triton hosts Python, once on this machine")
        hosted = Hosted(shim(), hosted_environment.library, hosted_environment.python) if self._native else None
        isolated = self._mirror_repositories(folder / "mirrors")
        if isolated:
            host = with_stub(host, isolated)
        self._installation = host.installation
        self._stub_records = folder / "stubs"
        self.readiness = ReadinessSwitch(folder)
        records = folder / "models"
        records.mkdir()
        self.model_records = ModelRecords(records)
        launcher = lay_out_launcher(folder / "launcher", self._stub_records, self._trusted())
        self._variables = self._all_variables(host.environment, launcher) | {MODEL_RECORDS: str(records)}
        if self._installation.from_wheel and (isolated or hosted is None):
            check_stub(self._installation, self._variables)
        self._backend_directory = lay_out(self._installation, folder, self._backends, hosted)
        for warning in strings_in_stub(host, self.repositories):
            self._report(warning)

    def _open_log(self, path: Path) -> LogFile:
        try:
            return LogFile(path, self._report, self._log_bytes, self._log_files)
        except OSError as error:
            raise ServerError(
                f"the log '{path}' cannot be written: {error.strerror}. Choose another file with --log"
            ) from error

    def _mirror_repositories(self, folder: Path) -> list[str]:
        """Mirror the repositories if configurations must be amended; return the models that run in the stub, if Triton hosts others."""
        settings = self._server_settings()
        amendments: list[Amendment] = [request_cpu] if settings.device == "cpu" else []
        isolation = Isolation(settings.isolation, self._backends)
        isolated = isolation.isolated_models(self._own_repositories) if self._native else []
        if isolated:
            amendments.append(isolation.amend)
        folders = self._own_repositories
        if amendments:
            self._mirrors = Mirrors(folders, folder, amendments)
            folders = self._mirrors.folders
        self.repositories = [*folders, *self._flags.repositories]
        return isolated

    @property
    def _native(self) -> bool:
        return self.model_host == "native"

    def _all_variables(self, environment: Environment, launcher: Path) -> dict[str, str]:
        variables = host_variables(self.model_host, environment) | {SERVER_SETTINGS: self._all_settings()}
        variables["PATH"] = os.pathsep.join([str(launcher), variables["PATH"]])
        if self._refuses_uploads:
            variables |= repositories_variable(self.repositories) | preloaded_shim(variables, self._report)
        return variables | (self._mirrors.variables if self._mirrors is not None else {})

    @property
    def _refuses_uploads(self) -> bool:
        """Whether models must come from the repositories, although clients may load models."""
        return self.clients_load and not self._server_settings().allow_model_upload

    def _trusted(self) -> Trusted:
        return Trusted(
            repositories=self.repositories if self._refuses_uploads else None,
            environments=self._server_settings().trust_repository,
        )

    def _server_settings(self) -> Settings:
        return server_settings({SERVER_SETTINGS: self._all_settings()})

    def _all_settings(self) -> str:
        """Return the server's settings, in the form in which models read them."""
        sections = json.loads(os.environ.get(SERVER_SETTINGS) or "{}")
        for backend, backend_settings in self._flags.backend_settings().items():
            sections[backend] = sections.get(backend, {}) | backend_settings
        sections[BACKEND] = sections.get(BACKEND, {}) | self._settings
        return json.dumps(sections)

    def _start_on_free_ports(self) -> None:
        tries = _MAX_START_ATTEMPTS if None in self._given_ports.values() else 1
        while True:
            tries -= 1
            self._take_ports()
            self._launch(self._flags.models)
            try:
                self._await_models()
                break
            except ServerError as error:
                if not tries or "already in use" not in str(error):
                    raise
                self._end(orderly=False)

    def _take_ports(self) -> None:
        self.ports = choose_ports(self.host, self._given_ports)

    def _launch(self, models: Sequence[str]) -> None:
        assert self._installation is not None
        assert self._log_file is not None
        assert self._stub_records is not None
        self.check_native_code()
        command = [str(self._installation.binary), *self._flags.command_line(self._own_flags(), models)]
        self._failures = LoadFailures(self._variables)
        self._process = TritonProcess(
            command,
            self._variables,
            self._log_file,
            self._echo,
            self.shared_memory,
            self._stub_records,
            self._observe_log,
        )
        if self._guard is not None:
            self._guard.watch(self._process.pid)

    def _observe_log(self, line: str) -> None:
        self._failures.observe(line)
        self._progress.observe(line)

    def _own_flags(self) -> dict[str, str | Sequence[str]]:
        assert self._installation is not None
        assert self.readiness is not None
        repositories = [*self.repositories[: len(self._own_repositories)], self.readiness.repository]
        hosted_environment: dict[str, str | Sequence[str]] = {
            "--model-repository": [str(folder) for folder in repositories],
            "--backend-directory": str(self._backend_directory),
            "--http-address": self.host,
            "--http-port": str(self.ports["HTTP"]),
            "--grpc-address": self.host,
            "--grpc-port": str(self.ports["gRPC"]),
            "--metrics-address": self.host,
            "--metrics-port": str(self.ports["metrics"]),
            # Off, because we report models that fail to load ourselves, with their names.
            "--exit-on-error": "false",
            "--exit-timeout-secs": DEFAULT_EXIT_TIMEOUT,
            "--backend-config": f"python,shm-region-prefix-name={self.shared_memory}",
            "--cuda-memory-pool-byte-size": [f"{gpu}:{self._gpu_pool_bytes}" for gpu in range(count_gpus())],
        }
        if self._installation.caches is not None:
            hosted_environment["--cache-directory"] = str(self._installation.caches)
        return hosted_environment

    def _await_models(self) -> None:
        """Wait until the server answers and no model is loading."""
        deadline = time.monotonic() + self._timeout
        while not self._live():
            self._check_start(deadline)
            self._progress.look()
            self._stopping.wait(0.05)
        while any(model.state == "LOADING" for model in self.models()) and time.monotonic() < deadline:
            self._check_start(deadline)
            self._progress.look()
            self._stopping.wait(0.1)

    def _live(self) -> bool:
        """Return whether this server answers, rather than another program that has taken its port in the meantime."""
        process = self._process
        if process is None or not process.running or belongs_to_another(self.ports["HTTP"], process.pid):
            return False
        return self.control.live()

    def _answers(self) -> bool:
        """Return whether there may be requests to answer. A server that is still starting has none, and draining would wait
        for it.
        """
        with contextlib.suppress(OSError):
            return self._live()
        return False

    def _check_start(self, deadline: float) -> None:
        if self._stopping.is_set():
            raise ServerError("the server is being stopped")
        process = self._process
        if process is None:
            raise ServerError("the server was terminated")
        if not process.running:
            raise ServerError(f"the server {process.exit_status()}: {process.explanation()}")
        if time.monotonic() > deadline:
            computed = f"of which it had a processor for {process.processor_seconds():.0f}"
            raise ServerError(
                f"the server was not ready after {self._timeout:.0f} s, {computed}: {process.explanation()}"
            )

    def _refuse_failures(self) -> None:
        """Raise ServerError if a model that should be loaded is not."""
        models = self.models()
        # Triton does not list models whose folders it could not read.
        names = {model.name for model in models} | self._failures.reasons.keys()
        requested = names if ALL_MODELS in self._flags.models else set(self._flags.models)
        reasons = {model.name: readable(model.reason) for model in models if model.failed and model.name in requested}
        for name in requested - reasons.keys() - {model.name for model in models if model.ready}:
            unknown = "no reason given" if name in names else "there is no such model"
            reasons[name] = self._failures.reasons.get(name, unknown)
        if reasons:
            details = "\n".join(f"  {name}: {reason}" for name, reason in sorted(reasons.items()))
            raise ServerError(f"{len(reasons)} of {len(requested)} models cannot be served:\n{details}")

    # -- ending ----------------------------------------------------------------------------------------------------

    def _end(self, orderly: bool) -> None:
        """End the server's process, if there is one; ``orderly``: after draining."""
        process = self._process
        if process is None:
            return
        try:
            if orderly and process.running:
                hosted = self._backends if self._native else ()
                drain(_Draining(self, process), self._flags.exit_timeout, hosted)
        except BaseException:
            orderly = False
            raise
        finally:
            self._process = None
            process.end(orderly)

    def _stop_at_exit(self, owner: int) -> None:
        if os.getpid() == owner:  # not in a forked child
            self.stop()

    def _reachable_host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)


def check_file_limit() -> None:
    """Raise ServerError if the limit of open files is too low for Triton."""
    limit = file_limit()
    if limit < MIN_OPEN_FILES:
        raise ServerError(
            f"Triton may open only {limit} files here (`ulimit -Hn`), and needs at least {MIN_OPEN_FILES}, besides one for each "
            "connection: raise the limit to 65536, with `ulimit -n`, LimitNOFILE= of systemd or `docker run --ulimit nofile=65536`"
        )


class _Draining:
    """A server, with the interface that draining needs."""

    def __init__(self, server: LocalServer, process: TritonProcess) -> None:
        self.control = server.control
        self.lifeline = process.lifeline
        self.waits_for_the_dead = process.waits_for_the_dead
        assert server.readiness is not None
        self.readiness = server.readiness
        self._process = process
        self._metrics_url = server.metrics_url

    @property
    def running(self) -> bool:
        return self._process.running

    def queued_requests(self) -> dict[str, int]:
        return queued_requests(self._metrics_url)
