"""Calls of an operator, generated from its schema: sweeps run them, and the documentation shows them.

A schema's ``example`` and ``examples`` say what types and defaults cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.data_types import FLOAT, INT16, DALIImageType, DALIInterpType
from penstock.schema.arguments import Argument
from penstock.schema.declaration import Schema
from penstock.schema.example_data import Example, ExampleSamples, photos, pictures
from penstock.schema.input_operator import InputOperator
from penstock.schema.registry import operator_class


@dataclass(frozen=True)
class Call:
    """A call with all its arguments and inputs.

    Attributes:
        name: distinguishes it from the operator's other calls.
        arguments: the constant arguments.
        inputs: the samples of each input.
    """

    name: str
    arguments: Mapping[str, Any]
    inputs: tuple[ExampleSamples, ...]


class NoExampleError(LookupError):
    """An argument's type suggests no valid value; the message says what to declare."""


def example_value(argument: Argument) -> object:
    """Return a valid value of an argument other than its default: its example, or one suggested by its type and default."""
    if argument.example is not None:
        return argument.example
    if argument.choices:
        return next((choice for choice in argument.choices if choice != argument.default), argument.default)
    default = argument.default
    if argument.is_list:
        if not default:
            raise _no_example(argument)
        return [_other_value(argument, value) for value in default]
    return _other_value(argument, default)


def _other_value(argument: Argument, default: Any) -> object:
    kind = argument.type.removesuffix("[]")
    if kind == "bool":
        return not default
    if kind == "DALIDataType":
        return INT16 if default == FLOAT else FLOAT
    if kind == "DALIImageType":
        return DALIImageType.RGB if default != DALIImageType.RGB else DALIImageType.GRAY
    if kind == "DALIInterpType":
        return DALIInterpType.INTERP_NN if default != DALIInterpType.INTERP_NN else DALIInterpType.INTERP_LINEAR
    if kind in ("int32", "int64", "uint32") and default is not None:
        return default // 2 if default > 1 else default + 1
    if kind == "float" and default is not None:
        return default * 0.75 if default else 0.25
    raise _no_example(argument)


def _no_example(argument: Argument) -> NoExampleError:
    return NoExampleError(f"Argument '{argument.name}' ({argument.type}) needs an `example` in its declaration")


def why_unswept(schema: Schema) -> str:
    """Return why the operator's calls cannot be generated; empty if they can."""
    if schema.absent:
        return schema.absent
    if schema.fuses is not None:
        return "it stands for a chain of other operators, which a pass finds"
    if issubclass(operator_class(schema.name), InputOperator):
        return "the program feeds it"
    if schema.touches_files:
        return "it reads files"
    return schema.unswept


def examples(schema: Schema) -> Iterator[Call]:
    """Yield the calls that the schema declares, at least one, the simplest first."""
    for number, example in enumerate(schema.examples or (Example(),)):
        yield _call(schema, example, example.title or (f"example {number + 1}" if number else "example"))


def shown_calls(schema: Schema) -> list[Call]:
    """Return the calls that the documentation shows: those declared for it, or the simplest call, on a photograph if
    possible.

    Raises:
        NoExampleError: the schema declares none, and none can be generated.
    """
    simplest = (schema.examples or (Example(),))[0]
    return [_call(schema, example, example.title) for example in schema.shown or (_on_photo(schema, simplest),)]


def _on_photo(schema: Schema, example: Example) -> Example:
    if example.inputs or not schema.min_input_count or schema.inputs[0].example is not pictures:
        return example
    accepted = schema.inputs[0].layouts
    return example if accepted and "HWC" not in accepted else replace(example, inputs=(photos,), layout="HWC")


def _call(schema: Schema, example: Example, name: str, layout: str = "") -> Call:
    """Return the call of an example; its first input may have another layout."""
    required = [
        argument for argument in schema.arguments if argument.required and argument.name not in example.arguments
    ]
    arguments = {argument.name: example_value(argument) for argument in required} | dict(example.arguments)
    count = max(len(example.inputs), schema.min_input_count)
    declared = [schema.input(index) for index in range(count)]
    if count:
        layout = layout or example.layout or next(iter(declared[0].layouts), "")
    makers = [*example.inputs, *(item.example for item in declared[len(example.inputs) :])]
    return Call(name, arguments, tuple(make(_like(layout, item.layouts)) for make, item in zip(makers, declared)))


def settable_arguments(schema: Schema) -> list[Argument]:
    """Return the operator's documented arguments that calls may set."""
    return [a for a in schema.arguments if not (a.hidden or a.deprecated or a.exempt)]


def argument_call(schema: Schema, argument: Argument) -> Call:
    """Return a call that sets the argument: the first example that does, or the simplest call with it.

    Raises:
        NoExampleError: its declaration must provide a valid value.
    """
    declared = list(examples(schema))
    example_call = next((call for call in declared if argument.name in call.arguments), None)
    if example_call is not None:
        return example_call
    first = declared[0]
    return Call(argument.name, {**first.arguments, argument.name: example_value(argument)}, first.inputs)


def choice_calls(schema: Schema) -> Iterator[Call]:
    """Yield a call for each value of each argument with ``choices``."""
    for argument in settable_arguments(schema):
        for choice in argument.choices:
            call = argument_call(schema, argument)
            yield Call(f"{argument.name}={choice}", {**call.arguments, argument.name: choice}, call.inputs)


def layout_call(schema: Schema, layout: str) -> Call:
    """Return the first example whose first input is in that layout, or the simplest in it."""
    declared = schema.examples or (Example(),)
    return _call(schema, next((item for item in declared if item.layout == layout), declared[0]), layout, layout)


def _like(layout: str, accepted: tuple[str, ...]) -> str:
    """Return the layout if it is accepted, else the first accepted one that also has, or lacks, frames."""
    if not accepted or layout in accepted:
        return layout
    return next((item for item in accepted if item.startswith("F") == layout.startswith("F")), accepted[0])
