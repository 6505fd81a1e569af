"""Operators as classes: ``ops.Resize(size=(224, 224))(images)``; one class for each registered operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from penstock import python_function, tfrecord  # noqa: F401  (register what is written out)
from penstock.errors import as_imported
from penstock.external_source import ExternalSource
from penstock.graph import call_operator
from penstock.graph.calls import current_arguments
from penstock.graph.nodes import DataNode
from penstock.schema import Schema
from penstock.schema.documentation import call_signature, constructor_signature, docstring, with_self
from penstock.schema.fused import FusedOperator
from penstock.schema.namespaces import Namespace, find_written_out, submodule
from penstock.schema.op_schema import Described
from penstock.schema.registry import all_schemas, find_schema, offer_package, operator_class
from penstock.tensors.dlpack import from_dlpack, to_capsule

__all__ = [
    "Compose",
    "ExternalSource",
    "Reload",
    "cpu_ops",
    "gpu_ops",
    "mixed_ops",
    "python_op_factory",
    "register_cpu_op",
    "register_gpu_op",
]


class OperatorWrapper(Described):
    """An operator with arguments set at construction, which can be called on inputs any number of times.

    Args:
        device: ``cpu``, ``gpu`` or ``mixed``.
        name: the name of the instance.
        arguments: the operator's arguments; the call can add more.
    """

    _declared: Schema

    def __init__(self, *, device: str = "cpu", name: str | None = None, **arguments: object) -> None:
        if not isinstance(device, str):
            raise RuntimeError(f'Unsupported argument type with name "device": expected a string, got {device!r}')
        for key in arguments:
            if key not in self._declared.all_arguments:
                raise self._declared.unknown_argument(key)
        self._device = device
        self._name = name
        self._arguments = {}
        for argument, value in current_arguments(self._declared, arguments, as_imported(self._display), stacklevel=3):
            if not isinstance(value, (DataNode, np.ndarray)):
                argument.convert(value)
            self._arguments[argument.name] = value

    @property
    def _display(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}"

    @property
    def device(self) -> str:
        """The device of the operator."""
        return self._device

    @property
    def preserve(self) -> bool:
        """Whether the operator runs even if no output depends on it."""
        return self._declared.no_prune or bool(self._arguments.get("preserve"))

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Return the operator's outputs for ``inputs``.

        Raises:
            ValueError: an argument was already set at construction; RuntimeError if it is set to a node now.
        """
        name = arguments.pop("name", None)
        given = {key: value for key, value in arguments.items() if value is not None}
        known = [key for key in given if self._arguments.get(key) is not None]
        if name and self._name:
            known.append("name")
        if known:
            # DALI checks nodes later than constants, and raises another error.
            kind = RuntimeError if isinstance(given.get(known[0]), DataNode) else ValueError
            raise kind(f"The argument `{known[0]}` was already specified in __init__.")
        return call_operator(
            self._declared,
            inputs,
            self._arguments | given,
            self._device,
            name or self._name,
            display=self._display,
        )


def _method(inherited: Any, signature: inspect.Signature) -> Callable[..., object]:
    """Return a copy of the inherited method with the signature of one operator.

    A function that calls the inherited method would add a frame between warnings and the user's line; a copy does not.
    """
    method = FunctionType(inherited.__code__, inherited.__globals__, inherited.__name__)
    method.__kwdefaults__ = inherited.__kwdefaults__
    method.__doc__ = inherited.__doc__
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _make_class(schema: Schema, name: str) -> Any:
    """Return the class in ``ops`` for an operator."""
    module = submodule(__name__, ".".join(schema.module))
    return type(
        name,
        (OperatorWrapper,),
        {
            "_declared": schema,
            "schema_name": schema.name,
            "__doc__": docstring(schema),
            "__module__": module.__name__,
            "__init__": _method(OperatorWrapper.__init__, with_self(constructor_signature(schema))),
            "__call__": _method(OperatorWrapper.__call__, with_self(call_signature(schema))),
        },
    )


def _make(schema: Schema) -> object:
    """Return the class for an operator: a hand-written one, or a generated one."""
    return find_written_out(f"ops.{schema.name}") or _make_class(schema, schema.class_name)


def python_op_factory(
    name: str, schema_name: str, internal_schema_name: str | None = None, generated: bool = True
) -> type[OperatorWrapper]:
    """Return a class called ``name`` for the operator of a schema; for programs written for DALI, as `ops` does not call this.

    Raises:
        KeyError: there is no such schema.
    """
    made: type[OperatorWrapper] = _make_class(find_schema(internal_schema_name or schema_name), name)
    made.schema_name = schema_name
    return made


def Reload() -> None:
    """Do nothing: an operator appears in `ops` and `fn` when it is registered."""


def Compose(op_list: Sequence[Callable[..., Any]]) -> Any:
    """Combine several operators into one that calls them in order; a single operator is returned unchanged.

    Args:
        op_list: operators, or functions of nodes; each gets the outputs of the previous one. The result for an empty list
            returns its inputs.
    """
    return op_list[0] if len(op_list) == 1 else _Compound(op_list)


class _Compound:
    """The result of :func:`Compose` for several operators."""

    def __init__(self, op_list: Sequence[Callable[..., Any]]) -> None:
        self._operators = list(op_list)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Return the outputs of the last operator; keyword arguments go to the first."""
        if not self._operators:
            return inputs[0] if len(inputs) == 1 else list(inputs)
        outputs: Any = self._operators[0](*inputs, **arguments)
        for operator in self._operators[1:]:
            outputs = operator(*outputs) if isinstance(outputs, (list, tuple)) else operator(outputs)
        return outputs


_further: dict[str, set[str]] = {"cpu": set(), "gpu": set(), "mixed": set()}


def _names(device: str) -> set[str]:
    """Return the names of the operators for a device, including old and private names, but not operators that only passes insert."""
    names = {schema.name for schema in all_schemas() if device in schema.devices}
    return _further[device].union(name for name in names if not issubclass(operator_class(name), FusedOperator))


def cpu_ops() -> set[str]:
    """Return the names of operators that run on the CPU."""
    return _names("cpu")


def gpu_ops() -> set[str]:
    """Return the names of operators that run on the GPU."""
    return _names("gpu")


def mixed_ops() -> set[str]:
    """Return the names of operators that take data on the CPU and return it on the GPU."""
    return _names("mixed")


def _all_registered_ops() -> set[str]:
    """Return the names of all operators; programs written for DALI use this function's name."""
    return cpu_ops() | gpu_ops() | mixed_ops()


def register_cpu_op(name: str) -> None:
    """Add a name to :func:`cpu_ops`, for a class that composes operators."""
    _further["cpu"].add(name)


def register_gpu_op(name: str) -> None:
    """Add a name to :func:`gpu_ops`, for a class that composes operators."""
    _further["gpu"].add(name)


def _op_name(schema_name: str, api: str = "fn") -> str:
    """Return the dotted path of an operator in ``fn``, or in ``ops``."""
    schema = find_schema(schema_name)
    return schema.fn_path if api == "fn" else schema.class_path


_DataNode = DataNode

# Names that programs written for DALI use to convert between arrays and DLPack capsules.
_dlpack_from_array = to_capsule


def _dlpack_to_array(capsule: object) -> object:
    return from_dlpack(capsule, on_gpu=False)


__path__: list[str] = []
offer_package("penstock.operators")
_namespace = Namespace(__name__, lambda entry: entry.class_path, _make)


def __getattr__(name: str) -> Any:
    return _namespace.find(__name__, name)


def __dir__() -> list[str]:
    return _namespace.names(__name__)
