"""`ServedModel`: a pipeline that answers requests, independent of how they are received."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from penstock.data_types import BFLOAT16, CPU_ONLY_DEVICE_ID
from penstock.errors import MemoryShortageError, did_you_mean
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.runtime.memory import BatchMemory, Reservation
from penstock.schema import operator_class
from penstock.serving.accounting import Accounts, ExecutionAccount
from penstock.serving.callers import running_for
from penstock.serving.cancellation import CancellationWatch
from penstock.serving.configuration import (
    check_configuration,
    check_libraries,
    configured_inputs,
    input_specs,
    output_order,
    output_specs,
    warn_of_differences,
)
from penstock.serving.intake import Intake
from penstock.serving.isolation import stub_backend
from penstock.serving.memory import RequestMemory
from penstock.serving.metrics import Metric
from penstock.serving.mirrors import original_of
from penstock.serving.model_files import ModelFolder
from penstock.serving.pipeline_runner import BegunBatch, MixUpError, PipelineRunner, RebuiltError
from penstock.serving.probing import run_trial, streams
from penstock.serving.references import References
from penstock.serving.refusals import Kind, Refusal, refusal_of
from penstock.serving.requests import OutputParts, Request, RequestError, joined_on_gpu, to_batch
from penstock.serving.reserved import ReservedOutput
from penstock.serving.self_check import SelfCheck
from penstock.serving.settings import ConfigurationError, Settings, settings_of, warn_of_unknown
from penstock.serving.trust import check_called_models, check_trust
from penstock.tensors import TensorList, cuda
from penstock.tensors.cuda import require_cupy
from penstock.tensors.transfers import array_to_host

logger = logging.getLogger(__name__)

_NEVER_PREFETCHED: dict[str, object] = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}
# If a batch that was begun early needs more memory than it may take, this many of the following batches are not begun early.
_BATCHES_ALONE_AFTER_A_LARGE_ONE = 64

ParameterValue = str | int | float
"""The value of a response's parameter; bool is included, as it is a subclass of int."""


@dataclass(slots=True)
class Outputs:
    """The answer to a request: the request's part of a batch.

    Attributes:
        tensors: the output arrays by name, on the CPU or GPU.
        bfloat16: the names of the arrays that contain the bits of bfloat16 as uint16.
        parameters: the response's parameters, made of outputs that are not sent as tensors.
    """

    tensors: dict[str, Any]
    bfloat16: frozenset[str] = frozenset()
    parameters: dict[str, ParameterValue] = field(default_factory=dict)


Answer = Outputs | Refusal


@dataclass(slots=True)
class _Accepted:
    """A request that takes part in a batch.

    Attributes:
        number: the position of the request in the execution.
        request: the request.
        samples: the request's samples of each input.
        count: the number of the request's samples in the batch.
    """

    number: int
    request: Request
    samples: list[list[object]]
    count: int


@dataclass(slots=True)
class _FedBatch:
    """A batch of requests, in the form that the pipeline accepts.

    Attributes:
        shares: the requests, in order, each with its number of samples.
        inputs: the samples of all requests, by input.
        reserved: the destinations in the answers' memory, by the index of the pipeline's output.
    """

    shares: list[tuple[Request, int]]
    inputs: Mapping[str, TensorList]
    reserved: Mapping[int, ReservedOutput]

    @property
    def requests(self) -> list[Request]:
        """The requests, in order."""
        return [request for request, _ in self.shares]


@dataclass(slots=True)
class _BegunBatch:
    """A batch that was begun while the previous one was in flight.

    Attributes:
        allowance: the memory limit of the batch.
        fed: the requests, in the form that the pipeline accepts.
        batch: the batch in flight.
        error: why the batch could not be begun.
    """

    allowance: BatchMemory
    fed: _FedBatch | None = None
    batch: BegunBatch | None = None
    error: Exception | None = None


@dataclass(slots=True)
class Execution:
    """Requests that are answered together.

    Attributes:
        requests: the requests.
        account: the account that records times and batches.
        answers: the answers so far, by the request's position.
        batches: the batches in which accepted requests are run.
        begun: the first batch, if it is in flight.
    """

    requests: Sequence[Request]
    account: ExecutionAccount
    answers: dict[int, Answer] = field(default_factory=dict)
    batches: list[list[_Accepted]] = field(default_factory=list)
    begun: _BegunBatch | None = None


class _Watch:
    """Observes a batch while it runs: records the times of operators, and detects cancelled requests.

    Args:
        shares: the requests, in order, each with its number of samples.
        cancellation: polls the requests.
        account: the account that records the times.

    Attributes:
        count: the number of samples.
    """

    def __init__(
        self, shares: Sequence[tuple[Request, int]], cancellation: CancellationWatch, account: ExecutionAccount
    ) -> None:
        self._shares = shares
        self._requests = [request for request, _ in shares]
        self._cancellation = cancellation
        self.operator_ran = account.operator_ran
        self.count = sum(count for _, count in shares)
        account.ran(self.count)

    def cancelled(self) -> list[int]:
        """Return the indices of the samples of requests that are known to be cancelled."""
        cancelled = self._cancellation.among(self._requests)
        if not cancelled:
            return []
        owners = (position for position, (_, count) in enumerate(self._shares) for _ in range(count))
        return [sample for sample, owner in enumerate(owners) if owner in cancelled]


class ServedModel:
    """A pipeline that answers requests, many of them as one batch; an error of one request does not affect the others.

    Args:
        pipeline: the pipeline, which must not have run yet, so that its first batch is that of the first request.
        config: the model's complete configuration.
        settings: the model's settings.
        accounts: the accounts that record executions.
        self_check: checks the answers.

    Attributes:
        accounts, self_check: the arguments.
        streams: whether a request has many answers, because its data, such as a video, lasts for several runs of the
            pipeline.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        config: Mapping[str, Any],
        settings: Settings,
        accounts: Accounts,
        self_check: SelfCheck,
    ) -> None:
        self.accounts = accounts
        self.self_check = self_check
        self._cancellation = CancellationWatch()
        self._pipeline = pipeline
        self._runner = PipelineRunner(pipeline)
        self._memory = RequestMemory(accounts.model, accounts.version, settings, lambda: pipeline.executor.pools)
        self.streams = streams(pipeline)
        self._batches_to_run_alone = 0
        self._inputs = input_specs(config, pipeline, settings)
        lends = any(operator_class(op.schema.name).lends_inputs for op in pipeline.graph.operators)
        # Users' functions may rely on being called by a single thread, for one batch after another.
        self._may_overlap = settings.overlap_batches and not self.streams and not lends
        self._references = References(self._inputs, settings)
        self._intake = Intake(self._inputs, pipeline.max_batch_size or 0, copies=lends)
        self._order = output_order(config["output"], pipeline)
        self._outputs = output_specs(config, pipeline, settings)
        self._parameters = _parameter_names(settings, [spec.name for spec in self._outputs])

    @classmethod
    def load(cls, version_folder: Path, config: Mapping[str, Any], device_id: int | None) -> ServedModel:
        """Load the model in a version folder, and check it against its configuration.

        Args:
            version_folder: the folder of the version, e.g. ``model_repository/preprocess/1``.
            config: the model's complete configuration.
            device_id: the number of the GPU to run on; None: the CPU.

        Raises:
            ConfigurationError: the configuration is invalid, or does not match the pipeline.
            TrialRunError: the server cannot run the pipeline.
        """
        settings = settings_of(config)
        warn_of_unknown(config)
        # A second pipeline is probed: the one that answers requests must not see synthetic data, nor draw random numbers for it.
        probed = pipeline_of(version_folder, config, settings.without_limits(), device_id)
        try:
            check_libraries(probed)
            check_configuration(config, probed, settings)
            # Built first, because operators that cannot be built would fail for each request, whereas a trial run may fail.
            probed.build()
            trial = run_trial(probed, configured_inputs(config))
            if trial is not None:
                warn_of_differences(config, probed, settings, trial.outputs)
        finally:
            probed.close()
        accounts = Accounts(config["name"], version_folder.name, settings)
        sample = None if trial is None else trial.sample
        self_check = SelfCheck(config["name"], probed, sample, settings.self_check_seconds, accounts.tally)
        return cls(pipeline_of(version_folder, config, settings, device_id), config, settings, accounts, self_check)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answer to each request. All requests run as one batch; if the model :attr:`streams`, each runs alone, and its
        answers are joined.
        """
        if self.streams:
            return [joined(list(self.stream(request))) for request in requests]
        return self.finish(self._received(requests))

    @property
    def overlaps(self) -> bool:
        """Whether to :meth:`begin` a batch while a GPU, or operators that start early, still work on the previous one."""
        return self._may_overlap and self._pipeline.executor.leaves_work

    def begin(self, requests: Sequence[Request]) -> Execution:
        """Begin to answer requests. Call this only if :attr:`overlaps`. Executions must be finished in the order in which they were
        begun; meanwhile, the same thread or another one may begin the next.
        """
        execution = self._received(requests)
        if self._batches_to_run_alone:
            self._batches_to_run_alone -= 1
        elif len(execution.batches) == 1:
            execution.begun = self._begin_batch(execution.batches[0], execution.account)
        return execution

    def finish(self, execution: Execution) -> list[Answer]:
        """Complete an execution, and return the answer to each of its requests."""
        answers, begun, execution.begun = execution.answers, execution.begun, None
        for batch in execution.batches:
            self._answer_batch(batch, execution, begun)
        self.accounts.end(execution.account, execution.requests, answers, self._readings())
        self.self_check.note(answers.values())
        return [answers[number] for number in range(len(execution.requests))]

    def _received(self, requests: Sequence[Request]) -> Execution:
        """Return a new execution of requests; none of them has run yet."""
        execution = Execution(requests, self.accounts.begin())
        accepted = []
        cancelled = self._cancellation.among(requests)
        for number, request in enumerate(self._references.resolved(requests)):
            refusal, samples = self._accept(request, number in cancelled)
            if refusal is None:
                accepted.append(_Accepted(number, requests[number], samples, len(samples[0])))
            else:
                execution.answers[number] = refusal
        execution.batches = list(self._batches(accepted))
        return execution

    def stream(self, request: Request) -> Generator[Answer, None, None]:
        """Yield the answers to one request as they are computed, until the request's data is used up; a refusal is the last answer."""
        account = self.accounts.begin()
        refusals: dict[int, Answer] = {}
        try:
            with closing(self._answers(request, account)) as answers:
                for answer in answers:
                    self.self_check.note([answer])
                    if isinstance(answer, Refusal):
                        refusals[0] = answer
                    yield answer
                    if refusals:
                        return
        finally:
            self.accounts.end(account, [request], refusals, self._readings())

    def close(self) -> None:
        """End the pipeline's threads."""
        self._references.close()
        self._pipeline.close()

    # -- joining a batch -------------------------------------------------------------------------------------------

    def _accept(self, request: Request, cancelled: bool) -> tuple[Refusal | None, list[list[object]]]:
        """Return the samples of each input of a request, or the reason why it cannot take part in the batch."""
        if cancelled:
            return Refusal(Kind.CANCELLED, "the request was cancelled before it was run"), []
        try:
            return None, self._intake.samples_of(request)
        except Exception as error:
            return refusal_of(error), []

    def _batches(self, accepted: Sequence[_Accepted]) -> Iterator[list[_Accepted]]:
        """Yield the accepted requests in batches that do not exceed the pipeline's batch size: a single batch, if Triton respects the
        model's batch size."""
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

    def _answer_batch(
        self, accepted: Sequence[_Accepted], execution: Execution, begun: _BegunBatch | None = None
    ) -> None:
        """Run accepted requests as one batch, or complete the batch if it was begun, and store the answers in ``execution``."""
        answers = execution.answers
        try:
            if begun is None:
                result, reserved = self._run(accepted, execution.account)
            else:
                result, reserved = self._complete_batch(begun, accepted, execution.account)
        except Exception as error:
            if len(accepted) == 1 or isinstance(error, MixUpError):
                answers.update((one.number, refusal_of(error)) for one in accepted)
                return
            # The batch failed as a whole: run the requests one by one, to find out which one is the cause.
            for one in accepted:
                self._answer_batch([one], execution)
            return
        parts, start = self._parts(result), 0
        for one in accepted:
            answers[one.number] = self._part(one.request, result, parts, start, start + one.count, reserved)
            start += one.count

    def _fed(self, accepted: Sequence[_Accepted]) -> _FedBatch:
        """Return accepted requests in the form that the pipeline accepts."""
        inputs = {
            spec.name: to_batch([sample for one in accepted for sample in one.samples[index]], spec)
            for index, spec in enumerate(self._inputs)
        }
        shares = [(one.request, one.count) for one in accepted]
        reserved = {
            index: ReservedOutput(spec, shares)
            for spec, index in zip(self._outputs, self._order)
            if not (spec.is_bytes or spec.split or spec.name in self._parameters)
        }
        return _FedBatch(shares, inputs, reserved)

    def _run(
        self, accepted: Sequence[_Accepted], account: ExecutionAccount
    ) -> tuple[Result, Mapping[int, ReservedOutput]]:
        """Run a batch within the memory budgets."""
        fed = self._fed(accepted)

        def run(allowance: BatchMemory) -> Result:
            return self._runner.complete(self._begin_fed(fed, account, allowance))

        with running_for(fed.requests):
            result = self._memory.run([count for _, count in fed.shares], run)
        self._keep_sample(fed, result)
        return result, fed.reserved

    def _begin_fed(self, fed: _FedBatch, account: ExecutionAccount, allowance: BatchMemory) -> BegunBatch:
        watch = _Watch(fed.shares, self._cancellation, account)
        return self._runner.begin(fed.inputs, watch.count, watch, fed.reserved, allowance)

    def _begin_batch(self, accepted: Sequence[_Accepted], account: ExecutionAccount) -> _BegunBatch:
        """Begin a batch without taking memory from the budgets, because it might have to wait until the batch in flight frees some."""
        threads = self._pipeline.executor.workers.num_threads
        begun = _BegunBatch(self._memory.fixed_allowance([one.count for one in accepted], threads))
        try:
            begun.fed = self._fed(accepted)
            with running_for(begun.fed.requests):
                begun.batch = self._begin_fed(begun.fed, account, begun.allowance)
        except Exception as error:
            begun.error = error
        return begun

    def _complete_batch(
        self, begun: _BegunBatch, accepted: Sequence[_Accepted], account: ExecutionAccount
    ) -> tuple[Result, Mapping[int, ReservedOutput]]:
        """Complete a batch that was begun; run it again if it needs more memory than it may take, or if the pipeline was rebuilt."""
        fed = begun.fed
        if fed is not None and begun.batch is not None:
            try:
                with running_for(fed.requests):
                    result = self._runner.complete(begun.batch)
                if not begun.allowance.wanted:
                    self._keep_sample(fed, result)
                    return result, fed.reserved
            except RebuiltError:
                return self._run(accepted, account)
            except Exception:
                if not begun.allowance.wanted:
                    raise
        if begun.allowance.wanted:
            # The following batches are probably as large.
            self._batches_to_run_alone = _BATCHES_ALONE_AFTER_A_LARGE_ONE
            return self._run(accepted, account)
        assert begun.error is not None
        raise begun.error

    def _keep_sample(self, fed: _FedBatch, result: Result) -> None:
        if self.self_check.wants_sample and not result.failures and not result.stopped:
            self.self_check.keep(fed.inputs)

    # -- one stream ------------------------------------------------------------------------------------------------

    def _answers(self, request: Request, account: ExecutionAccount) -> Generator[Answer, None, None]:
        cancelled = bool(self._cancellation.among([request]))
        refusal, samples = self._accept(self._references.resolved([request])[0], cancelled)
        if refusal is not None:
            yield refusal
            return
        sent = 0
        try:
            batches = {spec.name: to_batch(one, spec) for spec, one in zip(self._inputs, samples)}
            # Closed at the end: the rest of the stream is discarded before the next stream begins, even if nobody takes all answers.
            with (
                self._memory.reservation() as reservation,
                closing(self._runs(request, account, batches, reservation)) as results,
            ):
                for result in results:
                    if result.failures:
                        yield refusal_of(result.failures[min(result.failures)], -sent)
                        return
                    parts = self._parts(result)
                    for start, stop in _uniform_runs(result, self._order):
                        yield self._part(request, result, parts, start, stop)
                    sent += _sample_count(result)
        except Exception as error:
            yield refusal_of(error, -sent)

    def _runs(
        self,
        request: Request,
        account: ExecutionAccount,
        batches: Mapping[str, TensorList],
        reservation: Reservation,
    ) -> Generator[Result, None, None]:
        """Yield the results of a stream's runs. A run cannot be repeated, so a lack of memory is an error."""
        allowances: list[BatchMemory] = []

        def allow(count: int) -> BatchMemory:
            allowances[:] = [self._memory.allowance(count, reservation)]
            return allowances[0]

        def watch(count: int) -> _Watch:
            return _Watch([(request, count)], self._cancellation, account)

        with closing(self._runner.stream(batches, watch, allow)) as results:
            for result in results:
                if allowances[0].wanted:
                    raise MemoryShortageError(
                        f"{allowances[0].wanted} bytes of memory are needed, but other requests use them. Send the request again later"
                    )
                yield result

    def _parts(self, result: Result) -> list[OutputParts]:
        """Return the outputs, in the order of the configuration, to take parts from; an empty list if the run was stopped."""
        if not result.outputs:
            return []
        return [OutputParts(result.outputs[index], spec) for spec, index in zip(self._outputs, self._order)]

    def _part(
        self,
        request: Request,
        result: Result,
        parts: Sequence[OutputParts],
        start: int,
        stop: int,
        reserved: Mapping[int, ReservedOutput] = MappingProxyType({}),
    ) -> Answer:
        """Return the answer to the request whose samples are those from ``start`` to ``stop``, exclusive."""
        if result.failures:
            failed = [result.failures[index] for index in range(start, stop) if index in result.failures]
            if failed:
                return refusal_of(failed[0], start)
        wanted = set(request.wanted)
        try:
            tensors, bfloat16 = {}, set()
            for spec, index, cut in zip(self._outputs, self._order, parts):
                if spec.name in wanted:
                    batch = result.outputs[index]
                    written = reserved[index].part_of(batch, start) if index in reserved else None
                    tensors[spec.name] = cut.of(start, stop) if written is None else written
                    if batch.dtype is BFLOAT16:
                        bfloat16.add(spec.name)
            parameters = {name: _parameter(tensors.pop(name)) for name in self._parameters if name in tensors}
            return Outputs(tensors, frozenset(bfloat16), parameters)
        except Exception as error:
            return refusal_of(error)

    def _readings(self) -> dict[Metric, float]:
        """Return values that the pipeline counts itself: reserved bytes, and images decoded in worker processes."""
        executor = self._pipeline.executor
        readings: dict[Metric, float] = {Metric.HOST_BYTES: sum(pool.reserved for pool in executor.pools)}
        pool = executor.plan.decoding.pool
        if pool is not None:
            readings |= {Metric.ISOLATED_DECODES: pool.decodes, Metric.DECODER_DEATHS: pool.deaths}
        if executor.device_id is not None:
            cupy = require_cupy()
            with cupy.cuda.Device(executor.device_id):
                readings[Metric.GPU_BYTES] = cupy.get_default_memory_pool().total_bytes()
        return readings


def joined(answers: Sequence[Answer]) -> Answer:
    """Join the answers of a stream into one with all samples; if the stream ended with a refusal, return the refusal."""
    outputs = [answer for answer in answers if isinstance(answer, Outputs)]
    if len(outputs) < len(answers):
        return next(answer for answer in answers if isinstance(answer, Refusal))
    try:
        # Parameters differ between answers: the last answer's are used.
        names = outputs[0].tensors
        tensors = {name: _concatenated(name, [part.tensors[name] for part in outputs]) for name in names}
        return Outputs(tensors, outputs[0].bfloat16, outputs[-1].parameters)
    except RequestError as error:
        return refusal_of(error)


def _parameter_names(settings: Settings, outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the outputs that become parameters; raise ConfigurationError if one does not exist."""
    for name in settings.response_parameters:
        if name not in outputs:
            raise ConfigurationError(
                f"response_parameters names '{name}', which is not an output. The outputs are {list(outputs)}.{did_you_mean(name, outputs)}"
            )
    return settings.response_parameters


def _parameter(tensor: Any) -> ParameterValue:
    """Return the value of an output as a parameter: a number or string if the output has one element, otherwise a list as JSON."""
    array = tensor if isinstance(tensor, np.ndarray) else array_to_host(tensor)
    values = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in array.ravel().tolist()]
    if len(values) != 1:
        return json.dumps(values)
    (value,) = values
    # HTTP sends parameters as JSON, which has no infinities and no NaN.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _concatenated(name: str, arrays: Sequence[Any]) -> object:
    shapes = sorted({array.shape[1:] for array in arrays})
    if len(shapes) > 1:
        raise RequestError(
            f"the samples of output '{name}' have different shapes {shapes}, so they cannot be one tensor: make the model "
            "decoupled, so that they come in several answers, or have the last one padded (last_sequence_policy='pad')"
        )
    if len(arrays) == 1:
        return arrays[0]
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    return joined_on_gpu(arrays)


def _uniform_runs(result: Result, outputs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the longest ranges of samples with equal shapes, for separate answers: the last sequence of a video may be shorter."""
    if any(result.outputs[index].positions is not None for index in outputs):
        # Samples are split into parts, which must be in one answer: its counts say which parts belong to which sample.
        return iter([(0, _sample_count(result))])
    shapes = list(zip(*(result.outputs[index].shapes for index in outputs)))
    cuts = [position for position in range(1, len(shapes)) if shapes[position] != shapes[position - 1]]
    return zip([0, *cuts], [*cuts, len(shapes)])


def _sample_count(result: Result) -> int:
    """Return how many samples were fed for a result; outputs may have several parts of each sample."""
    counts = [
        len(batch) if batch.positions is None else max(batch.positions, default=0) + 1 for batch in result.outputs
    ]
    return max(counts)


def pipeline_of(
    version_folder: Path, config: Mapping[str, Any], settings: Settings, device_id: int | None = None
) -> Pipeline:
    """Return a new pipeline of a model, configured for serving, but not built yet.

    Args:
        version_folder: the folder of the version, e.g. ``model_repository/preprocess/1``.
        config: the model's configuration.
        settings: the model's settings.
        device_id: the number of the GPU to run on; None: the CPU.

    Raises:
        ConfigurationError: the model requests more than the server grants.
        FileNotFoundError: the folder contains no pipeline.
    """
    original = original_of(version_folder)
    check_trust(config, version_folder, original, settings)
    folder = ModelFolder(
        original,
        config.get("default_model_filename", ""),
        settings.allowed_modules,
        settings.allowed_paths,
        confines_code="allowed_paths" in (config.get("parameters") or {}),
        as_dali=config.get("backend") in ("dali", stub_backend("dali")),
    )
    if settings.device == "cpu":
        device_id = None
    pipeline = folder.load(
        device="cpu" if device_id is None else "gpu",
        device_id=CPU_ONLY_DEVICE_ID if device_id is None else device_id,
        batch_size=config.get("max_batch_size") or None,
        num_threads=settings.num_threads,
        isolate_decoders=settings.isolate_decoders,
        **_NEVER_PREFETCHED,
    )
    pipeline.set_missing(batch_size=1, num_threads=len(os.sched_getaffinity(0)))
    pipeline.tighten_limits(settings.max_pixels, settings.max_bytes, settings.max_frames)
    if settings.device == "cpu":
        pipeline.move_to_cpu()
    elif pipeline.graph.uses_gpu() and not cuda.device_count():
        raise ConfigurationError(
            "the pipeline has operators on a GPU, but no usable GPU was found; `penstock serve --device cpu` runs them "
            "on the CPU"
        )
    check_called_models(pipeline, str(config.get("name", "")), settings)
    return pipeline
