"""Model folders by strangers: if they require more permissions than the server's operator granted, loading is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import HEADER

from penstock.errors import PenstockError
from penstock.serialize import wire
from penstock.serving.control import ServerError
from penstock.serving.instance import completed
from penstock.serving.refusals import Refusal
from penstock.serving.served_model import ServedModel
from penstock.serving.settings import SERVER_SETTINGS, ConfigurationError
from penstock.serving.trust import (
    MAX_INSTANCES,
    REPOSITORIES,
    check_native_code,
    check_repositories,
    check_response_cache,
)

# Each folder is another attempt to gain permissions.
pytestmark = pytest.mark.every_case

Author = Callable[[Path, "Stranger"], dict[str, Any]]


class Stranger:
    """The author of a model folder; ``marker`` is the file that the author's code would write, ``secret`` the one it would read."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "executed"
        self.secret = folder / "secret.txt"
        self.secret.write_text("secret")


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    return Stranger(tmp_path)


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "model" / "1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def grant(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the server's settings."""

    def set_settings(**settings: str) -> None:
        monkeypatch.setenv(SERVER_SETTINGS, json.dumps({"penstock": settings}))

    return set_settings


def parameters(**values: str) -> dict[str, Any]:
    return {"parameters": {name: {"string_value": value} for name, value in values.items()}}


def write_graph(version: Path, *operators: dict[str, Any]) -> None:
    """Write a saved pipeline with an input ``x`` of bytes, followed by these operators."""
    source = {"operator": "external_source", "name": "x", "arguments": {"dtype": "UINT8", "ndim": 1}}
    document = {
        "format": "penstock-pipeline",
        "version": 1,
        "settings": {"batch_size": 2, "num_threads": 1},
        "operators": [source, *operators],
        "outputs": [{"node": name, "device": "cpu", "dtype": "UINT8", "ndim": 1} for name in ("y", "x")],
    }
    (version / "model.json").write_text(json.dumps(document))


def write_identity(version: Path) -> None:
    write_graph(version, {"operator": "copy", "name": "y", "inputs": ["x"]})


def write_python(version: Path, path: str) -> None:
    """Write a saved pipeline that calls a function named by import path."""
    call = {"operator": "python_function", "name": "y", "inputs": ["x"], "python": path}
    write_graph(version, call | {"arguments": {"num_outputs": 1}})


def write_reader(version: Path, **arguments: object) -> None:
    """Write a saved pipeline with a reader."""
    reader = {"operator": "readers.file", "name": "r", "arguments": arguments, "outputs": ["y", "label"]}
    write_graph(version, reader)


def write_file_operator(version: Path) -> None:
    """Write a saved pipeline that reads the file whose path a request contains."""
    write_graph(version, {"operator": "io.file.read", "name": "y", "inputs": ["x"]})


def configuration(**more: Any) -> dict[str, Any]:
    return {"name": "model", "backend": "penstock", "max_batch_size": 2} | more


def serve(version: Path, config: dict[str, Any]) -> ServedModel:
    """Load a model as a server does: complete its configuration, then create and return the instance."""
    return ServedModel.load(version, completed(config, version), None)


def answer(model: ServedModel, text: str) -> Any:
    """Return the answer to a request with one sample."""

    class Request:
        id, parameters, wanted = "", dict[str, Any](), ("y",)

        def tensor(self, name: str) -> np.ndarray:
            return np.frombuffer(text.encode(), np.uint8)[None]

        def reserve(self, *_: object) -> None:
            return None

        def is_cancelled(self) -> bool:
            return False

    (one,) = model.answer([Request()])
    return one


def text_of(answered: Any) -> str:
    """Return an answer's first output as text, or the message of a refusal."""
    return answered.message if isinstance(answered, Refusal) else answered.tensors["y"].tobytes().decode()


# -- folders by strangers ------------------------------------------------------------------------------------------------


def _pickle(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_python(version, "pickle:loads")
    return parameters(allowed_modules="pickle")


def _system(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_python(version, "os:system")
    return parameters(allowed_modules="os")


def _own_package(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_python(version, "penstock.pickling:loads")
    return parameters(allowed_modules="penstock")


def _module_without_permission(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_python(version, "penstock.pickling:loads")
    return {}


def _module_in_the_folder(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version / "helper.py").write_text(f"open({str(stranger.marker)!r}, 'w')\ndef run(x): return x\n")
    write_python(version, "helper:run")
    return parameters(allowed_modules="helper")


def _everything(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, files=[str(stranger.secret)])
    return parameters(allowed_paths="/")


def _path_of_a_reader(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, files=[str(stranger.secret)])
    return {}


def _root_of_a_reader(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, file_root="../../..", files=["secret.txt"])
    return {}


def _list_of_a_reader(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version / "list.txt").write_text(f"{stranger.secret} 0\n")
    write_reader(version, file_list="list.txt")
    return {}


def _link_out(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version / "labels.txt").symlink_to(stranger.secret)
    write_reader(version, files=["labels.txt"])
    return {}


def _link_as_allowed_path(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version / "data").symlink_to("/")
    write_reader(version, files=[f"data{stranger.secret}"])
    return parameters(allowed_paths="data")


def _relative_allowed_path(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, files=[str(stranger.secret)])
    return parameters(allowed_paths="../../..")


def _file_protocol(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, files=[f"file://{stranger.secret}"])
    return parameters(allowed_paths=f"file://{stranger.secret.parent}")


def _remote(*urls: str) -> list[Author]:
    def author(url: str) -> Author:
        def write(version: Path, stranger: Stranger) -> dict[str, Any]:
            write_reader(version, files=[url.format(secret=stranger.secret)])
            return {}

        write.__name__ = f"_{url.partition(':')[0]}"
        return write

    return [author(url) for url in urls]


def _remote_allowed_path(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_reader(version, files=["http://169.254.169.254/latest/meta-data"])
    return parameters(allowed_paths="http://169.254.169.254")


def _version_is_a_link(version: Path, stranger: Stranger) -> dict[str, Any]:
    """Make the version's folder a link to the root folder, so that relative paths lead to the secret; write the pipeline beside it."""
    write_reader(version, files=[str(stranger.secret)])
    (version / "model.json").rename(version.parent / "model.json")
    version.rmdir()
    version.symlink_to("/")
    return {"default_model_filename": str(version.parent / "model.json").lstrip("/")}


def _file_outside(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version.parents[2] / "pipeline.py").write_text(f"open({str(stranger.marker)!r}, 'w')\n")
    return {"default_model_filename": "../../../pipeline.py"}


def _link_to_code(version: Path, stranger: Stranger) -> dict[str, Any]:
    (version.parents[2] / "code.py").write_text(f"open({str(stranger.marker)!r}, 'w')\n")
    (version / "pipeline.py").symlink_to(version.parents[2] / "code.py")
    return {}


def _trusts_itself(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_python(version, "pickle:loads")
    return parameters(trust_repository="true", allowed_modules="pickle")


def _accepts_uploads(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_identity(version)
    return parameters(allow_model_upload="true")


def _accepts_the_cache(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_identity(version)
    return parameters(unsafe_response_cache="true") | {"response_cache": {"enable": True}}


def _instances(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_identity(version)
    return {"instance_group": [{"name": "a", "kind": "KIND_CPU", "count": 10**9}]}


def _warmup_of_a_secret(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_identity(version)
    given = {"data_type": "TYPE_UINT8", "dims": ["6"], "input_data_file": "../../../secret.txt"}
    return {"model_warmup": [{"name": "w", "batch_size": 1, "inputs": {"x": given}}]}


def _warmup_through_a_link(version: Path, stranger: Stranger) -> dict[str, Any]:
    write_identity(version)
    (version.parent / "warmup").mkdir()
    (version.parent / "warmup" / "data").symlink_to(stranger.secret)
    given = {"data_type": "TYPE_UINT8", "dims": ["6"], "input_data_file": "data"}
    return {"model_warmup": [{"name": "w", "batch_size": 1, "inputs": {"x": given}}]}


def _address_as_function(version: Path, stranger: Stranger) -> dict[str, Any]:
    """Write a pipeline in which a function is saved as its address, as DALI saves functions compiled by Numba."""
    arguments = {"run_fn": 4096, "in_types": ["UINT8"], "ins_ndim": [1], "out_types": ["UINT8"], "outs_ndim": [1]}
    write_graph(
        version,
        {"operator": "experimental.numba_function", "name": "y", "inputs": ["x"], "arguments": arguments},
    )
    return {}


def _address_in_the_wire_format(schema: str, argument: str) -> Author:
    def write(version: Path, stranger: Stranger) -> dict[str, Any]:
        source = wire.OpDef(
            "ExternalSource",
            [],
            [wire.EdgeDef("x", "cpu")],
            [wire.ArgumentDef("device", "string", "cpu"), wire.ArgumentDef("ndim", "int64", 1)],
            "x",
            0,
        )
        call = wire.OpDef(
            schema,
            [wire.EdgeDef("x", "cpu")],
            [wire.EdgeDef("y", "cpu")],
            [wire.ArgumentDef("device", "string", "cpu"), wire.ArgumentDef(argument, "int64", 4096)],
            "y",
            1,
        )
        outputs = [wire.EdgeDef(name, "cpu", dtype=0, ndim=1) for name in ("y", "x")]
        definition = wire.PipelineDef(max_batch_size=2, num_threads=1, operators=[source, call], outputs=outputs)
        (version / "model.dali").write_bytes(wire.encode(definition))
        return {}

    write.__name__ = f"_{schema}"
    return write


_NOT_GRANTED = (
    "and the server grants nothing: a model can only name less. Start the server with `penstock serve --allow-"
)
_OUTSIDE = "outside of what the pipeline is confined to"
_NO_FUNCTION = "There is no function to call"
_LEADS_OUT = "which is outside of the model's folder"
HOSTILE: dict[Author, str] = {
    _pickle: f"{_NOT_GRANTED}module pickle`",
    _system: f"{_NOT_GRANTED}module os`",
    _own_package: f"{_NOT_GRANTED}module penstock`",
    _module_without_permission: "not among those from which Python operators may be loaded",
    _module_in_the_folder: f"{_NOT_GRANTED}module helper`",
    _everything: f"{_NOT_GRANTED}path /`",
    _path_of_a_reader: _OUTSIDE,
    _root_of_a_reader: _OUTSIDE,
    _list_of_a_reader: _OUTSIDE,
    _link_out: _OUTSIDE,
    _link_as_allowed_path: f"{_NOT_GRANTED}path /",
    _relative_allowed_path: f"{_NOT_GRANTED}path /",
    _file_protocol: f"{_NOT_GRANTED}path /",
    _remote_allowed_path: f"{_NOT_GRANTED}path http://",
    _version_is_a_link: _LEADS_OUT,
    _file_outside: "invalid character",
    _link_to_code: _LEADS_OUT,
    _trusts_itself: "cannot be set by a model",
    _accepts_uploads: "cannot be set by a model",
    _accepts_the_cache: "cannot be set by a model",
    _instances: f"at most {MAX_INSTANCES}",
    _warmup_of_a_secret: _LEADS_OUT,
    _warmup_through_a_link: _LEADS_OUT,
    _address_as_function: "no argument 'run_fn'",
    _address_in_the_wire_format("NumbaFunction", "run_fn"): "the file gives no argument 'out_types'",
    _address_in_the_wire_format("DLTensorPythonFunction", "function_id"): _NO_FUNCTION,
    _address_in_the_wire_format("PythonFunction", "function_id"): _NO_FUNCTION,
} | dict.fromkeys(
    _remote(
        "http://169.254.169.254/latest/meta-data",
        "s3://bucket/secret",
        "local://{secret}",
        "simplecache::file://{secret}",
        "FILE://{secret}",
        "memory://secret",
        "zip://secret.txt::file://{secret}",
    ),
    _OUTSIDE,
)
"""Functions that write model folders, each of which requires something that no server allows by default."""


@pytest.mark.parametrize(("author", "reason"), HOSTILE.items(), ids=[each.__name__.lstrip("_") for each in HOSTILE])
def test_hostile_folders_get_nothing(author: Author, reason: str, version: Path, stranger: Stranger) -> None:
    config = configuration(**author(version, stranger))
    try:
        answered = answer(serve(version, config), "anything")
    except (PenstockError, FileNotFoundError) as error:
        message = str(error)
    else:
        # Lists of files are only read when the pipeline runs.
        assert isinstance(answered, Refusal), answered
        message = answered.message
    assert reason in message
    assert not stranger.marker.exists()


# -- permissions that a server grants ------------------------------------------------------------------------------------


def test_a_server_grants_and_a_model_narrows(
    version: Path, stranger: Stranger, grant: Callable[..., None], tmp_path: Path
) -> None:
    write_file_operator(version)
    grant(allowed_paths=f"{tmp_path}, s3://bucket/photos")
    assert "secret" in text_of(answer(serve(version, configuration()), str(stranger.secret)))
    for narrower in (str(tmp_path), f"{tmp_path}/other, s3://bucket/photos/of-cats", "../../..", ".", ""):
        serve(version, configuration(**parameters(allowed_paths=narrower)))
    model = serve(version, configuration(**parameters(allowed_paths=f"{tmp_path}/other")))
    assert _OUTSIDE in text_of(answer(model, str(stranger.secret)))
    for wider in ("/", "s3://bucket", "s3://bucket/photos-of-others", f"{tmp_path}/.."):
        with pytest.raises(ConfigurationError, match="a model can only name less"):
            serve(version, configuration(**parameters(allowed_paths=wider)))


def test_modules(version: Path, grant: Callable[..., None]) -> None:
    write_python(version, "email.utils:unquote")
    with pytest.raises(PenstockError, match="none is allowed"):
        serve(version, configuration())
    grant(allowed_modules="email,json")
    serve(version, configuration())
    serve(version, configuration(**parameters(allowed_modules="email.utils")))
    with pytest.raises(PenstockError, match=r"the module 'email.utils' is not among those"):
        serve(version, configuration(**parameters(allowed_modules="json")))
    with pytest.raises(ConfigurationError, match="asks for 'emails'"):
        serve(version, configuration(**parameters(allowed_modules="emails")))


@pytest.mark.parametrize(
    "path", ["email.utils:os.system", "email.utils:os", "json:loads.__globals__", "json:JSONDecoder.__subclasses__"]
)
def test_a_module_offers_only_what_it_defines(path: str, version: Path, grant: Callable[..., None]) -> None:
    grant(allowed_modules="email,json")
    write_python(version, path)
    with pytest.raises(PenstockError, match="is not defined in a module from which Python operators may be loaded"):
        serve(version, configuration())


def test_a_trusted_repository_grants_by_its_files_alone(
    version: Path, stranger: Stranger, grant: Callable[..., None]
) -> None:
    write_file_operator(version)
    grant(trust_repository="true")
    asked = parameters(allowed_paths="/")
    # A client may send such a configuration when it loads the model.
    with pytest.raises(ConfigurationError, match="a model can only name less"):
        serve(version, configuration(**asked))
    text = 'parameters { key: "allowed_paths" value { string_value: "/" } }'
    (version.parent / "config.pbtxt").write_text(text)
    assert "secret" in text_of(answer(serve(version, configuration(**asked)), str(stranger.secret)))
    with pytest.raises(ConfigurationError, match="asks for 's3://bucket'"):
        serve(version, configuration(**parameters(allowed_paths="/, s3://bucket")))


def test_paths_of_the_server_do_not_confine_code(
    version: Path, stranger: Stranger, grant: Callable[..., None], tmp_path: Path
) -> None:
    (version / "pipeline.py").write_text(
        f"{HEADER}\n@autoserialize\n@pipeline_def(batch_size=2, output_dtype=types.UINT8, output_ndim=1)\ndef p():\n"
        "    return fn.io.file.read(fn.external_source(name='x', dtype=types.UINT8, ndim=1), name='y')\n"
    )
    grant(allowed_paths="/elsewhere")
    assert "secret" in text_of(answer(serve(version, configuration()), str(stranger.secret)))
    model = serve(version, configuration(**parameters(allowed_paths="/elsewhere")))
    assert _OUTSIDE in text_of(answer(model, str(stranger.secret)))


def test_the_response_cache_in_the_stub(grant: Callable[..., None]) -> None:
    check_response_cache({"response_cache": {"enable": False}})
    with pytest.raises(ConfigurationError, match="repeats them as successes without outputs"):
        check_response_cache({"response_cache": {"enable": True}})
    grant(unsafe_response_cache="true")
    check_response_cache({"response_cache": {"enable": True}})


def test_uploaded_models_are_refused(version: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_identity(version)
    monkeypatch.setenv(REPOSITORIES, json.dumps([str(version.parents[1])]))
    serve(version, configuration())
    monkeypatch.setenv(REPOSITORIES, json.dumps([str(tmp_path / "x"), str(version.parents[1])]))
    serve(version, configuration())
    monkeypatch.setenv(REPOSITORIES, json.dumps([str(version.parents[1]) + "-2", str(tmp_path / "x")]))
    with pytest.raises(ConfigurationError, match="--allow-model-upload"):
        serve(version, configuration())


def test_repositories_whose_models_are_copied_exclude_refusing_uploads() -> None:
    check_repositories([Path("/models")])
    with pytest.raises(ServerError, match="Triton copies the models of 's3:/bucket/models'"):
        check_repositories([Path("s3://bucket/models")])


@pytest.mark.parametrize("name", ["1/libtriton_penstock.so", "libtriton_penstock.so", "1/libtriton_penstock_stub.so"])
def test_libraries_in_the_place_of_ours_are_refused(name: str, version: Path) -> None:
    repository = version.parents[1]
    check_native_code([repository, repository / "missing"], ["penstock"])
    (version.parent / name).write_bytes(b"")
    with pytest.raises(
        ServerError, match=r"libtriton_penstock\w*.so' makes Triton run a library from the model's folder"
    ):
        check_native_code([repository], ["penstock"])
    check_native_code([repository], ["penstock"], "another")
    with pytest.raises(ServerError):
        check_native_code([repository], ["penstock"], "model")
    check_native_code([repository], ["dali"])


@pytest.mark.parametrize(
    "text",
    ['runtime: "evil.so"', "runtime:'e\\x76il.so'", 'runtime: "evil" ".so"', '# "\nruntime : "evil.so" # "'],
)
@pytest.mark.parametrize("file", ["config.pbtxt", "configs/other.pbtxt"])
def test_configurations_that_name_a_library_are_refused(text: str, file: str, version: Path) -> None:
    path = version.parent / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'backend: "penstock"\n{text}\n')
    with pytest.raises(ServerError, match=f"{file}' makes Triton run a library"):
        check_native_code([version.parents[1]], ["penstock"])
    path.write_text(
        'backend: "penstock" # runtime: "evil.so"\nparameters { key: "runtime" value { string_value: "x" } }'
    )
    check_native_code([version.parents[1]], ["penstock"])
