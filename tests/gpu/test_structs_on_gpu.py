"""NVIDIA's compiler gives structs the layouts that are declared in Python."""

from __future__ import annotations

from pathlib import Path

import cupy
from struct_layouts import check_layouts


def test_as_compiled(tmp_path: Path) -> None:
    check_layouts(cupy, tmp_path)
