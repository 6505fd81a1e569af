"""The operator that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import invert
import numpy as np
from penstock import fn, ops, pipeline_def

@pipeline_def(batch_size=2, num_threads=1)
def define():
    image = fn.external_source(lambda: [np.arange(12, dtype=np.uint8).reshape(2, 2, 3)] * 2, layout="HWC")
    frames = fn.external_source(lambda: [np.zeros((2, 2, 2, 3), np.uint8)] * 2, layout="FHWC")
    white = fn.external_source(lambda: [np.int32(250), np.int32(100)])
    return fn.invert(image, white=white), ops.Invert()(image), fn.invert(frames)

computed, default, frames = define().run()
assert computed.at(1).ravel().tolist() == list(range(100, 88, -1))
assert default.at(0)[0, 0, 0] == 255
assert frames.layout() == "FHWC" and frames.at(0).min() == 255
"""


def test_the_operator_in_ten_minutes(tmp_path: Path) -> None:
    shown = re.search(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    (tmp_path / "invert.py").write_text(textwrap.dedent(shown[1]), encoding="utf-8")
    # In a process of its own: an operator that is registered stays so.
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)
