"""Two model folders by strangers, in a real Triton: when folders could still grant themselves trust, one of them ran a command, and the
other read a secret.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from served import add_model, ask, stopped_later
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

SOURCE = {"operator": "external_source", "name": "x", "arguments": {"dtype": "UINT8", "ndim": 1}}
UNPICKLE = {"operator": "python_function", "name": "y", "inputs": ["x"], "python": "pickle:_loads"}
READ = {"operator": "io.file.read", "name": "y", "inputs": ["x"]}


class Touch:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def add_saved(repository: Path, name: str, parameter: str, operator: dict[str, Any]) -> None:
    """Write the folder of a saved pipeline; ``parameter``, which is ``key=value`` or empty, is added to the configuration."""
    document = {
        "format": "penstock-pipeline",
        "version": 1,
        "settings": {"batch_size": 1},
        "operators": [SOURCE, operator],
        "outputs": [{"node": "y", "device": "cpu", "dtype": "UINT8", "ndim": 1}],
    }
    config = 'backend: "penstock" max_batch_size: 1'
    if parameter:
        key, _, value = parameter.partition("=")
        config += f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
    add_model(repository, name, config, json.dumps(document), "model.json")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    add_saved(folder, "runs", "allowed_modules=pickle", UNPICKLE)
    add_saved(folder, "reads", "allowed_paths=/", READ)
    add_saved(folder, "confined", "", READ)
    return folder


@pytest.fixture(scope="module")
def server(repository: Path, model_host: str) -> Iterator[LocalServer]:
    with stopped_later(LocalServer(repository, allow_failures=True, model_host=model_host)) as running:
        yield running


def send(server: LocalServer, model: str, data: bytes) -> bytes:
    """Send bytes to a model; return its answer."""
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        answer: bytes = ask(client, model, x=np.frombuffer(data, np.uint8)[None]).as_numpy("y").tobytes()
        return answer


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("a secret")
    return tmp_path / "secret"


def test_strangers_get_nothing(server: LocalServer, secret: Path, tmp_path: Path) -> None:
    states = {model.name: model for model in server.models()}
    for name, asked in (("runs", "'pickle'"), ("reads", "'/'")):
        assert states[name].failed
        assert f"asks for {asked}, and the server grants nothing" in states[name].reason
        with pytest.raises(InferenceServerException, match="no available versions"):
            send(server, name, pickle.dumps(Touch(tmp_path / "executed")))
    with pytest.raises(InferenceServerException, match="outside of what the pipeline is confined to"):
        send(server, "confined", str(secret).encode())
    assert not (tmp_path / "executed").exists()


def test_a_trusted_repository_is_as_before(repository: Path, secret: Path, model_host: str, tmp_path: Path) -> None:
    settings = {"trust_repository": "true"}
    with stopped_later(LocalServer(repository, model_host=model_host, settings=settings)) as server:
        assert send(server, "reads", str(secret).encode()) == b"a secret"
        with pytest.raises(InferenceServerException, match="python_function"):
            # The request fails, because unpickling does not return an array, but the code has run.
            send(server, "runs", pickle.dumps(Touch(tmp_path / "executed")))
        assert (tmp_path / "executed").exists()
        with pytest.raises(InferenceServerException, match="outside of what the pipeline is confined to"):
            send(server, "confined", str(secret).encode())


def test_what_the_server_grants(repository: Path, secret: Path, model_host: str, tmp_path: Path) -> None:
    settings = {"allowed_paths": str(tmp_path)}
    with stopped_later(
        LocalServer(repository, allow_failures=True, model_host=model_host, settings=settings)
    ) as server:
        assert send(server, "confined", str(secret).encode()) == b"a secret"
        assert [model.name for model in server.models() if model.failed] == ["reads", "runs"]
