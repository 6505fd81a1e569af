"""Sequences and tensors of strings, as Triton's client examples send them to Python models."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from served import HEADER, add_model, ask, stopped_later
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

BATCHED = "max_batch_size: 8"
_CONTROL = 'control_input [ {{ name: "{0}" control [ {{ kind: CONTROL_SEQUENCE_{0} {1} }} ] }} ]'
START = _CONTROL.format("START", "int32_false_true: [ 0, 1 ]")
END = _CONTROL.format("END", "fp32_false_true: [ 0, 1 ]")
READY = _CONTROL.format("READY", "bool_false_true: [ false, true ]")
CORRID = _CONTROL.format("CORRID", "data_type: TYPE_UINT64")
STRING_CORRID = _CONTROL.format("CORRID", "data_type: TYPE_STRING")
CONTROLS = f"{START} {END} {READY}"

# Adds 1 to the first value of a sequence.
ADDING = """
@autoserialize
@pipeline_def(batch_size=8)
def pipeline():
    values = fn.external_source(name="INPUT", dtype=types.INT32, ndim=1)
    return fn.copy(values + fn.external_source(name="START", dtype=types.INT32, ndim=0), name="OUTPUT")
"""
# Returns the sum of a sequence's values so far; at the end of the sequence, the sequence's id is added.
SUMMING = """
from collections import OrderedDict

import numpy as np

MOST_SEQUENCES = 100
sums = OrderedDict()


def add(value, start, end, correlation_id):
    key = bytes(correlation_id)
    total = value if start else sums[key] + value
    sums[key] = total
    sums.move_to_end(key)
    if len(sums) > MOST_SEQUENCES:
        sums.popitem(last=False)
    if end:
        del sums[key]
        return total + NUMBER_OF_ID
    return total


@autoserialize
@pipeline_def(batch_size=8)
def pipeline():
    value = fn.external_source(name="INPUT", dtype=types.INT32, ndim=1)
    start = fn.external_source(name="START", dtype=types.INT32, ndim=0)
    end = fn.external_source(name="END", dtype=types.FLOAT, ndim=0)
    correlation_id = fn.external_source(name="CORRID", dtype=TYPE_OF_ID, ndim=RANK_OF_ID)
    return fn.python_function(value, start, end, correlation_id, function=add, name="OUTPUT")
"""
SUMMING_NUMBERS = (
    SUMMING.replace("NUMBER_OF_ID", "np.int32(correlation_id)")
    .replace("TYPE_OF_ID", "types.UINT64")
    .replace("RANK_OF_ID", "0")
)
SUMMING_STRINGS = (
    SUMMING.replace("NUMBER_OF_ID", "np.int32(bytes(correlation_id))")
    .replace("TYPE_OF_ID", "types.UINT8")
    .replace("RANK_OF_ID", "1")
)
TENSOR = 'name: "{}" data_type: TYPE_INT32 dims: [ 1 ]'
VALUES = f"input [ {{ {TENSOR.format('INPUT')} }} ] output [ {{ {TENSOR.format('OUTPUT')} }} ]"

# Returns the sums and differences of numbers that are sent as strings.
SUMS_OF_TEXTS = """
import numpy as np


def numbers(rows):
    return rows.view(f"S{rows.shape[-1]}")[..., 0].astype(np.int32)


def texts(values):
    strings = np.char.mod(b"%d", values)
    return strings.view(np.uint8).reshape(*strings.shape, strings.itemsize)


def both(first, second):
    return texts(numbers(first) + numbers(second)), texts(numbers(first) - numbers(second))


@autoserialize
@pipeline_def(batch_size=8, output_dtype=types.UINT8, output_ndim=2)
def pipeline():
    first, second = (fn.external_source(name=f"INPUT{i}", dtype=types.UINT8, ndim=2) for i in range(2))
    sums, differences = fn.python_function(first, second, function=both, num_outputs=2)
    return fn.copy(sums, name="OUTPUT0"), fn.copy(differences, name="OUTPUT1")
"""
COPY_OF_TEXTS = """
@autoserialize
@pipeline_def(batch_size=8)
def pipeline():
    return fn.copy(fn.external_source(name="INPUT0", dtype=types.UINT8, ndim=NDIM), name="OUTPUT0")
"""


def strings(*names: str, dims: str) -> str:
    return ", ".join(f'{{ name: "{name}" data_type: TYPE_STRING dims: [ {dims} ] }}' for name in names)


def write_models(repository: Path) -> None:
    """Write models named as Triton's client examples expect them."""

    def add(name: str, config: str, source: str) -> None:
        add_model(repository, name, f'backend: "penstock" {BATCHED} {config}', HEADER + source)

    add("simple_sequence", f"sequence_batching {{ {CONTROLS} }} {VALUES}", ADDING)
    add("simple_dyna_sequence", f"sequence_batching {{ oldest {{ }} {CONTROLS} {CORRID} }}", SUMMING_NUMBERS)
    add(
        "simple_string_dyna_sequence",
        f"sequence_batching {{ oldest {{ }} {CONTROLS} {STRING_CORRID} }} {VALUES}",
        SUMMING_STRINGS,
    )
    inputs, outputs = strings("INPUT0", "INPUT1", dims="16"), strings("OUTPUT0", "OUTPUT1", dims="16")
    add("simple_string", f"input [ {inputs} ] output [ {outputs} ]", SUMS_OF_TEXTS)
    inputs, outputs = strings("INPUT0", dims="-1"), strings("OUTPUT0", dims="-1")
    add("simple_identity", f"input [ {inputs} ] output [ {outputs} ]", COPY_OF_TEXTS.replace("NDIM", "2"))
    inputs, outputs = strings("INPUT0", dims="16"), strings("OUTPUT0", dims="16")
    add("too_many", f"input [ {inputs} ] output [ {outputs} ]", COPY_OF_TEXTS.replace("NDIM", "1"))
    add("too_few", f"input [ {inputs} ] output [ {outputs} ]", COPY_OF_TEXTS.replace("NDIM", "3"))
    inputs = f"{{ {TENSOR.format('INPUT')} }}, {{ {TENSOR.format('START')} }}"
    add("control_as_input", f"sequence_batching {{ {START} }} input [ {inputs} ]", ADDING)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    write_models(repository)
    with stopped_later(LocalServer(repository, allow_failures=True, model_host=model_host)) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as opened:
        yield opened


def send_sequence(url: str, model: str, identity: int | str, values: Sequence[int]) -> list[int]:
    """Return the answers to a sequence of requests."""
    answers = []
    with tritonclient.http.InferenceServerClient(url) as client:
        for number, value in enumerate(values, 1):
            tensor = tritonclient.http.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(np.array([[value]], np.int32))
            answer = client.infer(
                model, [tensor], sequence_id=identity, sequence_start=number == 1, sequence_end=number == len(values)
            )
            answers.append(int(answer.as_numpy("OUTPUT")[0, 0]))
    return answers


# -- sequences -----------------------------------------------------------------------------------------------------------


def test_controls_are_no_inputs_of_clients(client: Any) -> None:
    for model in ("simple_sequence", "simple_dyna_sequence", "simple_string_dyna_sequence"):
        assert [entry["name"] for entry in client.get_model_config(model)["input"]] == ["INPUT"]


def test_a_pipeline_takes_controls_by_their_names(server: LocalServer) -> None:
    assert send_sequence(server.http_url, "simple_sequence", 5, [0, 11, 7]) == [1, 11, 7]
    assert send_sequence(server.http_url, "simple_sequence", "five", [20, 11, 7]) == [21, 11, 7]


def test_sequences_have_their_own_state(server: LocalServer) -> None:
    numbers = range(1000, 1012)
    with ThreadPoolExecutor(6) as pool:
        sums = pool.map(lambda n: send_sequence(server.http_url, "simple_dyna_sequence", n, [1, 2, 3, n]), numbers)
        assert list(sums) == [[1, 3, 6, 6 + number + number] for number in numbers]


def test_names_of_sequences(server: LocalServer, model_host: str) -> None:
    model = "simple_string_dyna_sequence"
    if model_host == "stub":
        # Triton 2.51 passes the id together with the bytes that follow it in memory to Python models, and then refuses the result.
        with pytest.raises(InferenceServerException, match=r"number of string elements|truncated"):
            send_sequence(server.http_url, model, "1002", [1, 2, 3])
        return
    assert send_sequence(server.http_url, model, "1002", [1, 2, 3]) == [1, 3, 6 + 1002]


def test_sequences_in_a_stream(server: LocalServer) -> None:
    answered: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        client.start_stream(callback=lambda result, error: answered.put(error or result))
        for number in range(4):
            for identity in (1, 2, 3):
                tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
                tensor.set_data_from_numpy(np.array([[identity]], np.int32))
                client.async_stream_infer(
                    "simple_dyna_sequence",
                    [tensor],
                    request_id=str(identity),
                    sequence_id=identity,
                    sequence_start=number == 0,
                    sequence_end=number == 3,
                )
        answers: dict[str, list[int]] = {}
        for _ in range(12):
            result = answered.get(timeout=60)
            answers.setdefault(result.get_response().id, []).append(int(result.as_numpy("OUTPUT")[0, 0]))
        client.stop_stream()
    assert answers == {str(n): [n, 2 * n, 3 * n, 4 * n + n] for n in (1, 2, 3)}


# -- strings -------------------------------------------------------------------------------------------------------------


def test_samples_of_several_strings(client: Any) -> None:
    first = np.arange(32).reshape(2, 16)
    texts = np.array([str(value).encode() for value in first.reshape(-1)], np.object_).reshape(2, 16)
    twos = np.full((2, 16), b"2", np.object_)
    answer = ask(client, "simple_string", INPUT0=texts, INPUT1=twos)
    np.testing.assert_array_equal(answer.as_numpy("OUTPUT0").astype(int), first + 2)
    np.testing.assert_array_equal(answer.as_numpy("OUTPUT1").astype(int), first - 2)


@pytest.mark.parametrize(
    "texts",
    [[b"he\0llo", b"", b"x" * 70_000], ["Grüße".encode()], [b""], [b"a", b"b"]],
    ids=["long", "utf8", "empty", "two"],
)
def test_strings_keep_their_bytes(texts: list[bytes], client: Any) -> None:
    given = np.empty((1, len(texts)), np.object_)
    given[0, :] = texts
    assert ask(client, "simple_identity", INPUT0=given).as_numpy("OUTPUT0").tolist() == [texts]


def test_padding_is_limited(client: Any) -> None:
    texts = np.full((1, 40_000), b"", np.object_)
    texts[0, 0] = b"x" * 40_000
    with pytest.raises(InferenceServerException, match="more than the limit of 1073741824 bytes"):
        ask(client, "simple_identity", INPUT0=texts)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("too_many", "Give it 2 dimensions there (`ndim`), the last one for the strings' bytes"),
        ("too_few", "configure 2 dimensions of strings"),
        ("control_as_input", "is a control of sequence_batching, which Triton adds to requests"),
    ],
)
def test_configurations_that_no_request_could_meet(model: str, reason: str, server: LocalServer) -> None:
    (state,) = (state for state in server.models() if state.name == model)
    assert state.failed
    assert reason in state.reason
