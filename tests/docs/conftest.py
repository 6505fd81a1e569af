"""Makes the modules in docs/building importable; they are not a package, as MkDocs loads them by path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "building"))
