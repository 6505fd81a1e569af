"""Runs kernels on an emulated GPU, for which g++ 12 or later, which supports float16, compiles them.

CuPy is not needed; if it is installed, the emulation replaces it while these tests run.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulation import can_emulate

collect_ignore_glob = [] if can_emulate() else ["test_*.py"]
if not shutil.which("nvcc"):
    collect_ignore_glob.append("test_compiling.py")
sys.path.insert(0, str(Path(__file__).parents[2] / "golden"))


@pytest.fixture(scope="session")
def compiled_kernels(request: pytest.FixtureRequest) -> Path:
    """Return the folder of compiled kernels. Later runs reuse the kernels, whose names are digests of their sources."""
    return request.config.cache.mkdir("emulated_kernels")


@pytest.fixture(autouse=True)
def emulated(compiled_kernels: Path) -> Iterator[None]:
    from emulation import emulated_gpu

    with emulated_gpu(compiled_kernels):
        yield
