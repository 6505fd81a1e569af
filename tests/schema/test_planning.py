"""Planning of whole batches in arrays, with failing, different and equal samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.data_types import FLOAT, UINT8
from penstock.errors import operator_error
from penstock.schema import Argument, Input, Operator, OutputSpec, PlanColumns, Sample, Samples, Schema, Workspace
from penstock.schema.workspace import SampleFailure
from penstock.tensors import TensorListCPU


@dataclass(eq=False)
class Starts(PlanColumns[int]):
    """The positions at which samples are cut."""

    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, number: int) -> int:
        return int(self.starts[number])


class Tail(Operator[str, int, Starts]):
    """Removes the first elements of vectors; of several arguments, the first one that is set determines how many."""

    schema = Schema(
        name="Tail", inputs=(Input("input"),), arguments=(Argument("after", "float[]", [1.0], "", tensor=True),)
    )

    def setup(self) -> None:
        self.calls: list[int] = []

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        workspace.state = workspace.inputs[0].layout()
        return [OutputSpec(UINT8, workspace.state, 1)]

    def infer_batch(self, samples: Samples[str, int, Starts]) -> tuple[np.ndarray, Starts]:
        self.calls.append(len(samples))
        shapes = samples.shapes()
        starts = np.broadcast_to(samples.values("after").sum(axis=1).astype(np.int64), len(samples))
        if (starts > shapes[:, 0]).any():
            raise RuntimeError(f"There are no {starts.max()} elements")
        return shapes - starts[:, None], Starts(starts)

    def compute(self, sample: Sample[str, int]) -> None:
        sample.outputs[0][...] = sample.inputs[0][sample.plan :]


def run(
    operator: Tail, lengths: list[int], *, isolate: bool = False, after: list[list[float]] | None = None
) -> Workspace:
    workspace: Workspace = Workspace(
        inputs=[TensorListCPU.of_samples([np.arange(n, dtype=np.uint8) for n in lengths], "", UINT8)],
        arguments={} if after is None else {"after": vectors(after)},
        batch_size=len(lengths),
        isolate=isolate,
    )
    operator.run(workspace)
    return workspace


def vectors(rows: list[list[float]]) -> TensorListCPU:
    return TensorListCPU.of_samples([np.array(row, np.float32) for row in rows], "", FLOAT)


def of_graph() -> Tail:
    return Tail(tensor_arguments=["after"])


def results(workspace: Workspace) -> list[list[int]]:
    return [sample.tolist() for sample in workspace.outputs[0].samples]


def test_a_batch_is_planned_at_once() -> None:
    operator = Tail({"after": [2.0]})
    assert results(run(operator, [3, 5])) == [[2], [2, 3, 4]]
    assert operator.calls == [2]


def test_a_sample_to_blame_is_found_by_planning_it_alone() -> None:
    operator = of_graph()
    workspace = run(operator, [3, 2, 4], isolate=True, after=[[1], [9], [3]])
    assert operator.calls == [3, 1, 1, 1]
    assert results(workspace) == [[1, 2], [], [3]]
    assert list(workspace.failures) == [1]
    assert "no 9 elements" in str(workspace.failures[1])
    assert workspace.plans.starts.tolist() == [1, 3], "a row for each sample that goes on"
    assert [sample.index for sample in workspace.live] == [0, 2]


def test_the_first_sample_to_blame_is_told() -> None:
    with pytest.raises(SampleFailure, match="no 9 elements") as failure:
        run(of_graph(), [3, 2, 4], after=[[1], [9], [8]])
    assert failure.value.index == 1


def test_samples_that_fit_no_common_array_are_planned_apart() -> None:
    workspace = run(of_graph(), [5, 5], after=[[1], [1, 2]])
    assert results(workspace) == [[1, 2, 3, 4], [3, 4]]
    assert workspace.plans.starts.tolist() == [1, 3]


def test_samples_that_have_failed_before_are_not_planned() -> None:
    workspace: Workspace = Workspace(
        inputs=[TensorListCPU.of_samples([np.arange(3, dtype=np.uint8)] * 3, "", UINT8)],
        batch_size=3,
        isolate=True,
        failures={0: RuntimeError("before")},
    )
    operator = Tail()
    operator.run(workspace)
    assert operator.calls == [2]
    assert results(workspace) == [[], [1, 2], [1, 2]]


def test_samples_that_are_alike_share_one_plan() -> None:
    class Remembered(Tail):
        plans_by_shape = True

    operator = Remembered({"after": [1.0]})
    first = run(operator, [300, 200, 300])
    assert operator.calls == [2]
    second = run(operator, [200, 300])
    assert operator.calls == [2]
    assert second.live[1].held is first.live[0].held is first.live[2].held
    assert first.live[0].plan is first.live[0].plan


def test_rows_count_from_both_ends() -> None:
    starts = Starts(np.array([4, 5, 6]))
    assert list(starts) == [4, 5, 6]
    assert starts[-1] == 6
    assert starts[1:] == [5, 6]
    with pytest.raises(IndexError, match="no row 3"):
        starts[3]
    assert list(Starts.joined([starts, Starts(np.array([7]))])) == [4, 5, 6, 7]


class RepeatedTail(Tail):
    """A tail whose plans are those of the last batch if the shapes are."""

    repeats_plans = True


def test_a_batch_of_the_same_shapes_as_the_last_is_not_planned_again() -> None:
    operator = RepeatedTail()
    for lengths in ([3, 2], [3, 2], [2, 3], [2, 3, 1], [2, 3, 1]):
        assert results(run(operator, lengths)) == results(run(Tail(), lengths))
    assert operator.calls == [2, 2, 3]


def test_values_from_the_graph_are_always_planned() -> None:
    operator = RepeatedTail(tensor_arguments=["after"])
    assert results(run(operator, [3, 2], after=[[1], [1]])) == [[1, 2], [1]]
    assert results(run(operator, [3, 2], after=[[2], [0]])) == [[2], [0, 1]]


def test_shapes_may_be_tuples() -> None:
    class TailOfTuples(Tail):
        def infer_batch(self, samples: Samples[str, int, Starts]) -> Any:
            _, starts = super().infer_batch(samples)
            return [[(length - start,) for (length,), start in zip(samples.shape_list(), starts)]], starts

    assert results(run(TailOfTuples(), [3, 2])) == [[1, 2], [1]]
    operator = TailOfTuples(tensor_arguments=["after"])
    workspace = run(operator, [3, 2, 4], isolate=True, after=[[1], [9], [3]])
    assert results(workspace) == [[1, 2], [], [3]]
    assert list(workspace.failures) == [1]


class KeptTail(Tail):
    """A :class:`Tail` whose plans are cached by shape."""

    plans_by_shape = True


def test_equal_samples_are_planned_once_for_all_batches() -> None:
    operator = KeptTail()
    for count in (3, 1, 4):
        outputs = run(operator, [5] * count).outputs[0]
        assert [sample.tolist() for sample in outputs.samples] == [[1, 2, 3, 4]] * count
    assert operator.calls == [1]
    assert [sample.tolist() for sample in run(operator, [5, 2]).outputs[0].samples] == [[1, 2, 3, 4], [1]]
    assert operator.calls == [1, 1]


def test_equal_samples_fail_alike() -> None:
    workspace = run(KeptTail(), [0, 0], isolate=True)
    assert sorted(workspace.failures) == [0, 1]
    assert workspace.outputs[0].shapes == [(0,), (0,)]


@pytest.mark.parametrize("together", [1, 2], ids=["equal", "different"])
def test_plans_of_shapes_that_do_not_come_again_are_forgotten(together: int) -> None:
    operator = KeptTail()
    most = 0
    for length in range(1, 1000, together):
        run(operator, [length + index for index in range(together)])
        most = max(most, len(operator.plan_cache))
    assert 100 < most < 300


# -- results do not depend on how samples are batched, and whether they are planned together, one by one, or from the cache ------

lengths = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=6), min_size=1, max_size=8)


def tail(length: int, after: int = 1) -> list[int]:
    return list(range(after, length))


@settings(derandomize=True, deadline=None)
@given(lengths)
def test_what_is_remembered_changes_no_result(batches: list[list[int]]) -> None:
    remembering, forgetful = KeptTail(), Tail()
    for batch in batches:
        expected = [tail(length) for length in batch]
        assert results(run(remembering, batch)) == results(run(forgetful, batch)) == expected


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=7))
def test_samples_that_fail_fail_alone(samples: list[tuple[int, int]]) -> None:
    sizes, starts = zip(*samples)
    workspace = run(of_graph(), list(sizes), isolate=True, after=[[start] for start in starts])
    bad = {index for index, (size, start) in enumerate(samples) if start > size}
    assert set(workspace.failures) == bad
    found = results(workspace)
    for index, (size, start) in enumerate(samples):
        if index not in bad:
            assert found[index] == tail(size, start)


class Halves(Operator):
    """Returns only the upper half of images; nothing of images with one row."""

    schema = Schema(name="Halves", inputs=(Input("input", ("HWC",)),), sequences=True)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [OutputSpec(UINT8, "HWC", 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        height, width, channels = sample.shapes[0]
        if height == 1:
            raise ValueError("one row has no half")
        return height // 2, width, channels

    def compute(self, sample: Sample) -> None:
        if sample.inputs[0].max() == 255:
            raise ValueError("255 is too much")
        sample.outputs[0][...] = sample.inputs[0][: len(sample.outputs[0])]


def sequences(bright: int | None = None, low: int | None = None) -> list[Any]:
    """Return three sequences of two frames each: of one, the second frame is bright, and the frames of another are low."""
    data = [np.zeros((2, 1 if index == low else 4, 3, 3), np.uint8) for index in range(3)]
    if bright is not None:
        data[bright][1] = 255
    return [TensorListCPU.of_samples(data, "FHWC", UINT8)]


@pytest.mark.parametrize("bad", [{"bright": 1}, {"low": 2}], ids=str)
def test_a_frame_that_fails_is_its_sequences_failure(bad: dict[str, int]) -> None:
    (position,) = bad.values()
    with pytest.raises(SampleFailure) as failure:
        Halves().run(Workspace(inputs=sequences(**bad), batch_size=3))
    assert failure.value.index == position
    isolated: Workspace = Workspace(inputs=sequences(**bad), batch_size=3, isolate=True)
    Halves().run(isolated)
    assert list(isolated.failures) == [position]


def test_an_error_that_names_a_sample_of_another_batch_fails_the_one_it_was_raised_for() -> None:
    other = operator_error(ValueError("no"), "inner", "cpu", 7, ())
    workspace: Workspace = Workspace(batch_size=3, isolate=True)
    workspace.fail(2, other)
    assert list(workspace.failures) == [2]
    with pytest.raises(SampleFailure) as failure:
        Workspace(batch_size=3).fail(1, other)
    assert failure.value.index == 1
