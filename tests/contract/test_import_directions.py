"""Each part of the package imports only from lower layers (see backend/DESIGN.md), and the core loads numpy only."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from penstock.graph.parsing import parse

PACKAGE = Path(__file__).parents[2] / "backend" / "penstock"
# The layers, lowest first. Parts in the same line are in the same layer, and may import from each other.
LAYERS = [
    {"data_types", "errors", "machine", "pickling", "private_folders"},
    {"core"},
    {"distribution", "tensors"},
    {"storage"},
    {"kernels"},
    {"schema"},
    {"graph"},
    {"operators"},
    {"passes", "runtime", "serialize"},
    {"pipeline", "fn", "ops", "math", "types", "external_source", "python_function", "tfrecord", "dynamic"},
    {"auto_aug", "parity", "presets", "plugin", "compat", ""},
    {"serving"},
    {"examples", "plugin.torchvision", "compat.torchvision"},
    {"cli", "model", "__main__"},
]
# The part without a name is the package's public interface. Packages within a part may be in layers of their own.
LAYER_OF = {part: number for number, layer in enumerate(LAYERS) for part in layer}
LAZY = (
    "cloudpickle",
    "cupy",
    "numba",
    "torch",
    "jax",
    "onnx",
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


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(module: str) -> str:
    _, _, inner = module.partition(".")
    package = ".".join(inner.split(".")[:2])
    return package if package in LAYER_OF else inner.split(".")[0]


def known_module(name: str) -> str:
    """Return the name itself if it is a module, else the module of which it is an attribute."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def named_in(node: ast.AST) -> list[str]:
    """Return the full names of this package's modules and members in an import statement."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports are not looked at here"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return [name for name in names if name.partition(".")[0] == "penstock"]


@functools.cache
def imports(module: str) -> frozenset[str]:
    """Return the modules that a module imports at the top, in functions, and for type checking."""
    tree = parse(MODULES[module].read_text(encoding="utf-8"))
    return frozenset(known_module(name) for node in ast.walk(tree) for name in named_in(node)) - {module}


def test_imports_point_upwards() -> None:
    below = [
        f"{module} imports {imported}"
        for module in MODULES
        for imported in sorted(imports(module))
        if LAYER_OF[part_of(imported)] > LAYER_OF[part_of(module)]
    ]
    assert not below, "\n".join(["modules import what stands below them:", *below])


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({module: imports(module) for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(f"Modules import each other in a circle: {' <- '.join(error.args[1])}")


def test_imports_in_functions_and_for_typing_are_seen() -> None:
    function = parse("def f():\n    from penstock.graph import DataNode\n")
    typing = parse("if TYPE_CHECKING:\n    import penstock.pipeline.debug\n")
    seen = [known_module(name) for tree in (function, typing) for node in ast.walk(tree) for name in named_in(node)]
    assert seen == ["penstock.graph", "penstock.pipeline.debug"]


def test_operators_know_no_other_operator() -> None:
    for path in (PACKAGE / "operators").rglob("*.py"):
        tree = parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("penstock.operators."):
                # Operators may import only modules whose names begin with an underscore, which are shared within the family.
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
    # The limit is generous: the test detects that a large library is loaded by accident, which takes seconds.
    assert package < 0.5
    assert functions < 3


def test_no_module_is_shadowed_by_a_script() -> None:
    # If a file here were run as a script, `types.py` and `math.py` would shadow the standard library.
    for path in PACKAGE.glob("*.py"):
        assert not path.read_text(encoding="utf-8").startswith("#!")
