"""The package's functions, and the test files that can judge changes of them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from forks import ROOT
from mutants import Function, functions

PACKAGE = ROOT / "backend" / "penstock"
# Tests in these folders need a GPU, another framework or an hour, or do not run the package's code.
_LEFT_OUT = {
    "answers",
    "benchmarks",
    "conformance",
    "contract",
    "docker",
    "docs",
    "fuzz",
    "gpu",
    "mutation",
    "platforms",
    "qa",
    "sweeps",
}


def test_files() -> list[str]:
    """Return the test files that can judge mutants."""
    paths = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.relative_to(ROOT / "tests").parts[0] not in _LEFT_OUT
    ]
    return [str(path.relative_to(ROOT)) for path in paths]


@functools.cache
def package_modules() -> dict[str, Path]:
    """Return the path of each of the package's modules, by the module's name."""
    return {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def module_functions(module: str) -> list[tuple[str, Function]]:
    """Return the names and definitions of a module's functions; a function that is defined twice, conditionally, occurs twice."""
    return list(functions(ast.parse(package_modules()[module].read_bytes())))


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
