"""Make the benchmarks importable: they are scripts, not a package."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "parity")]
