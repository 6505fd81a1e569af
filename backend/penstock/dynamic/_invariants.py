"""Marks values as equal in all steps of a captured loop."""

from __future__ import annotations

from types import MethodType
from typing import Any, TypeVar, cast

_Value = TypeVar("_Value")

# Members that the wrapper itself implements, for construction and attribute lookup.
_WRAPPER_MEMBERS = frozenset(
    {
        *("__new__", "__init__", "__del__", "__class__", "__slots__", "__dict__", "__weakref__", "__init_subclass__"),
        *("__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__doc__", "__module__", "__annotations__"),
        *(
            "__subclasshook__",
            "__class_getitem__",
            "__mro_entries__",
            "__name__",
            "__qualname__",
            "__abstractmethods__",
        ),
        *("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__"),
        *("__copy__", "__deepcopy__", "__static_attributes__", "__firstlineno__", "__match_args__", "__orig_bases__"),
    }
)


class Invariant:
    """Wraps a value and behaves like it; the attributes of the value are marked, too."""

    __slots__ = ("_value",)
    _kind: type = object

    def __init__(self, value: object) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, "_value")
        found = getattr(value, name)
        if name.startswith("__"):
            return found
        if isinstance(found, MethodType) and found.__self__ is value:
            # Bind the method to the wrapper, so that attributes that the method reads are marked, too.
            return MethodType(found.__func__, self)
        return invariant(found)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_value"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_value"), name)


_kinds: dict[type, type[Invariant]] = {}


def invariant(value: _Value) -> _Value:
    """Mark a value as equal in all steps of a captured loop.

    An argument that is marked in the first step is not compared in later steps, but must be marked there, too. The result behaves like the
    value. Its attributes are marked, but values computed from it are not.

    >>> invariant(3) + 1
    4
    """
    if is_invariant(value):
        return value
    kind = type(value)
    if kind not in _kinds:
        _kinds[kind] = _wrapper(kind)
    return cast(_Value, _kinds[kind](value))


def is_invariant(value: object) -> bool:
    """Return whether a value is marked."""
    return issubclass(type(value), Invariant)


def unmarked(value: _Value) -> _Value:
    """Return a value without its mark; its elements keep theirs."""
    return object.__getattribute__(value, "_value") if issubclass(type(value), Invariant) else value


def all_unmarked(value: Any) -> Any:
    """Return a value without any marks, also in lists, tuples and dictionaries; the same object if it contains no marks."""
    if not _kinds:
        return value  # no value was ever marked
    value = unmarked(value)
    if isinstance(value, type) and issubclass(value, Invariant):
        return value._kind
    if type(value) is dict:
        pairs = [(all_unmarked(key), all_unmarked(item)) for key, item in value.items()]
        same = all(a is b and c is d for (a, c), (b, d) in zip(pairs, value.items()))
        return value if same else dict(pairs)
    if type(value) in (list, tuple):
        items = [all_unmarked(item) for item in value]
        return value if all(a is b for a, b in zip(items, value)) else type(value)(items)
    return value


def _wrapper(kind: type) -> type[Invariant]:
    """Return the class of marked values of one type. The class defines the special methods, as Python looks them up in the
    class.
    """
    members: dict[str, object] = {"__slots__": (), "_kind": kind}
    for base in kind.__mro__:
        for name, member in vars(base).items():
            if name.startswith("__") and name.endswith("__") and name not in _WRAPPER_MEMBERS and name not in members:
                members[name] = None if member is None else _forward(name, member) if callable(member) else member
    return type(f"Invariant_{kind.__name__}", (Invariant,), members)


def _forward(name: str, member: Any) -> object:
    def method(self: object, *arguments: object, **keywords: object) -> object:
        value = unmarked(self)
        if name == "__call__":
            return member(value, *arguments, **keywords)
        values = (
            [arguments[0], *map(all_unmarked, arguments[1:])] if name == "__set__" else map(all_unmarked, arguments)
        )
        function = member.__get__(value, type(value)) if value is not None and hasattr(member, "__get__") else None
        plain = {key: all_unmarked(item) for key, item in keywords.items()}
        return member(value, *values, **plain) if function is None else function(*values, **plain)

    method.__name__ = name
    return method
