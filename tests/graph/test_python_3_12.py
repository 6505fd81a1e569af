"""Conditionals in functions with what Python 3.12 brought: type parameters, type aliases, nested quotes in f-strings."""

from __future__ import annotations

from typing import Any

from choices import flag, number, values


def generic[T](choose: T) -> T:
    y: T
    if choose:
        y = number()
    else:
        y = number() + 10
    return y


def generic_reading_its_parameter[T: (int, float), *Ts, **P](names: list[str]) -> Any:
    if flag():
        y = number()
    else:
        y = number() + 10
    names.append(T.__name__)
    return y


class Generic[T]:
    def choose[U](self, condition: T, names: list[str]) -> U:
        names += [T.__name__, U.__name__]
        if condition:
            return number()
        return number() + 10


def test_generic_functions() -> None:
    assert values(lambda: generic(flag())) == [10, 1, 12, 3]


def test_type_parameters_are_found() -> None:
    names: list[str] = []
    assert values(lambda: generic_reading_its_parameter(names)) == [10, 1, 12, 3]
    assert set(names) == {"T"}


def test_generic_methods() -> None:
    names: list[str] = []
    assert values(lambda: Generic[Any]().choose(flag(), names)) == [10, 1, 12, 3]
    assert set(names) == {"T", "U"}


def test_generic_functions_inside() -> None:
    def define() -> Any:
        def inner[T](condition: T) -> T:
            if condition:
                return number()
            return number() + 10

        return inner(flag())

    assert values(define) == [10, 1, 12, 3]


def test_type_aliases_in_branches() -> None:
    def define() -> Any:
        if flag():
            type Kind = int
            y = number()
        else:
            type Kind = float
            y = number() + 10
        return y

    assert values(define) == [10, 1, 12, 3]


def test_nested_quotes() -> None:
    def define() -> Any:
        scale = {"value": 10}
        if flag():
            y = number()
        else:
            y = number() + int(f"{scale['value'] if scale else 'none'}")
        return y

    assert values(define) == [10, 1, 12, 3]
