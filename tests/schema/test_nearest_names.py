"""Unknown names: the error tells which known one is nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock import fn, ops
from penstock.errors import did_you_mean
from penstock.passes import chosen_passes


@pytest.mark.parametrize(
    ("use", "kind", "meant"),
    [
        (lambda: fn.crop_miror_normalize, AttributeError, "crop_mirror_normalize"),
        (lambda: fn.decoders.imag, AttributeError, "image"),
        (lambda: fn.image, AttributeError, "decoders.image"),
        (lambda: ops.Resizee, AttributeError, "Resize"),
        (lambda: ops.readers.Fil, AttributeError, "File"),
        (lambda: fn.resize(resize_shoter=3), KeyError, "resize_shorter"),
        (lambda: ops.Resize(resize_shoter=3), KeyError, "resize_shorter"),
        (lambda: fn.external_source(cycel=True), ValueError, "cycle"),
        (lambda: chosen_passes(["prun"]), ValueError, "prune"),
    ],
)
def test_the_nearest_name_is_offered(use: Callable[[], Any], kind: type[Exception], meant: str) -> None:
    with pytest.raises(kind) as caught:
        use()
    assert f"Did you mean '{meant}'?" in caught.value.args[0]


def test_nothing_is_offered_where_nothing_is_near() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = fn.zzzzq
    assert str(caught.value) == "module 'penstock.fn' has no attribute 'zzzzq'"


def test_pythons_own_questions_are_answered_plainly() -> None:
    assert not hasattr(fn, "__wrapped__")
    assert not hasattr(fn.decoders, "__file__")


def test_case_does_not_matter() -> None:
    assert did_you_mean("RESIZE", ["crop", "Resize"]) == " Did you mean 'Resize'?"
