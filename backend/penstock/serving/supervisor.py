"""Keeps a Triton server serving: reloads models whose processes have died, and restarts a server that has died.

Triton does neither: it lists a model whose process is dead as "ready", while the model's requests fail.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from penstock.serving.control import Configuration, Control, ModelState, NoAnswer, ServerError, readable
from penstock.serving.liveness import SILENT_SECONDS, Liveness
from penstock.serving.loaded_models import LoadedModels, Restoration, client_parameters
from penstock.serving.model_records import ModelRecords
from penstock.serving.polling import Repositories
from penstock.serving.readiness import Readiness
from penstock.serving.stubs import Stub

Report = Callable[[str], None]

_TICK_SECONDS = 0.1
_LIST_INTERVAL_SECONDS = 0.25
_HEALTH_INTERVAL_SECONDS = 1.0
_STABLE_SECONDS = 10.0
"""After this many seconds of service, earlier deaths no longer count."""
_MAX_PAUSE_SECONDS = 60.0
_REPORT_INTERVAL_SECONDS = 60.0
"""The number of seconds between two reports of the same problem of the supervisor itself."""
_SETTLING_SECONDS = 0.3
"""After this many seconds without a change, the files of a model are considered complete."""
_REASON_IN_LOG = "failed to poll from model repository"
"""Triton's answer if it has only written the reason to its log."""
_SIBLING_DRAIN_SECONDS = 30.0
"""How many seconds after the death of a model's process the processes of its other instances get for their requests in flight."""


class Supervised(Protocol):
    """The interface of a server that a supervisor needs."""

    repositories: list[Path]

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def clients_load(self) -> bool:
        """Whether clients may load models, with uploaded files and configurations."""

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""

    @property
    def metrics_url(self) -> str:
        """The URL of the server's metrics."""

    @property
    def pid(self) -> int:
        """The id of the server's process."""

    @property
    def model_records(self) -> ModelRecords:
        """The records of the models in the server's process."""

    def models(self) -> list[ModelState]:
        """Return the state of each model in the repositories, with the reason if a model could not be loaded."""

    def load_failure(self, model: str) -> str:
        """Return why a model could not be loaded, as found in the log; an empty string if the log has no reason."""

    def stubs(self) -> list[Stub]:
        """Return the server's living processes that run models."""

    def started_stubs(self) -> list[Stub]:
        """Return the stubs that were started since the last call, whether or not they still run."""

    def check_native_code(self, model: str) -> None:
        """Raise ServerError if Triton would load a library from the model's folder as its backend."""

    def end(self) -> str:
        """Return the exit status of the server's process, as text."""

    def restart(self, models: Sequence[str]) -> None:
        """Restart the server; load these models, if clients may load models, or else all."""

    def log_tail(self) -> str:
        """Return the end of the server's log."""


class Supervisor:
    """Supervises a server in a separate thread.

    Args:
        server: the server to supervise, which must be running.
        report: called, by several threads, with a line of text on what has happened and what is done about it.
        restarts: how often in a row to restart a server that dies soon after its start; None: no limit.
        poll_interval: the number of seconds between scans for changed models; None: changed models are not reloaded.
        silent_seconds: the number of seconds without an answer after which the server is ended and restarted.
    """

    def __init__(
        self,
        server: Supervised,
        report: Report,
        restarts: int | None = None,
        poll_interval: float | None = None,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self._server = server
        self._report = undisturbed(report)
        self._restarts = restarts
        self._deaths = _Deaths()
        self._models = _Models(server, self._report)
        self._poll = None if poll_interval is None else _Poll(server, poll_interval, self._models)
        self._readiness = Readiness(server, self._report, self._models.ending)
        self._liveness = Liveness(server, self._report, self._models.ending, silent_seconds)
        self._stopped = threading.Event()
        self._failure: ServerError | None = None
        self._problem, self._problem_reported = "", 0.0
        self._thread = threading.Thread(target=self._run, name="penstock-supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the supervision."""
        self._models.ending.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def remove_sent_files(self) -> None:
        """Remove the files that clients sent to the server; call this after the server has ended."""
        self._models.loaded.remove_sent_files()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the supervision has ended; return False if it still runs after ``timeout`` seconds.

        Raises:
            ServerError: supervision has ended because the server keeps dying.
        """
        over = self._stopped.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return over

    def _run(self) -> None:
        self._deaths.recovered()
        try:
            while not self._models.ending.wait(_TICK_SECONDS):
                try:
                    if self._server.running:
                        self._check_models()
                    elif not self._revive():
                        return
                except Exception as error:  # supervision continues after any error
                    self._report_once(f"the supervisor met {type(error).__name__}: {error}")
        finally:
            self._stopped.set()

    def _report_once(self, problem: str) -> None:
        """Report a problem that may occur in each tick, but not too often."""
        now = time.monotonic()
        if problem != self._problem or now - self._problem_reported > _REPORT_INTERVAL_SECONDS:
            self._problem, self._problem_reported = problem, now
            self._report(problem)

    def _check_models(self) -> None:
        self._models.look()
        if self._poll is not None:
            self._poll.look()
        for model, repair in self._readiness.unready():
            self._models.work(model, repair)

    def _revive(self) -> bool:
        """Restart the server; return False if it has died too often in a row, or the supervision ends."""
        self._deaths.add()
        if self._restarts is not None and self._deaths.count > self._restarts:
            self._failure = ServerError(
                f"Triton {self._server.end()} and is not started again: {self._restarts} times in a row are enough. "
                f"The end of its log:\n{self._server.log_tail()}"
            )
            return False
        pause = self._deaths.pause(free=1)
        self._report(f"Triton {self._server.end()}; it is started again {_delay_text(pause)}")
        if self._models.ending.wait(pause):
            return False
        began = time.monotonic()
        restoration = self._models.loaded.restoration()
        try:
            self._server.restart(restoration.listed)
            self._deaths.recovered()
            self._models.restore(restoration)
            self._report(f"Triton serves again, after {time.monotonic() - began:.1f} s")
        except (ServerError, OSError) as error:
            self._report(f"Triton could not be started: {error}")
        return True


class _Models:
    """Watches the models of a server, and repairs those whose processes have died."""

    def __init__(self, server: Supervised, report: Report) -> None:
        self.ending = threading.Event()
        self.loaded = LoadedModels(server)
        self._server = server
        self._report = report
        self._stubs: set[Stub] = set()
        self._suspects: dict[Stub, float] = {}
        self._retired: dict[Stub, float] = {}
        self._deaths: dict[str, _Deaths] = {}
        self._busy: dict[str, threading.Thread] = {}
        self._next_list = self._next_health_check = 0.0
        self._list(time.monotonic())

    def look(self) -> None:
        """Find the processes that have started or ended since the last scan."""
        now = time.monotonic()
        if now >= self._next_list:
            self._next_list = now + _LIST_INTERVAL_SECONDS
            self._list(now)
            for stub, since in list(self._suspects.items()):
                if stub in self._suspects:  # not removed together with another process of its model
                    # If the server does not answer now, the process is judged again in the next scan.
                    with contextlib.suppress(ServerError):
                        self._judge(stub, now - since)
        for stub in [stub for stub in self._stubs if not stub.running()]:
            self._stubs.discard(stub)
            self._suspects[stub] = now
            # If Triton ended the process on purpose, it takes a moment to note that, so the process is judged one tick later.
            self._next_list = now + _TICK_SECONDS

    def restore(self, restoration: Restoration) -> None:
        """Load the missing models into a restarted server.

        Raises:
            ServerError: the server does not answer.
        """
        # Query first: while Triton loads a model, it does not answer queries about models.
        failed = {model.name: readable(model.reason) for model in self._server.models() if model.failed}
        changed = {
            name: {"config": json.dumps(configuration)}
            for name, configuration in restoration.configurations.items()
            if self._server.control.configuration(name) not in (None, configuration)
        }
        self.loaded.refresh(self._busy)
        for name in restoration.lost:
            self._report(f"{name} is not loaded again: the files that a client sent for it are gone")
        for name, problem in failed.items():
            self._load_in_background(name, {}, f"{name} cannot be served: {problem}")
        for name, parameters in {**changed, **restoration.sent}.items():
            self._load_in_background(name, parameters, f"{name} is loaded again as a client loaded it")

    def _load_in_background(self, model: str, parameters: Mapping[str, object], reason: str) -> None:
        self.work(model, functools.partial(self._load_again, model, parameters, reason))

    def _load_again(self, model: str, parameters: Mapping[str, object], reason: str) -> None:
        """Try to load a model that a restarted server lacks, until loading succeeds.

        Args:
            model: the model's name.
            parameters: the parameters for loading it, as clients sent them.
            reason: the reason, which is reported.
        """
        self._report(reason)
        deaths = self._deaths.setdefault(model, _Deaths())
        server = self._server.pid
        while self._server.running and self._server.pid == server:
            if self.attempt(model, functools.partial(self._server.control.load, model, parameters)):
                deaths.recovered()
                self._report(f"{model} serves again")
                return
            deaths.add()
            if self.ending.wait(deaths.pause(free=0)) or self._serves(model):
                return

    def work(self, model: str, what: Callable[[], object]) -> None:
        """Repair a model in a thread, after a repair of the model that may be under way."""
        previous = self._busy.get(model)

        def run() -> None:
            if previous is not None:
                previous.join()
            try:
                what()
            except Exception as error:
                self._report(f"{model} could not be repaired: {type(error).__name__}: {error}")

        self._busy[model] = threading.Thread(target=run, name=f"penstock-{model}", daemon=True)
        self._busy[model].start()

    def attempt(self, model: str, what: Callable[[], None]) -> bool:
        """Make a request to the server; report an error, and return whether the request succeeded."""
        try:
            what()
        except ServerError as error:
            if self._server.running and not self.ending.is_set():
                reason = self._server.load_failure(model) if _REASON_IN_LOG in str(error) else ""
                self._report(f"{model}: {reason or error}")
            return False
        return True

    def _list(self, now: float) -> None:
        """Record the running processes, for later comparison."""
        living = set(self._server.stubs())
        for stub in [stub for stub in self._retired if stub not in living]:
            del self._retired[stub]
        for stub, deadline in self._retired.items():
            if now > deadline:
                stub.kill()
        self._stubs |= living.union(self._server.started_stubs()) - self._retired.keys()
        self._busy = {model: thread for model, thread in self._busy.items() if thread.is_alive()}
        if now >= self._next_health_check:
            self._next_health_check = now + _HEALTH_INTERVAL_SECONDS
            self._ask()

    def _ask(self) -> None:
        """Record which models should be loaded, as this cannot be queried after Triton has died."""
        with contextlib.suppress(ServerError):
            self.loaded.refresh(self._busy)

    def _judge(self, stub: Stub, seconds: float) -> None:
        """Decide whether a model's process has died; if so, repair the model."""
        model = self._model_of(stub)
        ended = stub.ended()
        # Read before the state is queried: in the other order, a model that is being unloaded would seem to lack its
        # process.
        living = set(self._server.stubs()) - self._retired.keys()
        state = self._state_of(model) if model else ""
        if model is None or state not in ("READY", "LOADING") or stub.instance == model:
            del self._suspects[stub]  # the model was unloaded, or this process only completed its configuration
        elif state == "LOADING":
            # The process may be about to be replaced: it counts as missing only after the model is ready.
            self._suspects[stub] = time.monotonic()
        elif self._is_complete(model, stub, living):
            if ended is None:
                del self._suspects[stub]
        elif ended is not None or seconds > 1.0:
            self._retire(stub, model)
            self.work(model, functools.partial(self._heal, model, stub, ended or "has ended"))

    def _retire(self, dead: Stub, model: str) -> None:
        """Stop watching the processes of a model, one of which has died; the others are killed after some time for their requests.

        Triton itself would never end them, because the request that the dead process was running never finishes.
        """
        self._suspects = {stub: since for stub, since in self._suspects.items() if stub.model_file != dead.model_file}
        for stub in [stub for stub in self._stubs if stub.model_file == dead.model_file]:
            self._stubs.discard(stub)
            self._retired[stub] = time.monotonic() + _SIBLING_DRAIN_SECONDS

    def _heal(self, model: str, stub: Stub, ended: str) -> None:
        """Unload a model, and try to load it again until that succeeds."""
        control = self._server.control
        began = time.monotonic()
        overrides: Mapping[str, object] = {}
        if self._server.clients_load:
            try:
                overrides = self._own_parameters(model, stub)
            except OSError as error:
                self._report(f"{model}: the files that a client sent cannot be read: {error}")
        self.attempt(model, functools.partial(control.unload, model))
        deaths = self._deaths.setdefault(model, _Deaths())
        deaths.add()
        while self._server.running and not self.ending.is_set():
            pause = deaths.pause(free=3)
            self._report(f"{model}: its process {stub.pid} {ended}; the model is loaded again {_delay_text(pause)}")
            if self.ending.wait(pause) or self._serves(model):
                return
            if self.attempt(model, functools.partial(control.load, model, overrides)):
                deaths.recovered()
                self._report(f"{model} serves again, after {time.monotonic() - began:.1f} s")
                return
            deaths.add()
            ended = "could not be replaced"

    def _own_parameters(self, model: str, stub: Stub) -> dict[str, str]:
        """Return the parameters for reloading a model as a client may have loaded it: its configuration and uploaded files."""
        return client_parameters(
            self._configuration(model), stub.model_folder if self._in_repository(stub) is None else None
        )

    def _configuration(self, model: str) -> Configuration | None:
        """Return a model's configuration, waiting until the server answers; None if the model is not loaded or the server has ended."""
        while self._server.running:
            try:
                return self._server.control.configuration(model)
            except NoAnswer:
                if self.ending.wait(_HEALTH_INTERVAL_SECONDS):
                    break
        return None

    def _in_repository(self, stub: Stub) -> str | None:
        """Return the name of a process's model if it comes from one of the server's repositories, otherwise None."""
        return next(filter(None, (stub.model_in(folder) for folder in self._server.repositories)), None)

    def _model_of(self, stub: Stub) -> str | None:
        name = self._in_repository(stub)
        if name is not None:
            return name
        # A model that was loaded from files that a client sent is in no repository, and the server does not list it.
        words = stub.instance.split("_")
        for candidate in ("_".join(words[:count]) for count in range(len(words), 0, -1)):
            config = self._server.control.configuration(candidate)
            if config is not None and any(group["name"] == stub.group for group in config["instance_group"]):
                return candidate
        return None

    def _state_of(self, model: str) -> str:
        states = {entry.state for entry in self._server.control.models() if entry.name == model and entry.version}
        if not states:  # a model that the server does not list
            return "READY" if self._server.control.configuration(model) is not None else ""
        return next((state for state in ("LOADING", "READY") if state in states), "UNAVAILABLE")

    def _serves(self, model: str) -> bool:
        """Return whether a model is loaded or being loaded; also False if the server does not answer."""
        try:
            return self._state_of(model) in ("READY", "LOADING")
        except ServerError:
            return False

    def _is_complete(self, model: str, stub: Stub, living: Iterable[Stub]) -> bool:
        """Return whether each configured instance of the model has a living process; the process that completes
        configurations does not count.
        """
        config = self._server.control.configuration(model)
        if config is None:
            return False
        wanted = sum(int(group["count"]) * max(len(group["gpus"]), 1) for group in config["instance_group"])
        return sum(other.model_file == stub.model_file and other.instance != model for other in living) >= wanted


class _Poll:
    """Reloads models whose files change."""

    def __init__(self, server: Supervised, every: float, models: _Models) -> None:
        self._server = server
        self._control = server.control
        self._every = every
        self._models = models
        self._repositories = Repositories(server.repositories)
        self._next = time.monotonic() + every

    def look(self) -> None:
        """If a scan is due, load the models whose files have changed, and unload models that are gone."""
        now = time.monotonic()
        if now < self._next:
            return
        changes = self._repositories.changes()
        self._next = now + (min(_SETTLING_SECONDS, self._every) if changes.under_way else self._every)
        for name in changes.edited:
            self._change(name, self._load)
        for name in changes.removed:
            self._change(name, self._control.unload)

    def _load(self, model: str) -> None:
        self._server.check_native_code(model)
        self._control.load(model)

    def _change(self, model: str, what: Callable[[str], None]) -> None:
        self._models.work(model, functools.partial(self._models.attempt, model, functools.partial(what, model)))


class _Deaths:
    """Counts deaths in a row, and computes the delay before the next attempt."""

    def __init__(self) -> None:
        self.count = 0
        self._recovered = -_STABLE_SECONDS

    def add(self) -> None:
        """Count a death; after `_STABLE_SECONDS` seconds of service, earlier deaths no longer count."""
        if time.monotonic() - self._recovered >= _STABLE_SECONDS:
            self.count = 0
        self.count += 1

    def recovered(self) -> None:
        """Note that service is restored."""
        self._recovered = time.monotonic()

    def pause(self, free: int) -> float:
        """Return the seconds to wait: none for the first ``free`` deaths, then twice as long for each further death."""
        beyond = self.count - free
        # At most 32, because 2.0 ** 1024 overflows.
        return min(0.5 * 2.0 ** (min(beyond, 32) - 1), _MAX_PAUSE_SECONDS) if beyond > 0 else 0.0


def undisturbed(report: Report) -> Report:
    """Return a function that ignores errors of ``report``: a report that fails, for example on a full disk, must not end the caller."""

    def tell(line: str) -> None:
        with contextlib.suppress(Exception):
            report(line)

    return tell


def _delay_text(pause: float) -> str:
    return f"in {pause:g} s" if pause else "now"
