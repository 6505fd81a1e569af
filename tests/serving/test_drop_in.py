"""Unmodified repositories of the DALI backend on a real Triton: files, folders, configurations, rejected ones.

The suites of that backend itself are run by ``tests/qa/run_qa.py``.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock import fn, pipeline_def, types
from penstock.serving.server import LocalServer, ServerError

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later

pytestmark = pytest.mark.exhaustive

CONFIG = 'backend: "dali"\n'
HEAD = """
import multiprocessing as mp
import nvidia.dali as dali
import nvidia.dali.fn as fn
from nvidia.dali.plugin.triton import autoserialize
"""
# A model with two numeric inputs and with operators on the GPU.
SUMS = (
    HEAD
    + """
@autoserialize
@dali.pipeline_def(batch_size=24, num_threads=min(mp.cpu_count(), 2), device_id=0,
                   output_dtype=[dali.types.FLOAT16, dali.types.FLOAT], output_ndim=[1, 1])
def sums():
    a = fn.external_source(device="cpu", name="A", dtype=dali.types.FLOAT16, ndim=1)
    b = fn.external_source(device="gpu", name="B", dtype=dali.types.FLOAT16, ndim=1)
    more = fn.cast(a.gpu(), dtype=dali.types.FLOAT) + 1
    twice = fn.cast(b, dtype=dali.types.FLOAT) * 2
    return fn.cast(more, dtype=dali.types.FLOAT16, name="MORE"), fn.reshape(twice, layout="", name="TWICE")
"""
)
# A model on the GPU with one output and one input, whose type is not declared.
HALVES = (
    HEAD
    + """
@autoserialize
@dali.pipeline_def(batch_size=3, num_threads=1, device_id=0)
def halves():
    return fn.external_source(device="gpu", name="X") / dali.types.Constant(2)
"""
)
SUMS_PARTLY = """
max_batch_size: 8
input [ { name: "A" data_type: TYPE_FP16 allow_ragged_batch: true } ]
output [ { name: "MORE" } ]
output [ { name: "TWICE" } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 500 }
"""
HALVES_IN_FULL = """
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ON_GPU = "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0 ] } ]\n"


@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def thumbnails(device: str) -> Any:
    images = fn.external_source(device="cpu", name="ENCODED")
    images = fn.decoders.image(images, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    return fn.resize(images, resize_x=6, resize_y=4)


def add(repository: Path, name: str, files: dict[str, str | bytes], config: str | None = CONFIG) -> Path:
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    for path, content in files.items():
        (folder / "1" / path).parent.mkdir(exist_ok=True)
        (folder / "1" / path).write_bytes(content.encode() if isinstance(content, str) else content)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("dali")
    add(repository, "partial", {"dali.py": SUMS}, CONFIG + SUMS_PARTLY)
    add(repository, "no_config.dali", {"dali.py": SUMS}, None)
    add(repository, "unbatched.dali", {"dali.py": SUMS}, "max_batch_size: 0\n")
    add(repository, "saved.dali", {"model.dali": thumbnails("gpu").serialize()}, None)
    named = 'default_model_filename: "halves.py"\nversion_policy { all {} }\n'
    versions = add(repository, "versions", {"halves.py": HALVES}, CONFIG + HALVES_IN_FULL + ON_GPU + named)
    (versions / "2").mkdir()
    (versions / "2" / "dali.py").write_text(HALVES.replace("(2)", "(4)"))
    with stopped_later(
        LocalServer(
            repository,
            model_host=model_host,
            backends=("penstock", "dali"),
            settings={"device": "cpu"},
            flags=["--backend-config=dali,release_after_unload=true"],
        )
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: LocalServer) -> Iterator[Any]:
    with contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc_url)) as connected:
        yield connected


def ask(client: Any, model: str, version: str = "", **inputs: np.ndarray) -> Any:
    names = {"float16": "FP16", "float32": "FP32", "uint8": "UINT8"}
    tensors = []
    for name, array in inputs.items():
        tensors.append(tritonclient.grpc.InferInput(name, list(array.shape), names[array.dtype.name]))
        tensors[-1].set_data_from_numpy(array)
    return client.infer(model, tensors, model_version=version)


def configuration(client: Any, model: str) -> Any:
    return client.get_model_config(model, as_json=True)["config"]


@pytest.mark.parametrize("model", ["partial", "no_config.dali", "unbatched.dali"])
def test_python_definitions_with_dalis_imports(client: Any, model: str) -> None:
    a, b = np.arange(6, dtype=np.float16).reshape(2, 3), np.arange(8, dtype=np.float16).reshape(2, 4)
    answer = ask(client, model, A=a, B=b)
    assert answer.as_numpy("MORE").tolist() == (a + 1).tolist()
    assert answer.as_numpy("TWICE").tolist() == (b * 2).tolist()
    assert answer.as_numpy("TWICE").dtype == np.float32


@pytest.mark.parametrize(("model", "batch_size"), [("no_config.dali", 24), ("partial", 8)])
def test_configurations_are_completed(client: Any, model: str, batch_size: int) -> None:
    config = configuration(client, model)
    assert config["max_batch_size"] == batch_size
    inputs = {item["name"]: item for item in config["input"]}
    assert list(inputs) == ["A", "B"]
    for item in inputs.values():
        assert (item["data_type"], item["dims"], item["allow_ragged_batch"]) == ("TYPE_FP16", ["-1"], True)
    described = [(item["name"], item["data_type"], item["dims"]) for item in config["output"]]
    assert described == [("MORE", "TYPE_FP16", ["-1"]), ("TWICE", "TYPE_FP32", ["-1"])]
    preferred = [4, 8] if model == "partial" else [batch_size]
    assert config["dynamic_batching"]["preferred_batch_size"] == preferred


def test_unbatched_models_have_the_batch_among_their_dims(client: Any) -> None:
    config = configuration(client, "unbatched.dali")
    assert config.get("max_batch_size", 0) == 0
    assert [item["dims"] for item in config["input"] + config["output"]] == [["-1", "-1"]] * 4


def test_saved_pipelines(client: Any) -> None:
    pixels = np.random.default_rng(1).integers(0, 255, (30, 20, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    encoded = np.frombuffer(buffer.getvalue(), np.uint8)
    answer = ask(client, "saved.dali", ENCODED=np.stack([encoded, encoded]))
    pipeline = thumbnails("cpu", device_id=None, prefetch_queue_depth=1)
    pipeline.feed_input("ENCODED", [encoded])
    expected = np.array(pipeline.run()[0][0])
    pipeline.close()
    (output,) = configuration(client, "saved.dali")["output"]
    assert answer.as_numpy(output["name"]).tolist() == [expected.tolist()] * 2


def test_versions_by_name_and_by_what_stands_in_for_it(client: Any) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    for version, divisor in (("1", 2), ("2", 4)):
        assert ask(client, "versions", version, X=x).as_numpy("Y").tolist() == (x / divisor).tolist()


# -- refusals ----------------------------------------------------------------------------------------------------------

READING = """
max_batch_size: 1
input [ { name: "X" data_type: TYPE_UINT8 dims: [ -1 ] } ]
output [ { name: "FILES" data_type: TYPE_UINT8 dims: [ -1 ] }, { name: "Y" data_type: TYPE_UINT8 dims: [ -1 ] } ]
"""
REFUSALS = {
    "above": "contains an invalid character: '/'",
    "absolute": "contains an invalid character: '/'",
    "quote": "contains an invalid character: '''",
    "shell": "contains an invalid character: '$'",
    "linked": "outside of the model's folder",
    "reading": "outside of what the pipeline is confined to",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of models that are refused; what they try to reach is outside of it."""
    folder = tmp_path_factory.mktemp("refused")
    repository = folder / "models"
    (folder / "outside.py").write_text(f"open({str(folder / 'executed')!r}, 'w')\n{HALVES}")
    names = {
        "above": "../../../outside.py",
        "absolute": str(folder / "outside.py"),
        "quote": "test');import os;os.system('touch executed",
        "shell": f"$(touch {folder}/executed).py",
    }
    for name, filename in names.items():
        add(repository, name, {}, CONFIG + HALVES_IN_FULL + f'default_model_filename: "{filename}"')
    linked = add(repository, "linked", {}, CONFIG + HALVES_IN_FULL)
    (linked / "1" / "dali.py").symlink_to(folder / "outside.py")
    (folder / "labels").mkdir()
    (folder / "labels" / "a.jpg").write_text("a")
    reading = pipeline_def(_reading)(f"{folder}/labels", batch_size=1, num_threads=1, device_id=None)
    add(repository, "reading", {"model.dali": reading.serialize()}, CONFIG + READING)
    return repository


def _reading(root: str) -> Any:
    files, _ = fn.readers.file(file_root=root, files=["a.jpg"])
    return files, fn.external_source(name="X")


def test_code_outside_of_a_models_folder_never_runs(repository: Path) -> None:
    with stopped_later(LocalServer(repository, backends=("penstock", "dali"), allow_failures=True)) as server:
        reasons = {model.name: model.reason for model in server.models()}
    assert reasons.keys() == REFUSALS.keys()
    for name, words in REFUSALS.items():
        assert words in reasons[name], name
    assert not (repository.parent / "executed").exists()


def test_clients_load_models_and_are_told_why_not(repository: Path) -> None:
    """The configurations are complete, so that the backend is not called before the model is created."""
    flags = ["--model-control-mode=explicit", "--disable-auto-complete-config"]
    with (
        stopped_later(
            LocalServer(repository, backends=("penstock", "dali"), settings={"device": "cpu"}, flags=flags)
        ) as server,
        contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc_url)) as client,
    ):
        for name in ("above", "quote", "linked"):
            with pytest.raises(InferenceServerException) as caught:
                client.load_model(name)
            assert REFUSALS[name] in str(caught.value)
        assert not (repository.parent / "executed").exists()
        add(repository, "halves", {"dali.py": HALVES}, CONFIG + HALVES_IN_FULL + ON_GPU)
        _soon(lambda: client.load_model("halves"))
        x = np.ones((1, 2), np.float32)
        assert ask(client, "halves", X=x).as_numpy("Y").tolist() == [[0.5, 0.5]]


def _soon(action: Callable[[], None]) -> None:
    """Repeat an action until it succeeds, for at most 10 s: the server must first notice a new model."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return action()
        except InferenceServerException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_what_a_machine_or_a_server_lacks_is_named_with_the_remedy(tmp_path: Path) -> None:
    add(tmp_path, "instance", {"dali.py": HALVES}, CONFIG + HALVES_IN_FULL + ON_GPU)
    add(tmp_path, "kind", {"dali.py": HALVES}, CONFIG + HALVES_IN_FULL + "instance_group { kind: KIND_GPU }")
    add(tmp_path, "operators", {"dali.py": HALVES}, CONFIG + HALVES_IN_FULL)
    with pytest.raises(ServerError) as caught:
        LocalServer(tmp_path, backends=("penstock", "dali")).start()
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert all("`penstock serve --device cpu`" in line for line in lines[1:]), lines
    with pytest.raises(ServerError, match=r"operators: .*`penstock serve --as dali`"):
        LocalServer(tmp_path).start()
