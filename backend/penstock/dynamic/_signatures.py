"""What dynamic mode's functions and readers can be called with, and what they say to other calls."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence

from penstock.schema import Schema
from penstock.schema.documentation import shown_arguments

PIPELINE_ONLY = frozenset({"bytes_per_sample_hint", "preserve"})
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def input_counts(schema: Schema) -> tuple[int, float]:
    """The least and the greatest number of inputs that a call can have."""
    if schema.variadic:
        return max(schema.min_input_count, 1), math.inf
    return schema.min_input_count, len(schema.inputs)


def accepted(schema: Schema) -> frozenset[str]:
    """The arguments that a call can have; random operators draw their seeds from ``rng``."""
    if schema.random:
        return frozenset(schema.all_arguments) - PIPELINE_ONLY - {"seed"} | {"rng"}
    return frozenset(schema.all_arguments) - PIPELINE_ONLY


def miscalled(schema: Schema, name: str, count: int, unknown: Sequence[str]) -> TypeError:
    """What Python itself would say of a function with these parameters."""
    if unknown:
        return unexpected(schema, name, unknown[0])
    least, most = input_counts(schema)
    if count < least:
        inputs = [f"input_{index}" if schema.variadic else schema.inputs[index].name for index in range(count, least)]
        missing = " and ".join(map(repr, inputs))
        return TypeError(f"{name}() missing {_plural(least - count, 'required positional argument')}: {missing}")
    takes = (
        _plural(int(most), "positional argument") if least == most else f"from {least} to {most} positional arguments"
    )
    return TypeError(f"{name}() takes {takes} but {count} {'was' if count == 1 else 'were'} given")


def unexpected(schema: Schema, name: str, argument: str) -> TypeError:
    why = "" if argument in schema.all_arguments else f". {schema.unknown_argument(argument).args[0]}"
    return TypeError(f"{name}() got an unexpected keyword argument {argument!r}{why}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def signature_of(schema: Schema) -> inspect.Signature:
    parameters = []
    for index, own in enumerate(schema.inputs):
        default = None if index >= schema.min_input_count else inspect.Parameter.empty
        parameters.append(inspect.Parameter(own.name, inspect.Parameter.POSITIONAL_ONLY, default=default))
    if schema.variadic:
        parameters.append(inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL))
    parameters += [inspect.Parameter(name, _KEYWORD, default=None) for name in ("batch_size", "device")]
    parameters += [own for own in _keywords(schema) if not (schema.random and own.name == "seed")]
    if schema.random:
        parameters.append(inspect.Parameter("rng", _KEYWORD, default=None))
    return inspect.Signature(parameters)


def _keywords(schema: Schema) -> list[inspect.Parameter]:
    """The operator's own arguments, in order of name."""
    return [
        inspect.Parameter(own.name, _KEYWORD, default=inspect.Parameter.empty if own.required else None)
        for own in sorted(shown_arguments(schema), key=lambda own: own.name)
        if own.name not in PIPELINE_ONLY
    ]


def reader_signature(base: type, schema: Schema) -> inspect.Signature:
    """What the base's constructor names, with the schema's arguments in place of ``**arguments``."""
    named = dict(inspect.signature(base).parameters)
    del named["arguments"]
    checkpoints = named.pop("enable_checkpointing")
    # The constructor makes `feature_names` from `features`.
    taken = {own.name: own for own in _keywords(schema) if own.name != "feature_names"}
    taken |= {name: own for name, own in named.items() if own.kind is _KEYWORD}
    positional = [own for own in named.values() if own.kind is not _KEYWORD]
    return inspect.Signature([*positional, *(taken[name] for name in sorted(taken)), checkpoints])


def imread_signature(function: Callable[..., object], decoder: Schema) -> inspect.Signature:
    """What the function names, with the decoder's arguments in place of ``**arguments``."""
    named = list(inspect.signature(function).parameters.values())[:-1]
    return inspect.Signature([*named, *_keywords(decoder)])
