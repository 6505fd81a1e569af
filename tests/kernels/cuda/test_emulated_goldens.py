"""Some golden cases of each family run on an emulated GPU; all of them run on a real GPU (tests/gpu)."""

from __future__ import annotations

from typing import Any

import pytest
from case import Case
from families import families
from on_gpu import check_on_gpu

# The number of cases of a family that run, evenly spread: compiling the kernels of each new combination of types takes a second.
PER_FAMILY = 12


def some() -> list[Any]:
    chosen = []
    for family in families():
        cases = [case for case in family if family.gpu and case.gpu]
        step = max(1, len(cases) // PER_FAMILY)
        chosen += [pytest.param(family.name, case, id=f"{family.name}: {case.name}") for case in cases[::step]]
    return chosen


@pytest.mark.parametrize(("family", "case"), some())
def test_equals_dali(family: str, case: Case) -> None:
    check_on_gpu(family, case)
