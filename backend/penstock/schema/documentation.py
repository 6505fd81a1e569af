"""Signatures and docstrings that are derived from declarations."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from penstock.data_types import NamedEnum
from penstock.schema.arguments import Argument
from penstock.schema.catalogue import description
from penstock.schema.declaration import Schema

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True, eq=False)
class MemberDefault:
    """A default in a signature that is a member of an enumeration, shown as users write it: ``DALIDataType.FLOAT``.

    It is equal to the member.
    """

    member: NamedEnum

    def __eq__(self, other: object) -> bool:
        return self.member == (other.member if isinstance(other, MemberDefault) else other)

    def __hash__(self) -> int:
        return hash(self.member)

    def __repr__(self) -> str:
        return str(self.member)


def shown_arguments(schema: Schema) -> list[Argument]:
    """Return the documented arguments of an operator, the required ones first."""
    shown = [a for a in schema.all_arguments.values() if not a.hidden and not a.name.startswith("_")]
    return sorted(shown, key=lambda a: not a.required)


def _annotation(argument: Argument) -> str:
    element = argument.type.removesuffix("[]")
    name = {"int32": "int", "int64": "int", "uint32": "int", "string": "str", "layout": "str", "object": "Any"}.get(
        element, element
    )
    text = f"{name} | Sequence[{name}]" if argument.is_list else name
    return f"{text} | DataNode" if argument.tensor else text


def signature(schema: Schema) -> inspect.Signature:
    """Return the signature of the operator's function: ``device`` and ``name``, then the arguments that are not deprecated."""
    return inspect.Signature([*_input_parameters(schema), *_keyword_parameters(schema, required=True)])


def constructor_signature(schema: Schema) -> inspect.Signature:
    """Return the signature of the operator's class. No argument is required, as calls of an instance may provide it."""
    return inspect.Signature(_keyword_parameters(schema, required=False))


def call_signature(schema: Schema) -> inspect.Signature:
    """Return the signature of calling an instance of the operator's class: the arguments that the constructor did not get."""
    return inspect.Signature([*_input_parameters(schema), *_keyword_parameters(schema, required=False)])


def with_self(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature with a first parameter ``self``."""
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[self_parameter, *signature.parameters.values()])


def _input_parameters(schema: Schema) -> list[inspect.Parameter]:
    parameters = []
    # Optional variadic inputs have no names.
    named = () if schema.variadic and not schema.min_input_count else schema.inputs
    for index, declared in enumerate(named):
        default = None if index >= schema.min_input_count else inspect.Parameter.empty
        parameters.append(inspect.Parameter(declared.name, inspect.Parameter.POSITIONAL_ONLY, default=default))
    if schema.variadic:
        parameters.append(inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL))
    return parameters


def _keyword_parameters(schema: Schema, required: bool) -> list[inspect.Parameter]:
    """Return the parameters ``device``, ``name`` and all arguments; ``required``: whether required arguments have no default."""
    parameters = [
        inspect.Parameter(name, _KEYWORD, default=None, annotation="str | None") for name in ("device", "name")
    ]
    apart = [a for a in schema.arguments if a.apart]
    for argument in sorted(shown_arguments(schema) + apart, key=lambda a: a.name):
        if argument.deprecated is not None:
            continue
        default = inspect.Parameter.empty if required and argument.required else _shown_default(argument.default)
        parameters.append(inspect.Parameter(argument.name, _KEYWORD, default=default, annotation=_annotation(argument)))
    return parameters


def _shown_default(value: object) -> object:
    if isinstance(value, NamedEnum):
        return MemberDefault(value)
    if isinstance(value, list):
        return [_shown_default(item) for item in value]
    # Rounded to DALI's number of decimals, which matters for numbers such as 4/3.
    return float(f"{value:.6f}") if isinstance(value, float) and not value.is_integer() else value


def docstring(schema: Schema) -> str:
    """Return a description of the operator, with its devices, inputs and arguments."""
    lines = [description(schema), "", f"Runs on: {', '.join(schema.devices)}."]
    if schema.sequences:
        lines.append("Sequences (a leading F dimension) are processed frame by frame.")
    if schema.inputs:
        lines += ["", "Args:"]
        lines += [f"    {i.name}: {_input_text(i.layouts, i.doc)}" for i in schema.inputs]
    lines += ["", "Keyword args:"]
    lines += [f"    {a.name} ({_annotation(a)}{_default_text(a)}): {a.doc}" for a in shown_arguments(schema)]
    return "\n".join(lines)


def _input_text(layouts: tuple[str, ...], doc: str) -> str:
    accepted = f" Layouts: {', '.join(layouts)}." if layouts else ""
    return (doc + accepted).strip() or "data."


def _default_text(argument: Argument) -> str:
    if argument.required:
        return ", required"
    return "" if argument.default is None else f", default {argument.default!r}"
