"""Collects tests of newer Python syntax only in Python versions that can parse them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def _is_too_new(path: Path) -> bool:
    version = re.fullmatch(r"test_python_(\d+)_(\d+)\.py", path.name)
    return version is not None and (int(version[1]), int(version[2])) > sys.version_info[:2]


collect_ignore = [str(path) for path in Path(__file__).parent.glob("test_python_*.py") if _is_too_new(path)]
