"""The wheel of `make wheel` serves models without a compiler."""

from __future__ import annotations

import os
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
from penstock.serving.environment import describe
from penstock.serving.shim import SHIM

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(300)]

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (recipe,) = re.findall(
        r"^wheel:.*\n(?:\t.*\n)*?\t(\S+)=1 \$\(BIN\)/python (.*) -w dist \.$", (ROOT / "Makefile").read_text(), re.M
    )
    tree, made = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    shutil.copytree(
        ROOT / "backend", tree / "backend", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", "*.pyi")
    )
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, *recipe[1].split(), "-w", str(made), str(tree)]
    subprocess.run(command, env=os.environ | {recipe[0]: "1"}, check=True)
    return next(made.glob("*.whl"))


def test_it_is_for_this_kind_of_machine_and_every_python(wheel: Path) -> None:
    assert wheel.name.endswith(f"-py3-none-{sysconfig.get_platform().replace('-', '_')}.whl")
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {f"penstock/native/{library.name}" for library in (CORE, CALLS, SHIM)}
    assert {name for name in names if name.startswith("penstock/native/")} == libraries
    assert {f"penstock/{path}" for path in stub_files()} <= set(names)


def test_models_are_served_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    packages = describe(python).packages
    # The other packages are this environment's, but for Triton, which is found by its records; they come after its own.
    here = Path(sysconfig.get_path("purelib"))
    (packages / "others.pth").write_text(f"{here}\n")
    add_model(tmp_path / "models", "plain", 'backend: "penstock"\n', HEADER + PLAIN)
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTHON"))}
    clean |= {"PATH": "/nowhere", "CXX": "/nowhere/c++", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [str(python), "-c", SERVE, str(tmp_path / "models")]
    served = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert served.stdout == "[[1. 2. 3.]]\n", served.stdout + served.stderr
    assert not list((tmp_path / "cache").rglob("*.so"))
