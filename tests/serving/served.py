"""Helpers for tests that start Triton: write models to a repository, serve them, and send them requests."""

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
"""The time limit for steps that take one or two seconds on an idle machine."""

_stopper = ThreadPoolExecutor(thread_name_prefix="stopper")
_stops: list[Future[None]] = []


def add_model(
    repository: Path, name: str, config: str, source: str | bytes, filename: str = "pipeline.py", **others: str
) -> None:
    """Write a model folder.

    Args:
        repository: the folder of the repository.
        name: the model's name.
        config: the text of the model's configuration.
        source: the contents of the model's file.
        filename: the name of the model's file.
        others: the texts of further Python modules beside the model's file, by name.
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
    """Wait until a condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {seconds:.0f} s in vain"
        time.sleep(0.02)


def stop_later(stop: Callable[[], None]) -> None:
    """Stop a server while the next tests run: while it is being stopped, Triton mostly sleeps."""
    _stops.append(_stopper.submit(stop))


@contextlib.contextmanager
def stopped_later(server: LocalServer) -> Iterator[LocalServer]:
    """Run a server during the context, and stop it while later tests run."""
    server.start()
    try:
        yield server
    finally:
        stop_later(server.stop)


def await_stops() -> None:
    """Wait until all servers have stopped; raise the error of a stop that failed."""
    for stop in _stops:
        stop.result()
