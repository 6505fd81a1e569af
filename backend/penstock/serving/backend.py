"""The backend `penstock`: what Triton's Python backend instantiates for each model instance."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.serving.completion import complete_configuration, is_batched
from penstock.serving.configuration import check_libraries
from penstock.serving.metrics_page import MetricsPage, MetricsWriter
from penstock.serving.refusals import Fault, Refusal
from penstock.serving.served_model import Answer, ServedModel, pipeline_of
from penstock.serving.settings import ConfigurationError, settings_of


@functools.cache
def _pb_utils() -> Any:
    import triton_python_backend_utils  # found only inside Triton's stub process

    return triton_python_backend_utils


class TritonPythonModel:
    """One instance of a model, as Triton's stub calls it: requests go to a :class:`ServedModel`, answers come back."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Fills in the inputs, outputs, batch size and batching that the configuration does not tell."""
        _log_to_triton()
        config = auto_complete_model_config.as_dict()
        folder, settings = Path(_pb_utils().get_model_dir()), settings_of(config)
        pipeline = pipeline_of(folder, config, settings.without_limits())
        try:
            check_libraries(pipeline)
            pipeline.build()
            # The configuration is completed in place: what the calls for that do not allow is kept as well.
            complete_configuration(config, pipeline, settings, is_batched(config, _configuration_text(folder.parent)))
        finally:
            pipeline.close()
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the model."""
        _check_stub(_pb_utils())
        _log_to_triton()
        config = json.loads(args["model_config"])
        on_gpu = args["model_instance_kind"] == "GPU"
        folder = Path(args["model_repository"]) / args["model_version"]
        self._model = ServedModel.load(folder, config, int(args["model_instance_device_id"]) if on_gpu else None)
        self._decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        page = MetricsPage(_pb_utils(), args["model_name"], args["model_version"], args["model_instance_name"])
        self._metrics = MetricsWriter(page, self._model.accounts.tally)

    def execute(self, requests: list[Any]) -> list[Any] | None:
        """Answers each request; those of a decoupled model through the senders that they bring."""
        asked = [_TritonRequest(request) for request in requests]
        if not self._decoupled:
            return [_response(answer) for answer in self._model.answer(asked)]
        if self._model.streams:
            for request in asked:
                with contextlib.closing(self._model.stream(request)) as answers:
                    request.send(answers)
        else:
            for request, answer in zip(asked, self._model.answer(asked)):
                request.send([answer])
        return None

    def finalize(self) -> None:
        """Ends the model's threads."""
        self._metrics.close()
        self._model.close()


class _TritonRequest:
    """A request of Triton's, as a model sees it."""

    def __init__(self, request: Any) -> None:
        self._request = request

    @property
    def id(self) -> str:
        return self._request.request_id()

    @property
    def parameters(self) -> Mapping[str, Any]:
        return json.loads(self._request.parameters() or "{}")

    @property
    def wanted(self) -> Collection[str]:
        return self._request.requested_output_names()

    def tensor(self, name: str) -> Any:
        tensor = _pb_utils().get_input_tensor_by_name(self._request, name)
        if tensor is None:
            return None
        if tensor.is_cpu():
            return tensor.as_numpy()
        from penstock.tensors.cuda import require_cupy

        return require_cupy("inputs on the GPU").from_dlpack(tensor.to_dlpack())

    def is_cancelled(self) -> bool:
        return self._request.is_cancelled()

    def send(self, answers: Iterable[Answer]) -> None:
        """Sends a decoupled model's answers, each as soon as there is one, and tells that there are no more."""
        sender = self._request.get_response_sender()
        try:
            for answer in answers:
                sender.send(_response(answer))
        finally:
            sender.send(flags=_pb_utils().TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def _response(answer: Answer) -> Any:
    pb_utils = _pb_utils()
    if isinstance(answer, Refusal):
        codes = {Fault.CANCELLED: pb_utils.TritonError.CANCELLED, Fault.INTERNAL: pb_utils.TritonError.INTERNAL}
        return pb_utils.InferenceResponse(
            error=pb_utils.TritonError(answer.message, codes.get(answer.fault, pb_utils.TritonError.INVALID_ARG))
        )
    return pb_utils.InferenceResponse(output_tensors=[_tensor(name, array) for name, array in answer.tensors.items()])


def _tensor(name: str, array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return _pb_utils().Tensor(name, array)
    return _pb_utils().Tensor.from_dlpack(name, array)


def _configuration_text(model_folder: Path) -> str:
    path = model_folder / "config.pbtxt"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


class _TritonLog(logging.Handler):
    """Hands what Penstock logs to Triton's log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = _pb_utils().Logger
        text = self.format(record)
        if record.levelno >= logging.ERROR:
            log.log_error(text)
        elif record.levelno >= logging.WARNING:
            log.log_warn(text)
        elif record.levelno >= logging.INFO:
            log.log_info(text)
        else:
            log.log_verbose(text)


def _log_to_triton() -> None:
    package = logging.getLogger("penstock")
    if not any(isinstance(handler, _TritonLog) for handler in package.handlers):
        package.addHandler(_TritonLog())
        package.setLevel(logging.INFO)


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
