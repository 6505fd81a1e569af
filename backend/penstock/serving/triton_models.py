"""Other models of the server, called from pipelines that Triton hosts in its process (``fn.triton_model``)."""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import UINT8, numpy_dtype
from penstock.errors import CancelledError
from penstock.schema.networks import NetworkTensor
from penstock.serving.callers import all_cancelled, request_id, trace
from penstock.serving.entries import BYTES, TRITON_TYPES
from penstock.serving.triton_api import call, function

_Address = ctypes.c_void_p
_CPU_MEMORY = 0
_FINAL_RESPONSE_FLAG = 1
_CONFIGURATION_VERSION = 1
# The names of data types by Triton's number of the type.
_TYPES = dict(
    enumerate(
        ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"],
        start=1,
    )
)
_NUMBERS = {f"TYPE_{name}": number for number, name in _TYPES.items()}
_DTYPES = {name: dtype for dtype, name in TRITON_TYPES.items() if name in _NUMBERS}
_BYTES_NUMBER = 13
_LENGTH = struct.Struct("<I")  # the length of a string, which precedes its bytes
_POLL_SECONDS = 0.05
_NOTHING = np.empty(0, np.uint8)
# The types of callbacks, which Triton's functions take.
_Allocate = ctypes.CFUNCTYPE(
    _Address,
    _Address,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int64,
    _Address,
    ctypes.POINTER(_Address),
    ctypes.POINTER(_Address),
    ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_int64),
)
_Release = ctypes.CFUNCTYPE(_Address, _Address, _Address, _Address, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64)
_Answered = ctypes.CFUNCTYPE(None, _Address, ctypes.c_uint32, _Address)


class TritonNetwork:
    """A model of the server, with the interface of a network.

    Args:
        server: the address of Triton's server object.
        name, version: the name and version of the model.
        timeout_seconds: how many seconds a call may take; 0: no limit.

    Strings are UINT8 samples: if the tensor's dims are [1], the bytes of one string; otherwise a row for each string, padded with zeros.

    Raises:
        RuntimeError: the model is not loaded, or has inputs or outputs of types that pipelines do not support.
    """

    def __init__(self, server: int, name: str, version: int, timeout_seconds: float) -> None:
        self.title = f"The model '{name}' of this server"
        self._server, self._name, self._version, self._timeout = server, name, version, timeout_seconds
        try:
            config = _configuration(server, name, version)
        except RuntimeError as error:
            raise RuntimeError(f"{self.title} is not ready: {error}") from error
        if config.get("model_transaction_policy", {}).get("decoupled"):
            raise RuntimeError(
                f"{self.title} is decoupled: it may send any number of answers, but each sample needs exactly one"
            )
        batched = config.get("max_batch_size", 0) > 0
        self.max_batch_size = config["max_batch_size"] if batched else 1
        self._unbatched = not batched
        # For tensors of strings, by name: whether each sample is a single string.
        self._strings: dict[str, bool] = {}
        self.inputs, self.outputs = (
            tuple(self._tensor(entry, batched) for entry in config.get(kind, ())) for kind in ("input", "output")
        )

    def _tensor(self, entry: Mapping[str, Any], batched: bool) -> NetworkTensor:
        dims: tuple[int | None, ...] = tuple(None if int(dim) < 0 else int(dim) for dim in entry["dims"])
        dtype = _DTYPES.get(entry["data_type"])
        if entry["data_type"] == BYTES:
            self._strings[entry["name"]] = dims == (1,)
            dims, dtype = (() if dims == (1,) else dims) + (None,), UINT8
        if dtype is None:
            raise RuntimeError(
                f"{self.title} has `{entry['name']}` of {entry['data_type']}, which pipelines do not support"
            )
        return NetworkTensor(entry["name"], dtype, ("batch", *dims) if batched else dims)

    def rows_to_run(self, count: int) -> int:
        """See :meth:`~penstock.schema.networks.Network.rows_to_run`."""
        return count

    def run(self, arrays: Mapping[str, np.ndarray], wanted: Sequence[str]) -> list[np.ndarray | list[np.ndarray]]:
        """Run the model; see :meth:`~penstock.operators.inference._network.Network.run`."""
        pending = _Call(self._server, self._name, self._version)
        try:
            given = [self._given(tensor, arrays[tensor.name]) for tensor in self.inputs]
            found = pending.run(given, wanted, self._timeout)
        except (RuntimeError, TimeoutError, CancelledError) as error:
            raise type(error)(f"{self.title}: {error}") from error
        return [self._found(name, found[name]) for name in wanted]

    def _given(self, tensor: NetworkTensor, array: np.ndarray) -> _Given:
        """Return an input in the form that Triton accepts."""
        if tensor.name not in self._strings:
            return _Given(tensor.name, _NUMBERS[TRITON_TYPES[tensor.dtype]], array.shape, array)
        rows = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
        if self._strings[tensor.name]:
            strings, shape = [row.tobytes() for row in rows], (*array.shape[:-1], 1)
        else:
            strings, shape = [row.tobytes().rstrip(b"\0") for row in rows], array.shape[:-1]
        joined = b"".join(part for string in strings for part in (_LENGTH.pack(len(string)), string))
        return _Given(tensor.name, _BYTES_NUMBER, shape, np.frombuffer(joined, np.uint8))

    def _found(self, name: str, output: np.ndarray) -> np.ndarray | list[np.ndarray]:
        """Return an output in the form that the operator expects: strings become a list of samples, which may differ in
        length.
        """
        if output.dtype != np.object_:
            return output
        if not self._strings.get(name):
            return _rows(output) if self._unbatched else [_rows(own) for own in output]
        samples = [np.frombuffer(string, np.uint8) for string in output.reshape(-1)]
        return samples[0] if self._unbatched and samples else samples


@dataclass(frozen=True)
class _Given:
    """An input of a request.

    Attributes:
        name: the input's name.
        kind: Triton's number of the input's type.
        shape: the tensor's shape.
        memory: the elements of the tensor, or its strings, each preceded by its length.
    """

    name: str
    kind: int
    shape: tuple[int, ...]
    memory: np.ndarray


def _rows(strings: np.ndarray) -> np.ndarray:
    """Return strings as rows of uint8, padded with zeros to the length of the longest."""
    longest = max(map(len, strings.reshape(-1)), default=0)
    joined = b"".join(string.ljust(longest, b"\0") for string in strings.reshape(-1))
    return np.frombuffer(joined, np.uint8).reshape(*strings.shape, longest)


def _strings(memory: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return the strings in a tensor's memory, where each is preceded by its length, as an array of objects."""
    content, begin = memory.tobytes(), 0
    strings = np.empty(math.prod(shape), np.object_)
    for number in range(len(strings)):
        (length,) = _LENGTH.unpack_from(content, begin)
        begin += _LENGTH.size
        strings[number] = content[begin : begin + length]
        begin += length
    return strings.reshape(tuple(shape))


def _child_trace() -> _Address | None:
    """Create a child of the trace of the request for which this thread runs; Triton deletes the child. Return None if it is not traced."""
    parent, child = trace(), _Address()
    if not parent:
        return None
    call("InferenceTraceSpawnChildTrace", parent, ctypes.byref(child))
    return child


def _configuration(server: int, name: str, version: int) -> dict[str, Any]:
    message = _Address()
    call("ServerModelConfig", server, name.encode(), version, _CONFIGURATION_VERSION, ctypes.byref(message))
    base, size = ctypes.c_char_p(), ctypes.c_size_t()
    try:
        call("MessageSerializeToJson", message, ctypes.byref(base), ctypes.byref(size))
        config: dict[str, Any] = json.loads(ctypes.string_at(base, size.value))
    finally:
        call("MessageDelete", message)
    return config


class _Call:
    """A request to a model; exists until Triton no longer needs the request or its memory."""

    def __init__(self, server: int, name: str, version: int) -> None:
        self.request = _Address()
        self._server = server
        self._number = next(_numbers)
        self._inputs: list[np.ndarray] = []
        self._buffers: dict[int, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}
        self._problem = ""
        self._changed = threading.Condition()
        # Two steps end the call: Triton releases the request, and the last response arrives.
        self._steps_left = 2
        self._abandoned = self._is_traced = False
        call("InferenceRequestNew", ctypes.byref(self.request), server, name.encode(), version)
        _calls[self._number] = self
        call("InferenceRequestSetReleaseCallback", self.request, _released, self._number)
        call("InferenceRequestSetResponseCallback", self.request, _allocator(), self._number, _answered, self._number)

    def run(self, inputs: Sequence[_Given], wanted: Sequence[str], timeout_seconds: float) -> dict[str, np.ndarray]:
        """Send the request with the ids of the original requests, wait for the outputs, and return them by name.

        Args:
            inputs: the inputs; their memory is not copied.
            wanted: the names of the outputs.
            timeout_seconds: how many seconds to wait; 0: no limit.

        Raises:
            RuntimeError: the model failed.
            TimeoutError: the call took too long. Its memory remains allocated until Triton is done with it.
            CancelledError: all requests for which this request is sent were cancelled, before or during the call.
        """
        try:
            call("InferenceRequestSetId", self.request, request_id().encode())
            for given in inputs:
                self._add_input(given)
            for name in wanted:
                call("InferenceRequestAddRequestedOutput", self.request, name.encode())
            self._send()
        except RuntimeError:
            self.end()
            raise
        end = time.monotonic() + timeout_seconds if timeout_seconds else math.inf
        with self._changed:
            while not self._changed.wait_for(self._is_done, min(_POLL_SECONDS, max(end - time.monotonic(), 0))):
                # The lock is held, so that Triton's threads cannot complete the call while it is abandoned.
                if time.monotonic() >= end:
                    self._abandon()
                    raise TimeoutError(f"no answer after {timeout_seconds:g} seconds (`timeout_seconds`)")
                if all_cancelled():
                    self._abandon()
                    raise CancelledError("the call was cancelled with the request")
        self.end()
        if self._problem:
            raise RuntimeError(self._problem)
        return self._outputs

    def _send(self) -> None:
        trace = _child_trace()
        try:
            call("ServerInferAsync", self._server, self.request, trace)
        except RuntimeError:
            if trace is not None:
                call("InferenceTraceDelete", trace)
            raise
        self._is_traced = trace is not None

    def _abandon(self) -> None:
        """Cancel the call; if it is traced, wait for its end, as its trace must not outlive the trace of the original request."""
        call("InferenceRequestCancel", self.request)
        if self._is_traced:
            self._changed.wait_for(self._is_done)
            self.end()
        else:
            self._abandoned = True

    def _add_input(self, given: _Given) -> None:
        shape, name, memory = (ctypes.c_int64 * len(given.shape))(*given.shape), given.name.encode(), given.memory
        call("InferenceRequestAddInput", self.request, name, given.kind, shape, len(given.shape))
        call("InferenceRequestAppendInputData", self.request, name, memory.ctypes.data, memory.nbytes, _CPU_MEMORY, 0)
        self._inputs.append(memory)

    def _is_done(self) -> bool:
        return not self._steps_left

    def end(self) -> None:
        """Delete the request."""
        if _calls.pop(self._number, None) is not None:
            call("InferenceRequestDelete", self.request)

    # -- called by Triton's threads ------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Allocate memory for an output; return its address."""
        # At least one byte, as empty memory has no address.
        buffer = np.empty(max(size, 1), np.uint8)
        self._buffers[buffer.ctypes.data] = buffer
        return buffer.ctypes.data

    def take(self, response: _Address) -> None:
        """Store the outputs of a response, or its error."""
        error = function("InferenceResponseError")(response)
        if error:
            self._problem = function("ErrorMessage")(error).decode(errors="replace")
            return
        count = ctypes.c_uint32()
        call("InferenceResponseOutputCount", response, ctypes.byref(count))
        for index in range(count.value):
            name, kind, shape, rank = (
                ctypes.c_char_p(),
                ctypes.c_int(),
                ctypes.POINTER(ctypes.c_int64)(),
                ctypes.c_uint64(),
            )
            base, size, memory, memory_type, owner = (
                _Address(),
                ctypes.c_size_t(),
                ctypes.c_int(),
                ctypes.c_int64(),
                _Address(),
            )
            results = (name, kind, shape, rank, base, size, memory, memory_type, owner)
            call("InferenceResponseOutput", response, index, *map(ctypes.byref, results))
            extents = [shape[axis] for axis in range(rank.value)]
            assert name.value is not None
            if kind.value == _BYTES_NUMBER:
                memory_of_strings = self._buffers[base.value or 0][: size.value] if size.value else _NOTHING
                self._outputs[name.value.decode()] = _strings(memory_of_strings, extents)
                continue
            dtype = numpy_dtype(_DTYPES[f"TYPE_{_TYPES[kind.value]}"])
            used = math.prod(extents) * dtype.itemsize
            memory_of_output = self._buffers[base.value or 0][:used] if used else _NOTHING
            self._outputs[name.value.decode()] = memory_of_output.view(dtype).reshape(extents)

    def step(self) -> None:
        """Note that Triton has released the request, or that the last response has arrived."""
        with self._changed:
            self._steps_left -= 1
            self._changed.notify()
            is_forgotten = self._abandoned and self._is_done()
        if is_forgotten:
            self.end()


_numbers = itertools.count(1)
# The calls that Triton may still refer to, by the numbers that are passed to its callbacks.
_calls: dict[int, _Call] = {}


def _allocate_output(
    _allocator: int,
    _name: bytes,
    size: int,
    _kind: int,
    _place: int,
    number: int,
    buffer: Any,
    owner: Any,
    kind: Any,
    memory_type: Any,
) -> int | None:
    buffer[0] = _calls[number].allocate(size)
    owner[0], kind[0], memory_type[0] = None, _CPU_MEMORY, 0
    return None


def _release_request(_request: int, _flags: int, number: int) -> None:
    _calls[number].step()


def _take_response(response: int | None, flags: int, number: int) -> None:
    pending = _calls[number]
    if response:
        try:
            pending.take(_Address(response))
        except Exception as error:
            pending._problem = f"{type(error).__name__}: {error}"
        finally:
            call("InferenceResponseDelete", response)
    if flags & _FINAL_RESPONSE_FLAG:
        pending.step()


_allocate_callback = _Allocate(_allocate_output)
# Does nothing, as numpy owns the memory.
_release_callback = _Release(lambda *_: None)
_released = _Answered(_release_request)
_answered = _Answered(_take_response)
_making = threading.Lock()
_addresses: list[_Address] = []


def _allocator() -> _Address:
    """Return a response allocator of Triton that gets memory for outputs from us; it is never destroyed."""
    with _making:
        if not _addresses:
            allocator = _Address()
            call("ResponseAllocatorNew", ctypes.byref(allocator), _allocate_callback, _release_callback, None)
            _addresses.append(allocator)
        return _addresses[0]
