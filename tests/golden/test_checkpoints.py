"""Readers continue from checkpoints of other shards as DALI's do; recorded by ``make_checkpoints.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock

FOLDER = Path(__file__).parent / "checkpoints"
sys.path.insert(0, str(FOLDER))
from checkpoint_cases import labels_of_shards  # noqa: E402

RECORDED: list[dict[str, Any]] = json.loads((FOLDER / "labels.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("samples", sorted({case["samples"] for case in RECORDED}))
def test_other_shards_continue_as_in_dali(samples: int, tmp_path: Path) -> None:
    files = []
    for number in range(samples):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(b"x")
        files.append(str(path))
    wrong = []
    for case in RECORDED:
        if case["samples"] == samples and labels_of_shards(penstock, case, files) != case["labels"]:
            wrong.append({key: value for key, value in case.items() if key != "labels"})
    assert not wrong
