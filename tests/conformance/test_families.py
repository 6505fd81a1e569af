"""Runs every golden case in DALI and in Penstock."""

from __future__ import annotations

import warnings

import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.math
import nvidia.dali.types
import pytest
from case import Case
from comparison import difference, error_kinds, message, run
from families import families

import penstock

ALL = [pytest.param(case, id=f"{family.name}: {case.name}") for family in families() for case in family]


@pytest.mark.parametrize("case", ALL)
def test_equals_dali(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = run(nvidia.dali, case)
        except Exception as error:
            kinds = tuple(kind for kind in (RuntimeError, ValueError, TypeError) if kind.__name__ in error_kinds(error))
            text = message(error)
            with pytest.raises(kinds or Exception) as caught:
                run(penstock, case)
            assert [case.phrase in said for said in (text, message(caught.value))] == [True, True]
        else:
            assert difference(expected, run(penstock, case), case) == ""
