"""The kernels run on an emulated GPU, for which g++ compiles them: without one that knows halves (12) there is no such.

CuPy is not needed; where it is installed, the emulation takes its place for as long as these tests run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


def _compiler_knows_halves() -> bool:
    if not shutil.which("g++"):
        return False
    version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return int(version.split(".")[0]) >= 12


collect_ignore_glob = [] if _compiler_knows_halves() else ["test_*.py"]
if not shutil.which("nvcc"):
    collect_ignore_glob.append("test_compiling.py")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "golden")]


@pytest.fixture(scope="session")
def compiled_kernels(request: pytest.FixtureRequest) -> Path:
    """Where compiled kernels are kept from run to run; they are named by what they were compiled from."""
    return request.config.cache.mkdir("emulated_kernels")


@pytest.fixture(autouse=True)
def emulated(compiled_kernels: Path) -> Iterator[None]:
    from emulation import emulated_gpu

    with emulated_gpu(compiled_kernels):
        yield
