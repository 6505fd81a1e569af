"""`ModelInstance`: an instance of a model, in Triton's stub (see `backend`) or in Triton's own process (see `in_process`)."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from penstock.errors import PenstockError, traceback_text
from penstock.serving.completion import complete_configuration, explained_choices, is_batched
from penstock.serving.configuration import check_libraries
from penstock.serving.metrics_page import MakeSeries, MetricsPage, MetricsWriter
from penstock.serving.model_imports import Imports
from penstock.serving.requests import Request
from penstock.serving.self_check import SelfChecks
from penstock.serving.served_model import Answer, ServedModel, pipeline_of
from penstock.serving.settings import settings_of

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_self_checks = SelfChecks()


class Asked(Request, Protocol):
    """A request that can be answered."""

    def answer(self, answer: Answer) -> None:
        """Set the only answer, which is sent at the end of the execution."""

    def stream(self, answers: Iterable[Answer]) -> None:
        """Send the answers of a decoupled model, each as soon as it is ready, and then the end marker."""


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to log the origin of unexpected errors, and to convert those that would end a program to RuntimeError."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except PenstockError:
            raise
        except Exception as error:
            logger.error("a model's code failed\n%s", traceback_text(error).rstrip())
            raise
        except BaseException as error:
            raise RuntimeError(f"the model's code raised {type(error).__name__}: {error}") from error

    return call


class ModelInstance:
    """One instance of a model.

    Args:
        config: the model's complete configuration.
        version_folder: the folder of the model's version, e.g. ``model_repository/preprocess/1``.
        name: the instance's name, e.g. ``preprocess_0_1``.
        device_id: the number of the GPU to run on; None: the CPU.
        make_series: a function that creates series on the server's metrics page.

    Attributes:
        batched: whether a request holds a batch of samples.
        decoupled: whether a request may have any number of answers.

    Raises:
        ConfigurationError: the configuration is invalid, or does not match the pipeline.
    """

    def __init__(
        self, config: Mapping[str, Any], version_folder: Path, name: str, device_id: int | None, make_series: MakeSeries
    ) -> None:
        self.batched = bool(config["max_batch_size"])
        self.decoupled = bool(config.get("model_transaction_policy", {}).get("decoupled", False))
        self._imports = Imports()
        with self._imports:
            self._model = ServedModel.load(version_folder, config, device_id)
        page = MetricsPage(make_series, config["name"], version_folder.name, name)
        self._metrics = MetricsWriter(page, self._model.accounts.tally)
        _self_checks.add(self._model.self_check)

    def execute(self, requests: Sequence[Asked]) -> None:
        """Answer each request."""
        if not self.decoupled:
            for request, answer in zip(requests, self._model.answer(requests)):
                request.answer(answer)
        elif self._model.streams:
            for request in requests:
                with contextlib.closing(self._model.stream(request)) as answers:
                    request.stream(answers)
        else:
            for request, answer in zip(requests, self._model.answer(requests)):
                request.stream([answer])

    @property
    def overlaps(self) -> bool:
        """Whether to :meth:`begin` an execution while the previous one is still being computed."""
        return self._model.overlaps and not self.decoupled

    def begin(self, requests: Sequence[Asked]) -> Callable[[], None]:
        """Begin to answer each request; return a function that finishes the execution.

        These functions must be called in the order in which executions were begun, by any thread, also while the next execution is begun.
        """
        execution = self._model.begin(requests)

        def finish() -> None:
            for request, answer in zip(requests, self._model.finish(execution)):
                request.answer(answer)

        return finish

    def close(self) -> None:
        """End the model's threads, and forget its modules."""
        _self_checks.remove(self._model.self_check)
        self._metrics.close()
        self._model.close()
        self._imports.forget()


def completed(config: dict[str, object], version_folder: Path) -> dict[str, object]:
    """Complete a model's configuration in place, and return it: inputs, outputs, batch size and batching.

    Raises:
        ConfigurationError: the configuration contradicts the pipeline's declarations, or these do not suffice.
    """
    settings = settings_of(config)
    with Imports() as imports:
        pipeline = pipeline_of(version_folder, config, settings.without_limits())
        try:
            check_libraries(pipeline)
            pipeline.build()
            text = _configuration_text(version_folder.parent)
            complete_configuration(config, pipeline, settings, is_batched(config, text))
            for choice in explained_choices(config, pipeline, text):
                logger.info("'%s': %s", config["name"], choice)
        finally:
            pipeline.close()
            imports.forget()
    return config


def _configuration_text(model_folder: Path) -> str:
    path = model_folder / "config.pbtxt"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


class LogHandler(logging.Handler):
    """Forwards Penstock's log to the server's log.

    Args:
        write: writes a line to the server's log; takes a level of :mod:`logging` and a text.
    """

    def __init__(self, write: Callable[[int, str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        self._write(record.levelno, self.format(record))


def log_to_server(write: Callable[[int, str], None]) -> None:
    """From now on, forward Penstock's log to the server's log."""
    package = logging.getLogger("penstock")
    if not any(isinstance(handler, LogHandler) for handler in package.handlers):
        package.addHandler(LogHandler(write))
        package.setLevel(logging.INFO)
