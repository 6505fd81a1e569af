"""Captured loops run as pipelines, and give the same results as loops that are not captured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import dynamic
from penstock.dynamic import Batch, EvalMode, ExternalSource
from penstock.dynamic._capture_nodes import CapturedBatch
from penstock.dynamic.random import RNG
from penstock.passes import improve

pytestmark = pytest.mark.every_case
SIZE = 4


def is_captured(value: object) -> bool:
    return isinstance(value, CapturedBatch)


def batches(count: int, size: int = SIZE, **settings: Any) -> ExternalSource:
    """Return a source of ``count`` batches, whose samples are numbered."""
    data = [[np.full(3, number * size + index, np.float32) for index in range(size)] for number in range(count)]
    return ExternalSource([dynamic.batch(samples) for samples in data], **settings)


def endless(*values: float) -> ExternalSource:
    """Return a source that always returns the same batch."""
    return ExternalSource(lambda: dynamic.batch([np.float32(values)] * SIZE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for number in range(11):
        (root / str(number % 2)).mkdir(exist_ok=True)
        pixels = rng.integers(0, 255, (30 + number, 40, 3), np.uint8)
        Image.fromarray(pixels).save(root / str(number % 2) / f"{number:02}.png")
    return str(root)


def epochs(folder: str, capture: bool, body: Callable[..., object], count: int = 3, **settings: Any) -> Iterator[Any]:
    reader = dynamic.readers.File(file_root=folder, **settings)
    for epoch in range(count):
        for step, (encoded, labels) in enumerate(reader.next_epoch(batch_size=SIZE, capture=capture)):
            yield body(encoded, labels, epoch, step)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"random_shuffle": True, "seed": 3},
        {"pad_last_batch": True},
        {"num_shards": 2, "shard_id": 1},
        {"num_shards": 2, "stick_to_shard": True},
        {"shuffle_after_epoch": True},
    ],
    ids=lambda settings: "-".join(settings) or "plain",
)
def test_epochs_of_readers(folder: str, settings: dict[str, Any]) -> None:
    def run(capture: bool) -> tuple[list[Any], str]:
        rng = RNG(seed=5)

        def body(encoded: Batch, labels: Batch, epoch: int, step: int) -> object:
            images = dynamic.resize(dynamic.decoders.image(encoded), size=[16, 16])
            if step == 1:
                np.asarray(images)
            mirrored = dynamic.flip(images, horizontal=dynamic.random.coin_flip(batch_size=SIZE, rng=rng))
            normalized = dynamic.crop_mirror_normalize(mirrored, mean=[120.0] * 3, std=[60.0] * 3)
            assert is_captured(normalized) is capture
            return np.asarray(normalized), np.asarray(labels)

        return list(epochs(folder, capture, body, **settings)), str(rng.state)

    (expected, state), (found, captured_state) = run(False), run(True)
    assert state == captured_state
    assert len(found) == len(expected)
    for pair, own in zip(expected, found):
        np.testing.assert_array_equal(pair[0], own[0])
        np.testing.assert_array_equal(pair[1], own[1])


def test_what_is_captured_is_fused(folder: str) -> None:
    reader = dynamic.readers.File(file_root=folder)
    for encoded, _ in reader.next_epoch(batch_size=SIZE, capture=True):
        images = dynamic.resize(dynamic.decoders.image(encoded), size=[16, 16])
        np.asarray(dynamic.crop_mirror_normalize(images, dtype=dynamic.float32))
    graph = reader._root._loop.pipeline.graph
    assert len(graph.outputs) == 3, "only what is looked at, and the reader's"
    assert any("resize" in repr(op.steps) for op in improve(graph).operators if op.steps)


def test_calls_are_found_by_what_they_compute(folder: str) -> None:
    sizes = [[16, 16]]

    def body(encoded: Batch, labels: Batch, epoch: int, step: int) -> tuple[list[bool], np.ndarray]:
        images = dynamic.decoders.image(encoded)
        resized = dynamic.resize(images, size=sizes[0])
        again = dynamic.resize(images, size=(16, 16))
        for _ in range(2):
            resized = dynamic.flip(resized, horizontal=1)
        other = dynamic.flip(resized, vertical=step % 2)
        return [is_captured(value) for value in (resized, again, other)], np.asarray(other)

    captured, plain = (list(epochs(folder, capture, body, 2)) for capture in (True, False))
    assert [marks for marks, _ in captured[:3]] == [[True, True, True], [True, True, False], [True, True, True]]
    assert not any(any(marks) for marks, _ in plain)
    for own, expected in zip(captured, plain):
        np.testing.assert_array_equal(own[1], expected[1])


def test_arguments_that_change_are_noticed(folder: str) -> None:
    size = [16, 16]

    def body(encoded: Batch, labels: Batch, epoch: int, step: int) -> tuple[bool, tuple[int, ...]]:
        resized = dynamic.resize(dynamic.decoders.image(encoded), size=size)
        size[0] += 1
        return is_captured(resized), resized.shape[0]

    assert list(epochs(folder, True, body, 1)) == [
        (True, (16, 16, 3)),
        (False, (17, 16, 3)),
        (False, (18, 16, 3)),
    ]


def test_results_of_earlier_steps() -> None:
    kept: list[Batch] = []
    for batch in batches(4).captured(batch_size=SIZE):
        doubled = batch * 2
        kept.append(doubled + 1)
        if len(kept) == 1:
            np.asarray(kept[0])
        else:
            mixed = kept[-2] + 0
            assert not is_captured(mixed)
    assert [np.asarray(batch)[1, 0] for batch in kept] == [3, 11, 19, 27]


@pytest.mark.parametrize("mode", list(EvalMode), ids=lambda mode: mode.name)
def test_sources(mode: EvalMode) -> None:
    with mode:
        found = []
        for batch in batches(3).captured(batch_size=SIZE):
            result = dynamic.cast(batch, dtype=dynamic.int32) + 5
            assert is_captured(batch)
            assert is_captured(result)
            found.append(np.asarray(result)[:, 0].tolist())
    assert found == [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]


@pytest.mark.parametrize(("cycle", "lengths"), [("raise", [2, 2, 2]), ("no", [2, 0, 0])])
def test_ends_of_sources(cycle: str, lengths: list[int]) -> None:
    source = batches(2, cycle=cycle)
    assert [len([batch + 1 for batch in source.captured(batch_size=SIZE)]) for _ in range(3)] == lengths


def test_a_loop_that_is_left_begins_anew() -> None:
    source, other = endless(3), endless(2)
    for _ in range(2):
        for step, batch in enumerate(source.captured(batch_size=SIZE)):
            assert is_captured(batch + other())
            if step == 2:
                break
    assert not is_captured(other())


def test_several_sources() -> None:
    found = []
    extra = ExternalSource(lambda: (np.float32([7]), np.float32([8])), num_outputs=2)
    for batch in batches(3).captured(batch_size=SIZE):
        first, second = extra()
        found.append(np.asarray(batch * first - second)[:, 0].tolist())
    assert found == [[7 * number - 8 for number in range(4 * step, 4 * step + 4)] for step in range(3)]


def test_captured_arguments_of_another_type() -> None:
    images = ExternalSource(lambda: dynamic.zeros(batch_size=SIZE, shape=(8, 8, 3), layout="HWC", dtype=dynamic.uint8))
    sizes = ExternalSource(lambda: dynamic.batch([[2, 3], [3, 2]] * 2))
    for step, batch in enumerate(images.captured(batch_size=SIZE)):
        size = sizes() + 1
        small = dynamic.resize(batch, size=size)
        assert is_captured(small)
        assert small.shape == [(3, 4, 3), (4, 3, 3)] * 2
        assert np.asarray(dynamic.as_batch(size, dtype=dynamic.float32))[0].tolist() == [3, 4]
        if step == 2:
            break


def test_nothing_to_capture(folder: str) -> None:
    source = batches(2, cycle="raise")
    with pytest.warns(UserWarning, match="no operators were captured"):
        assert len([batch.evaluate() for batch in source.captured(batch_size=SIZE)]) == 2
    assert not is_captured(source())
    reader = dynamic.readers.File(file_root=folder)
    with pytest.warns(UserWarning, match="no operators were captured"):
        assert len(list(reader.next_epoch(batch_size=SIZE, capture=True))) == 3
    assert len(list(reader.next_epoch(batch_size=SIZE))) == 3


def test_readers_stay_captured_or_eager(folder: str) -> None:
    captured, eager = (dynamic.readers.File(file_root=folder) for _ in range(2))
    next(captured.next_epoch(batch_size=SIZE, capture=True))
    with pytest.raises(RuntimeError, match="cannot switch to eager"):
        captured.next_epoch(batch_size=SIZE)
    with pytest.raises(ValueError, match="cannot change batch_size"):
        captured.next_epoch(batch_size=2, capture=True)
    next(eager.next_epoch(batch_size=SIZE))
    with pytest.raises(RuntimeError, match="cannot switch to capture"):
        eager.next_epoch(batch_size=SIZE, capture=True)
    with pytest.raises(ValueError, match="requires a non-None batch_size"):
        dynamic.readers.File(file_root=folder).next_epoch(capture=True)


# -- random numbers ----------------------------------------------------------------------------------------------------


def uniform(rng: RNG) -> Batch:
    return dynamic.random.uniform(range=[0, 1], shape=[3], batch_size=SIZE, rng=rng)


def draw_twice(rng: RNG, batch: Batch) -> tuple[Batch, ...]:
    return uniform(rng), uniform(rng)


def draw_in_between(rng: RNG, batch: Batch) -> tuple[Batch, ...]:
    rng()
    first = uniform(rng)
    dynamic.random.uniform(shape=3, rng=rng)
    return first, dynamic.noise.gaussian(first, rng=rng)


@pytest.mark.parametrize("body", [draw_twice, draw_in_between])
def test_random_numbers_are_the_same(body: Callable[..., tuple[Batch, ...]]) -> None:
    plain, captured = RNG(seed=4), RNG(seed=4)
    source, looped = batches(3, cycle="raise"), batches(3, cycle="raise")
    expected = [body(plain, source()) for _ in range(3)]
    with pytest.raises(StopIteration):
        source()
    expected += [body(plain, source()) for _ in range(3)]
    found = [body(captured, batch) for _ in range(2) for batch in looped.captured(batch_size=SIZE)]
    assert all(map(is_captured, itertools.chain(*found)))
    for own, other in zip(itertools.chain(*found), itertools.chain(*expected)):
        np.testing.assert_array_equal(np.asarray(own), np.asarray(other))
    assert plain.state == captured.state


@pytest.mark.parametrize("disturb", [lambda rng: rng.advance(4), lambda rng: setattr(rng, "seed", 3)])
def test_generators_are_the_loop_s(disturb: Callable[[RNG], None]) -> None:
    source, rng = batches(2, cycle="raise"), RNG(seed=71)
    numbers = (uniform(rng) for _ in source.captured(batch_size=SIZE))
    assert len(list(numbers)) == 2
    disturb(rng)
    with pytest.raises(RuntimeError, match="used unexpectedly"):
        [uniform(rng) for _ in source.captured(batch_size=SIZE)]


def test_each_step_draws_as_many() -> None:
    rng = RNG(seed=1)
    loop = enumerate(batches(3).captured(batch_size=SIZE))
    with pytest.raises(RuntimeError, match="used unexpectedly"):
        [(uniform(rng), step and rng()) for step, _ in loop]


# -- what cannot be ----------------------------------------------------------------------------------------------------


def asked_twice() -> None:
    other = endless(2)
    for _ in batches(3).captured(batch_size=SIZE):
        _ = other() + other()


def asked_once_only() -> None:
    other = endless(2)
    for step, batch in enumerate(batches(3).captured(batch_size=SIZE)):
        _ = batch if step else batch + other()


def asked_too_late() -> None:
    other = endless(2)
    for step, batch in enumerate(batches(3).captured(batch_size=SIZE)):
        _ = batch + (other() if step else 1)


def runs_out() -> None:
    other = batches(1)
    for batch in endless(1).captured(batch_size=SIZE):
        _ = batch + other()


def asks_itself() -> None:
    source = endless(1)
    for batch in source.captured(batch_size=SIZE):
        _ = batch + source()


def of_two_loops() -> None:
    other = endless(2)
    for source in (batches(2), batches(2)):
        for batch in source.captured(batch_size=SIZE):
            _ = batch + other()


def eager_before() -> None:
    source = endless(1)
    source()
    source.captured(batch_size=SIZE)


def eager_while_captured() -> None:
    source = endless(1)
    source.captured(batch_size=SIZE)
    source()


def loop_in_loop() -> None:
    for _ in endless(1).captured(batch_size=SIZE):
        for _ in endless(1).captured(batch_size=SIZE):
            pass


def other_batch_size() -> None:
    for batch in endless(1).captured(batch_size=SIZE):
        dynamic.cast(batch, dtype=dynamic.int32, batch_size=8)


def no_longer_marked() -> None:
    angles = iter((dynamic.capture.invariant(0.0), 0.0))
    images = ExternalSource(lambda: dynamic.zeros(batch_size=2, shape=(4, 4, 3), layout="HWC"))
    for batch in images.captured(batch_size=2):
        dynamic.rotate(batch, angle=next(angles))


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (asked_twice, "once per capture-mode step"),
        (asked_once_only, "not consumed"),
        (asked_too_late, "during tracing"),
        (runs_out, "exhausted"),
        (asks_itself, "used through .captured"),
        (of_two_loops, "different capture context"),
        (eager_before, "used eagerly"),
        (eager_while_captured, "already used in a capture-mode loop"),
        (loop_in_loop, "Only one"),
        (other_batch_size, "cannot change batch size to 8"),
        (no_longer_marked, "remain marked"),
    ],
)
def test_misuse(program: Callable[[], None], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        program()


def test_other_batch_sizes() -> None:
    with pytest.raises(ValueError, match="batch size 4"):
        list(batches(3, 5).captured(batch_size=SIZE))
    count = itertools.count()
    growing = ExternalSource(lambda: dynamic.batch([0.0] * (SIZE + min(next(count), 1))))
    with pytest.raises(ValueError, match="batch size 4"):
        [batch + 1 for batch in growing.captured(batch_size=SIZE)]


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 1, "text", [1], int])
def test_marked_values_behave_like_themselves(value: object) -> None:
    marked = dynamic.capture.invariant(value)
    assert marked == value
    assert isinstance(marked, type(value))
    assert dynamic.capture.invariant(marked) is marked


def test_attributes_of_marked_values(tmp_path: Path) -> None:
    class Settings:
        angle = 3

        def doubled(self) -> int:
            return self.angle * 2

    marked = dynamic.capture.invariant(Settings())
    assert marked.doubled() == 6
    marked.angle = 5
    assert (marked.angle + 1, 7 - marked.angle) == (6, 2)
    numbers = dynamic.capture.invariant(np.array([1, 2]))
    assert dynamic.as_tensor(numbers).shape == (2,)
    assert list(dynamic.capture.invariant([1, 2])) == [1, 2]
    image = np.zeros((4, 4, 3), np.uint8)
    assert (
        dynamic.rotate(image, angle=dynamic.capture.invariant(0.0), device=dynamic.capture.invariant("cpu")).ndim == 3
    )


def test_marked_arguments_are_not_compared() -> None:
    class Unequal(float):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("it is not compared")

        __hash__ = float.__hash__

    factors = [dynamic.capture.invariant(Unequal(30)) for _ in range(3)]
    images = [dynamic.zeros(batch_size=SIZE, shape=(4, 4, 3), layout="HWC") for _ in range(3)]
    captured = [
        is_captured(dynamic.rotate(batch, angle=factors.pop()))
        for batch in ExternalSource(images).captured(batch_size=SIZE)
    ]
    assert captured == [True, True, True]
