"""Networks in ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.data_types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    numpy_dtype,
)
from penstock.schema.libraries import ONNX_RUNTIME
from penstock.schema.networks import NetworkTensor
from penstock.storage import Files
from penstock.storage.paths import is_remote
from penstock.tensors.cuda import require_cupy

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# The types by ONNX Runtime's names of them.
_TYPES: dict[str, DALIDataType] = {
    "bool": BOOL,
    "float": FLOAT,
    "float16": FLOAT16,
    "double": FLOAT64,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint8": UINT8,
    "uint16": UINT16,
    "uint32": UINT32,
    "uint64": UINT64,
}
_SUFFIXES = (".onnx", ".ort")
_ERRORS_ONLY = 3
# The first version of ONNX Runtime that is known to resolve links and to read external weights from the network's folder only.
_CONFINING_VERSION = (1, 31)
_opening = threading.Lock()
_open: weakref.WeakValueDictionary[tuple[object, ...], OnnxNetwork] = weakref.WeakValueDictionary()


class OnnxNetwork:
    """A network that ONNX Runtime has loaded. Any number of threads may call :meth:`run` at the same time.

    Args:
        path: the file's path.
        providers: ONNX Runtime's execution providers, the preferred one first.
        num_threads: the number of threads that share the work of an operation.
        device_id: the number of the GPU; None: arrays are in host memory.
    """

    max_batch_size = math.inf

    def __init__(self, path: str, providers: Sequence[str], num_threads: int, device_id: int | None) -> None:
        import onnxruntime

        self.title = f"The network '{Path(path).name}'"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
        options.log_severity_level = _ERRORS_ONLY
        # Disabled because ONNX Runtime would store a memory plan for every input shape that it ever gets.
        options.enable_mem_pattern = False
        # Disabled because threads that spin while they wait would take cores from preprocessing.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        settings = [{} if name == CPU or device_id is None else {"device_id": str(device_id)} for name in providers]
        self._session = onnxruntime.InferenceSession(
            path, options, providers=list(providers), provider_options=settings
        )
        # If a provider's libraries are missing, ONNX Runtime falls back to the next provider and only logs it.
        if self._session.get_providers()[0] != providers[0]:
            raise RuntimeError(
                f"ONNX Runtime could not start {providers[0]}, but only {self._session.get_providers()[0]}: are its libraries installed?"
            )
        self.device_id = device_id
        self.inputs, self.outputs = (
            tuple(self._tensor(kind, own) for own in tensors)
            for kind, tensors in (("input", self._session.get_inputs()), ("output", self._session.get_outputs()))
        )

    def _tensor(self, kind: str, own: Any) -> NetworkTensor:
        element = own.type.removeprefix("tensor(").removesuffix(")")
        if element not in _TYPES:
            raise ValueError(
                f"{self.title} has the {kind} `{own.name}` of type {own.type}, which pipelines do not support"
            )
        return NetworkTensor(own.name, _TYPES[element], tuple(own.shape))

    def run(self, arrays: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
        """See :meth:`~penstock.operators.inference._network.Network.run`."""
        device, number = ("cpu", 0) if self.device_id is None else ("cuda", self.device_id)
        binding = self._session.io_binding()
        for tensor in self.inputs:
            array = arrays[tensor.name]
            address = array.ctypes.data if device == "cpu" else array.data.ptr
            binding.bind_input(tensor.name, device, number, numpy_dtype(tensor.dtype), array.shape, address)
        for name in wanted:
            binding.bind_output(name, device, number)
        if device == "cuda":
            # The network runs on another stream, so the inputs must be complete.
            require_cupy("networks on the GPU").cuda.get_current_stream().synchronize()
        self._session.run_with_iobinding(binding)
        values = binding.get_outputs()
        if device == "cpu":
            return [value.numpy() for value in values]
        binding.synchronize_outputs()
        cupy = require_cupy("networks on the GPU")
        # Views, because ONNX Runtime's version of DLPack has no type for booleans and passes them as bytes.
        kinds = {tensor.name: numpy_dtype(tensor.dtype) for tensor in self.outputs}
        return [cupy.from_dlpack(value).view(kinds[name]) for name, value in zip(wanted, values)]


def open_network(
    path: str, files: Files, providers: Sequence[str] | None, num_threads: int, device_id: int | None
) -> OnnxNetwork:
    """Return a network. It is loaded unless the same version of the file, opened with the same arguments, is still in use.

    Args:
        path: the file's path.
        files: the accessible files.
        providers: the execution providers that the user chose, the preferred one first; None: the device's usual one.
        num_threads: the number of threads that share the work of an operation.
        device_id: the number of the GPU; None: arrays are in host memory.

    Raises:
        RuntimeError: ONNX Runtime is missing, or has no such provider.
        ValueError: the file is not a network that ONNX Runtime can run.
        OSError: the file cannot be read.
        ConfinedPathError: the file may not be accessed.
    """
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ValueError(
            f"'{path}' does not end with .onnx or .ort. Engines of TensorRT and programs of PyTorch run in Triton's own backends, "
            "and `fn.triton_model` calls those"
        )
    problem = ONNX_RUNTIME.missing()
    if problem:
        raise RuntimeError(problem)
    if is_remote(path):
        raise ValueError(f"A network must be a local file. Got: '{path}'")
    chosen = _checked_providers(providers, device_id, files)
    real = files.path(path)
    key = real, files.version(path), chosen, num_threads, device_id
    with _opening:
        network = _open.get(key)
        if network is None:
            network = _open[key] = _loaded(real, chosen, num_threads, device_id)
    return network


def _loaded(path: str, providers: Sequence[str], num_threads: int, device_id: int | None) -> OnnxNetwork:
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    try:
        return OnnxNetwork(path, providers, num_threads, device_id)
    except (
        runtime.Fail,
        runtime.InvalidProtobuf,
        runtime.InvalidGraph,
        runtime.InvalidArgument,
        runtime.NotImplemented,
    ) as error:
        raise ValueError(f"'{path}' is not a network that ONNX Runtime can run: {error}") from error


def _checked_providers(providers: Sequence[str] | None, device_id: int | None, files: Files) -> tuple[str, ...]:
    import onnxruntime

    chosen = tuple(providers or [CPU if device_id is None else CUDA])
    available = onnxruntime.get_available_providers()
    for name in chosen:
        if name not in available:
            hint = ": pip install onnxruntime-gpu, in place of onnxruntime" if name == CUDA else ""
            raise RuntimeError(
                f"ONNX Runtime {onnxruntime.__version__} has no {name} here, only {', '.join(available)}{hint}"
            )
    if files.confined:
        if not {CPU, CUDA}.issuperset(chosen):
            raise ValueError(
                f"Pipelines that are confined to folders may use {CPU} and {CUDA} only: others read files that a network names"
            )
        if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < _CONFINING_VERSION:
            raise RuntimeError(
                f"ONNX Runtime {onnxruntime.__version__} may read files outside of the folders to which the pipeline is confined: "
                f"{'.'.join(map(str, _CONFINING_VERSION))} or later is needed"
            )
    return chosen
