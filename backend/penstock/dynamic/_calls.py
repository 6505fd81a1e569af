"""Calls of operators on tensors and batches."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np

from penstock.dynamic._batch import Batch
from penstock.dynamic._conversion import is_array
from penstock.dynamic._devices import Device
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DType
from penstock.dynamic._engine import BoundOperator, bind, display_name
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._invariants import all_unmarked
from penstock.dynamic._rngs import STATE_WORDS, chosen_rng
from penstock.dynamic._tensor import Tensor
from penstock.dynamic._value import Results, Value
from penstock.errors import BatchError, OperatorError
from penstock.schema import Schema
from penstock.tensors import TensorCPU, TensorList

_PLAIN = frozenset({int, float, bool, str})


class CallInterface:
    """The properties that all calls of an operator share.

    Args:
        schema: the operator's schema.
        path: the operator's name below ``penstock.dynamic``.
    """

    def __init__(self, schema: Schema, path: str) -> None:
        self.schema = schema
        self.display = display_name(path)
        self.dtypes = {name: a.element.tensor_dtype for name, a in schema.all_arguments.items() if a.tensor}
        self.values = frozenset(name for name, a in schema.all_arguments.items() if a.type == "object")

    def backend(self, device: Device | None, inputs: Sequence[object]) -> str:
        """Return the backend for a call: ``cpu``, ``gpu`` or ``mixed``; raise ValueError if the operator does not
        support it.
        """
        kind = device.device_type if device is not None else _device_of(inputs)
        devices = self.schema.devices
        if kind in devices:
            return kind
        if kind == "gpu" and "mixed" in devices:
            return "mixed"
        if device is None and len(devices) == 1:
            return devices[0]
        raise ValueError(f'Invalid device "{kind}" for operator `{self.display}`, which runs on: {", ".join(devices)}')

    def input_device(self, index: int, backend: str) -> str | None:
        """Return the device on which an input must be; None: any."""
        device = self.schema.input(index).device
        if device == "":
            return "gpu" if backend == "gpu" else "cpu"
        if device == "cpu" or (device == "match_or_cpu" and backend != "gpu"):
            return "cpu"
        return "gpu" if device == "gpu" else None


def _device_of(inputs: Sequence[object]) -> str:
    for item in inputs:
        if isinstance(item, Value):
            if item.device_type() == "gpu":
                return "gpu"
        elif hasattr(item, "__cuda_array_interface__") or (isinstance(item, TensorList) and item.device_type == "gpu"):
            return "gpu"
    return "cpu"


class OperatorWork:
    """The work of running an operator on inputs.

    Args:
        bound: the operator.
        inputs, arguments: the inputs, and the arguments that are tensors or batches.
        batch_size: the batch size of the results; tensors are repeated for as many samples.
    """

    __slots__ = ("_arguments", "_batch_size", "_bound", "_inputs")

    def __init__(
        self,
        bound: BoundOperator,
        inputs: Sequence[Tensor | Batch],
        arguments: Sequence[Tensor | Batch],
        batch_size: int,
    ) -> None:
        self._bound, self._inputs, self._arguments, self._batch_size = bound, inputs, arguments, batch_size

    @property
    def count(self) -> int:
        return self._bound.count

    @property
    def devices(self) -> list[str]:
        return [node.device for node in self._bound.step.node.outputs]

    def run(self, context: EvalContext) -> list[TensorList]:
        size = self._batch_size
        data = [value.tensor_list(size) for value in self._inputs]
        data += [value.tensor_list(size) for value in self._arguments]
        gpus = {number for value in self._inputs if (number := value.device.device_id) is not None}
        return context.engine.run(self._bound, data, size, gpus)

    def placeholder(self, context: EvalContext) -> list[TensorList] | None:
        values = [*self._inputs, *self._arguments]
        if not values or self._bound.step.node.device != "cpu":
            return None
        empty = [_without_samples(value.placeholder()) for value in values]
        return context.engine.run(self._bound, list(empty), 0)


def _without_samples(batch: TensorList) -> TensorList:
    return type(batch).of_samples([], batch.layout(), batch.dtype, batch.ndim())


class Interceptor(Protocol):
    """Handles the calls of operators on a thread, in place of running them directly."""

    def call(
        self,
        interface: CallInterface,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
    ) -> Results:
        """Handle a call of an operator, and return its results."""


class _Observers(threading.local):
    """The interceptor of each thread's calls."""

    interceptor: Interceptor | None = None


watched = _Observers()


def call(
    interface: CallInterface,
    inputs: Sequence[object],
    arguments: Mapping[str, object],
    batch_size: int | None = None,
    device: object = None,
) -> Results:
    """Call an operator.

    Args:
        interface: the operator's function in ``dynamic``.
        inputs: tensors and batches, or values that can be converted to them; None counts as absent.
        arguments: the arguments by name; None counts as absent. ``rng``: the generator for a random operator.
        batch_size: the batch size of the results; None: that of the batches among inputs and arguments, and without any, results are
            tensors.
        device: the device to run on; by default the device of the inputs.

    Returns:
        The result, or a tuple of results if there are several.
    """
    interceptor = watched.interceptor
    if interceptor is not None:
        return interceptor.call(interface, inputs, arguments, batch_size, device)
    return perform(interface, inputs, arguments, batch_size, device)


def perform(
    interface: CallInterface,
    inputs: Sequence[object],
    arguments: Mapping[str, object],
    batch_size: int | None = None,
    device: object = None,
    state: Sequence[int] | None = None,
) -> Results:
    """Same as :func:`call`, but without an interceptor; ``state``: the state of a random operator, if it has been drawn already."""
    items = [all_unmarked(item) if type(item) not in (Tensor, Batch) else item for item in inputs]
    items = [item for item in items if item is not None]
    wanted = as_device(all_unmarked(device))
    number = _gpu_of(wanted, items)
    _check_gpus(items, interface.display)
    if number not in (None, EvalContext.current().device_id):
        with EvalContext.default_on(number):
            return perform(interface, inputs, arguments, batch_size, device, state)
    tensors, constants, key = _sorted_out(interface, arguments)
    batch_size = _batch_size(all_unmarked(batch_size), [*items, *tensors.values()])
    if interface.schema.random:
        words = chosen_rng(arguments.get("rng")).draw(STATE_WORDS) if state is None else state
        tensors["_random_state"] = Tensor.of(TensorCPU.of_array(np.array(words, np.uint32)))
    backend = interface.backend(wanted, items)
    values = [_as_input(item, interface.input_device(index, backend), batch_size) for index, item in enumerate(items)]
    context = EvalContext.current()

    def make() -> BoundOperator:
        try:
            return bind(interface.schema, backend, len(values), tuple(tensors), constants, interface.display)
        except OperatorError:
            # Before the arguments' error, report a wrong rank of an input, as DALI does.
            for index, value in enumerate(values):
                if value.is_external() and not value.layout:
                    interface.schema.fitting_layout(index, "", value.ndim)
            raise

    if key is None:
        bound = make()
    else:
        bound = context.engine.bound((interface.schema.name, backend, len(values), tuple(tensors), key), make)
    work = OperatorWork(bound, values, list(tensors.values()), 1 if batch_size is None else batch_size)
    external = any(value.is_external() for value in values) or any(value.is_external() for value in tensors.values())
    results: Sequence[Value] = (
        Tensor.results_of(work, external) if batch_size is None else Batch.results_of(work, batch_size, external)
    )
    return results[0] if len(results) == 1 else tuple(results)


def _gpu_of(device: Device | None, inputs: Sequence[object]) -> int | None:
    """Return the number of the requested GPU, or of the inputs' GPU; None: the current one."""
    if device is not None and device.device_type == "gpu":
        return device.device_id
    devices = (item.device for item in inputs if isinstance(item, Value))
    return next((device.device_id for device in devices if device.device_type == "gpu"), None)


def _check_gpus(inputs: Sequence[object], display: str) -> None:
    """Raise ValueError if inputs are on several GPUs, as a kernel can read the memory of only one."""
    found = sorted({str(item.device) for item in inputs if isinstance(item, Value) and item.device_type() == "gpu"})
    if len(found) > 1:
        raise ValueError(
            f"The inputs of {display} are on several GPUs, {' and '.join(found)}: copy them to one with `.gpu()`"
        )


def _sorted_out(
    interface: CallInterface, arguments: Mapping[str, object]
) -> tuple[dict[str, Tensor | Batch], dict[str, object], Hashable | None]:
    """Split arguments into tensors and others. Also return a key that is equal for equal other arguments; None if they
    have no such key.
    """
    tensors: dict[str, Tensor | Batch] = {}
    constants: dict[str, object] = {}
    key: list[Hashable] = []
    known = True
    for name, value in arguments.items():
        kind = type(value)
        if kind in _PLAIN:
            constants[name] = value
            key.append((name, kind, value))
            continue
        if type(value) is list and (kinds := tuple(map(type, value))) and _PLAIN.issuperset(kinds):
            constants[name] = value.copy()
            key.append((name, kinds, tuple(value)))
            continue
        if value is None or (name == "rng" and interface.schema.random):
            continue
        value = settled(interface, name, value)
        if value is None:
            continue
        if isinstance(value, (Tensor, Batch)):
            tensors[name] = value
            continue
        constants[name] = value
        try:
            key.append((name, frozen(value)))
        except TypeError:
            known = False
    return tensors, constants, tuple(key) if known else None


def settled(interface: CallInterface, name: str, value: object) -> object:
    """Return an argument in the form that the operator gets: a tensor or batch on the CPU, or a constant as in pipelines."""
    value = all_unmarked(value)
    if (
        value is not None
        and name in interface.dtypes
        and (isinstance(value, (Value, TensorList)) or _is_data(value, interface, name))
    ):
        return _as_argument(value, interface, name)
    return _plain(value, interface, name)


def _is_data(value: object, interface: CallInterface, name: str) -> bool:
    """Return whether an argument is an array rather than a number or a list of them."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, Value) for item in value)
    return name not in interface.values and is_array(value) and not isinstance(value, np.generic)


def _plain(value: object, interface: CallInterface, name: str) -> object:
    """Return a constant argument in the form that pipelines accept."""
    if isinstance(value, DType):
        return value.type_id
    if isinstance(value, Device):
        return value.device_type
    if isinstance(value, Batch):
        raise TypeError(
            f"The argument `{name}` of `{interface.display}` must be the same for all samples: it cannot be a batch"
        )
    if isinstance(value, Tensor):
        return value.item() if value.ndim == 0 else np.asarray(value.cpu()).tolist()
    if isinstance(value, (list, tuple)) and name not in interface.values:
        return [_plain(item, interface, name) for item in value]
    if isinstance(value, (np.ndarray, np.generic)) and name not in interface.values:
        return value.tolist()
    return value


def frozen(value: object) -> Hashable:
    """Return a key that is equal for equal values of the same types; raise TypeError for values that have no such key."""
    kind = type(value)
    # Only for exactly these types: values of derived classes may differ in more than their items.
    if isinstance(value, (list, tuple)) and kind in (list, tuple):
        return tuple(map(frozen, value))
    if isinstance(value, dict) and kind is dict:
        return tuple((frozen(key), frozen(item)) for key, item in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    hash(value)
    return kind, value


def _as_argument(value: object, interface: CallInterface, name: str) -> Tensor | Batch:
    """Return an argument as a tensor or batch on the CPU, with the type that the operator expects."""
    if isinstance(value, (Tensor, Batch)):
        tensor: Tensor | Batch = value
    else:
        tensor = Batch(value) if isinstance(value, TensorList) else Tensor(value)
    if tensor.device_type() != "cpu":
        tensor = tensor.cpu()
    wanted = interface.dtypes[name]
    if wanted is None or tensor.dtype.type_id == wanted:
        return tensor
    return Batch(tensor, dtype=wanted) if isinstance(tensor, Batch) else Tensor(tensor, dtype=wanted)


def _as_input(item: object, device: str | None, batch_size: int | None) -> Tensor | Batch:
    """Return an input as a tensor or batch, on the CPU or a GPU, depending on ``device``."""
    if not isinstance(item, (Tensor, Batch)):
        item = Batch(item) if isinstance(item, TensorList) else Tensor(item)
    if device is not None and item.device_type() != device:
        item = item.to_device(Device(device))
    tensor: Tensor | Batch = item
    return tensor


def _batch_size(requested: int | None, values: Sequence[object]) -> int | None:
    """Return the batch size of a call; raise BatchError if inputs and arguments have different ones."""
    if requested is not None and requested < 0:
        raise BatchError(f"A batch size cannot be negative, got {requested}")
    found = requested
    for value in values:
        size = value.batch_size if isinstance(value, Batch) else len(value) if isinstance(value, TensorList) else None
        if size is None:
            continue
        if found is not None and found != size:
            raise BatchError(f"Inconsistent batch size: {size} samples where {found} are expected")
        found = size
    return found
