"""`ServedModel`: one pipeline that answers requests, and what a request means; it knows nothing of who brings them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from penstock.errors import OperatorError, PenstockError
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.serving.configuration import (
    check_configuration,
    configured_inputs,
    input_specs,
    output_order,
    output_specs,
    warn_of_differences,
)
from penstock.serving.fed_runner import FedRunner, MixUpError
from penstock.serving.model_files import ModelFolder
from penstock.serving.probing import probe
from penstock.serving.requests import InputSpec, RequestError, part_of, sample_of, samples_of, to_batch
from penstock.serving.settings import ConfigurationError, Settings, settings_of
from penstock.serving.without_gpus import original_of
from penstock.tensors import cuda
from penstock.types import CPU_ONLY_DEVICE_ID

logger = logging.getLogger(__name__)

_NEVER_PREFETCHED: dict[str, Any] = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}


class Request(Protocol):
    """What a model is asked, whoever brings it."""

    @property
    def id(self) -> str:
        """The client's name for the request, or empty."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the client sent along: texts, numbers and booleans by name."""

    @property
    def wanted(self) -> Collection[str]:
        """The names of the outputs that are asked for."""

    def tensor(self, name: str) -> Any:
        """The array of an input (byte strings as objects); None where the request leaves it out."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""


class Fault(Enum):
    """Whose fault it is that a request is not answered."""

    REQUEST = "request"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that could not be served.

    Attributes:
        fault: whose it is.
        message: for the client.
    """

    fault: Fault
    message: str


@dataclass(frozen=True)
class Outputs:
    """The answer to a request: its part of the batch, as arrays by output name, on CPU or GPU."""

    tensors: dict[str, Any]


Answer = Outputs | Refusal


@dataclass(frozen=True)
class _Accepted:
    """A request that takes part in a batch.

    Attributes:
        number: its place among those of the execution.
        request: itself.
        samples: of each input.
    """

    number: int
    request: Request
    samples: list[list[Any]]

    @property
    def count(self) -> int:
        """How many samples of the batch are its own."""
        return len(self.samples[0])


class ServedModel:
    """A pipeline that answers requests, many of them as one batch; what is wrong with one is that one's error alone.

    Args:
        pipeline: never run before, so that its first batch is the first request's.
        config: of the model, complete.
        settings: of the model.
    """

    def __init__(self, pipeline: Pipeline, config: Mapping[str, Any], settings: Settings) -> None:
        self._pipeline = pipeline
        self._runner = FedRunner(pipeline)
        self._inputs = input_specs(config, pipeline, settings)
        self._order = output_order(config["output"], pipeline)
        self._outputs = output_specs(config, pipeline, settings)
        # For each input that may be left out, the samples of the last request that had it.
        self._last: dict[str, list[Any]] = {}

    @classmethod
    def load(cls, version_folder: Path, config: Mapping[str, Any], device_id: int | None) -> ServedModel:
        """The model of a version folder, held against its configuration.

        Args:
            version_folder: e.g. ``model_repository/preprocess/1``.
            config: of the model, complete.
            device_id: the GPU that it runs on; None: CPU.

        Raises:
            ConfigurationError: the configuration is wrong, or does not fit the pipeline.
        """
        settings = settings_of(config)
        load = pipeline_loader(version_folder, config, settings, device_id)
        # Another one is probed: what serves must not have seen made-up data, nor used up random numbers.
        probed = load()
        try:
            check_configuration(config, probed, settings)
            seen = probe(probed, configured_inputs(config))
            if seen is not None:
                warn_of_differences(config, probed, settings, seen)
        finally:
            probed.close()
        return cls(load(), config, settings)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """The answer to each request; they run as one batch."""
        answers: dict[int, Answer] = {}
        accepted = []
        for number, request in enumerate(requests):
            refusal, samples = self._accept(request)
            if refusal is None:
                accepted.append(_Accepted(number, request, samples))
            else:
                answers[number] = refusal
        for batch in self._batches(accepted):
            self._answer_batch(batch, answers)
        return [answers[number] for number in range(len(requests))]

    def close(self) -> None:
        """Ends the pipeline's threads."""
        self._pipeline.close()

    # -- what joins a batch ----------------------------------------------------------------------------------------

    def _accept(self, request: Request) -> tuple[Refusal | None, list[list[Any]]]:
        """The samples of each input of a request, or why it takes no part in the batch."""
        if request.is_cancelled():
            return Refusal(Fault.CANCELLED, "the request was cancelled before it was run"), []
        try:
            return None, self._samples(request)
        except Exception as error:
            return refusal_of(error), []

    def _samples(self, request: Request) -> list[list[Any]]:
        given = {
            spec.name: samples_of(tensor, spec)
            for spec in self._inputs
            if (tensor := request.tensor(spec.name)) is not None
        }
        count = self._count(given)
        samples = [given.get(spec.name) or self._instead(spec, request, count) for spec in self._inputs]
        self._last.update(
            {spec.name: _kept(given[spec.name]) for spec in self._inputs if spec.repeats and spec.name in given}
        )
        return samples

    def _count(self, given: Mapping[str, list[Any]]) -> int:
        counts = {len(samples) for samples in given.values()} or {1}
        if len(counts) != 1:
            raise RequestError(f"the inputs hold different numbers of samples: {sorted(counts)}")
        count, limit = counts.pop(), self._pipeline.max_batch_size or 0
        if not 0 < count <= limit:
            raise RequestError(f"a request must hold from 1 to {limit} samples, this one holds {count}")
        return count

    def _instead(self, spec: InputSpec, request: Request, count: int) -> list[Any]:
        """The samples of an input that a request leaves out: its parameter of that name, the default, or the last ones."""
        if not spec.optional:
            raise RequestError(f"input '{spec.name}' is missing")
        value = request.parameters.get(spec.name)
        if value is not None:
            try:
                return [sample_of(value, spec)] * count
            except ValueError as error:
                raise RequestError(f"the parameter '{spec.name}' of the request: {error}") from error
        if spec.default is not None:
            return [spec.default] * count
        last = self._last.get(spec.name)
        if last is None:
            raise RequestError(f"input '{spec.name}' is left out, and there is nothing to take instead")
        if len(last) not in (1, count):
            raise RequestError(
                f"input '{spec.name}' is left out, and the {len(last)} samples that it had last do not fit the {count} of this request"
            )
        return last if len(last) == count else last * count

    def _batches(self, accepted: Sequence[_Accepted]) -> Iterator[list[_Accepted]]:
        """The accepted requests in batches that the pipeline takes: one, if Triton keeps to the model's batch size."""
        batch: list[_Accepted] = []
        size = 0
        for one in accepted:
            if batch and size + one.count > (self._pipeline.max_batch_size or 0):
                yield batch
                batch, size = [], 0
            batch.append(one)
            size += one.count
        if batch:
            yield batch

    # -- one batch -------------------------------------------------------------------------------------------------

    def _answer_batch(self, accepted: Sequence[_Accepted], answers: dict[int, Answer]) -> None:
        """Runs the accepted requests as one batch and fills in their answers."""
        try:
            result = self._run(accepted)
        except Exception as error:
            if len(accepted) == 1 or isinstance(error, MixUpError):
                answers.update((one.number, refusal_of(error)) for one in accepted)
                return
            # The batch as a whole was refused: find out by whom.
            for one in accepted:
                self._answer_batch([one], answers)
            return
        start = 0
        for one in accepted:
            answers[one.number] = self._part(one.request, result, start, start + one.count)
            start += one.count

    def _run(self, accepted: Sequence[_Accepted]) -> Result:
        batches = {
            spec.name: to_batch([sample for one in accepted for sample in one.samples[index]], spec)
            for index, spec in enumerate(self._inputs)
        }
        return self._runner.run(batches, sum(one.count for one in accepted))

    def _part(self, request: Request, result: Result, start: int, stop: int) -> Answer:
        """The answer to the request whose samples are those from ``start`` to ``stop``."""
        failed = [result.failures[index] for index in range(start, stop) if index in result.failures]
        if failed:
            return refusal_of(failed[0], start)
        wanted = set(request.wanted)
        try:
            return Outputs(
                {
                    spec.name: part_of(result.outputs[index], start, stop, spec)
                    for spec, index in zip(self._outputs, self._order)
                    if spec.name in wanted
                }
            )
        except Exception as error:
            return refusal_of(error)


def refusal_of(error: Exception, start: int = 0) -> Refusal:
    """The answer to a request that is at fault (or, for other errors, that could not be answered).

    Args:
        error: why.
        start: the request's first sample in its batch.
    """
    blame_request = isinstance(error, (OperatorError, RequestError))
    if isinstance(error, OperatorError):
        sample = "" if error.sample is None else f" (sample {error.sample - start} of this request)"
        text = f"{error.operator}: {error.reason}{sample}"
    else:
        text = f"{error}" if isinstance(error, (RequestError, PenstockError)) else f"{type(error).__name__}: {error}"
    return Refusal(Fault.REQUEST if blame_request else Fault.INTERNAL, text)


def pipeline_loader(
    version_folder: Path, config: Mapping[str, Any], settings: Settings, device_id: int | None = None
) -> Callable[[], Pipeline]:
    """Loads a new pipeline of a model at each call, set up for serving.

    Args:
        version_folder: e.g. ``model_repository/preprocess/1``.
        config: of the model.
        settings: of the model.
        device_id: the GPU that it runs on; None: CPU.

    Raises:
        FileNotFoundError: the folder holds no pipeline.
    """
    folder = ModelFolder(
        original_of(version_folder),
        config.get("default_model_filename", ""),
        settings.allowed_modules,
        settings.allowed_paths,
        as_dali=config.get("backend") == "dali",
    )
    folder.files()
    if settings.device == "cpu":
        device_id = None

    def load() -> Pipeline:
        pipeline = folder.load(
            device="cpu" if device_id is None else "gpu",
            device_id=CPU_ONLY_DEVICE_ID if device_id is None else device_id,
            batch_size=config.get("max_batch_size") or None,
            num_threads=settings.num_threads,
            **_NEVER_PREFETCHED,
        )
        pipeline.set_missing(batch_size=1, num_threads=len(os.sched_getaffinity(0)))
        if settings.device == "cpu":
            pipeline.move_to_cpu()
        elif pipeline.graph.uses_gpu() and not cuda.device_count():
            raise ConfigurationError(
                "the pipeline has operators on a GPU, and here is none that can be used; `penstock serve --device cpu` runs them "
                "on the CPU"
            )
        return pipeline

    return load


def _kept(samples: Sequence[Any]) -> list[Any]:
    """Copies: a request's memory goes with it."""
    return [sample.copy() for sample in samples]
