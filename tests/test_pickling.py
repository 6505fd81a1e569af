"""Callbacks as bytes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.pickling import dumps, loads, pickle_by_value


def counting(start: int) -> Any:
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    def counted(n: int, *, more: int = 1) -> int:
        return start + count(n) + more

    return counted


@pickle_by_value
def marked(angle: float) -> float:
    return math.cos(angle)


def test_local_functions_keep_their_variables() -> None:
    assert loads(dumps(counting(10)))(5) == 16
    assert loads(dumps(counting(10)))(5, more=3) == 18


def test_functions_by_value_bring_the_modules_they_use() -> None:
    again = loads(dumps(marked))
    assert again is not marked
    assert again(0.0) == 1.0
    assert loads(dumps(lambda: [math.sqrt(x) for x in (4, 9)]))() == [2.0, 3.0]


def test_importable_functions_go_by_name() -> None:
    assert loads(dumps(counting)) is counting


def test_only_functions_are_marked() -> None:
    with pytest.raises(TypeError, match="functions"):
        pickle_by_value(3)  # type: ignore[type-var]
