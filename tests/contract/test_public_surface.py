"""Everything in the last release still exists with the same meaning; docs/versions.md describes the policy."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("public_surface.py")
_spec = importlib.util.spec_from_file_location("public_surface", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
public_surface = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(public_surface)

OPTIONAL = {"input": ["POSITIONAL_ONLY", ""], "axes": ["KEYWORD_ONLY", "()"]}


def test_nothing_that_was_released_is_gone_or_changed() -> None:
    """Run the check in a separate process, where no tests have registered operators."""
    printed = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True).stdout
    broken = [line for line in printed.splitlines() if not line.endswith(" is new")]
    assert broken == [], "docs/versions.md says when this may change, and how to record it"


def test_the_record_covers_each_kind_of_name() -> None:
    recorded = json.loads(public_surface.FILE.read_text(encoding="utf-8"))
    for name in (
        "penstock.pipeline.Pipeline.run",
        "penstock.fn.decoders.image",
        "penstock.data_types.DALIDataType.FLOAT",
        "$ penstock serve",
        "model parameter max_pixels",
        "readable format, version 1",
    ):
        assert name in recorded
    assert recorded["penstock.fn.cast"]["preserve"] == ["KEYWORD_ONLY", "False"]
    assert "--device" in recorded["$ penstock serve"]


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        ({}, "f is gone"),
        ({"f": {"input": ["POSITIONAL_ONLY", ""]}}, "f: axes is gone"),
        ({"f": {**OPTIONAL, "axes": ["KEYWORD_ONLY", "None"]}}, "f: axes was"),
        ({"f": {**OPTIONAL, "size": ["KEYWORD_ONLY", ""]}}, "f: size is new and required"),
    ],
)
def test_incompatible_changes_are_found(now: dict[str, dict[str, list[str]]], sentence: str) -> None:
    (found,) = public_surface.incompatible({"f": OPTIONAL}, now)
    assert found.startswith(sentence)


def test_another_order_of_positional_parameters_is_incompatible() -> None:
    parameter = ["POSITIONAL_OR_KEYWORD", "None"]
    before = {"f": {"a": parameter, "b": parameter}}
    assert public_surface.incompatible(before, {"f": {"b": parameter, "a": parameter}}) == [
        "f: positional parameters have another order"
    ]


def test_additions_are_compatible() -> None:
    now = {"f": {**OPTIONAL, "size": ["KEYWORD_ONLY", "None"]}, "g": {}}
    assert public_surface.incompatible({"f": OPTIONAL}, now) == []
