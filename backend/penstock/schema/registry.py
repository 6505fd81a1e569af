"""The registry of all operators, by the names of their schemas. Operators' modules fill it; there is no list of operators here.

If a package has an index, a module is imported when one of its operators is first requested.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import did_you_mean
from penstock.schema.operator_index import Entry, entry_of, read_index

if TYPE_CHECKING:
    from penstock.schema.declaration import Input, Schema
    from penstock.schema.operator import Operator

_schemas: dict[str, Schema] = {}
_classes: dict[str, type[Operator]] = {}
# Operators whose modules have not been imported yet, by name.
_offered: dict[str, Entry] = {}
_listeners: list[Callable[[Entry], None]] = []
T = TypeVar("T", bound="type[Operator]")


def register_operator(cls: T) -> T:
    """Register an operator class, and its aliases, under the names of their schemas."""
    schema = cls.schema
    _add(schema, cls)
    for alias in schema.aliases:
        x = {a.name: a for a in schema.arguments} | {a.name: a for a in alias.arguments}
        _add(
            replace(
                schema,
                name=alias.name,
                fn=alias.fn,
                aliases=(),
                inputs=_with_numbered_names(schema.inputs),
                arguments=tuple(x.values()),
                hidden=True,
                deprecated_since=alias.deprecated_since,
                deprecation_note="",
                deprecated_in_favor_of=schema.name if alias.deprecated_since else "",
            ),
            cls,
        )
    return cls


def _with_numbered_names(inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    """Return the inputs of an old name; as in DALI, they are numbered rather than named if there are several."""
    return tuple(replace(one, name=f"input_{index}") for index, one in enumerate(inputs)) if len(inputs) > 1 else inputs


def _add(schema: Schema, cls: type[Operator]) -> None:
    offered = _offered.get(schema.name)
    if offered is not None and offered.module != cls.__module__:
        _load(offered)
    known = _classes.get(schema.name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"Operator '{schema.name}' is declared twice: in {known.__module__} and in {cls.__module__}")
    _schemas[schema.name] = schema
    _classes[schema.name] = cls
    _announce(entry_of(schema, cls.__module__))


def _announce(entry: Entry) -> None:
    for listener in _listeners:
        listener(entry)


def subscribe(listener: Callable[[Entry], None]) -> None:
    """Call ``listener`` for every operator that is known, loaded or not, and for each that is offered or registered later."""
    _listeners.append(listener)
    for entry in list(_offered.values()):
        listener(entry)
    for name, schema in list(_schemas.items()):
        listener(entry_of(schema, _classes[name].__module__))


@functools.cache
def offer_package(package_name: str) -> None:
    """Make the operators of a package known. Each is loaded when it is first used; without an index, all are loaded now."""
    entries = read_index(importlib.import_module(package_name).__path__[0])
    if entries is None:
        load_package(package_name)
        return
    for entry in entries:
        if entry.name not in _schemas:
            _offered[entry.name] = entry
            _announce(entry)


@functools.cache
def load_package(package_name: str) -> None:
    """Import all public modules of a package, so that the operators declared in them are registered."""
    package = importlib.import_module(package_name)
    for module in pkgutil.walk_packages(package.__path__, package_name + "."):
        # Private modules are imported by operators themselves, some of them lazily, as kernels load numba.
        if not module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)


def _load(entry: Entry) -> None:
    # Remove the entry only after the import, so that other threads wait for the module, too.
    importlib.import_module(entry.module)
    _offered.pop(entry.name, None)


def load_offered() -> None:
    """Load all operators that are known."""
    for entry in list(_offered.values()):
        _load(entry)


def find_schema(name: str) -> Schema:
    """Return the schema called ``name``; raise KeyError, with suggestions, if there is none."""
    offered = _offered.get(name)
    if offered is not None:
        _load(offered)
    if name not in _schemas:
        load_offered()
    try:
        return _schemas[name]
    except KeyError:
        raise KeyError(f"No operator is called '{name}'.{did_you_mean(name, _schemas)}") from None


def operator_class(name: str) -> type[Operator]:
    """Return the class of the operator whose schema is called ``name``."""
    find_schema(name)
    return _classes[name]


def all_schemas() -> Iterator[Schema]:
    """Return all schemas, including those of aliases, sorted by name."""
    load_offered()
    return iter([_schemas[name] for name in sorted(_schemas)])


def fusing_schemas(by: str) -> list[Schema]:
    """Return the schemas of the fused operators that the pass ``by`` inserts, sorted by name."""
    for entry in list(_offered.values()):
        if entry.fuses:
            _load(entry)
    fusing = (schema for schema in list(_schemas.values()) if schema.fuses is not None and schema.fused_by == by)
    return sorted(fusing, key=lambda schema: schema.name)
