"""`model` runs ONNX networks on batches, even ragged ones, and refuses data that do not fit the network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import ConfinedPathError
from penstock.operators.inference import _onnx
from penstock.operators.inference._onnx import CPU, OnnxNetwork, _open, _Sessions

pytestmark = pytest.mark.filterwarnings("error")

WriteNetwork = Callable[..., Path]
IMAGES = [np.random.default_rng(index).normal(size=(2, 3 + index % 2, 4)).astype(np.float32) for index in range(5)]


@pytest.fixture
def doubling(write_network: WriteNetwork) -> Path:
    """Write a network that doubles `image` (batch, 2, height, width); return its path. The output is `twice`."""
    dims = ["batch", 2, "height", "width"]
    return write_network([("Add", ["image", "image"], ["twice"])], {"image": dims}, {"twice": dims})


@pytest.fixture
def counting(write_network: WriteNetwork) -> Path:
    """Write a network whose second output is, for each sample, the number of samples in the run; return its path."""
    nodes = [
        ("Shape", ["x"], ["shape"]),
        ("Gather", ["shape", "first"], ["size"]),
        ("Expand", ["size", "size"], ["count"]),
    ]
    nodes += [("Neg", ["x"], ["negative"])]
    return write_network(
        nodes,
        {"x": ["batch", "n"]},
        {"negative": ["batch", "n"], "count": ["batch"]},
        {"first": np.array([0])},
        {"count": "INT64"},
        name="counting.onnx",
    )


def run(define: Callable[[Any], Any], samples: list[np.ndarray], **settings: Any) -> list[list[np.ndarray]]:
    """Return the outputs of a pipeline for one batch."""

    @pipeline_def(batch_size=max(len(samples), 1), num_threads=2, device_id=None, prefetch_queue_depth=1, **settings)
    def pipe() -> Any:
        return define(fn.external_source(name="data", batch=True))

    pipeline = pipe()
    try:
        outputs = pipeline.run(data=samples)
        return [[np.array(sample) for sample in output] for output in outputs]
    finally:
        pipeline.close()


# -- good input --------------------------------------------------------------------------------------------------------


def test_samples_of_equal_and_unequal_shapes(doubling: Path) -> None:
    for samples in (IMAGES, IMAGES[::2], IMAGES[:1]):
        (found,) = run(lambda data: fn.model(data, path=str(doubling)), samples)
        for sample, own in zip(samples, found, strict=True):
            np.testing.assert_array_equal(own, 2 * sample)


def test_no_events_are_sent_unless_the_user_wants_that(doubling: Path) -> None:
    program = f"""
import os
from penstock import fn, pipeline_def

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipe():
    return fn.model(fn.external_source(name="data"), path={str(doubling)!r})

pipe().build()
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""
    for chosen, expected in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        variables = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | chosen
        done = subprocess.run(
            [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120, check=True
        )
        assert done.stdout.split() == [expected]


def test_samples_of_equal_shapes_run_together(counting: Path) -> None:
    lengths = [3, 4, 3, 5, 4, 3, 3]
    samples = [np.full(length, index, np.float32) for index, length in enumerate(lengths)]

    def define(data: Any) -> Any:
        return tuple(fn.model(data, path=str(counting), output_names=["count", "negative"], max_batch_size=3))

    counts, negatives = run(define, samples)
    assert [int(own) for own in counts] == [3, 2, 3, 1, 2, 3, 1]
    for sample, own in zip(samples, negatives, strict=True):
        np.testing.assert_array_equal(own, -sample)


def test_samples_are_added_where_the_network_prefers_other_numbers(
    counting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks on GPUs do."""
    monkeypatch.setattr(OnnxNetwork, "rows_to_run", lambda self, count: 1 << (count - 1).bit_length())
    samples = [np.full(3, index, np.float32) for index in range(8)]
    for number, most, expected in (
        (8, 8, [8] * 8),
        (5, 8, [8] * 5),
        (3, 8, [4] * 3),
        (1, 8, [1]),
        (5, 6, [6] * 5),
        (7, 4, [4] * 7),
    ):

        def define(data: Any, most: int = most) -> Any:
            return tuple(fn.model(data, path=str(counting), output_names=["count", "negative"], max_batch_size=most))

        counts, negatives = run(define, samples[:number])
        assert [int(own) for own in counts] == expected
        np.testing.assert_array_equal(negatives, [-sample for sample in samples[:number]])


def test_a_session_for_each_of_the_latest_shapes(doubling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_onnx, "_MAX_SESSIONS_ON_GPU", 2)
    sessions = _Sessions(str(doubling), [CPU], 1, 0)
    one, two, three = ([(rows, 2, 3, 4)] for rows in (1, 2, 3))
    first, second = sessions.of(one), sessions.of(two)
    assert first is sessions.first is not second
    assert sessions.of(one) is first
    # The session for two rows has not been used for longest.
    assert sessions.of(three) is second
    assert sessions.of(two) is first


def test_no_session_is_added_for_a_file_that_has_changed(doubling: Path, write_network: WriteNetwork) -> None:
    sessions = _Sessions(str(doubling), [CPU], 1, 0)
    write_network([("Neg", ["x"], ["y"])], {"x": ["n", 1]}, {"y": ["n", 1]}, name=doubling.name)
    assert sessions.of([(1, 2, 3, 4)]) is sessions.of([(2, 2, 3, 4)]) is sessions.first


def test_without_memory_for_another_session(doubling: Path, caplog: pytest.LogCaptureFixture) -> None:
    sessions = _Sessions(str(doubling), [CPU], 1, 0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_onnx, "_new_session", lambda *_: 1 / 0)
        assert sessions.of([(1, 2, 3, 4)]) is sessions.of([(2, 2, 3, 4)]) is sessions.first
    assert "slow for batches of varied sizes" in caplog.text
    assert sessions.of([(3, 2, 3, 4)]) is sessions.first


def test_several_inputs_by_name(write_network: WriteNetwork) -> None:
    path = write_network(
        [("Sub", ["a", "b"], ["c"])],
        {"a": ["n", 3], "b": ["n", 3]},
        {"c": ["n", 3]},
        types=dict.fromkeys("abc", "INT32"),
    )
    samples = [np.arange(3, dtype=np.int32) + index for index in range(3)]
    for names, sign in ((None, 1), (["a", "b"], 1), (["b", "a"], -1)):
        (found,) = run(lambda data, names=names: fn.model(data, data * 3, path=str(path), input_names=names), samples)
        for sample, own in zip(samples, found, strict=True):
            np.testing.assert_array_equal(own, -2 * sign * sample)


def test_samples_with_all_dimensions_run_one_by_one(counting: Path) -> None:
    samples = [np.ones((rows, 2), np.float32) for rows in (1, 3)]
    (counts,) = run(lambda data: fn.model(data, path=str(counting), output_names=["count"]), samples)
    assert [own.tolist() for own in counts] == [[1], [3, 3, 3]]


def test_networks_of_one_sample_at_a_time(write_network: WriteNetwork) -> None:
    path = write_network([("Neg", ["x"], ["y"])], {"x": [1, 4]}, {"y": [1, 4]})
    samples = [np.arange(4, dtype=np.float32) * index for index in range(3)]
    (found,) = run(lambda data: fn.model(data, path=str(path)), samples)
    np.testing.assert_array_equal(found, [-sample for sample in samples])


def test_samples_become_numbers(write_network: WriteNetwork) -> None:
    path = write_network(
        [("ReduceSum", ["x", "axes"], ["y"])], {"x": ["n", "m"]}, {"y": ["n"]}, {"axes": np.array([1])}, keepdims=0
    )
    (found,) = run(lambda data: fn.model(data, path=str(path)), [np.ones(3, np.float32), np.ones(5, np.float32)])
    assert [own.shape for own in found] == [(), ()]
    assert [float(own) for own in found] == [3, 5]


@pytest.mark.parametrize(
    "kind", ["BOOL", "FLOAT16", "DOUBLE", "INT8", "INT16", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]
)
def test_types(kind: str, write_network: WriteNetwork) -> None:
    dtype = {"BOOL": np.bool_, "FLOAT16": np.float16, "DOUBLE": np.float64}.get(kind) or np.dtype(kind.lower())
    path = write_network([("Identity", ["x"], ["y"])], {"x": ["n", 2]}, {"y": ["n", 2]}, types={"x": kind, "y": kind})
    (found,) = run(lambda data: fn.model(data, path=str(path)), [np.array([0, 1], dtype)])
    assert found[0].dtype == dtype
    np.testing.assert_array_equal(found[0], np.array([0, 1], dtype))


def test_layouts_follow(doubling: Path) -> None:
    define = lambda data: fn.transpose(fn.model(data, path=str(doubling), output_layouts="CHW"), perm=[1, 2, 0])  # noqa: E731

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        return define(fn.external_source(name="data"))

    with pipe() as pipeline:
        assert pipeline.run(data=IMAGES[:2])[0].layout() == "HWC"


def test_instances_share_a_network(doubling: Path) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        data = fn.external_source(name="data")
        return fn.model(data, path=str(doubling)), fn.model(data, path=str(doubling))

    before = len(_open)
    pipelines = [pipe(), pipe()]
    for pipeline in pipelines:
        pipeline.build()
    assert len(_open) == before + 1
    for pipeline in pipelines:
        pipeline.close()


def test_the_file_is_read_again_where_it_has_changed(write_network: WriteNetwork) -> None:
    for operation, value in (("Neg", -2), ("Abs", 2)):
        path = write_network([(operation, ["x"], ["y"])], {"x": ["n", 1]}, {"y": ["n", 1]})
        (found,) = run(lambda data, path=path: fn.model(data, path=str(path)), [np.array([2], np.float32)])
        assert found[0] == value


# -- bad input ---------------------------------------------------------------------------------------------------------


def refuses(define: Callable[[Any], Any], message: str) -> None:
    """Assert that the pipeline fails to build with a message that matches the pattern ``message``."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        return define(fn.external_source(name="data"))

    with pytest.raises(RuntimeError, match=message):
        pipe().build()


def test_what_does_not_fit_the_network_is_refused_at_build(doubling: Path, counting: Path) -> None:
    path = str(doubling)
    refuses(
        lambda data: fn.model(data, path=path, input_names=["imge"]),
        "no input `imge`.*`image`, float of shape.*Did you mean",
    )
    refuses(
        lambda data: fn.model(data, path=path, output_names=["once"]), r"no output `once`.*\(batch, 2, height, width\)"
    )
    refuses(lambda data: fn.model(data, data, path=path), "takes 1 inputs: `image`.*operator has 2")
    refuses(lambda data: fn.model(data, path=str(counting)), "has 2 outputs: .*`output_names` lists")
    refuses(lambda data: tuple(fn.model(data, path=path, output_names=["twice", "twice"])), "must list different names")
    refuses(lambda data: fn.model(data, path=path, max_batch_size=0), "1 or more. Got: 0")
    refuses(lambda data: fn.model(data, path=path, providers=["SomeProvider"]), "has no SomeProvider here, only .*CPU")


def test_files_that_are_no_networks(tmp_path: Path, write_network: WriteNetwork) -> None:
    for name in ("engine.plan", "program.pt2"):
        refuses(lambda data, name=name: fn.model(data, path=name), "does not end with .onnx or .ort.*triton_model")
    (tmp_path / "broken.onnx").write_bytes(b"not a network")
    refuses(lambda data: fn.model(data, path=str(tmp_path / "broken.onnx")), "'.*broken.onnx' is not a network")
    refuses(lambda data: fn.model(data, path=str(tmp_path / "missing.onnx")), "No such file.*missing.onnx")
    refuses(lambda data: fn.model(data, path="s3://bucket/network.onnx"), "must be a local file")
    strings = write_network(
        [("Identity", ["x"], ["y"])], {"x": ["n"]}, {"y": ["n"]}, types={"x": "STRING", "y": "STRING"}
    )
    refuses(
        lambda data: fn.model(data, path=str(strings)), r"`x` of type tensor\(string\), which pipelines do not support"
    )


def test_types_that_the_network_does_not_take(doubling: Path) -> None:
    with pytest.raises(RuntimeError, match=r"takes `image`, float of shape \(batch, 2, .* Got uint8: use `fn.cast`"):
        run(lambda data: fn.model(data, path=str(doubling)), [np.zeros((2, 3, 3), np.uint8)])


def test_samples_that_do_not_fit_fail_alone(doubling: Path) -> None:
    bad = np.zeros((3, 3, 4), np.float32)

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.model(fn.external_source(name="data"), path=str(doubling))

    with pytest.raises(
        ValueError, match=r"takes `image`.* Got a sample of shape \[3, 3, 4\]; its first dimension, the batch"
    ):
        run(lambda data: fn.model(data, path=str(doubling)), [IMAGES[0], bad])


def test_networks_that_fail_fail_their_sample(write_network: WriteNetwork) -> None:
    path = write_network(
        [("Gather", ["table", "x"], ["y"])],
        {"x": ["n", 1]},
        {"y": ["n", 1]},
        {"table": np.arange(4.0, dtype=np.float32)},
        {"x": "INT64"},
    )
    samples = [np.array([index]) for index in (1, 7, 3)]
    with pytest.raises(RuntimeError, match="out of data bounds"):
        run(lambda data: fn.model(data, path=str(path)), samples)


@pytest.mark.parametrize("rows", [1, "rows"])
def test_networks_that_mix_samples_run_one_by_one(rows: int | str, write_network: WriteNetwork) -> None:
    path = write_network([("ReduceSum", ["x"], ["y"])], {"x": ["n", 2]}, {"y": [rows, 1]})
    (found,) = run(lambda data: fn.model(data, path=str(path)), [np.full(2, index, np.float32) for index in range(3)])
    np.testing.assert_array_equal(found, [[0], [2], [4]])


def test_outputs_without_samples_are_refused(write_network: WriteNetwork) -> None:
    path = write_network([("ReduceSum", ["x"], ["y"])], {"x": ["n", 2]}, {"y": []}, keepdims=0)
    with pytest.raises(RuntimeError, match=r"returned `y` of shape \[\] for 1 sample.*fn.expand_dims"):
        run(lambda data: fn.model(data, path=str(path)), [np.ones(2, np.float32)])


def test_batches_of_a_fixed_size_are_refused(write_network: WriteNetwork) -> None:
    path = write_network([("Neg", ["x"], ["y"])], {"x": [4, 2]}, {"y": [4, 2]})
    with pytest.raises(ValueError, match="always 4 samples"):
        run(lambda data: fn.model(data, path=str(path)), [np.ones(2, np.float32)])


def test_a_gpu_without_its_provider_is_refused(doubling: Path, with_gpu: None) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe() -> Any:
        return fn.model(fn.external_source(name="data", device="gpu"), path=str(doubling))

    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("ONNX Runtime has CUDA here")
    with pytest.raises(RuntimeError, match=r"has no CUDAExecutionProvider here.*pip install onnxruntime-gpu"):
        pipe().build()


# -- confined pipelines ------------------------------------------------------------------------------------------------


@pytest.fixture
def outside(write_network: WriteNetwork, tmp_path: Path) -> Path:
    """Make an empty folder `inside` and write a network beside it; return the network's path."""
    (tmp_path / "inside").mkdir()
    return write_network([("Neg", ["x"], ["y"])], {"x": ["n", 1]}, {"y": ["n", 1]}, name="outside.onnx")


def test_saved_pipelines_name_networks_in_their_folder(outside: Path, tmp_path: Path) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe(path: str) -> Any:
        return fn.model(fn.external_source(name="data", dtype=types.FLOAT, ndim=1), path=path)

    inside = tmp_path / "inside"
    (inside / "mine.onnx").write_bytes(outside.read_bytes())
    os.symlink(outside, inside / "link.onnx")
    saved = inside / "model.json"
    for path in ("../outside.onnx", str(outside), "link.onnx"):
        pipe(path).save(str(saved))
        with pytest.raises((ConfinedPathError, RuntimeError), match="outside of what the pipeline is confined to"):
            Pipeline.load(str(saved), confined_to=[str(inside)]).build()
        wire = pipe(path).serialize()
        with pytest.raises((ConfinedPathError, RuntimeError), match="outside of what the pipeline is confined to"):
            Pipeline.deserialize(wire, confined_to=[str(inside)]).build()
    pipe("mine.onnx").save(str(saved))
    with Pipeline.load(str(saved), confined_to=[str(inside)]) as pipeline:
        assert np.array(pipeline.run(data=[np.array([3], np.float32)])[0][0]) == -3


@pytest.mark.parametrize("location", ["../weights.bin", "link.bin", "absolute"])
def test_weights_outside_the_folder_are_not_read(location: str, tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    inside = tmp_path / "inside"
    inside.mkdir()
    np.ones(1, np.float32).tofile(tmp_path / "weights.bin")
    os.symlink(tmp_path / "weights.bin", inside / "link.bin")
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    entry = weight.external_data.add()
    entry.key, entry.value = "location", str(tmp_path / "weights.bin") if location == "absolute" else location
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "network", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (inside / "network.onnx").write_bytes(model.SerializeToString())

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, confined_to=[str(inside)])
    def pipe() -> Any:
        return fn.model(fn.external_source(name="data"), path="network.onnx")

    with pytest.raises(ValueError, match="External data path"):
        pipe().build()


def test_confined_pipelines_do_not_choose_providers_that_read_files(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnxruntime

    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["TensorrtExecutionProvider", "CPUExecutionProvider"]
    )

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, confined_to=[str(tmp_path)])
    def pipe() -> Any:
        return fn.model(fn.external_source(name="data"), path="outside.onnx", providers=["TensorrtExecutionProvider"])

    with pytest.raises(RuntimeError, match="confined to folders may use CPUExecutionProvider and"):
        pipe().build()
