"""Recorded results of real DALI on disk: one compressed archive for each family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "recorded"


def save(family: str, outcomes: dict[str, Any], version: str) -> Path:
    """Write the outcomes of a family's cases, recorded with this version of DALI, and return the file's path.

    An outcome is the outputs of each iteration, or a dictionary that describes an error.
    """
    arrays: dict[str, np.ndarray] = {}
    index: dict[str, Any] = {"dali_version": version, "cases": {}}
    for name, outcome in outcomes.items():
        if isinstance(outcome, dict):
            index["cases"][name] = outcome
            continue
        described = []
        for batches in outcome:
            described.append([])
            for samples, layout, dtype in batches:
                keys = []
                for sample in samples:
                    keys.append(f"a{len(arrays)}")
                    arrays[keys[-1]] = sample
                described[-1].append([keys, layout, dtype])
        index["cases"][name] = described
    arrays["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{family}.npz"
    np.savez_compressed(path, **arrays)
    return path


def load(family: str) -> dict[str, Any]:
    """Return the recorded outcomes of a family's cases, by the cases' names."""
    with np.load(FOLDER / f"{family}.npz") as archive:
        arrays = dict(archive)
    index = json.loads(arrays.pop("index").tobytes())
    outcomes: dict[str, Any] = {}
    for name, described in index["cases"].items():
        if isinstance(described, dict):
            outcomes[name] = described
        else:
            outcomes[name] = [
                [([arrays[key] for key in keys], layout, dtype) for keys, layout, dtype in batches]
                for batches in described
            ]
    return outcomes
