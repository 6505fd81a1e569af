"""Classes that indexing makes iterable, although they should not be."""

from __future__ import annotations


def not_iterable(cls: type) -> type:
    """Make objects of a class refuse iteration, and `collections.abc.Iterable` not include them."""
    cls.__iter__ = None  # type: ignore[attr-defined]  # how Python's data model says so
    return cls
