"""`ServedModel`: one pipeline that answers requests, and what a request means; it knows nothing of who brings them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from penstock.errors import OperatorError, PenstockError
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.serving.configuration import (
    BYTES,
    ConfigurationError,
    check_inputs,
    check_outputs,
    output_order,
)
from penstock.serving.fed_runner import FedRunner, MixUpError
from penstock.serving.model_files import find_model_file, load_pipeline
from penstock.serving.probing import probe, source_steps
from penstock.serving.requests import InputSpec, OutputSpec, RequestError, part_of, samples_of, to_batch
from penstock.serving.settings import Settings, settings_of

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
        self._order = output_order(config["output"], pipeline)
        self._inputs = _input_specs(config, pipeline)
        self._outputs = _output_specs(config, settings)

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
            check_inputs(config["input"], probed)
            check_outputs(config["output"], probe(probed), output_order(config["output"], probed))
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
        if accepted:
            self._answer_batch(accepted, answers)
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
        inputs = []
        for spec in self._inputs:
            tensor = request.tensor(spec.name)
            if tensor is None:
                raise RequestError(f"input '{spec.name}' is missing")
            inputs.append(samples_of(tensor, spec))
        counts = {len(samples) for samples in inputs}
        if len(counts) != 1:
            raise RequestError(f"the inputs hold different numbers of samples: {sorted(counts)}")
        limit = self._pipeline.max_batch_size or 0
        count = counts.pop()
        if not 0 < count <= limit:
            raise RequestError(f"a request must hold from 1 to {limit} samples, this one holds {count}")
        return inputs

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
    path = find_model_file(version_folder, config.get("default_model_filename", ""))
    return lambda: load_pipeline(
        path,
        settings.allowed_modules,
        device="cpu" if device_id is None else "gpu",
        device_id=device_id,
        batch_size=config.get("max_batch_size") or None,
        num_threads=settings.num_threads or len(os.sched_getaffinity(0)),
        **_NEVER_PREFETCHED,
    )


def _input_specs(config: Mapping[str, Any], pipeline: Pipeline) -> list[InputSpec]:
    declared = {op.name: op.arguments for op in source_steps(pipeline)}
    return [
        InputSpec(
            item["name"],
            item["data_type"] == BYTES,
            declared[item["name"]].get("ndim"),
            declared[item["name"]].get("layout") or "",
        )
        for item in config["input"]
    ]


def _output_specs(config: Mapping[str, Any], settings: Settings) -> list[OutputSpec]:
    unknown = set(settings.split_along_outer_axis) - {item["name"] for item in config["output"]}
    if unknown:
        raise ConfigurationError(f"split_along_outer_axis names {sorted(unknown)}, which are no outputs")
    return [
        OutputSpec(item["name"], item["data_type"] == BYTES, item["name"] in settings.split_along_outer_axis)
        for item in config["output"]
    ]
