"""Every golden case gives the recorded result of real DALI."""

from __future__ import annotations

import functools
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import store
from case import Case
from comparison import BUILT_IN, difference, message, run
from families import families

import penstock


@functools.cache
def recorded(family: str) -> dict[str, Any]:
    return store.load(family)


ALL = [pytest.param(family.name, case, id=f"{family.name}: {case.name}") for family in families() for case in family]


def operator(name: str) -> str:
    """Return the prefix of the names of an operator's cases."""
    return re.split(r"[(, ]", name.partition(": ")[2])[0]


@pytest.mark.cases(2, by=operator)
@pytest.mark.parametrize(("family", "case"), ALL)
def test_equals_dali(family: str, case: Case) -> None:
    expected = recorded(family)[case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        if isinstance(expected, dict):
            kinds = tuple(kind for kind in BUILT_IN if kind.__name__ in expected["error"])
            with pytest.raises(kinds or Exception) as caught:
                run(penstock, case)
            assert case.phrase in message(caught.value)
        else:
            assert difference(expected, run(penstock, case), case) == ""
