"""Conditionals in functions with what Python 3.13 brought: defaults of type parameters."""

from __future__ import annotations

from choices import flag, number, values


def generic[T = int](choose: T) -> T:
    if choose:
        return number()
    return number() + 10


def test_defaults_of_type_parameters() -> None:
    assert values(lambda: generic(flag())) == [10, 1, 12, 3]
