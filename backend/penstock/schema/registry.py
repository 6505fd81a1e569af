"""All operators by the names of their schemas. Filled by the operators' modules; nothing lists them here."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import did_you_mean

if TYPE_CHECKING:
    from penstock.schema.declaration import Input, Schema
    from penstock.schema.operator import Operator

_schemas: dict[str, Schema] = {}
_classes: dict[str, type[Operator]] = {}
_listeners: list[Callable[[Schema], None]] = []
T = TypeVar("T", bound="type[Operator]")


def register_operator(cls: T) -> T:
    """Class decorator: registers an operator, and its aliases, under its schema's name."""
    schema = cls.schema
    _add(schema, cls)
    for alias in schema.aliases:
        own = {a.name: a for a in schema.arguments} | {a.name: a for a in alias.arguments}
        _add(
            replace(
                schema,
                name=alias.name,
                fn=alias.fn,
                aliases=(),
                inputs=_numbered(schema.inputs),
                arguments=tuple(own.values()),
                hidden=True,
                deprecated_since=alias.deprecated_since,
                deprecation_note="",
                deprecated_in_favor_of=schema.name if alias.deprecated_since else "",
            ),
            cls,
        )
    return cls


def _numbered(inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    """The inputs of an old name, which has numbers in place of their names if there are several, as in DALI."""
    return tuple(replace(own, name=f"input_{index}") for index, own in enumerate(inputs)) if len(inputs) > 1 else inputs


def _add(schema: Schema, cls: type[Operator]) -> None:
    known = _classes.get(schema.name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"Operator '{schema.name}' is declared twice: in {known.__module__} and in {cls.__module__}")
    _schemas[schema.name] = schema
    _classes[schema.name] = cls
    for listener in _listeners:
        listener(schema)


def subscribe(listener: Callable[[Schema], None]) -> None:
    """Calls ``listener`` for every registered schema, and for each registered later."""
    _listeners.append(listener)
    for schema in list(_schemas.values()):
        listener(schema)


@functools.cache
def load_package(package_name: str) -> None:
    """Imports every public module of a package, so that the operators declared there register themselves."""
    package = importlib.import_module(package_name)
    for module in pkgutil.walk_packages(package.__path__, package_name + "."):
        # Operators import private modules themselves, some of them lazily: kernels load numba.
        if not module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)


def find_schema(name: str) -> Schema:
    """The schema called ``name``; raises KeyError, with suggestions, if there is none."""
    try:
        return _schemas[name]
    except KeyError:
        raise KeyError(f"No operator is called '{name}'.{did_you_mean(name, _schemas)}") from None


def operator_class(name: str) -> type[Operator]:
    """The class of the operator with schema ``name``."""
    find_schema(name)
    return _classes[name]


def all_schemas() -> Iterator[Schema]:
    """All schemas, including aliases, in order of name."""
    return iter([_schemas[name] for name in sorted(_schemas)])
