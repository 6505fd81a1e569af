"""The contents of the module `ops`: classes and functions for all operators, made from the same schemas as in pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from penstock.dynamic._calls import CallInterface, call
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._readers import Reader, ReaderMeta, ReaderState, TFRecord
from penstock.dynamic._signatures import accepted, input_counts, miscalled, reader_signature, signature_of
from penstock.dynamic._syntax import interface_of
from penstock.dynamic._value import Results
from penstock.schema import Operator as RunningOperator
from penstock.schema import Schema, find_schema, operator_class
from penstock.schema.documentation import docstring
from penstock.schema.fused import FusedOperator
from penstock.schema.input_operator import InputOperator
from penstock.schema.namespaces import submodule
from penstock.schema.registry import load_offered, subscribe

_ROOT = __name__.rpartition(".")[0]
# Operators that were deprecated before this version are not part of dynamic mode.
_FIRST_VERSION = (2, 0)

_Made = TypeVar("_Made")

_all_ops: list[type[Operator] | type[Reader]] = []
_all_functions: list[Callable[..., Results]] = []


class Operator:
    """An operator with arguments that are set at construction; it can be called any number of times.

    Args:
        max_batch_size: ignored; accepted because DALI programs pass it.
        name: the instance's name.
        device: the device on which it runs.
        num_inputs: ignored; accepted because DALI programs pass it.
        arguments: the operator's arguments; calls can add more.
    """

    _interface: ClassVar[CallInterface]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: object = "cpu",
        num_inputs: int | None = None,
        **arguments: object,
    ) -> None:
        """Create the operator; for the arguments, see the class."""
        self._max_batch_size, self._name, self._arguments = max_batch_size, name, arguments
        self._device = as_device(unmarked(device))
        self._interface.backend(self._device, ())

    def __call__(self, *inputs: object, batch_size: int | None = None, **arguments: object) -> Any:
        """Return the operator's result for inputs, or a tuple of results if there are several.

        Args:
            inputs: tensors, batches, or values that can be converted to them.
            batch_size: the batch size of the results, if no input determines it.
            arguments: the operator's arguments, and for a random operator ``rng``, its generator.
        """
        merged = self._arguments | {name: value for name, value in arguments.items() if value is not None}
        return call(self._interface, inputs, merged, batch_size, self._device)


# -- making them from schemas ----------------------------------------------------------------------------------------


def _belongs(schema: Schema) -> bool:
    """Return whether dynamic mode has an operator: not if it needs a pipeline or callbacks, or was deprecated before dynamic
    mode existed.
    """
    if schema.deprecated_since:
        version = tuple(int(part) for part in schema.deprecated_since.split(".")[:2])
        if version <= _FIRST_VERSION:
            return False
    cls = operator_class(schema.name)
    return not issubclass(cls, (FusedOperator, InputOperator)) and cls.bind is RunningOperator.bind


def _is_reader(schema: Schema) -> bool:
    return "readers" in schema.module


def _publish(schema: Schema) -> None:
    if not _belongs(schema) or schema.name == "readers___TFRecord":
        return
    if _is_reader(schema):
        _publish_reader(schema)
        return
    interface = interface_of(schema.name)
    made = _make_class(schema, Operator, f"{_ROOT}._ops", interface)
    _all_ops.append(made)
    setattr(submodule(f"{_ROOT}._ops", ".".join(schema.module)), schema.class_name, made)
    function = _make_function(interface, made)
    _all_functions.append(function)
    path, _, name = schema.fn_path.rpartition(".")
    setattr(submodule(_ROOT, path), name, function)


def _publish_reader(schema: Schema) -> None:
    base: type[Reader] = Reader
    if schema.name == "readers__TFRecord":
        schema, base = find_schema("readers___TFRecord"), TFRecord
    made = _make_class(
        schema, base, _ROOT, CallInterface(schema, schema.fn_path), "TFRecord" if base is TFRecord else None
    )
    made.__signature__ = reader_signature(base, schema)  # type: ignore[attr-defined]
    _all_ops.append(made)
    setattr(submodule(_ROOT, ".".join(schema.module)), made.__name__, made)


def _make_class(
    schema: Schema, base: type[_Made], root: str, interface: CallInterface, name: str | None = None
) -> type[_Made]:
    name = name or schema.class_name
    made = type(name, (base,), {"_interface": interface, "__doc__": documentation(schema), "__qualname__": name})
    made.__module__ = ".".join((root, *schema.module))
    return made


def _make_function(interface: CallInterface, made: object) -> Callable[..., Results]:
    path, _, name = interface.schema.fn_path.rpartition(".")
    min_inputs, max_inputs = input_counts(interface.schema)
    known = accepted(interface.schema)

    def function(*inputs: object, batch_size: int | None = None, device: object = None, **arguments: object) -> Results:
        if not min_inputs <= len(inputs) <= max_inputs or not known.issuperset(arguments):
            raise miscalled(interface.schema, name, len(inputs), [key for key in arguments if key not in known])
        return call(interface, inputs, arguments, batch_size, device)

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"{_ROOT}.{path}" if path else _ROOT
    function.__doc__ = documentation(interface.schema)
    for attribute, value in {
        "__signature__": signature_of(interface.schema),
        "_op_class": made,
    }.items():
        setattr(function, attribute, value)
    return function


def schema_of(made: type[Operator] | type[Reader]) -> Schema:
    """Return the schema of an operator's class."""
    return made._interface.schema


def documentation(schema: Schema) -> str:
    """Return the docstring of an operator for dynamic mode."""
    text = re.sub(r"\bfn\.", "dynamic.", docstring(schema).replace("DataNode", "Tensor | Batch"))
    return text.replace("TensorList", "Batch").replace("the graph", "a call").replace("given by a call", "given")


def all_operators() -> list[type[Operator] | type[Reader]]:
    """Return the operator classes that have been made so far."""
    return list(_all_ops)


def all_functions() -> list[Callable[..., Results]]:
    """Return the operator functions that have been made so far."""
    return list(_all_functions)


def publish() -> None:
    """Make the classes and functions of all operators, including operators that are registered later."""
    if not _all_ops:
        load_offered()
        subscribe(lambda entry: _publish(find_schema(entry.name)))


__all__ = [
    "Operator",
    "Reader",
    "ReaderMeta",
    "ReaderState",
    "all_functions",
    "all_operators",
    "documentation",
    "publish",
]
__path__: list[str] = []
