"""Launches that are recorded for a kind of batch are repeated for later batches of that kind."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import cupy_like as xp
import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core.threads import CALL_WORDS, make_calls
from penstock.graph import DataNode
from penstock.kernels.cuda import program
from penstock.kernels.cuda.elementwise import evaluate_batch
from penstock.kernels.cuda.launch import locate, locate_all, scratch, upload
from penstock.kernels.cuda.program import Programs
from penstock.schema import Workspace
from penstock.tensors import TensorListGPU
from penstock.types import FLOAT


class Doubling:
    """Adds a constant to samples and doubles the sums, which are stored in scratch memory; counts how often launches are prepared."""

    def __init__(self, added: float = 1.0) -> None:
        self.added = added
        self.times = 0

    def __call__(self, workspace: Workspace) -> None:
        self.times += 1
        samples: Any = workspace.samples
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        (added,) = upload([np.array([self.added], np.float32)])
        between = scratch([source.shape for source in sources], np.float32)
        evaluate_batch("return a + b;", [((source, added), b) for source, b in zip(sources, between)])
        evaluate_batch("return a * 2;", [((b,), target) for b, target in zip(between, targets)])


class Place:
    def __init__(self, index: int) -> None:
        self.index = index


def run(programs: Programs, work: Any, arrays: Sequence[np.ndarray], contiguous: bool = True) -> list[np.ndarray]:
    """Return the doubled samples, computed like by an operator."""
    samples = [xp.put(array) for array in arrays]
    batch = TensorListGPU(samples, contiguous=contiguous)
    workspace = Workspace(inputs=[batch], batch_size=len(arrays), device="gpu")
    workspace.samples = [Place(index) for index in range(len(arrays))]
    if not programs.run(workspace, dict):
        workspace.outputs = [TensorListGPU.allocate([array.shape for array in arrays], FLOAT)]
        if not programs.record(workspace, work, dict):
            work(workspace)
    return [np.array(sample) for sample in workspace.outputs[0].samples]


def batches(count: int, *shapes: tuple[int, ...]) -> Iterator[list[np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(count):
        yield [rng.random(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize("contiguous", [True, False])
def test_batches_of_a_kind_that_comes_again_are_worked_out_once_more(contiguous: bool) -> None:
    programs, work = Programs(), Doubling()
    # More batches than cached descriptors; all of them stay alive, so that no two have the same addresses.
    given = list(batches(12, (3, 5), (7, 1), (1, 1)))
    results = [run(programs, work, arrays, contiguous) for arrays in given]
    assert work.times == 2
    for arrays, doubled in zip(given, results):
        for array, result in zip(arrays, doubled):
            np.testing.assert_array_equal(result, (array + np.float32(1)) * 2)


def test_other_shapes_are_another_kind() -> None:
    programs, work = Programs(), Doubling()
    for arrays in [*batches(3, (3, 5)), *batches(3, (5, 3)), *batches(3, (3, 5), (3, 5)), *batches(1, (3, 5))]:
        for array, result in zip(arrays, run(programs, work, arrays)):
            np.testing.assert_array_equal(result, (array + np.float32(1)) * 2)
    assert work.times == 6


def test_kinds_that_never_come_again_are_not_recorded() -> None:
    programs, work = Programs(), Doubling()
    for extent in range(1, 100):
        (arrays,) = batches(1, (extent,))
        run(programs, work, arrays)
    assert work.times == 99
    assert not programs._known
    assert len(programs._seen) < 99


def test_kinds_that_rarely_come_again_are_looked_up_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a kind of batch recurs only once, recording it takes longer than it saves."""
    programs, work, looked_up, kind = Programs(), Doubling(), list[object](), program._kind

    def counted(*given: Any) -> object:
        looked_up.append(kind(*given))
        return looked_up[-1]

    monkeypatch.setattr(program, "_kind", counted)
    sizes = [size - (size % 20 == 0) for size in range(1, 401)]
    for size in sizes:
        run(programs, work, *batches(1, (size,)))
    assert len(looked_up) < len(sizes) / 2
    # Kinds that recur more often are recorded soon.
    before = work.times
    for _ in range(64):
        run(programs, work, *batches(1, (500,)))
    assert work.times - before < 32


def test_what_lies_apart_is_another_kind_than_what_lies_together() -> None:
    programs, work = Programs(), Doubling()
    for arrays, contiguous in zip(batches(6, (3, 5), (2, 2)), (True, False, False, True, True, False)):
        for array, result in zip(arrays, run(programs, work, arrays, contiguous)):
            np.testing.assert_array_equal(result, (array + np.float32(1)) * 2)
    assert work.times == 4


def test_few_kinds_are_kept() -> None:
    programs, work = Programs(), Doubling()
    for extent in range(1, 40):
        for arrays in batches(3, (extent,)):
            run(programs, work, arrays)
    assert len(programs._known) < 20
    assert work.times == 78


def test_who_uses_memory_of_its_own_is_run_each_time() -> None:
    programs, own, times = Programs(), xp.put(np.float32([3.0])), []

    def work(workspace: Workspace) -> None:
        times.append(1)
        samples: Any = workspace.samples
        pairs = zip(locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples))
        evaluate_batch("return a + b;", [((source, locate(own)), target) for source, target in pairs])

    for arrays in batches(3, (4,)):
        np.testing.assert_array_equal(run(programs, work, arrays)[0], arrays[0] + np.float32(3))
    # One of the calls is in vain: it shows that the launches cannot be recorded.
    assert len(times) == 4


def test_who_looks_at_data_is_run_each_time() -> None:
    programs = Programs()

    def work(workspace: Workspace) -> None:
        largest = [float(np.max(np.array(sample))) for sample in workspace.inputs[0].samples]
        for target, value in zip(workspace.outputs[0].samples, largest):
            target[...] = value

    for arrays in batches(3, (4, 1), (2, 3)):
        for array, result in zip(arrays, run(programs, work, arrays)):
            np.testing.assert_array_equal(result, np.full(array.shape, array.max()))


def test_another_stream_is_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches are repeated only on the stream on which they were recorded, even if all batches use the same memory."""
    cuda, programs, streams = sys.modules["cupy"].cuda, Programs(), []
    batch, outputs = TensorListGPU([xp.put(np.ones(4, np.float32))]), [TensorListGPU.allocate([(4,)], FLOAT)]

    def work(workspace: Workspace) -> None:
        samples: Any = workspace.samples
        pairs = zip(locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples))
        evaluate_batch("return a * 2;", [((source,), target) for source, target in pairs])

    def noted(address: int, count: int) -> int:
        words = (ctypes.c_int64 * (count * CALL_WORDS)).from_address(address)
        # The words of a call: the address of the driver function, and its arguments; the first of these is the kernel, the ninth
        # the stream.
        streams.extend(words[CALL_WORDS + 9 :: CALL_WORDS])
        return make_calls(address, count)

    monkeypatch.setattr(program, "make_calls", noted)
    monkeypatch.setattr(program.Program, "allocate", lambda _: outputs)
    for address in (1, 1, 1, 2, 2, 2, 1):
        current = type("Stream", (cuda.Stream,), {"ptr": address})()
        monkeypatch.setattr(cuda, "get_current_stream", lambda own=current: own)
        workspace = Workspace(inputs=[batch], batch_size=1, device="gpu")
        workspace.samples = [Place(0)]
        if not programs.run(workspace, dict):
            workspace.outputs = outputs
            if not programs.record(workspace, work, dict):
                work(workspace)
    assert streams == [1, 1, 2, 2, 1]


def results(define: Any, count: int, batch_size: int = 2) -> list[list[np.ndarray]]:
    """Return the results of a pipeline for some batches."""
    pipeline = pipeline_def(define, batch_size=batch_size, num_threads=1, device_id=0, prefetch_queue_depth=1)()
    return [[np.array(sample) for sample in pipeline.run()[0].as_cpu()] for _ in range(count)]


def test_values_of_arguments_make_another_kind() -> None:
    images = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3) + 10 * i for i in range(2)]
    flags = [[np.int32(0), np.int32(1)], [np.int32(1), np.int32(0)], [np.int32(0), np.int32(1)]]

    def define() -> DataNode:
        given = fn.external_source(lambda: images, layout="HWC").gpu()
        return fn.flip(given, horizontal=fn.external_source(flags, cycle=True))

    for given, found in zip(flags * 3, results(define, 9)):
        for image, flag, result in zip(images, given, found):
            np.testing.assert_array_equal(result, image[:, ::-1] if flag else image)


def test_values_of_inputs_on_the_cpu_make_another_kind() -> None:
    signals = [np.arange(8, dtype=np.float32), np.arange(10, 18, dtype=np.float32)]
    anchors = [
        [np.float32([2]), np.float32([3])],
        [np.float32([1]), np.float32([4])],
        [np.float32([2]), np.float32([3])],
    ]

    def define() -> DataNode:
        given = fn.external_source(lambda: signals).gpu()
        anchor = fn.external_source(anchors, cycle=True)
        return fn.slice(given, anchor, np.float32([4]), axes=[0], normalized_anchor=False, normalized_shape=False)

    for given, found in zip(anchors * 3, results(define, 9)):
        for signal, (anchor,), result in zip(signals, given, found):
            np.testing.assert_array_equal(result, signal[int(anchor) : int(anchor) + 4])


def test_inputs_on_the_gpu_are_looked_at_each_time() -> None:
    signals = [np.arange(8, dtype=np.float32), np.arange(10, 18, dtype=np.float32)]
    anchors = [[np.float32([2]), np.float32([3])], [np.float32([1]), np.float32([4])]]

    def define() -> DataNode:
        given, anchor = fn.external_source(lambda: signals).gpu(), fn.external_source(anchors, cycle=True).gpu()
        return fn.slice(given, anchor, np.float32([4]), axes=[0], normalized_anchor=False, normalized_shape=False)

    for given, found in zip(anchors * 4, results(define, 8)):
        for signal, (anchor,), result in zip(signals, given, found):
            np.testing.assert_array_equal(result, signal[int(anchor) : int(anchor) + 4])


def test_frames_are_repeated_too() -> None:
    rng = np.random.default_rng(3)
    sequences = [[rng.integers(0, 255, (n, 4, 5, 3), np.uint8) for n in (2, 3)] for _ in range(3)]

    def define() -> DataNode:
        return fn.brightness(fn.external_source(sequences, cycle=True, layout="FHWC").gpu(), brightness=0.5)

    for given, found in zip(sequences * 3, results(define, 9)):
        for sequence, result in zip(given, found):
            np.testing.assert_array_equal(result, ((sequence.astype(np.int32) + 1) // 2))


def test_reinterpreted_frames_of_scattered_sequences() -> None:
    rng = np.random.default_rng(4)
    sequences = [[xp.put(rng.integers(0, 255, (2, 3, 4, 3), np.uint8)) for _ in range(2)] for _ in range(3)]

    def define() -> DataNode:
        given = fn.external_source(sequences, cycle=True, layout="FHWC", device="gpu", no_copy=True)
        return fn.flip(fn.cast(given, dtype=types.INT16), vertical=1, horizontal=0)

    for given, found in zip(sequences * 3, results(define, 9)):
        for sequence, result in zip(given, found):
            np.testing.assert_array_equal(result, np.array(sequence).astype(np.int16)[:, ::-1])


def test_resizing_is_planned_for_all_samples_at_once_and_repeated() -> None:
    """Batches for which launches are repeated use tables that were computed only once."""
    rng = np.random.default_rng(5)
    images = [[rng.integers(0, 255, (h, w, 3), np.uint8) for h, w in ((20, 31), (33, 18))] for _ in range(5)]

    def define(device: str) -> DataNode:
        given = fn.external_source(images, cycle=True, layout="HWC")
        resized = fn.resize(
            given.gpu() if device == "gpu" else given, resize_shorter=14, interp_type=types.INTERP_CUBIC
        )
        return fn.crop_mirror_normalize(resized, crop=(9, 10), mirror=1, mean=[100.0], std=[50.0], dtype=types.FLOAT)

    for on_gpu, on_cpu in zip(results(lambda: define("gpu"), 5), results(lambda: define("cpu"), 5)):
        for one, other in zip(on_gpu, on_cpu):
            np.testing.assert_allclose(one, other, atol=0.021)


def test_samples_at_odd_addresses() -> None:
    """Kernels read several elements at a time only from aligned addresses."""
    rng = np.random.default_rng(5)
    whole = [[rng.integers(0, 255, 1 + 8 * 12 * 3, np.uint8) for _ in range(2)] for _ in range(4)]
    images = [[xp.put(array)[1:].reshape(8, 12, 3) for array in batch] for batch in whole]
    aligned = [[xp.put(np.array(image)) for image in batch] for batch in images]

    def define() -> DataNode:
        given = fn.external_source([*aligned, *images], cycle=True, layout="HWC", device="gpu", no_copy=True)
        return fn.resize(fn.flip(given), size=[4, 6])

    found = results(define, 8)
    for one, other in zip(found[:4], found[4:]):
        for expected, result in zip(one, other):
            np.testing.assert_array_equal(result, expected)


def test_a_chain_that_is_planned_in_arrays_is_repeated() -> None:
    pixels = [xp.put(np.full((8, 10, 3), value, np.uint8)) for value in (10, 200)]

    def define() -> Any:
        source = fn.external_source(lambda: pixels, layout="HWC", device="gpu", no_copy=True)
        return fn.crop_mirror_normalize(fn.resize(source, size=(4, 4)), mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0])

    pipe = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()
    first = pipe.run()[0].as_cpu().as_array()
    for _ in range(3):
        np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), first)
    (fused,) = (step.operator for step in pipe.executor.plan.operators if step.operator.parts())
    assert fused.gpu_launches.programs._known


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_mirrors_that_are_drawn_are_no_part_of_what_is_recorded(dtype: type) -> None:
    """The tables for integer images are computed on the GPU, those for other images on the host."""
    rng = np.random.default_rng(6)
    images = [rng.integers(0, 255, shape, np.uint8).astype(dtype) for shape in ((20, 31, 3), (33, 18, 3), (20, 31, 3))]
    flags = [[np.int32(flag) for flag in rng.integers(0, 2, 3)] for _ in range(8)]

    def define(device: str) -> DataNode:
        given = fn.external_source(lambda: images, layout="HWC")
        resized = fn.resize(given.gpu() if device == "gpu" else given, resize_shorter=14)
        mirror = fn.external_source(flags, cycle=True)
        return fn.crop_mirror_normalize(resized, crop=(9, 10), mirror=mirror, mean=[100.0, 90.0, 80.0], std=[50.0])

    pipe = pipeline_def(define, batch_size=3, num_threads=1, device_id=0, prefetch_queue_depth=1)("gpu")
    on_gpu = [[np.array(sample) for sample in pipe.run()[0].as_cpu()] for _ in flags]
    for given, expected in zip(on_gpu, results(lambda: define("cpu"), len(flags), 3)):
        for one, other in zip(given, expected):
            np.testing.assert_allclose(one, other, atol=0.021)
    assert len({tuple(map(int, given)) for given in flags}) > 2
    (fused,) = (step.operator for step in pipe.executor.plan.operators if step.operator.parts())
    assert len(fused.gpu_launches.programs._known) == 1
