"""Records what DALI's readers read after checkpoints of other shards; to be run in an environment with DALI.

python tests/golden/make_checkpoints.py
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import nvidia.dali as dali

HERE = Path(__file__).parent / "checkpoints"
sys.path.insert(0, str(HERE))
from checkpoint_cases import cases, labels_of_shards  # noqa: E402


def main() -> None:
    """Write ``checkpoints/labels.json``."""
    logging.disable()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number in range(25):
            path = Path(folder) / f"{number}.bin"
            path.write_bytes(b"x")
            files.append(str(path))
        recorded = [dict(case, labels=labels_of_shards(dali, case, files)) for case in cases()]
    lines = ",\n".join(json.dumps(case) for case in recorded)
    (HERE / "labels.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
