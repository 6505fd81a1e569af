"""Each part of the package imports only from those above it, as the design says; and the core loads nothing but numpy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "backend" / "penstock"
# Parts of one line may import from each other.
LAYERS = [
    {"data_types", "errors", "pickling"},
    {"tensors"},
    {"kernels"},
    {"schema"},
    {"graph"},
    {"operators"},
    {"passes", "runtime", "serialize"},
    {"pipeline", "fn", "ops", "math", "types", "external_source", "python_function", "tfrecord"},
    {"auto_aug", "plugin", "serving"},
    {"cli", "model", "__main__", "compat"},
]
LAYER_OF = {part: number for number, layer in enumerate(LAYERS) for part in layer}
LAZY = (
    "cupy",
    "numba",
    "torch",
    "jax",
    "tritonclient",
    "PIL",
    "cv2",
    "nvidia",
    "google",
    "scipy",
    "soundfile",
    "click",
    "rich",
)


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path, top_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    parts = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "penstock":
            pieces = node.module.split(".")
            parts |= {pieces[1]} if len(pieces) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            parts |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("penstock.")}
    return parts


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path: Path) -> None:
    own = LAYER_OF[part_of(path)]
    below = {part for part in imported_parts(path, top_level_only=True) if LAYER_OF.get(part, 0) > own}
    assert not below, f"{path.name} imports {below}, which stand below it"


def test_operators_know_no_other_operator() -> None:
    for path in (PACKAGE / "operators").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("penstock.operators."):
                # Only what several operators of a family share, in modules that begin with an underscore.
                assert node.module.rsplit(".", 1)[1].startswith("_"), f"{path} imports {node.module}"


def test_import_loads_nothing_but_numpy() -> None:
    program = (
        "import sys, penstock; from penstock import fn, ops, pipeline_def, types, math; "
        f"print([name for name in {LAZY!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_import_is_quick() -> None:
    program = (
        "import time; import numpy; t = time.process_time(); import penstock; a = time.process_time() - t; "
        "from penstock import fn; print(a, time.process_time() - t)"
    )
    times = []
    for _ in range(3):
        output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        times.append([float(text) for text in output.split()])
    package, functions = (min(column) for column in zip(*times))
    # Generous: this guards against loading a large library by accident, which costs seconds.
    assert package < 0.5
    assert functions < 3


def test_no_module_is_shadowed_by_a_script() -> None:
    # `types.py` and `math.py` shadow the standard library for files of their folder that are run as scripts.
    for path in PACKAGE.glob("*.py"):
        assert not path.read_text(encoding="utf-8").startswith("#!")
