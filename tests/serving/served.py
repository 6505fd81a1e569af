"""Writes models to a repository, serves them and sends them requests, for tests that start Triton."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http
from tritonclient.utils import np_to_triton_dtype

from penstock.serving.server import LocalServer

HEADER = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize
"""

PATIENCE_SECONDS = 120.0
"""The seconds for steps that take one or two on an idle machine."""

_stopper = ThreadPoolExecutor(thread_name_prefix="stopper")
_stops: list[Future[None]] = []


def add_model(
    repository: Path, name: str, config: str, source: str | bytes, filename: str = "pipeline.py", **others: str
) -> None:
    """Write a model folder.

    Args:
        repository: the folder of the repository.
        name: the model's name.
        config: the text of its configuration.
        source: the text of its file.
        filename: the name of the file with the source.
        others: texts of further Python modules beside it.
    """
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / filename).write_bytes(source.encode() if isinstance(source, str) else source)
    for module, text in others.items():
        (folder / f"{module}.py").write_text(text)
    (folder.parent / "config.pbtxt").write_text(config)


def ask(client: Any, model: str, request_id: str = "", parameters: Any = None, **inputs: np.ndarray) -> Any:
    """Return a model's answer to one request."""
    tensors = []
    for name, data in inputs.items():
        tensor = tritonclient.http.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
        tensor.set_data_from_numpy(data)
        tensors.append(tensor)
    return client.infer(model, tensors, request_id=request_id, parameters=parameters)


def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {seconds:.0f} s in vain"
        time.sleep(0.02)


def stop_later(stop: Callable[[], None]) -> None:
    """Stop a server while the next tests run: most of that time, Triton sleeps."""
    _stops.append(_stopper.submit(stop))


@contextlib.contextmanager
def stopped_later(server: LocalServer) -> Iterator[LocalServer]:
    """Run a server inside the context, and stop it later."""
    server.start()
    try:
        yield server
    finally:
        stop_later(server.stop)


def await_stops() -> None:
    """Wait for all servers to be stopped; raise the error of one that failed."""
    for stop in _stops:
        stop.result()
