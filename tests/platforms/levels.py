"""Runs golden tests with the wheel's kernels for each level of x86-64 that this machine supports: `make test-levels`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.kernels.cpu.libraries import usable_levels

ROOT = Path(__file__).parents[2]
SETTINGS = "[pytest]\nmarkers =\n    exhaustive: of our own\naddopts = --import-mode=importlib\n"


def main() -> int:
    """Run the golden tests at each level; return 0 if all passed."""
    (wheel,) = (ROOT / "dist").glob("penstock_triton-*_x86_64.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The tests are copied out of the repository, from which they would import the sources instead of the wheel.
        shutil.copytree(ROOT / "tests", folder / "tests")
        (folder / "pytest.ini").write_text(SETTINGS)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site")]
        subprocess.run([*install, str(wheel)], check=True)
        kernels = folder / "site" / "penstock" / "native" / "kernels"
        goldens = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "--rootdir", ".", *sys.argv[1:]]
        failed = 0
        for level in usable_levels():
            print(f"{level}:", flush=True)
            environment = os.environ | {"PYTHONPATH": str(folder / "site")}
            done = subprocess.run([*goldens, "tests/golden/test_goldens.py"], cwd=folder, env=environment, check=False)
            failed |= done.returncode
            shutil.rmtree(kernels / level)
    return failed


if __name__ == "__main__":
    sys.exit(main())
