"""The backend `penstock`: what Triton's Python backend instantiates for each model instance."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import OperatorError, PenstockError
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.serving.configuration import (
    BYTES,
    ConfigurationError,
    check_inputs,
    check_outputs,
    expected_configuration,
    output_order,
    parameter,
)
from penstock.serving.model_files import find_model_file, load_pipeline
from penstock.serving.probing import probe, source_steps
from penstock.serving.requests import InputSpec, OutputSpec, RequestError, part_of, samples_of, to_batch

_NEVER_PREFETCHED: dict[str, Any] = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}


@functools.cache
def _pb_utils() -> Any:
    import triton_python_backend_utils  # found only inside Triton's stub process

    return triton_python_backend_utils


class TritonPythonModel:
    """One instance of a model: a pipeline, run on all requests of an execution as one batch."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Fills in the inputs, outputs, batch size and batching that the configuration does not tell."""
        config = auto_complete_model_config.as_dict()
        folder = Path(_pb_utils().get_model_dir())
        path = find_model_file(folder, config.get("default_model_filename", ""))
        pipeline = load_pipeline(path, _allowed_modules(config), **_NEVER_PREFETCHED, **_fallbacks(config))
        try:
            # No entry at all reads as 0 as well; a pipeline knows its own batch size, so 0 asks for that.
            batch_size = config.get("max_batch_size") or pipeline.max_batch_size or 1
            auto_complete_model_config.set_max_batch_size(batch_size)
            if config.get("input"):
                check_inputs(config["input"], pipeline)
            if not (config.get("input") and config.get("output")):
                _complete_tensors(auto_complete_model_config, config, expected_configuration(pipeline, batch_size))
            if "dynamic_batching" not in config and "sequence_batching" not in config:
                auto_complete_model_config.set_dynamic_batching()
        finally:
            pipeline.close()
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the pipeline, holds the configuration against it, and runs it once on made-up data."""
        pb_utils = _pb_utils()
        _check_stub(pb_utils)
        self._config = json.loads(args["model_config"])
        on_gpu = args["model_instance_kind"] == "GPU"
        folder = Path(args["model_repository"]) / args["model_version"]
        path = find_model_file(folder, self._config.get("default_model_filename", ""))
        threads = parameter(self._config, "num_threads")
        self._pipeline = load_pipeline(
            path,
            _allowed_modules(self._config),
            device="gpu" if on_gpu else "cpu",
            batch_size=self._config["max_batch_size"] or None,
            num_threads=int(threads) if threads else _fallbacks(self._config)["num_threads"],
            device_id=int(args["model_instance_device_id"]) if on_gpu else None,
            **_NEVER_PREFETCHED,
        )
        self._pipeline.build()
        check_inputs(self._config["input"], self._pipeline)
        self._order = output_order(self._config["output"], self._pipeline)
        check_outputs(self._config["output"], probe(self._pipeline), self._order)
        self._inputs = _input_specs(self._config, self._pipeline)
        self._outputs = _output_specs(self._config)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answers each request; what is wrong with one is that one's error alone."""
        pb_utils = _pb_utils()
        responses: list[Any] = [None] * len(requests)
        accepted: list[tuple[int, list[list[Any]]]] = []
        for number, request in enumerate(requests):
            try:
                accepted.append((number, self._samples(pb_utils, request)))
            except Exception as error:
                responses[number] = _refusal(pb_utils, error)
        if accepted:
            self._answer(pb_utils, requests, accepted, responses)
        return responses

    def finalize(self) -> None:
        """Ends the pipeline's threads."""
        self._pipeline.close()

    # -- one execution ---------------------------------------------------------------------------------------------

    def _samples(self, pb_utils: Any, request: Any) -> list[list[Any]]:
        """The samples of each input of one request."""
        inputs = []
        for spec in self._inputs:
            tensor = pb_utils.get_input_tensor_by_name(request, spec.name)
            if tensor is None:
                raise RequestError(f"input '{spec.name}' is missing")
            inputs.append(samples_of(_array_of(tensor), spec))
        counts = {len(samples) for samples in inputs}
        if len(counts) != 1:
            raise RequestError(f"the inputs hold different numbers of samples: {sorted(counts)}")
        limit = self._pipeline.max_batch_size or 0
        count = counts.pop()
        if not 0 < count <= limit:
            raise RequestError(f"a request must hold from 1 to {limit} samples, this one holds {count}")
        return inputs

    def _answer(
        self, pb_utils: Any, requests: list[Any], accepted: list[tuple[int, list[list[Any]]]], responses: list[Any]
    ) -> None:
        """Runs the accepted requests as one batch and fills in their responses."""
        try:
            result = self._run([inputs for _, inputs in accepted])
        except Exception as error:
            if len(accepted) == 1:
                responses[accepted[0][0]] = _refusal(pb_utils, error)
                return
            # The batch as a whole was refused: find out by whom.
            for one in accepted:
                self._answer(pb_utils, requests, [one], responses)
            return
        start = 0
        for number, inputs in accepted:
            stop = start + len(inputs[0])
            responses[number] = self._respond(pb_utils, requests[number], result, start, stop)
            start = stop

    def _run(self, accepted: list[list[list[Any]]]) -> Result:
        executor = self._pipeline.executor
        for index, spec in enumerate(self._inputs):
            samples = [sample for inputs in accepted for sample in inputs[index]]
            self._pipeline._feeds[spec.name].operator.feed(to_batch(samples, spec))
        try:
            result = executor.run_once(isolate=True)
        except Exception:
            self._drop_fed()
            raise
        if result.ready is not None:
            result.ready.synchronize()
        return result

    def _drop_fed(self) -> None:
        for spec in self._inputs:
            self._pipeline._feeds[spec.name].operator.reset()

    def _respond(self, pb_utils: Any, request: Any, result: Result, start: int, stop: int) -> Any:
        if result.failures:
            failed = [result.failures[index] for index in range(start, stop) if index in result.failures]
            if failed:
                return _refusal(pb_utils, failed[0], start)
        wanted = set(request.requested_output_names())
        try:
            tensors = [
                _tensor(pb_utils, spec.name, part_of(result.outputs[index], start, stop, spec))
                for spec, index in zip(self._outputs, self._order)
                if spec.name in wanted
            ]
        except Exception as error:
            return _refusal(pb_utils, error)
        return pb_utils.InferenceResponse(output_tensors=tensors)


def _complete_tensors(completed: Any, config: dict[str, Any], expected: Any) -> None:
    for kind, given, add in (
        ("input", expected.inputs, completed.add_input),
        ("output", expected.outputs, completed.add_output),
    ):
        if not config.get(kind):
            for tensor in given:
                add(tensor.as_dict())
                if tensor.ragged:
                    # Not among the properties that the call allows, but kept if it is in the configuration.
                    config[kind][-1]["allow_ragged_batch"] = True


def _fallbacks(config: dict[str, Any]) -> dict[str, Any]:
    """Settings for what neither the file nor the configuration tells."""
    cores = len(os.sched_getaffinity(0))
    return {"num_threads": cores, "batch_size": config.get("max_batch_size") or None}


def _allowed_modules(config: dict[str, Any]) -> list[str]:
    return [name.strip() for name in parameter(config, "allowed_modules").split(",") if name.strip()]


def _input_specs(config: dict[str, Any], pipeline: Pipeline) -> list[InputSpec]:
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


def _output_specs(config: dict[str, Any]) -> list[OutputSpec]:
    split = set(filter(None, parameter(config, "split_along_outer_axis").split(":")))
    unknown = split - {item["name"] for item in config["output"]}
    if unknown:
        raise ConfigurationError(f"split_along_outer_axis names {sorted(unknown)}, which are no outputs")
    return [OutputSpec(item["name"], item["data_type"] == BYTES, item["name"] in split) for item in config["output"]]


def _array_of(tensor: Any) -> Any:
    if tensor.is_cpu():
        return tensor.as_numpy()
    from penstock.tensors.cuda import require_cupy

    return require_cupy("inputs on the GPU").from_dlpack(tensor.to_dlpack())


def _tensor(pb_utils: Any, name: str, array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return pb_utils.Tensor(name, array)
    return pb_utils.Tensor.from_dlpack(name, array)


def _refusal(pb_utils: Any, error: Exception, start: int = 0) -> Any:
    """The response to a request that is at fault (or, for other errors, that could not be answered)."""
    blame_request = isinstance(error, (OperatorError, RequestError))
    if isinstance(error, OperatorError):
        sample = "" if error.sample is None else f" (sample {error.sample - start} of this request)"
        text = f"{error.operator}: {error.reason}{sample}"
    else:
        text = f"{error}" if isinstance(error, (RequestError, PenstockError)) else f"{type(error).__name__}: {error}"
    code = pb_utils.TritonError.INVALID_ARG if blame_request else pb_utils.TritonError.INTERNAL
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(text, code))


def _check_stub(pb_utils: Any) -> None:
    """Refuses a numpy with which this server's stub is known to exchange wrong data."""
    if int(np.__version__.split(".")[0]) < 2:
        return
    sent = np.arange(1, 4, dtype=np.float32)
    # A stub built before numpy 2 reads wrong values without an error; with byte strings it would crash. Through DLPack,
    # because a tensor that was made of an array gives that very array back.
    received = pb_utils.Tensor.from_dlpack("probe", sent).as_numpy()
    if received.shape != sent.shape or not np.array_equal(received, sent):
        raise ConfigurationError(
            f"this Triton's Python backend cannot exchange data with numpy {np.__version__}: it was built before numpy 2. Serve from "
            "an environment with numpy 1.26 (`penstock serve` makes one), or use Triton 24.11 or later."
        )
