"""Searches for the number of instances, the number of threads and the queue delay with which a served model performs best.

A running server is measured with one setting after the other, and loads the model again for each: first the instances, then the threads,
then the delay, each with the best values of the settings before it. A value only counts as better if the difference exceeds
the variation of repeated measurements.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.serving.config_text import quoted, without_field, without_parameter
from penstock.serving.control import Configuration, Control
from penstock.serving.load_generator import InferRequest, Load, LoadGenerator, ask
from penstock.serving.settings import ConfigurationError

SIGNIFICANT_GAIN = 1.03
"""The smallest ratio of two measurements that counts as faster: measurements of the same setting differ by up to 3 %."""
QUEUE_DELAYS_US = (0, 500, 2_000, 5_000)
_WARM_UP_SECONDS = 0.5
_CONFIRMATION_RUNS = 2
_NUM_THREADS = "num_threads"


@dataclass(frozen=True)
class ServingSettings:
    """The settings that are tuned.

    Attributes:
        instances: the number of the model's instances; if it runs on GPUs, on each of them.
        num_threads: the number of CPU threads of each instance's pipeline; None: the pipeline's setting.
        queue_delay_us: how many microseconds requests wait for others to form a larger batch; None: they are not batched.
    """

    instances: int
    num_threads: int | None
    queue_delay_us: int | None

    @classmethod
    def of(cls, configuration: Configuration) -> ServingSettings:
        """Return the settings that a model's complete configuration contains."""
        groups = configuration.get("instance_group") or [{"count": 1}]
        threads = configuration.get("parameters", {}).get(_NUM_THREADS, {}).get("string_value")
        batching = configuration.get("dynamic_batching")
        delay = None if batching is None else int(batching.get("max_queue_delay_microseconds", 0))
        return cls(int(groups[0].get("count", 1)), int(threads) if threads else None, delay)

    def applied_to(self, configuration: Configuration) -> Configuration:
        """Return a complete configuration with its settings replaced by these."""
        changed = deepcopy(configuration)
        for group in changed["instance_group"]:
            group["count"] = self.instances
        parameters = changed.setdefault("parameters", {})
        parameters.pop(_NUM_THREADS, None)
        if self.num_threads is not None:
            parameters[_NUM_THREADS] = {"string_value": str(self.num_threads)}
        if self.queue_delay_us is not None:
            changed["dynamic_batching"]["max_queue_delay_microseconds"] = self.queue_delay_us
        return changed

    def written_into(self, text: str, kind: str, gpus: Sequence[int]) -> str:
        """Return the text of a ``config.pbtxt`` with these settings; the rest, including comments, does not change.

        Args:
            text: the configuration in protobuf's text format.
            kind: the kind of the instances, such as ``"KIND_CPU"``.
            gpus: the GPUs to which the instances are bound; an empty list: all GPUs, or none on the CPU.
        """
        text = without_field(text, "instance_group")
        on_gpus = f" gpus: [ {', '.join(map(str, gpus))} ]" if gpus else ""
        lines = [f"instance_group [ {{ count: {self.instances} kind: {kind}{on_gpus} }} ]"]
        text = without_parameter(text, _NUM_THREADS)
        if self.num_threads is not None:
            value = f"value: {{ string_value: {quoted(str(self.num_threads))} }}"
            lines.append(f"parameters {{ key: {quoted(_NUM_THREADS)} {value} }}")
        if self.queue_delay_us is not None:
            text = without_field(text, "max_queue_delay_microseconds", within="dynamic_batching")
            if self.queue_delay_us:
                # A separate message is added, as protobuf merges repeated occurrences of a message.
                lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {self.queue_delay_us} }}")
        return "\n".join([text.rstrip(), *lines, ""])


@dataclass(frozen=True)
class Trial:
    """Settings, and the throughput and latency measured with them."""

    settings: ServingSettings
    load: Load


class Tuner:
    """Tries settings of one model on a running server.

    Args:
        control: the control interface of a server in the mode ``explicit``, which has loaded the model.
        address: host:port of the server's HTTP interface.
        model: the model's name.
        requests: the requests that clients send; see :func:`answered`.
        clients: the number of clients that send requests concurrently.
        seconds: how many seconds to measure each setting.
        max_p99: the limit on the latency, in seconds, that 99 % of the answers do not exceed; None: no limit.
        tried: called with each trial.
    """

    def __init__(
        self,
        control: Control,
        address: str,
        model: str,
        requests: Sequence[InferRequest],
        clients: int,
        seconds: float,
        max_p99: float | None = None,
        tried: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self._control, self._address, self._model = control, address, model
        self._requests, self._clients, self._seconds = requests, clients, seconds
        self._max_p99, self._tried = max_p99, tried
        configuration = control.configuration(model)
        if configuration is None:
            raise ConfigurationError(f"the server has no model '{model}'")
        self._configuration = configuration
        self.present = ServingSettings.of(configuration)
        """The settings that the model has."""

    def search(self, cores: int) -> Trial:
        """Search for the best settings.

        Args:
            cores: the largest number of instances on a CPU, and of threads of an instance, to try.

        Returns:
            The trial of the best settings; of the present settings, if none are better by :data:`SIGNIFICANT_GAIN`.
        """
        with LoadGenerator(self._requests, self._clients) as load:
            first = best = self._try(load, self.present)
            for values in self._values(cores):
                for settings in values(best.settings):
                    trial = self._try(load, settings)
                    best = trial if self._is_better(trial, best) else best
            return self._confirmed(load, best) if best.settings != first.settings else first

    def write(self, config: Path, settings: ServingSettings) -> None:
        """Write settings into a model's configuration file, and let the server load the model with it.

        Args:
            config: the path of the ``config.pbtxt``.

        Raises:
            ConfigurationError: the server reads other settings from the file; the file is then restored.
            ServerError: the server cannot load the model with the file; the file is then restored.
        """
        text = config.read_text()
        _replace_file(config, settings.written_into(text, self.kind, self.gpus))
        try:
            self._control.load(self._model)
            read = ServingSettings.of(self._control.configuration(self._model) or {})
            if read != settings:
                raise ConfigurationError(f"{settings} was written into '{config}', but the server reads {read}")
        except Exception:
            _replace_file(config, text)
            raise

    def _values(self, cores: int) -> Iterable[Callable[[ServingSettings], list[ServingSettings]]]:
        counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= max(cores, 4 if self._on_gpu else 1)]

        def instances(best: ServingSettings) -> list[ServingSettings]:
            return [replace(best, instances=count) for count in counts if count != best.instances]

        def threads(best: ServingSettings) -> list[ServingSettings]:
            numbers = sorted({1, max(cores // 2, 1), cores})
            return [replace(best, num_threads=number) for number in numbers if number != best.num_threads]

        def delays(best: ServingSettings) -> list[ServingSettings]:
            if best.queue_delay_us is None:
                return []
            return [replace(best, queue_delay_us=us) for us in QUEUE_DELAYS_US if us != best.queue_delay_us]

        return instances, threads, delays

    @property
    def kind(self) -> str:
        """The kind of the model's instances in its configuration, e.g. ``"KIND_CPU"``."""
        return str(self._configuration["instance_group"][0]["kind"])

    @property
    def gpus(self) -> list[int]:
        """The GPUs to which the model's instances are bound."""
        return [int(gpu) for gpu in self._configuration["instance_group"][0].get("gpus", ())]

    @property
    def _on_gpu(self) -> bool:
        return self.kind == "KIND_GPU"

    def _try(self, load: LoadGenerator, settings: ServingSettings) -> Trial:
        self._control.load(self._model, {"config": json.dumps(settings.applied_to(self._configuration))})
        load.run(self._address, self._model, _WARM_UP_SECONDS)
        trial = Trial(settings, load.run(self._address, self._model, self._seconds))
        self._tried(trial)
        return trial

    def _confirmed(self, load: LoadGenerator, best: Trial) -> Trial:
        """Measure the best and the present settings in turns, and return the better trial: among many trials, the best
        may have been lucky.
        """
        pairs = [(self._try(load, self.present), self._try(load, best.settings)) for _ in range(_CONFIRMATION_RUNS)]
        present = max((trial for trial, _ in pairs), key=lambda trial: trial.load.rate)
        challenger = max((trial for _, trial in pairs), key=lambda trial: trial.load.rate)
        return challenger if self._is_better(challenger, present) else present

    def _is_better(self, trial: Trial, best: Trial) -> bool:
        if not self._is_allowed(trial):
            return False
        return not self._is_allowed(best) or trial.load.rate > SIGNIFICANT_GAIN * best.load.rate

    def _is_allowed(self, trial: Trial) -> bool:
        return not trial.load.failed and (self._max_p99 is None or trial.load.p99 <= self._max_p99)


def _replace_file(path: Path, text: str) -> None:
    """Replace a file atomically, so that a server reads either the old or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text)
        shutil.copymode(path, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def answered(address: str, model: str, requests: Iterable[InferRequest]) -> tuple[list[InferRequest], list[str]]:
    """Send each request once; return the requests that are answered, and why the others are not."""
    good, reasons = [], []
    for request in requests:
        reason = ask(address, model, request)
        if reason:
            reasons.append(reason)
        else:
            good.append(request)
    return good, reasons
