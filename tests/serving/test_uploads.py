"""Clients that may load models may not upload any, whatever the backend, unless the server's operator allows it."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import HEADER, add_model, stopped_later

from penstock.serving.server import LocalServer, ServerError

PIPELINE = (
    HEADER
    + """
@autoserialize
@pipeline_def(batch_size=4)
def p():
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1) + 1
"""
)
CONFINED = {
    "format": "penstock-pipeline",
    "version": 1,
    "settings": {"batch_size": 2},
    "operators": [
        {"operator": "external_source", "name": "x", "arguments": {"dtype": "UINT8", "ndim": 1}},
        {"operator": "io.file.read", "name": "y", "inputs": ["x"]},
    ],
    "outputs": [{"node": "y", "device": "cpu", "dtype": "UINT8", "ndim": 1}],
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    add_model(folder, "ours", 'backend: "penstock"', PIPELINE)
    add_model(folder, "saved", 'backend: "penstock"', json.dumps(CONFINED), "model.json")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path, model_host: str) -> Iterator[LocalServer]:
    flags = ["--model-control-mode=explicit", "--load-model=ours"]
    with stopped_later(LocalServer(repository, flags=flags, model_host=model_host)) as running:
        yield running


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Return the path of a file that uploaded code would write."""
    return tmp_path / "executed"


def load(
    server: LocalServer, model: str, config: dict[str, Any] | None = None, files: dict[str, bytes] | None = None
) -> tuple[int, str]:
    """Load a model with an uploaded configuration and files instead of those in its folder; return the status and the answer."""
    parameters = {} if config is None else {"config": json.dumps(config)}
    parameters |= {f"file:{path}": base64.b64encode(content).decode() for path, content in (files or {}).items()}
    connection = http.client.HTTPConnection(server.http_url, timeout=60)
    try:
        connection.request("POST", f"/v2/repository/models/{model}/load", json.dumps({"parameters": parameters}))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def writing(marker: Path) -> bytes:
    return f"open({str(marker)!r}, 'w')\n".encode()


def test_models_of_the_repositories_are_loaded(server: LocalServer) -> None:
    assert load(server, "ours") == (200, "")
    assert load(server, "saved", {"backend": "penstock", "max_batch_size": 1}) == (200, "")


@pytest.mark.parametrize("name", ["new", "ours"])
def test_pipelines_are_not_uploaded(name: str, server: LocalServer, marker: Path) -> None:
    status, _ = load(server, name, {"backend": "penstock"}, {"1/pipeline.py": writing(marker) + PIPELINE.encode()})
    assert status == 500
    assert not marker.exists()


def test_python_models_are_not_uploaded(server: LocalServer, marker: Path) -> None:
    status, _ = load(server, "new", {"backend": "python"}, {"1/model.py": writing(marker)})
    assert status == 500
    assert not marker.exists()


@pytest.mark.parametrize("where", ["1/", ""])
def test_native_backends_are_not_uploaded(where: str, server: LocalServer, marker: Path, tmp_path: Path) -> None:
    source = tmp_path / "evil.c"
    body = f'fclose(fopen("{marker}", "w"));'
    source.write_text(f"#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ {body} }}\n")
    library = tmp_path / "libtriton_evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    files = {f"{where}libtriton_evil.so": library.read_bytes(), "1/file": b""}
    status, _ = load(server, "new", {"backend": "evil"}, files)
    assert status == 500
    assert not marker.exists()


def test_the_log_names_the_remedy(server: LocalServer) -> None:
    load(server, "new", {"backend": "penstock"}, {"1/pipeline.py": PIPELINE.encode()})
    assert "`penstock serve --allow-model-upload` permits uploads" in server.log_tail(5)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"parameters": {"allowed_paths": {"string_value": "/"}}}, "a model can only name less"),
        ({"parameters": {"allowed_modules": {"string_value": "pickle"}}}, "a model can only name less"),
        ({"parameters": {"trust_repository": {"string_value": "true"}}}, "cannot be set by a model"),
        ({"default_model_filename": "../../ours/1/pipeline.py"}, "invalid character"),
        ({"instance_group": [{"count": 100000, "kind": "KIND_CPU"}]}, "at most 1024"),
    ],
)
def test_a_clients_configuration_widens_nothing(config: dict[str, Any], reason: str, server: LocalServer) -> None:
    status, text = load(server, "saved", {"backend": "penstock", "max_batch_size": 2} | config)
    assert status == 400
    assert reason in text


def test_uploads_may_be_allowed(repository: Path, model_host: str, marker: Path) -> None:
    options = LocalServer(
        repository,
        flags=["--model-control-mode=explicit"],
        settings={"allow_model_upload": "true"},
        model_host=model_host,
    )
    with stopped_later(options) as server:
        source = writing(marker) + PIPELINE.encode()
        assert load(server, "new", {"backend": "penstock"}, {"1/pipeline.py": source}) == (200, "")
        assert marker.exists()


def test_an_environment_beside_a_saved_pipeline_is_refused(tmp_path: Path, marker: Path) -> None:
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "activate").write_text(f"touch {marker}\n")
    config = 'backend: "penstock" parameters { key: "isolation" value { string_value: "process" } }'
    config += f' parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{tmp_path}/environment" }} }}'
    add_model(tmp_path / "repository", "saved", config, json.dumps(CONFINED), "model.json")
    with stopped_later(LocalServer(tmp_path / "repository", allow_failures=True, timeout=30)) as server:
        (model,) = server.models()
        assert model.failed
        assert "EXECUTION_ENV_PATH names an environment" in model.reason
        assert not marker.exists()


def test_a_server_starts_no_library_of_a_models_folder(tmp_path: Path, model_host: str) -> None:
    add_model(tmp_path, "ours", 'backend: "penstock"', PIPELINE)
    (tmp_path / "ours" / "1" / "libtriton_penstock.so").write_bytes(b"")
    with pytest.raises(ServerError, match="makes Triton run a library from the model's folder as its backend"):
        LocalServer(tmp_path, model_host=model_host).start()
