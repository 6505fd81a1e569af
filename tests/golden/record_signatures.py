"""Records the interfaces of DALI's modules, functions and classes, for ``test_interface.py``.

Run in an environment with DALI: ``python tests/golden/record_signatures.py``.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import nvidia.dali
from interface import interface

PATH = Path(__file__).parent / "recorded" / "interface.json.gz"


def main() -> None:
    """Write the file."""
    found = interface()
    text = json.dumps({"version": nvidia.dali.__version__, "interface": found}, sort_keys=True)
    PATH.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(found)} functions and classes of DALI {nvidia.dali.__version__} -> {PATH}")


if __name__ == "__main__":
    main()
