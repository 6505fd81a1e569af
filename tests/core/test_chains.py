"""Chains of the compiled core give NumPy's results, in one piece or in strips, on any number of threads."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core import chains
from penstock.core.chains import StageKind, StageRecords, array_part, compute_part, placements, run_chain
from penstock.kernels.cpu.colour import linear_records

BYTE = np.dtype(np.uint8)


def addresses(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays], np.int64)


def run(arrays: list[np.ndarray], stages: list[StageRecords], dtype: np.dtype, threads: int = 1) -> list[np.ndarray]:
    """Return the outputs of a chain for contiguous arrays of one type and rank; bytes that the chain does not write are 99."""
    outputs = [np.full(shape, 99, dtype) for shape in stages[-1].shapes.tolist()]
    shapes = np.array([array.shape for array in arrays], np.int64)
    run_chain(addresses(arrays), shapes, arrays[0].itemsize, stages, addresses(outputs), threads)
    return outputs


def placement(
    arrays: list[np.ndarray],
    anchors: list[tuple[int, ...]],
    shapes: list[tuple[int, ...]],
    mirrored: list[tuple[bool, ...]] | None = None,
    fill: np.ndarray | None = None,
    channel_axis: int = -1,
) -> StageRecords:
    shapes_in = np.array([array.shape for array in arrays], np.int64)
    wanted = np.array(shapes, np.int64)
    turned = None if mirrored is None else np.array(mirrored)
    records = placements(np.array(anchors, np.int64), wanted, shapes_in, arrays[0].itemsize, turned, fill, channel_axis)
    return StageRecords(StageKind.PLACEMENT, records, wanted, arrays[0].itemsize, keep=fill)


def scaling(shapes: list[tuple[int, ...]], factors: list[float], source: np.dtype, target: np.dtype) -> StageRecords:
    """Return the stage that multiplies each sample by its factor."""
    records, kernel = linear_records(
        np.array(factors)[:, None, None], np.zeros((len(factors), 1)), np.dtype(source), np.dtype(target)
    )
    return StageRecords(
        StageKind.POINTWISE, records, np.array(shapes, np.int64), np.dtype(target).itemsize, compute=kernel
    )


def placed(
    array: np.ndarray, anchor: tuple[int, ...], shape: tuple[int, ...], mirrored: tuple[bool, ...], fill: np.ndarray
) -> np.ndarray:
    """Return a placement's result, computed element by element; ``fill`` is broadcast to the output."""
    output = np.array(np.broadcast_to(fill, shape))
    for place in product(*map(range, shape)):
        turned = [extent - 1 - p if m else p for p, extent, m in zip(place, shape, mirrored)]
        source = tuple(a + p for a, p in zip(anchor, turned))
        if all(0 <= p < extent for p, extent in zip(source, array.shape)):
            output[place] = array[source]
    return output


@pytest.fixture(params=[1 << 20, 40, 1], ids=["whole", "strips", "thin_strips"])
def strips(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_STRIP_BYTES", request.param)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_placement_moves_mirrors_and_fills(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 5))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    dtype = data.draw(st.sampled_from([np.uint8, np.int16, np.float32, np.float64]))
    anchor = tuple(data.draw(st.lists(st.integers(-6, 6), min_size=rank, max_size=rank)))
    wanted = tuple(data.draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank)))
    mirrored = tuple(data.draw(st.lists(st.booleans(), min_size=rank, max_size=rank)))
    axis = data.draw(st.integers(-1, rank - 1))
    array = np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64).reshape(shape).astype(dtype)
    values = np.arange(90, 90 + (wanted[axis] if axis >= 0 else 1)).astype(dtype)
    fill = values.reshape([-1 if axis == k else 1 for k in range(rank)]) if axis >= 0 else values[0]
    (output,) = run([array], [placement([array], [anchor], [wanted], [mirrored], values, axis)], np.dtype(dtype))
    np.testing.assert_array_equal(output, placed(array, anchor, wanted, mirrored, fill))


@pytest.mark.usefixtures("strips")
def test_stages_of_a_chain_follow_one_another() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 256, shape, np.uint8) for shape in [(9, 7, 3), (5, 11, 3)]]
    crops, anchors = [(6, 5, 3), (4, 9, 3)], [(2, 1, 0), (1, 2, 0)]
    padded, turned = [(8, 6, 3), (6, 9, 3)], [(False, True, False), (True, True, False)]
    stages = [
        placement(arrays, anchors, crops),
        scaling(crops, [0.5, 2.0], BYTE, np.dtype(np.float32)),
    ]
    between = [np.empty(shape, np.float32) for shape in crops]
    stages.append(placement(between, [(-1, 0, 0), (0, 0, 0)], padded, turned, np.array([7.0], np.float32)))
    for output, array, anchor, crop, factor, whole, mirrored, first in zip(
        run(arrays, stages, np.dtype(np.float32)), arrays, anchors, crops, (0.5, 2.0), padded, turned, (-1, 0)
    ):
        part = array[tuple(slice(a, a + e) for a, e in zip(anchor, crop))].astype(np.float32) * np.float32(factor)
        np.testing.assert_array_equal(output, placed(part, (first, 0, 0), whole, mirrored, np.float32(7.0)))


def test_samples_are_computed_once_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "WORTH_WAKING_NS", 0)
    arrays = [np.full((4, 3, 3), n % 256, np.uint8) for n in range(500)]
    shapes = [(4, 3, 3)] * len(arrays)
    stage = scaling(shapes, [1.0] * len(arrays), BYTE, np.dtype(np.float32))
    for threads in (1, 2, 7):
        for output, array in zip(run(arrays, [stage], np.dtype(np.float32), threads), arrays):
            np.testing.assert_array_equal(output, array)


def test_pipelines_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "WORTH_WAKING_NS", 0)
    wrong: list[int] = []

    def work(number: int) -> None:
        arrays = [np.full((16, 16, 3), number, np.uint8) for _ in range(20)]
        stage = scaling([(16, 16, 3)] * 20, [1.0] * 20, BYTE, np.dtype(np.float32))
        for _ in range(30):
            if any((output != number).any() for output in run(arrays, [stage], np.dtype(np.float32), 3)):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "WORTH_WAKING_NS", 0)
    arrays = [np.full((4, 3, 3), n, np.uint8) for n in range(50)]
    stage = scaling([(4, 3, 3)] * 50, [1.0] * 50, BYTE, np.dtype(np.float32))
    run(arrays, [stage], np.dtype(np.float32), 4)
    child = os.fork()
    if not child:
        outputs = run(arrays, [stage], np.dtype(np.float32), 4)
        os._exit(0 if all((output == array).all() for output, array in zip(outputs, arrays)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_lack_of_memory_between_stages_is_an_error() -> None:
    # This is more memory than a process can address: some systems grant more than they have, but not this.
    array, long = np.zeros((1, 1), np.uint8), (1, 1 << 52)
    # With a group of two, the pixels of this image are computed together, so the whole input has to be in memory.
    whole = replace(scaling([long], [1.0], BYTE, BYTE), group=2)
    between = np.lib.stride_tricks.as_strided(array, long, (0, 0))
    stages = [
        placement([array], [(0, 0)], [long], fill=np.zeros(1, np.uint8)),
        whole,
        placement([between], [(0, 0)], [(1, 2)]),
    ]
    with pytest.raises(MemoryError, match="results between two operators"):
        run([array], stages, BYTE)


def test_a_part_of_a_stage() -> None:
    array = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
    stage = placement([array], [(1, 0, 0)], [(4, 4, 3)], [(False, True, False)])
    target = np.zeros((2, 3, 3), np.uint8)
    compute_part(stage, array_part(array[1:], (1, 0, 0)), array_part(target, (1, 1, 0)))
    np.testing.assert_array_equal(target, array[1:, ::-1][1:3, 1:4])


def test_threads_are_bound_to_cores_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "WORTH_WAKING_NS", 0)
    allowed = sorted(os.sched_getaffinity(0))
    arrays = [np.full((64, 64, 3), n, np.uint8) for n in range(50)]
    stage = scaling([(64, 64, 3)] * 50, [1.0] * 50, BYTE, np.dtype(np.float32))
    shapes = np.array([array.shape for array in arrays], np.int64)
    outputs = [np.empty((64, 64, 3), np.float32) for _ in arrays]

    def bound() -> set[tuple[int, ...]]:
        """Return the sets of cores to which threads of this process are bound; threads that are not bound are left out."""
        masks = {tuple(sorted(os.sched_getaffinity(int(task)))) for task in os.listdir("/proc/self/task")}
        return masks - {tuple(allowed)}

    for cores, wanted in ((allowed[:1], {(allowed[0],)}), ([10**6], set[tuple[int, ...]]()), (None, set())):
        for _ in range(50):
            run_chain(addresses(arrays), shapes, 1, [stage], addresses(outputs), 3, cores)
        # A thread that found no work may still be bound as before.
        assert bound() <= wanted | {(allowed[0],)}
    assert sorted(os.sched_getaffinity(0)) == allowed
    for output, array in zip(outputs, arrays):
        np.testing.assert_array_equal(output, array)
