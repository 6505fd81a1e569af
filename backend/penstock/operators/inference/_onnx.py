"""Networks in ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
_MAX_SESSIONS_ON_GPU = 8
"""The largest number of sessions of one network: of batches up to 32, there are six sizes (:meth:`OnnxNetwork.rows_to_run`)."""
logger = logging.getLogger(__name__)
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
        self.title = f"The network '{Path(path).name}'"
        self._sessions = _Sessions(path, providers, num_threads, device_id)
        self.device_id = device_id
        self.inputs, self.outputs = (
            tuple(self._tensor(kind, own) for own in tensors)
            for kind, tensors in (
                ("input", self._sessions.first.get_inputs()),
                ("output", self._sessions.first.get_outputs()),
            )
        )

    def _tensor(self, kind: str, own: Any) -> NetworkTensor:
        element = own.type.removeprefix("tensor(").removesuffix(")")
        if element not in _TYPES:
            raise ValueError(
                f"{self.title} has the {kind} `{own.name}` of type {own.type}, which pipelines do not support"
            )
        return NetworkTensor(own.name, _TYPES[element], tuple(own.shape))

    def rows_to_run(self, count: int) -> int:
        """See :meth:`~penstock.schema.networks.Network.rows_to_run`."""
        return count if self.device_id is None else 1 << (count - 1).bit_length()

    def run(self, arrays: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
        """See :meth:`~penstock.schema.networks.Network.run`."""
        device, number = ("cpu", 0) if self.device_id is None else ("cuda", self.device_id)
        session = self._sessions.of([arrays[tensor.name].shape for tensor in self.inputs])
        binding = session.io_binding()
        for tensor in self.inputs:
            array = arrays[tensor.name]
            address = array.ctypes.data if device == "cpu" else array.data.ptr
            binding.bind_input(tensor.name, device, number, numpy_dtype(tensor.dtype), array.shape, address)
        for name in wanted:
            binding.bind_output(name, device, number)
        if device == "cuda":
            # The network runs on another stream, so the inputs must be complete.
            require_cupy("networks on the GPU").cuda.get_current_stream().synchronize()
        session.run_with_iobinding(binding)
        values = binding.get_outputs()
        if device == "cpu":
            return [value.numpy() for value in values]
        binding.synchronize_outputs()
        kinds = {tensor.name: numpy_dtype(tensor.dtype) for tensor in self.outputs}
        return [_on_gpu(value, kinds[name], number) for name, value in zip(wanted, values)]


class _Sessions:
    """A network's sessions in ONNX Runtime: one on the CPU, and on a GPU one for each of the latest shapes of inputs.

    cuDNN plans convolutions for one shape, and ONNX Runtime keeps only the plans of a session's last run. On an H200, MobileNetV2 took
    1.8 ms for a batch of the last one's size, and 0.9 to 1.5 s for one of another size (2026-12-01, ONNX Runtime 1.31).

    Args:
        path, providers, num_threads, device_id: as for :class:`OnnxNetwork`.

    Attributes:
        first: the session that was made first.
    """

    def __init__(self, path: str, providers: Sequence[str], num_threads: int, device_id: int | None) -> None:
        self._arguments = path, tuple(providers), num_threads, device_id
        self._file = _identity(path)
        self.first = _new_session(*self._arguments)
        self._most = 1 if device_id is None else _MAX_SESSIONS_ON_GPU
        self._lock = threading.Lock()
        # The session that was used last is the last one.
        self._by_shapes: dict[tuple[tuple[int, ...], ...], Any] = {}

    def of(self, shapes: Sequence[tuple[int, ...]]) -> Any:
        """Return the session for inputs of these shapes, in the network's order."""
        if self._most == 1:
            return self.first
        key = tuple(shapes)
        with self._lock:
            session = self._by_shapes.pop(key, None) or self._another()
            self._by_shapes[key] = session
        return session

    def _another(self) -> Any:
        """Return a session for new shapes: a new one, or the one that has not been used for longest."""
        if not self._by_shapes:
            return self.first
        # A new session has to be of the same network as the others.
        if len(self._by_shapes) < self._most and _identity(self._arguments[0]) == self._file:
            try:
                return _new_session(*self._arguments)
            except Exception as error:
                # Probably, the GPU is short of memory. A session for other shapes gives the same results, only more slowly.
                logger.warning("a network on the GPU will be slow for batches of varied sizes: %s", error)
                self._most = len(self._by_shapes)
        return self._by_shapes.pop(next(iter(self._by_shapes)))


def _identity(path: str) -> tuple[int, ...]:
    """Return numbers that change with the file."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _new_session(path: str, providers: Sequence[str], num_threads: int, device_id: int | None) -> Any:
    import onnxruntime

    if CUDA in providers and hasattr(onnxruntime, "preload_dlls"):
        # Otherwise the libraries of CUDA and cuDNN that pip installs would be found only after PyTorch has loaded them.
        onnxruntime.preload_dlls()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
    options.log_severity_level = _ERRORS_ONLY
    # Disabled because ONNX Runtime would store a memory plan for every input shape that it ever gets.
    options.enable_mem_pattern = False
    # Disabled because threads that spin while they wait would take cores from preprocessing.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings = [_settings(name, device_id) for name in providers]
    session = onnxruntime.InferenceSession(path, options, providers=list(providers), provider_options=settings)
    # If a provider's libraries are missing, ONNX Runtime falls back to the next provider and only logs it.
    if session.get_providers()[0] != providers[0]:
        raise RuntimeError(
            f"ONNX Runtime could not start {providers[0]}, but only {session.get_providers()[0]}: are its libraries installed?"
        )
    return session


def _settings(provider: str, device_id: int | None) -> dict[str, str]:
    """Return the settings of an execution provider."""
    if provider == CPU or device_id is None:
        return {}
    settings = {"device_id": str(device_id)}
    if provider == CUDA:
        # By default, ONNX Runtime tries all ways to compute a convolution whenever a batch has a new size or shape.
        settings["cudnn_conv_algo_search"] = "HEURISTIC"
    return settings


def _on_gpu(value: Any, dtype: np.dtype, device_id: int) -> Any:
    """Return a result of ONNX Runtime on a GPU as a CuPy array that shares and keeps its memory.

    DLPack is not used: ONNX Runtime exports booleans as bytes, and its older versions export nothing.
    """
    cupy, shape = require_cupy("networks on the GPU"), tuple(value.shape())
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return cupy.empty(shape, dtype)
    memory = cupy.cuda.UnownedMemory(value.data_ptr(), size, value, device_id)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


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
