"""Finds the CUDA sources next to the modules that launch them."""

from __future__ import annotations

import importlib
from pathlib import Path

import penstock
from penstock.kernels.cuda.sources import KernelSource

_PACKAGE = Path(penstock.__file__).parent


def all_sources() -> dict[str, KernelSource]:
    """Return the sources by file name, including those next to single operators, `_<name>_cuda.cu`."""
    paths = sorted(_PACKAGE.rglob("*.cu"))
    modules = [".".join(["penstock", *path.relative_to(_PACKAGE).with_suffix("").parts]) for path in paths]
    names = [path.stem.removeprefix("_").removesuffix("_cuda") for path in paths]
    return {name: importlib.import_module(module).SOURCE for name, module in zip(names, modules)}
