"""Errors for unknown names suggest the nearest known name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import Pipeline, fn, math, ops, pipeline_def, types
from penstock.errors import did_you_mean
from penstock.passes import chosen_passes
from penstock.schema import find_schema


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def numbers(highest: int = 3) -> Any:
    return fn.external_source(name="images"), fn.readers.file(files=["a"], name="files")[0]


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
        (lambda: types.FLAOT, AttributeError, "FLOAT"),
        (lambda: types.INTERP_LINAER, AttributeError, "INTERP_LINEAR"),
        (lambda: math.sqr, AttributeError, "sqrt"),
        (lambda: penstock.pipelin_def, AttributeError, "pipeline_def"),
        (lambda: find_schema("Resiz"), KeyError, "Resize"),
        (lambda: numbers(batch_sise=3), TypeError, "batch_size"),
        (lambda: Pipeline.load("saved.json", num_thread=3), TypeError, "num_threads"),
        (lambda: numbers(hihgest=3), TypeError, "highest"),
        (lambda: pipeline_def(num_thread=3)(numbers)(), TypeError, "num_threads"),
        (lambda: numbers().feed_input("image", [np.int32(1)]), KeyError, "images"),
        (lambda: numbers().reader_meta("file"), RuntimeError, "files"),
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
