"""The backend `penstock` in a separate process: Triton's Python backend creates a :class:`TritonPythonModel` for each model instance."""

from __future__ import annotations

import ctypes
import functools
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import DALIDataType
from penstock.serving.instance import ModelInstance, completed, guarded, log_to_server
from penstock.serving.metrics import Family
from penstock.serving.refusals import Refusal
from penstock.serving.served_model import Answer
from penstock.serving.settings import ConfigurationError
from penstock.serving.trust import check_response_cache, check_response_parameters

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_CAPSULE, _USED_CAPSULE = b"dltensor", b"used_dltensor"
# Offset of the element type's code in a DLPack tensor: after the address, the device and the rank.
_DLPACK_TYPE_OFFSET = 20
_DLPACK_BFLOAT = 4
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_set_capsule_name = ctypes.pythonapi.PyCapsule_SetName
_set_capsule_name.argtypes = ctypes.py_object, ctypes.c_char_p


@functools.cache
def _pb_utils() -> ModuleType:
    import triton_python_backend_utils  # found only inside Triton's stub process

    return triton_python_backend_utils


class TritonPythonModel:
    """One instance of a model, as called by Triton's stub."""

    @staticmethod
    @guarded
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Complete a configuration: inputs, outputs, batch size and batching, as far as they are missing."""
        log_to_server(_log)
        check_response_cache(auto_complete_model_config.as_dict())
        check_response_parameters(auto_complete_model_config.as_dict())
        # Completed in place: the result may then have fields that the stub's methods do not allow to set.
        completed(auto_complete_model_config.as_dict(), Path(_pb_utils().get_model_dir()))
        return auto_complete_model_config

    @guarded
    def initialize(self, args: dict[str, str]) -> None:
        """Load the model."""
        _check_stub(_pb_utils())
        log_to_server(_log)
        on_gpu = args["model_instance_kind"] == "GPU"
        self._device_id = int(args["model_instance_device_id"]) if on_gpu else None
        config = json.loads(args["model_config"])
        check_response_cache(config)
        check_response_parameters(config)
        self._instance = ModelInstance(
            config,
            Path(args["model_repository"]) / args["model_version"],
            args["model_instance_name"],
            self._device_id,
            _SeriesOfStub(),
        )

    @guarded
    def execute(self, requests: list[object]) -> list[Any] | None:
        """Answer each request; for a decoupled model, through the requests' senders."""
        stub_requests = [_StubRequest(request, self._device_id) for request in requests]
        self._instance.execute(stub_requests)
        return None if self._instance.decoupled else [request.response for request in stub_requests]

    def finalize(self) -> None:
        """End the model's threads."""
        self._instance.close()


class _StubRequest:
    """A request from the stub, with the interface that models need.

    Args:
        device_id: the number of the model's GPU; None: the model runs on the CPU.
    """

    def __init__(self, request: Any, device_id: int | None) -> None:
        self.response: object = None
        self._request, self._device_id = request, device_id

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
        return tensor.as_numpy() if tensor.is_cpu() else _copied_to_device(tensor, self._device_id)

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> None:
        """Return None: no memory is reserved, as the stub copies the data."""

    def trace(self) -> int:
        """Return 0: the stub does not pass on traces."""
        return 0

    def is_cancelled(self) -> bool:
        return self._request.is_cancelled()

    def answer(self, answer: Answer) -> None:
        self.response = _response(answer)

    def stream(self, answers: Iterable[Answer]) -> None:
        sender = self._request.get_response_sender()
        try:
            for answer in answers:
                sender.send(_response(answer))
        finally:
            sender.send(flags=_pb_utils().TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def _copied_to_device(tensor: Any, device_id: int | None) -> Any:
    """Return a tensor on a GPU as an array on the model's GPU, or on the host.

    The stub opens GPU memory on the GPU that holds it. In an ensemble, this may be the GPU of the previous model, whose memory kernels on
    this model's GPU may not be able to read.
    """
    from penstock.tensors.cuda import require_cupy
    from penstock.tensors.transfers import array_to_host

    cupy = require_cupy("inputs on the GPU")
    array = cupy.from_dlpack(tensor.to_dlpack())
    if device_id is None:
        return array_to_host(array)
    if array.device.id == device_id:
        return array
    with cupy.cuda.Device(device_id):
        copied = cupy.empty(array.shape, array.dtype)
        cupy.cuda.runtime.memcpyPeer(copied.data.ptr, device_id, array.data.ptr, array.device.id, array.nbytes)
        # Waits, because pipelines have separate streams, which do not wait for the current one.
        cupy.cuda.get_current_stream().synchronize()
    return copied


def _response(answer: Answer) -> Any:
    pb_utils = _pb_utils()
    if isinstance(answer, Refusal):
        code = getattr(pb_utils.TritonError, answer.status.name)
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.message, code))
    tensors = [_tensor(name, array, name in answer.bfloat16) for name, array in answer.tensors.items()]
    return pb_utils.InferenceResponse(output_tensors=tensors)


def _tensor(name: str, array: Any, is_bfloat16: bool) -> Any:
    if is_bfloat16:
        capsule = _bfloat16_capsule(array)
        made = _pb_utils().Tensor.from_dlpack(name, capsule)
        # Renamed as if consumed: because of the non-standard name of the stub's capsule, the stub does not notice that it was consumed.
        _set_capsule_name(capsule, _USED_CAPSULE)
        return made
    if isinstance(array, np.ndarray):
        return _pb_utils().Tensor(name, array)
    with array.device:
        return _pb_utils().Tensor.from_dlpack(name, array)


def _bfloat16_capsule(array: Any) -> CapsuleType:
    """Return a DLPack capsule of bfloat16 for an array with its bits as uint16; the stub accepts bfloat16 in no other form."""
    if isinstance(array, np.ndarray):
        capsule = np.require(array, None, ["C", "W"]).__dlpack__()
    else:
        with array.device:
            capsule = array.__dlpack__()
    address = _capsule_pointer(capsule, _CAPSULE)
    ctypes.c_uint8.from_address(address + _DLPACK_TYPE_OFFSET).value = _DLPACK_BFLOAT
    return capsule


class _SeriesOfStub:
    """Creates series on Triton's metrics page through the stub."""

    def __init__(self) -> None:
        self._families: dict[str, Any] = {}

    def __call__(self, family: Family, labels: Mapping[str, str]) -> Any:
        kinds = _pb_utils().MetricFamily
        if family.name not in self._families:
            kind = getattr(kinds, family.kind)
            self._families[family.name] = kinds(name=family.name, description=family.doc, kind=kind)
        buckets = {"buckets": list(family.buckets)} if family.buckets else {}
        return self._families[family.name].Metric(labels=dict(labels), **buckets)


def _log(level: int, text: str) -> None:
    log = _pb_utils().Logger
    if level >= logging.ERROR:
        log.log_error(text)
    elif level >= logging.WARNING:
        log.log_warn(text)
    elif level >= logging.INFO:
        log.log_info(text)
    else:
        log.log_verbose(text)


def _check_stub(pb_utils: Any) -> None:
    """Reject a NumPy with which this server's stub is known to exchange wrong data."""
    if int(np.__version__.split(".")[0]) < 2:
        return
    sent = np.arange(1, 4, dtype=np.float32)
    # A stub built for NumPy 1 silently reads wrong values, and cannot read byte strings; `stub_exchange` fixes this for plain models. The
    # probe is sent through DLPack, because a tensor made from an array would return the same array.
    is_mended = pb_utils.Tensor.__module__ == "penstock_stub_exchange"
    if is_mended or not np.array_equal(pb_utils.Tensor.from_dlpack("probe", sent).as_numpy(), sent):
        raise ConfigurationError(
            f"this Triton's Python backend cannot exchange data with numpy {np.__version__}: it was built before numpy 2. Serve from "
            "an environment with numpy 1.26 (`penstock serve` makes one), or use Triton 24.11 or later."
        )
