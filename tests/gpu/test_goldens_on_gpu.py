"""Every golden case gives the same result with its input on the GPU as DALI gives on the CPU."""

from __future__ import annotations

import pytest
from case import Case
from families import families
from on_gpu import check_on_gpu

ALL = [
    pytest.param(family.name, case, id=f"{family.name}: {case.name}")
    for family in families()
    for case in family
    if family.gpu and case.gpu
]


@pytest.mark.parametrize(("family", "case"), ALL)
def test_equals_dali(family: str, case: Case) -> None:
    check_on_gpu(family, case)
