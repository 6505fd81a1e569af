"""Properties of generic operators not covered by recorded outputs: shared memory, files, isolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.schema import Workspace
from penstock.schema.registry import load_package, operator_class
from penstock.schema.workspace import run_in_order
from penstock.tensors import TensorListCPU

load_package("penstock.operators")


def make(name: str, **arguments: Any) -> Any:
    kind = operator_class(name)
    return kind({key: kind.schema.all_arguments[key].convert(value) for key, value in arguments.items()})


def run(operator: Any, *inputs: TensorListCPU, **settings: Any) -> Workspace:
    workspace = Workspace(inputs=list(inputs), batch_size=len(inputs[0]), **settings)
    operator.run(workspace)
    return workspace


def test_permuting_copies_nothing() -> None:
    batch = TensorListCPU([np.full((2, 2), value, np.uint8) for value in range(3)], "HW")
    (permuted,) = run(make("PermuteBatch", indices=[2, 0, 1]), batch).outputs
    assert [sample[0, 0] for sample in permuted.samples] == [2, 0, 1]
    assert all(np.shares_memory(permuted.samples[i], batch.samples[j]) for i, j in enumerate([2, 0, 1]))


def test_slices_are_views_if_contiguous_and_otherwise_copies_made_by_all_threads() -> None:
    batch = TensorListCPU([np.arange(k * 300 * 3, dtype=np.int32).reshape(k, 300, 3) for k in (9, 20, 1)], "HWC")
    tasks: list[int] = []

    def parallel(task: Any, count: int, costs: Any = None) -> None:
        tasks.append(count)
        run_in_order(task, count, costs)

    (rows,) = run(make("_TensorSubscript", hi_0=5), batch, parallel=parallel).outputs
    assert all(np.shares_memory(row, whole) for row, whole in zip(rows.samples, batch.samples))
    assert not tasks
    (columns,) = run(make("_TensorSubscript", lo_1=2, step_1=-2, at_2=1), batch, parallel=parallel).outputs
    for made, whole in zip(columns.samples, batch.samples):
        np.testing.assert_array_equal(made, whole[:, 2::-2, 1])
        assert made.flags.c_contiguous
    assert (columns.layout(), tasks) == ("HW", [3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at_0": 1, "lo_0": 0}, "dimension 0 must not be specified both as an index and as a range"),
        ({"at_1": 1, "hi_1": 2}, "dimension 1 must not be specified both as an index and as a range"),
        ({"at_0": 1, "step_0": 2}, "dimension 0 was specified as index: it cannot have a step"),
    ],
)
def test_an_index_is_no_range(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        make("_TensorSubscript", **arguments)


def test_a_failed_sample_fails_where_it_is_moved_to() -> None:
    batch = TensorListCPU([np.zeros(2, np.uint8)] * 3)
    broken = RuntimeError("broken")
    workspace = run(make("PermuteBatch", indices=[2, 0, 1]), batch, isolate=True, failures={2: broken})
    assert set(workspace.failures) == {0, 2}


def test_extracting_copies_nothing_and_fails_alone() -> None:
    batch = TensorListCPU([np.zeros((4, 2), np.uint8), np.zeros((1, 2), np.uint8)], "FX")
    workspace = run(make("ElementExtract", element_map=[0, 3]), batch, isolate=True)
    assert set(workspace.failures) == {1}
    first, last = workspace.outputs
    assert first.layout() == "X"
    assert np.shares_memory(first.samples[0], batch.samples[0])
    assert np.shares_memory(last.samples[0], batch.samples[0])


def test_dump_image_writes_what_netpbm_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    colour, grey = np.arange(6, dtype=np.uint8).reshape(1, 2, 3), np.arange(6, dtype=np.uint8).reshape(3, 2, 1)
    images = TensorListCPU([colour, grey], "HWC")
    (passed_on,) = run(make("DumpImage", suffix="x"), images).outputs
    assert passed_on.samples[0] is images.samples[0]
    assert (tmp_path / "0-x-0.ppm").read_text() == "P3\n2 1\n255\n0 1 2 3 4 5 \n"
    assert (tmp_path / "1-x-0.ppm").read_text() == "P2\n2 3\n255\n0 1 \n2 3 \n4 5 \n"


def test_tensor_resize_leaves_other_dimensions_alone() -> None:
    data = np.random.default_rng(0).random((5, 6, 7)).astype(np.float32)
    operator = make("TensorResize", sizes=[12], axes=[1])
    (output,) = run(operator, TensorListCPU([data], "ABC")).outputs
    assert output.layout() == "ABC"
    assert output.samples[0].shape == (5, 12, 7)
    for row in range(5):
        (alone,) = run(operator, TensorListCPU([data[row : row + 1]], "ABC")).outputs
        np.testing.assert_array_equal(alone.samples[0][0], output.samples[0][row])


def test_lookup_needs_one_value_for_each_key() -> None:
    with pytest.raises(RuntimeError, match="size should match `values` size, got 2 and 1"):
        make("LookupTable", keys=[1, 2], values=[3.0])


def test_full_follows_each_sample() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline() -> Any:
        values = fn.external_source(lambda: [np.float32(1), np.float32(2)])
        return fn.full(values, shape=[2, 3])

    (output,) = pipeline().run()
    assert [np.unique(sample).tolist() for sample in output.samples] == [[1.0], [2.0]]


@pytest.mark.parametrize("name", ["reshape", "reinterpret"])
def test_a_new_shape_is_given_once(name: str) -> None:
    def refused(*shapes: Any, **arguments: Any) -> None:
        @pipeline_def(batch_size=1, num_threads=1)
        def pipeline() -> Any:
            return getattr(fn, name)(np.zeros((2, 3), np.float32), *shapes, **arguments)

        with pytest.raises(RuntimeError, match="mutually exclusive"):
            pipeline().run()

    refused(shape=[6], rel_shape=[1, 1])
    refused(np.array([6]), shape=[6])
    refused(np.array([6]), rel_shape=[1, 1])


def test_samples_after_one_that_cannot_be_reshaped_keep_their_data() -> None:
    contiguous = run(
        make("Cast", dtype=types.INT32), TensorListCPU([np.full(n, n, np.uint8) for n in (10, 12, 15)])
    ).outputs[0]
    workspace = run(make("Reshape", shape=[-1, 5]), contiguous, isolate=True)
    assert set(workspace.failures) == {1}
    assert [sample.tolist() for sample in workspace.outputs[0].samples] == [[[10] * 5] * 2, [], [[15] * 5] * 3]


def test_a_sample_that_cannot_be_reinterpreted_fails_alone() -> None:
    batch = TensorListCPU([np.full(n, n, np.uint8) for n in (4, 6, 8)])
    workspace = run(make("Reinterpret", dtype=types.INT32), batch, isolate=True)
    assert set(workspace.failures) == {1}
    assert [sample.tolist() for sample in workspace.outputs[0].samples] == [[0x04040404], [], [0x08080808] * 2]


def test_samples_after_a_failed_one_keep_their_data_when_squeezed() -> None:
    contiguous = run(
        make("Cast", dtype=types.INT32), TensorListCPU([np.full((1, n, n), n, np.uint8) for n in (2, 3, 2)], "CHW")
    ).outputs[0]
    contiguous = contiguous.relabelled(shapes=[(1, 2, 2), (3, 3, 1), (1, 2, 2)])
    workspace = run(make("Squeeze", axes=[0]), contiguous, isolate=True, failures={1: RuntimeError("broken")})
    assert workspace.outputs[0].samples[2].tolist() == [[2, 2], [2, 2]]


def test_what_is_permuted_from_a_failed_sample_fails_with_its_error() -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.permute_batch(
            fn.crop(fn.external_source(name="images", layout="HWC"), crop=(6, 6)), indices=[3, 0, 1, 1]
        )

    pipeline = define()
    pipeline.build()
    pipeline.feed_input("images", [np.ones((2 if index == 3 else 8, 8, 3), np.uint8) for index in range(4)])
    result = pipeline.executor.run_once(isolate=True)
    assert sorted(result.failures) == [0, 3]
    assert result.failures[0] is result.failures[3]
    assert [shape[0] for shape in result.outputs[0].shapes] == [0, 6, 6, 6]
