"""Classes that indexing makes iterable, although they should not be."""

from __future__ import annotations


def not_iterable(cls: type) -> type:
    """Make objects of a class refuse iteration, and fail tests for `collections.abc.Iterable`."""
    cls.__iter__ = None  # type: ignore[attr-defined]  # how Python's data model says so
    return cls
