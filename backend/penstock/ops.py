"""Operators as classes: ``ops.Resize(size=(224, 224))(images)``; one for each registered operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

from penstock import python_function, tfrecord  # noqa: F401  (register what is written out)
from penstock.external_source import ExternalSource
from penstock.graph import call_operator
from penstock.graph.calls import DEVICES
from penstock.graph.nodes import DataNode
from penstock.schema import Schema
from penstock.schema.documentation import call_signature, constructor_signature, docstring, with_self
from penstock.schema.namespaces import find_written_out, no_such_operator, submodule
from penstock.schema.registry import all_schemas, find_schema, load_package, subscribe
from penstock.tensors.dlpack import from_dlpack, to_capsule

__all__ = ["Compose", "ExternalSource", "cpu_ops", "gpu_ops", "mixed_ops"]


class OperatorWrapper:
    """An operator with arguments given at construction, which can be called on inputs any number of times.

    Args:
        device: ``cpu``, ``gpu`` or ``mixed``.
        name: of the instance.
        arguments: of the operator; more can be given at the call.
    """

    schema: Schema

    def __init__(self, *, device: str = "cpu", name: str | None = None, **arguments: object) -> None:
        if not isinstance(device, str):
            raise RuntimeError(f'Unsupported argument type with name "device": expected a string, got {device!r}')
        if device not in DEVICES:
            raise ValueError(f'Unsupported device type: "{device}". Use one of {", ".join(DEVICES)}.')
        for key in arguments:
            if key not in self.schema.all_arguments:
                raise self.schema.unknown_argument(key)
        self._device = device
        self._name = name
        self._arguments = arguments

    @property
    def device(self) -> str:
        """Where it runs."""
        return self._device

    @property
    def schema_name(self) -> str:
        """The operator's name in saved pipelines."""
        return self.schema.name

    @property
    def preserve(self) -> bool:
        """Whether it stays even if no output depends on it."""
        return self.schema.no_prune or bool(self._arguments.get("preserve"))

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """The operator's outputs for ``inputs``.

        Raises:
            ValueError: an argument was given at construction already; RuntimeError for one computed in the graph.
        """
        name = arguments.pop("name", None)
        given = {key: value for key, value in arguments.items() if value is not None}
        known = [key for key in given if self._arguments.get(key) is not None]
        if name and self._name:
            known.append("name")
        if known:
            # DALI checks nodes later than constants.
            kind = RuntimeError if isinstance(given.get(known[0]), DataNode) else ValueError
            raise kind(f"The argument `{known[0]}` was already specified in __init__.")
        return call_operator(
            self.schema,
            inputs,
            self._arguments | given,
            self._device,
            name or self._name,
            display=f"{type(self).__module__}.{type(self).__name__}",
        )


def _method(inherited: object, signature: inspect.Signature) -> Callable[..., object]:
    """The inherited method with one operator's signature.

    A copy, as a function that called the inherited one would add a frame between warnings and the user's line.
    """
    method = FunctionType(inherited.__code__, inherited.__globals__, inherited.__name__)
    method.__kwdefaults__ = inherited.__kwdefaults__
    method.__doc__ = inherited.__doc__
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _publish(schema: Schema) -> None:
    module = submodule(__name__, ".".join(schema.module))
    face = find_written_out(f"ops.{schema.name}")
    if face is None:
        face = type(
            schema.class_name,
            (OperatorWrapper,),
            {
                "schema": schema,
                "__doc__": docstring(schema),
                "__module__": module.__name__,
                "__init__": _method(OperatorWrapper.__init__, with_self(constructor_signature(schema))),
                "__call__": _method(OperatorWrapper.__call__, with_self(call_signature(schema))),
            },
        )
    setattr(module, schema.class_name, face)
    if schema.is_unlisted:
        setattr(submodule(__name__, ".".join((*schema.module, "hidden"))), schema.class_name, face)


def Compose(op_list: Sequence[object]) -> Any:
    """Several operators combined into one that calls them in order; a single operator is returned as it is.

    Args:
        op_list: operators (or functions of nodes); each gets the outputs of the previous one. An empty list returns the
            inputs.
    """
    return op_list[0] if len(op_list) == 1 else _Compound(op_list)


class _Compound:
    """The result of :func:`Compose` for several operators."""

    def __init__(self, op_list: Sequence[object]) -> None:
        self._operators = list(op_list)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """The outputs of the last operator; keyword arguments go to the first."""
        if not self._operators:
            return inputs[0] if len(inputs) == 1 else list(inputs)
        outputs: Any = self._operators[0](*inputs, **arguments)
        for operator in self._operators[1:]:
            outputs = operator(*outputs) if isinstance(outputs, (list, tuple)) else operator(outputs)
        return outputs


def _names(device: str) -> set[str]:
    return {schema.name for schema in all_schemas() if device in schema.devices and not schema.hidden}


def cpu_ops() -> set[str]:
    """The names of operators that run on the CPU."""
    return _names("cpu")


def gpu_ops() -> set[str]:
    """The names of operators that run on the GPU."""
    return _names("gpu")


def mixed_ops() -> set[str]:
    """The names of operators that take data on the CPU and return it on the GPU."""
    return _names("mixed")


def _op_name(schema_name: str, api: str = "fn") -> str:
    """The dotted path of an operator in ``fn``, or in ``ops``."""
    schema = find_schema(schema_name)
    return schema.fn_path if api == "fn" else ".".join((*schema.module, schema.class_name))


_DataNode = DataNode

# Names that programs written for DALI use to convert arrays to DLPack capsules and back.
_dlpack_from_array = to_capsule


def _dlpack_to_array(capsule: object) -> object:
    return from_dlpack(capsule, on_gpu=False)


def __getattr__(name: str) -> NoReturn:
    no_such_operator(__name__, name)


__path__: list[str] = []
load_package("penstock.operators")
subscribe(_publish)
