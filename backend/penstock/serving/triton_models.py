"""Other models of the server, called from pipelines that Triton hosts in its own process (``fn.triton_model``)."""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.schema.networks import NetworkTensor
from penstock.serving.entries import TRITON_TYPES
from penstock.serving.triton_api import call, function

_Address = ctypes.c_void_p
_CPU_MEMORY = 0
_FINAL_RESPONSE_FLAG = 1
_NO_TRACE = None
_CONFIGURATION_VERSION = 1
# By Triton's numbers of types, in the order of its documentation.
_TYPES = dict(
    enumerate(
        ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"],
        start=1,
    )
)
_NUMBERS = {f"TYPE_{name}": number for number, name in _TYPES.items()}
_DTYPES = {name: dtype for dtype, name in TRITON_TYPES.items() if name in _NUMBERS}
# The argument types of Triton's functions: callbacks.
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
    """A model of the server, as a network.

    Args:
        server: Triton's object.
        name, version: of the model.
        timeout_seconds: how long a call may take; 0: any time.

    Raises:
        RuntimeError: it is not loaded, or has inputs or outputs that pipelines do not hold.
    """

    def __init__(self, server: int, name: str, version: int, timeout_seconds: float) -> None:
        self.title = f"The model '{name}' of this server"
        self._server, self._name, self._version, self._timeout = server, name, version, timeout_seconds
        try:
            config = _configuration(server, name, version)
        except RuntimeError as error:
            raise RuntimeError(f"{self.title} is not ready: {error}") from error
        if config.get("model_transaction_policy", {}).get("decoupled"):
            raise RuntimeError(f"{self.title} is decoupled: it may give any number of answers, and a sample needs one")
        batched = config.get("max_batch_size", 0) > 0
        self.max_batch_size = config["max_batch_size"] if batched else 1
        self.inputs, self.outputs = (
            tuple(self._tensor(entry, batched) for entry in config.get(kind, ())) for kind in ("input", "output")
        )

    def _tensor(self, entry: Mapping[str, Any], batched: bool) -> NetworkTensor:
        if entry["data_type"] not in _DTYPES:
            raise RuntimeError(f"{self.title} has `{entry['name']}` of {entry['data_type']}, which cannot be passed on")
        dims = tuple(None if int(dim) < 0 else int(dim) for dim in entry["dims"])
        return NetworkTensor(entry["name"], _DTYPES[entry["data_type"]], ("batch", *dims) if batched else dims)

    def run(self, arrays: Mapping[str, np.ndarray], wanted: Sequence[str]) -> list[np.ndarray]:
        """See :meth:`~penstock.operators.inference._network.Network.run`."""
        pending = _Call(self._server, self._name, self._version)
        try:
            found = pending.run({tensor: arrays[tensor.name] for tensor in self.inputs}, wanted, self._timeout)
        except (RuntimeError, TimeoutError) as error:
            raise type(error)(f"{self.title}: {error}") from error
        return [found[name] for name in wanted]


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
    """A request to a model, until Triton needs neither it nor its memory any more."""

    def __init__(self, server: int, name: str, version: int) -> None:
        self.request = _Address()
        self._server = server
        self._number = next(_numbers)
        self._inputs: list[np.ndarray] = []
        self._buffers: dict[int, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}
        self._problem = ""
        self._changed = threading.Condition()
        # The request must be released, and the last response arrive.
        self._steps_left = 2
        self._abandoned = False
        call("InferenceRequestNew", ctypes.byref(self.request), server, name.encode(), version)
        _calls[self._number] = self
        call("InferenceRequestSetReleaseCallback", self.request, _released, self._number)
        call("InferenceRequestSetResponseCallback", self.request, _allocator(), self._number, _answered, self._number)

    def run(
        self, arrays: Mapping[NetworkTensor, np.ndarray], wanted: Sequence[str], timeout_seconds: float
    ) -> dict[str, np.ndarray]:
        """Send the request and wait for its outputs.

        Args:
            arrays: the inputs, which are not copied.
            wanted: the names of the outputs.
            timeout_seconds: how long to wait; 0: any time.

        Raises:
            RuntimeError: the model failed.
            TimeoutError: it took too long. Its memory lives on until Triton is done with it.
        """
        try:
            for tensor, array in arrays.items():
                self._add_input(tensor, array)
            for name in wanted:
                call("InferenceRequestAddRequestedOutput", self.request, name.encode())
            call("ServerInferAsync", self._server, self.request, _NO_TRACE)
        except RuntimeError:
            self.end()
            raise
        with self._changed:
            if not self._changed.wait_for(self._is_done, timeout_seconds or None):
                # Before Triton's threads can end the request.
                call("InferenceRequestCancel", self.request)
                self._abandoned = True
                raise TimeoutError(f"no answer after {timeout_seconds:g} seconds (`timeout_seconds`)")
        self.end()
        if self._problem:
            raise RuntimeError(self._problem)
        return self._outputs

    def _add_input(self, tensor: NetworkTensor, array: np.ndarray) -> None:
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        name, kind = tensor.name.encode(), _NUMBERS[TRITON_TYPES[tensor.dtype]]
        call("InferenceRequestAddInput", self.request, name, kind, shape, array.ndim)
        call("InferenceRequestAppendInputData", self.request, name, array.ctypes.data, array.nbytes, _CPU_MEMORY, 0)
        self._inputs.append(array)

    def _is_done(self) -> bool:
        return not self._steps_left

    def end(self) -> None:
        """Forget the request."""
        if _calls.pop(self._number, None) is not None:
            call("InferenceRequestDelete", self.request)

    # -- called by Triton's threads ------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Allocate memory for an output; return its address."""
        # At least a byte, as empty memory has no address.
        buffer = np.empty(max(size, 1), np.uint8)
        self._buffers[buffer.ctypes.data] = buffer
        return buffer.ctypes.data

    def take(self, response: _Address) -> None:
        """Keep the outputs of a response, or its error."""
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
            dtype = numpy_dtype(_DTYPES[f"TYPE_{_TYPES[kind.value]}"])
            extents = [shape[axis] for axis in range(rank.value)]
            assert name.value is not None
            used = math.prod(extents) * dtype.itemsize
            memory_of_output = self._buffers[base.value or 0][:used] if used else np.empty(0, np.uint8)
            self._outputs[name.value.decode()] = memory_of_output.view(dtype).reshape(extents)

    def step(self) -> None:
        """Note that the request is released, or that the last response has come."""
        with self._changed:
            self._steps_left -= 1
            self._changed.notify()
            is_forgotten = self._abandoned and self._is_done()
        if is_forgotten:
            self.end()


_numbers = itertools.count(1)
# Objects that Triton still needs, by the numbers passed to its callbacks.
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
# The memory is numpy's.
_release_callback = _Release(lambda *_: None)
_released = _Answered(_release_request)
_answered = _Answered(_take_response)
_making = threading.Lock()
_addresses: list[_Address] = []


def _allocator() -> _Address:
    """Triton's object that takes memory for outputs from us; never destroyed."""
    with _making:
        if not _addresses:
            allocator = _Address()
            call("ResponseAllocatorNew", ctypes.byref(allocator), _allocate_callback, _release_callback, None)
            _addresses.append(allocator)
        return _addresses[0]
