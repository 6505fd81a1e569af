"""Conditionals in functions with what Python 3.14 brought: template strings, deferred annotations, bare `except A, B`."""

# No `from __future__ import annotations`: annotations are deferred by Python itself.

import annotationlib
from string.templatelib import Interpolation, Template
from typing import Any

import pytest
from choices import flag, number, values

from penstock.graph.autograph import convert


def annotated(choose: Later, scale: Later = 10) -> Later:
    y: Later
    if choose:
        y: Later = number()
    else:
        y = number() + scale
    return y


def test_annotations_of_what_is_not_defined_yet() -> None:
    assert values(lambda: annotated(flag())) == [10, 1, 12, 3]


def test_annotations_are_still_deferred() -> None:
    converted = convert(annotated)
    with pytest.raises(NameError, match="Later"):
        _ = converted.__annotations__
    forward = annotationlib.get_annotations(converted, format=annotationlib.Format.FORWARDREF)
    assert list(forward) == ["choose", "scale", "return"]


def test_annotations_of_inner_functions_and_classes() -> None:
    def define() -> Any:
        class Pair:
            first: Later
            second: Later = None

        def inner(condition: Later) -> Pair:
            if condition:
                return number()
            return number() + 10

        return inner(flag())

    assert values(define) == [10, 1, 12, 3]


def value_of(template: Template) -> object:
    (interpolation,) = (part for part in template if isinstance(part, Interpolation))
    return interpolation.value


def test_template_strings() -> None:
    def define() -> Any:
        texts.append(t"{number() if flag() else number() + 10!r:>4}")
        return value_of(texts[-1])

    texts: list[Template] = []
    assert values(define) == [10, 1, 12, 3]
    (interpolation,) = texts[-1].interpolations
    assert (interpolation.expression, interpolation.conversion, interpolation.format_spec) == (
        "number() if flag() else number() + 10",
        "r",
        ">4",
    )


def test_template_strings_in_branches() -> None:
    def define() -> Any:
        if flag():
            y = value_of(t"first {number()}")
        else:
            y = value_of(t"second {number() + 10}")
        return y

    assert values(define) == [10, 1, 12, 3]


def test_exceptions_without_parentheses() -> None:
    def define() -> Any:
        if flag():
            try:
                y = number() + {}["offset"]
            except KeyError, IndexError:
                y = number()
        else:
            y = number() + 10
        return y

    assert values(define) == [10, 1, 12, 3]
