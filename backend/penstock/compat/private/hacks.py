"""Prevents iteration over objects that would be iterable only because they can be indexed."""

from __future__ import annotations


def not_iterable(cls: type) -> type:
    """Decorate a class so that its objects refuse iteration, and are no instances of `collections.abc.Iterable`."""
    cls.__iter__ = None  # type: ignore[attr-defined]  # how Python's data model says so
    return cls
