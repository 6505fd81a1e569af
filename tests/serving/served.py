"""Writes models to a repository, and sends requests to them, for tests that start Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http
from tritonclient.utils import np_to_triton_dtype

HEADER = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize
"""


def add_model(
    repository: Path, name: str, config: str, source: str | bytes, filename: str = "pipeline.py", **others: str
) -> None:
    """Writes a model folder.

    Args:
        repository: where.
        name: of the model.
        config: the text of its configuration.
        source: what is in its file.
        filename: of that.
        others: texts of further Python modules beside it.
    """
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / filename).write_bytes(source.encode() if isinstance(source, str) else source)
    for module, text in others.items():
        (folder / f"{module}.py").write_text(text)
    (folder.parent / "config.pbtxt").write_text(config)


def ask(client: Any, model: str, request_id: str = "", parameters: Any = None, **inputs: np.ndarray) -> Any:
    """A model's answer to one request."""
    tensors = []
    for name, data in inputs.items():
        tensor = tritonclient.http.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
        tensor.set_data_from_numpy(data)
        tensors.append(tensor)
    return client.infer(model, tensors, request_id=request_id, parameters=parameters)
