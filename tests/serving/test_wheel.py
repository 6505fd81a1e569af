"""The wheels that `make wheels` makes serve models without a compiler, and run pipelines without numba."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from penstock.cli._stub_files import stub_files
from penstock.core.library import CORE
from penstock.kernels.cpu.calls import CALLS
from penstock.kernels.cpu.libraries import NAME, folder_in_checkout, folder_of_levels, usable_levels
from penstock.serving.environment import describe
from penstock.serving.shim import SHIM

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[2]
PLAIN = """
@pipeline_def(batch_size=4)
def plain():
    return fn.copy(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), name="same")
"""
SERVE = """
import sys
from pathlib import Path

import numpy as np
import penstock
from penstock.serving.server import LocalServer
from penstock.serving.shim import shim
from tritonclient import http

library = Path(penstock.__file__).parent / "native" / "libtriton_penstock.so"
assert sys.prefix in penstock.__file__, penstock.__file__
assert shim() == library, shim()
with LocalServer(sys.argv[1], model_host="native", environment=sys.executable) as server:
    assert server.stubs() == []
    x = http.InferInput("x", [1, 3], "FP32")
    x.set_data_from_numpy(np.array([[1, 2, 3]], np.float32))
    print(http.InferenceServerClient(server.http_url).infer("plain", [x]).as_numpy("same"))
"""


# Runs with the checkout's kernels, compiled for exactly this processor, instead of the wheel's for its x86-64 level.
RESIZE = """
import sys

sys.modules["numba"] = None  # importing it fails

import numpy as np
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def small():
    images = fn.external_source(lambda: [np.full((40, 30, 3), 7, np.uint8)] * 2)
    return fn.crop_mirror_normalize(fn.resize(images, size=(8, 8)), dtype=types.FLOAT, mean=[7.0] * 3)

pipeline = small()
(result,) = pipeline.run()
print(result.as_array().shape, np.abs(result.as_array()).max())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (recipe,) = re.findall(
        r"^\t\tPENSTOCK_COMPILED=\$\$architecture \$\(BIN\)/python (.*) -w dist \.",
        (ROOT / "Makefile").read_text(),
        re.M,
    )
    tree, made = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    shutil.copytree(
        ROOT / "backend", tree / "backend", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", "*.pyi")
    )
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    here = folder_in_checkout()
    assert here is not None
    level = folder_of_levels(tree, platform.machine()) / usable_levels()[0]
    level.mkdir(parents=True)
    shutil.copy(here / NAME, level)
    command = [sys.executable, *recipe.split(), "-w", str(made), str(tree)]
    subprocess.run(command, env=os.environ | {"PENSTOCK_COMPILED": platform.machine()}, check=True)
    return next(made.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in a new environment, and return its interpreter."""
    environment = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    # Other packages come from the tests' environment, after the new one's. Triton is not among them: it is found by package records.
    (describe(python).packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def test_it_is_for_its_architecture_and_every_python(wheel: Path) -> None:
    assert wheel.name.endswith(f"-py3-none-manylinux_2_28_{platform.machine()}.whl")
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {library.name for library in (CORE, CALLS, SHIM)} | {f"kernels/{usable_levels()[0]}/{NAME}"}
    assert {name for name in names if name.startswith("penstock/native/")} == {
        f"penstock/native/{name}" for name in libraries
    }
    assert {f"penstock/{path}" for path in stub_files()} <= set(names)


def test_pipelines_run_without_numba(python: Path, tmp_path: Path) -> None:
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTHON"))}
    ran = subprocess.run(
        [str(python), "-c", RESIZE], env=clean, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.stdout == "(2, 3, 8, 8) 0.0\n", ran.stdout + ran.stderr


def test_models_are_served_without_a_compiler(python: Path, tmp_path: Path) -> None:
    add_model(tmp_path / "models", "plain", 'backend: "penstock"\n', HEADER + PLAIN)
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTHON"))}
    clean |= {"PATH": "/nowhere", "CXX": "/nowhere/c++", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [str(python), "-c", SERVE, str(tmp_path / "models")]
    served = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert served.stdout == "[[1. 2. 3.]]\n", served.stdout + served.stderr
    assert not list((tmp_path / "cache").rglob("*.so"))
