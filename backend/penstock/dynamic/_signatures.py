"""Signatures of dynamic mode's functions and readers, and errors for calls that do not match them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence

from penstock.schema import Schema
from penstock.schema.documentation import shown_arguments

PIPELINE_ONLY = frozenset({"bytes_per_sample_hint", "preserve"})
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def input_counts(schema: Schema) -> tuple[int, float]:
    """Return the smallest and the largest number of inputs that a call can have."""
    if schema.variadic:
        return max(schema.min_input_count, 1), math.inf
    return schema.min_input_count, len(schema.inputs)


def accepted(schema: Schema) -> frozenset[str]:
    """Return the names of the arguments that a call can have; ``seed`` is not among them, as random operators draw seeds from ``rng``."""
    if schema.random:
        return frozenset(schema.all_arguments) - PIPELINE_ONLY - {"seed"} | {"rng"}
    return frozenset(schema.all_arguments) - PIPELINE_ONLY


def miscalled(schema: Schema, name: str, count: int, unknown: Sequence[str]) -> TypeError:
    """Return the error that Python would raise for such a call of a function with these parameters."""
    if unknown:
        return unexpected(schema, name, unknown[0])
    low, high = input_counts(schema)
    if count < low:
        inputs = [f"input_{index}" if schema.variadic else schema.inputs[index].name for index in range(count, low)]
        missing = " and ".join(map(repr, inputs))
        return TypeError(f"{name}() missing {_plural(low - count, 'required positional argument')}: {missing}")
    takes = _plural(int(high), "positional argument") if low == high else f"from {low} to {high} positional arguments"
    return TypeError(f"{name}() takes {takes} but {count} {'was' if count == 1 else 'were'} given")


def unexpected(schema: Schema, name: str, argument: str) -> TypeError:
    why = "" if argument in schema.all_arguments else f". {schema.unknown_argument(argument).args[0]}"
    return TypeError(f"{name}() got an unexpected keyword argument {argument!r}{why}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def signature_of(schema: Schema) -> inspect.Signature:
    parameters = []
    for index, parameter in enumerate(schema.inputs):
        default = None if index >= schema.min_input_count else inspect.Parameter.empty
        parameters.append(inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_ONLY, default=default))
    if schema.variadic:
        parameters.append(inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL))
    parameters += [inspect.Parameter(name, _KEYWORD, default=None) for name in ("batch_size", "device")]
    parameters += [parameter for parameter in _keywords(schema) if not (schema.random and parameter.name == "seed")]
    if schema.random:
        parameters.append(inspect.Parameter("rng", _KEYWORD, default=None))
    return inspect.Signature(parameters)


def _keywords(schema: Schema) -> list[inspect.Parameter]:
    """Return the arguments that are specific to the operator, sorted by name."""
    return [
        inspect.Parameter(parameter.name, _KEYWORD, default=inspect.Parameter.empty if parameter.required else None)
        for parameter in sorted(shown_arguments(schema), key=lambda parameter: parameter.name)
        if parameter.name not in PIPELINE_ONLY
    ]


def reader_signature(base: type, schema: Schema) -> inspect.Signature:
    """Return the signature of the base class's constructor, with the schema's arguments in place of ``**arguments``."""
    named = dict(inspect.signature(base).parameters)
    del named["arguments"]
    checkpoints = named.pop("enable_checkpointing")
    # `feature_names` is left out, as the constructor makes it from `features`.
    by_name = {parameter.name: parameter for parameter in _keywords(schema) if parameter.name != "feature_names"}
    by_name |= {name: parameter for name, parameter in named.items() if parameter.kind is _KEYWORD}
    positional = [parameter for parameter in named.values() if parameter.kind is not _KEYWORD]
    return inspect.Signature([*positional, *(by_name[name] for name in sorted(by_name)), checkpoints])


def imread_signature(function: Callable[..., object], decoder: Schema) -> inspect.Signature:
    """Return the signature of a function, with the decoder's arguments in place of ``**arguments``."""
    named = list(inspect.signature(function).parameters.values())[:-1]
    return inspect.Signature([*named, *_keywords(decoder)])
