"""Makes what builds the site importable: it is no package, for MkDocs loads it by its path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "building"))
