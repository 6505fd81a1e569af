"""Some golden cases of each family on an emulated GPU; all of them run on a real one (tests/gpu)."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
import store
from case import Case
from comparison import BUILT_IN, difference
from families import families
from on_gpu import run_on_gpu

# Each new combination of types is compiled, which takes a second: so many cases of a family, evenly spread.
PER_FAMILY = 12


@functools.cache
def recorded(family: str) -> dict[str, Any]:
    return store.load(family)


def some() -> list[Any]:
    chosen = []
    for family in families():
        cases = [case for case in family if family.gpu and case.gpu]
        step = max(1, len(cases) // PER_FAMILY)
        chosen += [pytest.param(family.name, case, id=f"{family.name}: {case.name}") for case in cases[::step]]
    return chosen


@pytest.mark.parametrize(("family", "case"), some())
def test_equals_dali(family: str, case: Case) -> None:
    expected = recorded(family)[case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if isinstance(expected, dict):
            kinds = tuple(kind for kind in BUILT_IN if kind.__name__ in expected["error"])
            with pytest.raises(kinds or Exception):
                run_on_gpu(case)
        else:
            assert difference(expected, run_on_gpu(case), case) == ""
