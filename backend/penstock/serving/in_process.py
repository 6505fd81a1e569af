"""The backend `penstock` inside Triton's process: called by the shim of `backend/native`, which hosts this Python.

All models of the server share this interpreter, so none may affect the others: anything a model raises, even
SystemExit, is returned to the shim as that model's error.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import io
import json
import logging
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar

import numpy as np

from penstock.data_types import BFLOAT16, DALIDataType, numpy_dtype
from penstock.operators.inference.triton_model import serve_models
from penstock.serving import triton_api
from penstock.serving.admission import Admission, AdmittedExecution
from penstock.serving.entries import BYTES, TRITON_TYPES, control_entries
from penstock.serving.instance import ModelInstance, completed, guarded, log_to_server
from penstock.serving.isolation import OWN_PROCESS, stub_backend
from penstock.serving.model_records import ModelRecords
from penstock.serving.refusals import Kind, Refusal, Status
from penstock.serving.requests import ByteStrings, RequestError
from penstock.serving.served_model import Answer, Outputs, ParameterValue
from penstock.serving.settings import SERVER_SETTINGS, ConfigurationError, declared, settings_of
from penstock.serving.triton_models import TritonNetwork
from penstock.tensors.cuda import require_cupy

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

# The names of Triton's data types, in the order of their numbers.
_TYPES = [
    "INVALID",
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
    "BF16",
]
_BYTES_TYPE_NUMBER = _TYPES.index("BYTES")
_BFLOAT16_TYPE_NUMBER = _TYPES.index("BF16")
_NUMPY_TYPES = {
    _TYPES.index(name.removeprefix("TYPE_")): np.dtype(numpy_dtype(dtype))
    for dtype, name in TRITON_TYPES.items()
    if dtype is not BFLOAT16
}
_TYPE_NUMBERS = {dtype: number for number, dtype in _NUMPY_TYPES.items()}
# Triton's numbers for the types of parameters. bool comes first: in Python, a bool is also an int.
_PARAMETER_TYPES: dict[type, int] = {bool: 2, int: 1, float: 3, str: 0}
_STOPPING = "the server is stopping and accepts no new requests"
_EXPIRED = "the server is stopping, and the request was not answered before its exit timeout"
# How many seconds a thread may hold the GIL while another waits for it. CPython's default of 5 ms is as long as a whole answer, or
# longer.
_GIL_SWITCH_SECONDS = 0.0005
# How many seconds after a refusal to collect garbage.
_COLLECTION_DELAY_SECONDS = 0.1
# The largest fraction of time that garbage collections may take, however many requests are refused.
_MAX_COLLECTION_SHARE = 0.05


class Memory(Protocol):
    """A part of an input's memory, valid as long as this object exists; in host memory, readable as a buffer."""

    def place(self) -> tuple[int, int, int]:
        """Return the address and size of the memory, and the number of its GPU, or -1 for host memory."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return the contents of host memory."""


Parameter = tuple[str, int, str, int, float]
"""A parameter: its name, Triton's number of its type, and its value as str, int and float; the type tells which of these is valid."""
Output = tuple[str, int, tuple[int, ...], Any] | tuple[str, int, tuple[int, ...], Any, int, int, int]
"""An output: its name, type, shape and memory. On a GPU, address, size and GPU number follow, and the object only keeps
the memory alive.
"""


class TritonRequest(Protocol):
    """A request from the shim."""

    def id(self) -> str:
        """Return the client's name for the request; an empty string if it has none."""

    def parameters(self) -> dict[str, Any]:
        """Return the client's parameters."""

    def outputs(self) -> list[str]:
        """Return the names of the requested outputs."""

    def is_cancelled(self) -> bool:
        """Return whether the request was cancelled."""

    def input(self, name: str) -> tuple[int, tuple[int, ...], list[Memory]] | None:
        """Return an input's type, shape and memory; None if the request omits the input."""

    def reserve(self, name: str, data_type: int, shape: tuple[int, ...], size: int) -> Memory | None:
        """Return the answer's memory for an output, which the model may write to; None if it is not in host memory.

        Raises:
            RuntimeError: no memory can be allocated, for example because the client's shared memory is too small.
        """

    def trace(self) -> int:
        """Return the address of Triton's trace of the request; 0: it is not traced."""

    def answer(self, outputs: list[Output], parameters: list[Parameter]) -> None:
        """Set the outputs and parameters of the answer; outputs in reserved memory are not copied."""

    def refuse(self, code: int, message: str) -> None:
        """Set an error as the answer."""

    def flush(self) -> None:
        """Send the answer that was set; more answers may follow."""


class _Collector:
    """Runs the garbage collector after requests were refused.

    An error refers to the stack frames that it passed through, these refer to the failed batch, and the batch to the error: a cycle,
    which keeps the memory of requests in use. Triton does not unload a model until that memory is released.
    """

    def __init__(self) -> None:
        self._wanted = threading.Event()
        threading.Thread(target=self._collect_when_wanted, name="penstock-collector", daemon=True).start()

    def want(self) -> None:
        """Schedule a garbage collection."""
        self._wanted.set()

    def _collect_when_wanted(self) -> None:
        while True:
            self._wanted.wait()
            time.sleep(_COLLECTION_DELAY_SECONDS)
            self._wanted.clear()
            # The CPU time of this thread: time in which it waits for a busy processor must not delay the next collection.
            began = time.thread_time()
            gc.collect()
            time.sleep((time.thread_time() - began) / _MAX_COLLECTION_SHARE)


_collector: _Collector
_admission = Admission()
_instances: weakref.WeakSet[HostedInstance] = weakref.WeakSet()


# -- called by the shim ------------------------------------------------------------------------------------------------


def start(backend: str, config: str) -> None:
    """Prepare the interpreter for models.

    Args:
        backend: the backend's name in configurations.
        config: the server's settings for the backend, as JSON.
    """
    global _collector
    _collector = _Collector()
    log_to_server(triton_api.log)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Line-buffered, as the server's log is not a terminal.
            stream.reconfigure(line_buffering=True)
    sys.setswitchinterval(_GIL_SWITCH_SECONDS)
    for name in ("fork", "forkpty"):
        setattr(os, name, _refuse_fork)
    _take_settings(backend, json.loads(config).get("cmdline", {}))


@guarded
def reach_server(address: int) -> None:
    """Let pipelines call other models of the server; ``address`` is that of Triton's server object."""
    serve_models(functools.partial(TritonNetwork, address))


@guarded
def complete(config: str, model_folder: str, version: int) -> str:
    """Complete a model's configuration, which is given as JSON; return the complete configuration as JSON."""
    return json.dumps(completed(_hosted_here(config), Path(model_folder) / str(version)))


@guarded
def load(config: str, model_folder: str, version: int, name: str, device_id: int) -> HostedInstance:
    """Return an instance of a model, ready for requests; ``device_id`` is -1 for the CPU."""
    given = _hosted_here(config)
    made = HostedInstance(given, Path(model_folder) / str(version), name, None if device_id < 0 else device_id)
    ModelRecords.of_server().write(str(given["name"]), Path(model_folder))
    return made


def _hosted_here(text: str) -> dict[str, object]:
    """Parse a model's configuration; raise ConfigurationError if it requests a separate process."""
    config: dict[str, Any] = json.loads(text)
    if settings_of(config).isolation == OWN_PROCESS:
        raise ConfigurationError(
            f"the model requests a separate process (isolation: {OWN_PROCESS}), which Triton must know before loading the model: write "
            f'`backend: "{stub_backend(config["backend"])}"` into its configuration, or start `penstock serve` again, which does that for '
            "the models of its repositories"
        )
    return config


def drain(request: str) -> str:
    """From now on, refuse new requests to our models, and wait until those in flight are answered.

    Args:
        request: the supervisor's request, as JSON.

    Returns:
        ``drained``, or ``expired`` if some requests were not answered in time; these are refused.
    """
    limits = json.loads(request)
    return "drained" if _admission.drain(limits["queued"], limits["seconds"]) else "expired"


def stop() -> str:
    """Close all models before the process ends; return a line for the log."""
    instances, failures = list(_instances), 0
    for instance in instances:
        try:
            instance.close()
        except Exception as error:
            failures += 1
            logger.error("an instance of '%s' could not be closed: %s", instance.model, error)
    end()
    if failures:
        return f"penstock: {failures} of {len(instances)} instances of models could not be closed"
    return "penstock: all models are closed"


def tidy() -> None:
    """Return unused memory to the system, after an instance was closed."""
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def end() -> None:
    """Run Python's exit functions without finalizing Python: threads of Triton may still be running."""
    atexit._run_exitfuncs()  # private: atexit has no public way to run its functions early
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


class Pending:
    """An execution in flight, for the shim.

    Args:
        complete: a function that sets the answers of the requests.
        execution: the admitted execution, which ends when the answers are set.
    """

    def __init__(self, complete: Callable[[], None], execution: AdmittedExecution) -> None:
        self._complete, self._execution = complete, execution

    @guarded
    def finish(self) -> None:
        """Complete the execution, and set the answers of the requests."""
        with self._execution:
            self._complete()


class HostedInstance:
    """An instance of a model, with the interface that the shim calls.

    Attributes:
        model: the model's name.
        batched: whether a request holds a batch of samples.
    """

    def __init__(self, config: Mapping[str, object], folder: Path, name: str, device_id: int | None) -> None:
        self._instance = ModelInstance(config, folder, name, device_id, triton_api.series)
        self._device_id = device_id
        self._string_controls = {e["name"] for e in control_entries(config) if e["data_type"] == BYTES}
        self.model = str(config["name"])
        self.batched = self._instance.batched
        self._closed = False
        _instances.add(self)

    @guarded
    def execute(self, requests: Sequence[TritonRequest], more_follow: bool) -> Pending | None:
        """Answer requests: set the answer of each, which the shim then sends.

        Args:
            requests: the requests.
            more_follow: whether requests are probably waiting for this execution to end.

        Returns:
            The rest of the execution, which another thread of the shim completes while this thread begins the next one; None: all is done.
        """
        execution, pending = _admission.execution(self.model, len(requests)), None
        try:
            for request in requests[execution.requests :]:
                request.refuse(Status.UNAVAILABLE.value, _STOPPING)
            device_id, controls = self._device_id, self._string_controls
            asked = [_Request(request, device_id, controls) for request in requests[: execution.requests]]
            if not asked:
                return None
            if more_follow and self._instance.overlaps:
                pending = Pending(self._instance.begin(asked), execution)
                return pending
            self._instance.execute(asked)
            return None
        finally:
            if pending is None:
                execution.end()

    @guarded
    def close(self) -> None:
        """End the model's threads."""
        closed, self._closed = self._closed, True
        if not closed:
            self._instance.close()


# -- requests ----------------------------------------------------------------------------------------------------------


class _Request:
    """A request from the shim, with the interface that models need.

    Args:
        request: the shim's request.
        device_id: the number of the model's GPU, if it needs inputs there; None: it needs inputs on the host.
        string_controls: the names of controls of type BYTES. Triton allocates a fixed size for them, and leaves old data after the string.
    """

    __slots__ = ("_device_id", "_problem", "_request", "_string_controls")

    def __init__(self, request: TritonRequest, device_id: int | None, string_controls: Collection[str] = ()) -> None:
        self._string_controls = string_controls
        self._request = request
        self._device_id = device_id
        # Why output memory was refused. The answer is then refused, too: a second request for memory would get it from elsewhere.
        self._problem = ""

    @property
    def id(self) -> str:
        return self._request.id()

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._request.parameters()

    @property
    def wanted(self) -> Collection[str]:
        return self._request.outputs()

    def tensor(self, name: str) -> Any:
        given = self._request.input(name)
        if given is None:
            return None
        data_type, shape, memory = given
        if data_type == _BYTES_TYPE_NUMBER:
            return _byte_strings(name, shape, _contiguous(memory), name in self._string_controls)
        dtype = _NUMPY_TYPES[data_type]
        if len(memory) == 1:
            try:
                return np.frombuffer(memoryview(memory[0]), dtype).reshape(shape)
            except (BufferError, ValueError):
                pass  # the memory is on a GPU, or empty
        if self._device_id is not None and memory and all(piece.place()[2] >= 0 for piece in memory):
            elements = _joined_on_gpu(memory, self._device_id)
        else:
            elements = _contiguous(memory)
        return elements.view(dtype).reshape(shape)

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> np.ndarray | None:
        kind = numpy_dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        try:
            memory = self._request.reserve(name, _type_number(kind, dtype is BFLOAT16), tuple(shape), size)
        except RuntimeError as error:
            self._problem = str(error)
            return None
        return None if memory is None else np.frombuffer(memoryview(memory), kind).reshape(shape)

    def trace(self) -> int:
        return self._request.trace()

    def is_cancelled(self) -> bool:
        return _admission.expired.is_set() or self._request.is_cancelled()

    def answer(self, answer: Answer) -> None:
        if isinstance(answer, Refusal):
            _collector.want()
            if answer.kind is Kind.CANCELLED and _admission.expired.is_set():
                self._request.refuse(Status.UNAVAILABLE.value, _EXPIRED)
                return
            self._request.refuse(answer.status.value, answer.message)
        elif self._problem:
            self._request.refuse(Status.INTERNAL.value, self._problem)
        else:
            self._request.answer(
                _outputs(answer), [_parameter(name, value) for name, value in answer.parameters.items()]
            )

    def stream(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            self.answer(answer)
            self._request.flush()
        self._request.flush()  # without a new answer: marks the end


def _contiguous(memory: Sequence[Memory]) -> np.ndarray:
    """Return an input's bytes, without a copy if they are contiguous in host memory."""
    pieces = [_on_host(piece) for piece in memory]
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8)


def _on_host(piece: Memory) -> np.ndarray:
    address, size, device = piece.place()
    if not size:
        return np.empty(0, np.uint8)
    if device < 0:
        return np.frombuffer(memoryview(piece), np.uint8)
    cupy = require_cupy("inputs on the GPU")
    copied = np.empty(size, np.uint8)
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.memcpy(copied.ctypes.data, address, size, cupy.cuda.runtime.memcpyDeviceToHost)
    return copied


def _joined_on_gpu(memory: Sequence[Memory], device_id: int) -> Any:
    """Return an input's bytes as a CuPy array, without a copy if they are contiguous on this GPU."""
    cupy = require_cupy("inputs on the GPU")
    with cupy.cuda.Device(device_id):
        pieces = [_on_gpu(piece, device_id) for piece in memory]
        joined = pieces[0] if len(pieces) == 1 else cupy.concatenate(pieces)
        # Waits, because pipelines have separate streams, which do not wait for the current one.
        cupy.cuda.get_current_stream().synchronize()
        return joined


def _on_gpu(piece: Memory, device_id: int) -> object:
    cupy = require_cupy("inputs on the GPU")
    address, size, device = piece.place()
    if not size:
        return cupy.empty(0, np.uint8)
    if device != device_id:
        copied = cupy.empty(size, np.uint8)
        cupy.cuda.runtime.memcpyPeer(copied.data.ptr, device_id, address, device, size)
        return copied
    owned = cupy.cuda.UnownedMemory(address, size, piece, device)
    return cupy.ndarray(size, np.uint8, cupy.cuda.MemoryPointer(owned, 0))


def _byte_strings(name: str, shape: Sequence[int], data: np.ndarray, has_rest: bool = False) -> ByteStrings:
    """Return views of the byte strings in a tensor's memory; ``has_rest``: whether other data may follow the last string."""
    strings, end, size, raw = ByteStrings(), 0, data.size, data.data
    strings.shape, count = tuple(shape), math.prod(shape)
    while end < size and not (has_rest and len(strings) == count):
        # Before each string, four bytes contain its length.
        begin = end + 4
        end = begin + int.from_bytes(raw[end:begin], "little")
        if max(begin, end) > size:
            raise RequestError(f"input '{name}' of type BYTES cannot be read: its byte strings are truncated")
        strings.append(data[begin:end])
    if len(strings) != count:
        raise RequestError(f"input '{name}' holds {len(strings)} byte strings, but its shape is {list(shape)}")
    return strings


def _outputs(answer: Outputs) -> list[Output]:
    return [_output(name, array, name in answer.bfloat16) for name, array in answer.tensors.items()]


def _output(name: str, array: Any, is_bfloat16: bool) -> Output:
    if isinstance(array, np.ndarray) and array.dtype == np.object_:
        framed = b"".join(len(item).to_bytes(4, "little") + item for item in array.reshape(-1))
        return name, _BYTES_TYPE_NUMBER, array.shape, framed
    number = _type_number(array.dtype, is_bfloat16)
    if not isinstance(array, np.ndarray):
        return _gpu_output(name, number, array)
    return name, number, array.shape, np.ascontiguousarray(array)


def _parameter(name: str, value: ParameterValue) -> Parameter:
    number = next(number for kind, number in _PARAMETER_TYPES.items() if isinstance(value, kind))
    whole, real = (0, 0.0) if isinstance(value, str) else (int(value), float(value))
    return name, number, str(value), whole, real


def _type_number(dtype: np.dtype, is_bfloat16: bool) -> int:
    """Return Triton's number for the type of an output."""
    return _BFLOAT16_TYPE_NUMBER if is_bfloat16 else _TYPE_NUMBERS[dtype]


def _gpu_output(name: str, number: int, array: Any) -> Output:
    if not array.flags.c_contiguous:
        cupy = require_cupy("outputs on the GPU")
        with array.device:
            array = cupy.ascontiguousarray(array)
            # Waits, because answers are copied on other streams.
            cupy.cuda.get_current_stream().synchronize()
    return name, number, array.shape, array, array.data.ptr, array.nbytes, array.device.id


# -- the server --------------------------------------------------------------------------------------------------------


def _take_settings(backend: str, flags: Mapping[str, str]) -> None:
    """Merge the settings from Triton's command line into those in the environment variables, which `penstock serve` sets."""
    known = {item.name for item in declared()}
    sections = json.loads(os.environ.get(SERVER_SETTINGS) or "{}")
    settings = {name: text for name, text in flags.items() if name in known}
    sections[backend] = settings | sections.get(backend, {})
    os.environ[SERVER_SETTINGS] = json.dumps(sections)


def _refuse_fork() -> NoReturn:
    raise RuntimeError(
        "os.fork() would copy the whole server with its threads and locks: start a program with `subprocess`, or a process by "
        "`multiprocessing.get_context('spawn')`"
    )
