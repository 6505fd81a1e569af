"""Modules, functions and classes have the same interface as DALI's, recorded by ``record_signatures.py``."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interface import MODULES, interface

from penstock import compat

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "recorded" / "interface.json.gz").read_bytes()))[
    "interface"
]

# Internals of DALI that have public names, and that Penstock lacks.
MACHINERY = {
    "auto_aug.core.decorator.Augmentation",
    "auto_aug.core.decorator.augmentation",
    "experimental.dynamic.dtype(args=None)",
    "ops.PythonFunction.members.check_outputs",
    "ops.PythonFunction.members.function_wrapper_batch",
    "ops.PythonFunction.members.function_wrapper_per_sample",
    "pipeline.WorkerPool",
    "tensors.PipelineBatchAdapter",
    "tensors.PipelineTensorAdapter",
    "tensors.format_batch(adapter=None)",
    "tensors.format_tensor(adapter=None)",
}


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, Any]]:
    compat.install()
    yield interface()
    compat.uninstall()


def differences(path: str, theirs: Any, ours: Any) -> list[str]:
    """Return the paths of what Penstock lacks or defines differently from DALI; what it adds does not count."""
    if theirs is None:  # Python could not determine them
        return []
    if ours is None:
        return [path]
    if isinstance(theirs, dict):
        found = [f"{path}.members.{name}" for name in theirs["members"] if name not in ours["members"]]
        return found + [
            each
            for word in theirs
            if word != "members"
            for each in differences(f"{path}.{word}", theirs[word], ours[word])
        ]
    named = {name: (kind, default) for name, kind, default in ours}
    found = [
        f"{path}({name}={default})"
        for name, kind, default in theirs
        if named.get(name) != (kind, default) and not (name in named and "object at 0x" in (default or ""))
    ]
    order = [name for name, _, _ in theirs if name in named]
    return found or ([] if order == [name for name in named if name in order] else [f"{path}: order"])


@pytest.mark.parametrize("module", MODULES)
def test_looks_as_dali(own: dict[str, Any], module: str) -> None:
    recorded = {path: value for path, value in RECORDED.items() if path.startswith(module + ".")}
    assert recorded
    found = [each for path, value in recorded.items() for each in differences(path, value, own.get(path))]
    assert [each for each in found if each not in MACHINERY] == []
