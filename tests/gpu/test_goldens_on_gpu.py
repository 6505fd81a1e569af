"""Every golden case with its input on the GPU gives real DALI's result on the CPU."""

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


@functools.cache
def recorded(family: str) -> dict[str, Any]:
    return store.load(family)


ALL = [
    pytest.param(family.name, case, id=f"{family.name}: {case.name}")
    for family in families()
    for case in family
    if family.gpu and case.gpu
]


@pytest.mark.parametrize(("family", "case"), ALL)
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
