"""Penstock: preprocessing pipelines for inference servers and training loops, with the Python API of NVIDIA DALI.

>>> from penstock import fn, pipeline_def, types
>>> @pipeline_def(batch_size=8, num_threads=2)
... def preprocess():
...     encoded = fn.external_source(name="encoded_image")
...     images = fn.decoders.image(encoded, output_type=types.RGB)
...     images = fn.resize(images, resize_shorter=256)
...     return fn.crop_mirror_normalize(images, crop=(224, 224), dtype=types.FLOAT)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported on first use, so that `import penstock` is quick.
_MODULES = ("auto_aug", "dynamic", "errors", "fn", "math", "ops", "pipeline", "plugin", "tensors", "types")
_NAMES = {
    "DataNode": "penstock.graph",
    "OperatorConcurrency": "penstock.pipeline",
    "Pipeline": "penstock.pipeline",
    "StreamPolicy": "penstock.pipeline",
    "newaxis": "penstock.graph",
    "pipeline_def": "penstock.pipeline",
}

if TYPE_CHECKING:
    from penstock import auto_aug, dynamic, errors, fn, math, ops, pipeline, plugin, tensors, types
    from penstock.graph import DataNode, newaxis
    from penstock.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "__version__",
    "auto_aug",
    "dynamic",
    "errors",
    "fn",
    "math",
    "newaxis",
    "ops",
    "pipeline",
    "pipeline_def",
    "plugin",
    "tensors",
    "types",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"penstock.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    from penstock.errors import no_such_attribute

    raise no_such_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
