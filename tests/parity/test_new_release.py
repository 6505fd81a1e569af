"""Reports about a new release of transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from new_release import RECORDED, added


def test_classes_model_types_and_settings_that_are_new_are_told() -> None:
    before = {"A": {"types": ["a"], "settings": ["size"]}, "B": {"types": ["b"], "settings": []}}
    now = {
        "A": {"types": ["a", "a2"], "settings": ["crop", "do_pad", "size"]},
        "C": {"types": ["c"], "settings": []},
    }
    assert list(added(before, now, {"A": frozenset({"size", "crop"}), "C": None})) == [
        "gone: B",
        "new model type: a2 of A: followed",
        "new setting: crop of A: known",
        "new setting: do_pad of A: unknown to the preset",
        "new class: C (c): no preset",
    ]
    assert not list(added(now, now, {"A": None, "C": None}))


def test_the_recorded_release_has_the_classes_of_the_table() -> None:
    recorded = json.loads(RECORDED.read_text())
    written = json.loads((RECORDED.parent / "classes.json").read_text())
    assert recorded["classes"].keys() == written["classes"].keys()
