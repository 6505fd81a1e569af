"""The module ``nvidia.dali``: Penstock's names, with the version of DALI whose interface they provide."""

from __future__ import annotations

import importlib
from typing import Any

import penstock
from penstock import (
    DataNode,
    OperatorConcurrency,
    Pipeline,
    StreamPolicy,
    fn,
    math,
    newaxis,
    ops,
    pipeline,
    pipeline_def,
    tensors,
    types,
)

__version__ = "2.4.0"
# The commit of the DALI release that the package follows, and the CUDA version of its wheel.
__git_sha__ = "3c14d036e5b911b192b8835f8008358c9b78b22a"
__cuda_version__ = 12986
__path__: list[str] = []
__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "fn",
    "math",
    "newaxis",
    "ops",
    "pipeline",
    "pipeline_def",
    "tensors",
    "types",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return importlib.import_module(f"nvidia.dali.{name}")
    except ModuleNotFoundError:
        return getattr(penstock, name)
