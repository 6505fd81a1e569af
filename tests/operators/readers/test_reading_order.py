"""The order of readers' samples, with the sequences of DALI 2.4."""

import json
from dataclasses import replace

import pytest

from penstock.kernels.random_streams import seed_slots
from penstock.operators.readers._reading_order import OrderSettings, ReadingOrder


def _batches(settings: OrderSettings, batch_size: int, count: int) -> list[list[int]]:
    order = ReadingOrder(settings)
    return [[order.next(first_of_batch=i == 0) for i in range(batch_size)] for _ in range(count)]


def test_batches_run_on_into_the_next_epoch() -> None:
    assert _batches(OrderSettings(size=5), 3, 4) == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]


def test_padding_repeats_the_last_sample() -> None:
    assert _batches(OrderSettings(size=5, pad_last_batch=True), 3, 3) == [[0, 1, 2], [3, 4, 4], [0, 1, 2]]


def test_padding_gives_all_shards_as_many_batches() -> None:
    shards = [
        _batches(OrderSettings(size=7, shard_id=k, num_shards=3, stick_to_shard=True, pad_last_batch=True), 2, 3)
        for k in range(3)
    ]
    assert shards[0] == [[0, 1], [1, 1], [0, 1]]
    assert shards[1] == [[2, 3], [3, 3], [2, 3]]
    assert shards[2] == [[4, 5], [6, 6], [4, 5]]


def test_shards_take_turns_or_stick() -> None:
    assert _batches(OrderSettings(size=4, shard_id=1, num_shards=2), 2, 3) == [[2, 3], [0, 1], [2, 3]]
    assert _batches(OrderSettings(size=4, shard_id=1, num_shards=2, stick_to_shard=True), 2, 2) == [[2, 3], [2, 3]]


def test_random_order_of_dali() -> None:
    settings = OrderSettings(size=7, shuffle=True, seed=7)
    assert _batches(settings, 14, 1) == [[1, 0, 4, 6, 5, 3, 2, 5, 2, 6, 1, 3, 0, 4]]
    assert _batches(replace(settings, buffer_size=4), 14, 1) == [[4, 0, 3, 6, 5, 1, 2, 2, 0, 1, 3, 5, 6, 4]]
    shard = replace(settings, shard_id=1, num_shards=3, pad_last_batch=True)
    assert _batches(shard, 3, 4) == [[4, 2, 2], [5, 6, 1], [3, 0, 0], [4, 2, 2]]
    # The list of records is not shuffled: they enter the buffer in their order in the file, and are drawn from it at random.
    records = OrderSettings(size=8, shuffle=True, shuffle_list=False, seed=seed_slots(11)[0])
    assert _batches(records, 8, 2) == [[0, 7, 3, 6, 2, 5, 4, 1], [2, 7, 3, 1, 4, 0, 5, 6]]


def test_every_sample_comes_once_an_epoch() -> None:
    for settings in (
        OrderSettings(size=20, shuffle=True, buffer_size=4, seed=3),
        OrderSettings(size=20, shuffle=True, seed=3),
        OrderSettings(size=20, epoch_shuffle_seed=5),
        OrderSettings(size=20, epoch_shuffle_seed=5, groups=(3, 8, 9)),
    ):
        for epoch in _batches(settings, 20, 4):
            assert sorted(epoch) == list(range(20))


def test_epoch_shuffle_of_dali() -> None:
    assert _batches(OrderSettings(size=5, epoch_shuffle_seed=524287), 5, 4) == [
        [4, 2, 1, 0, 3],
        [1, 2, 4, 0, 3],
        [0, 4, 3, 2, 1],
        [0, 2, 3, 4, 1],
    ]
    # Each shard is the same range of positions in every newly shuffled list.
    assert _batches(OrderSettings(size=5, epoch_shuffle_seed=1, shard_id=1, num_shards=2), 3, 3) == [
        [3, 2, 1],
        [0, 4, 1],
        [3, 2, 0],
    ]


def test_groups_stay_together() -> None:
    epochs = _batches(OrderSettings(size=8, epoch_shuffle_seed=524287, groups=(5, 3)), 8, 4)
    assert epochs == [[*range(8)], [*range(8)], [5, 6, 7, 0, 1, 2, 3, 4], [*range(8)]]


@pytest.mark.parametrize(
    "settings",
    [
        OrderSettings(size=7, num_shards=2, pad_last_batch=True),
        OrderSettings(size=7, shuffle=True, buffer_size=5, seed=1),
        OrderSettings(size=7, epoch_shuffle_seed=3, groups=(2, 5)),
    ],
)
@pytest.mark.parametrize("done", [0, 3, 10])
def test_continues_from_a_checkpoint(settings: OrderSettings, done: int) -> None:
    order, other = ReadingOrder(settings), ReadingOrder(settings)
    for i in range(done):
        order.next(i % 2 == 0)
    other.restore(json.loads(json.dumps(order.state())))
    assert [order.next(True) for _ in range(20)] == [other.next(True) for _ in range(20)]


@pytest.mark.parametrize(
    "settings",
    [
        OrderSettings(size=11),
        OrderSettings(size=11, shuffle=True, seed=3),
        OrderSettings(size=50, shuffle=True, buffer_size=7, seed=3, shard_id=1, num_shards=3),
        OrderSettings(size=50, shuffle=True, buffer_size=7, seed=3, shard_id=1, num_shards=3, pad_last_batch=True),
        OrderSettings(size=23, num_shards=2, stick_to_shard=True, pad_last_batch=True),
        OrderSettings(size=23, shuffle=True, shuffle_list=False, buffer_size=5, num_shards=2, stick_to_shard=True),
        OrderSettings(size=23, shard_id=1, num_shards=2, epoch_shuffle_seed=5),
        OrderSettings(size=23, epoch_shuffle_seed=5, groups=(3, 9, 0, 11)),
        OrderSettings(size=1, shuffle=True),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_batches_are_in_the_order_of_single_samples(settings: OrderSettings, batch_size: int) -> None:
    order = ReadingOrder(settings)
    assert [order.take(batch_size).tolist() for _ in range(20)] == _batches(settings, batch_size, 20)


def test_a_batch_after_a_checkpoint_follows_the_one_before() -> None:
    settings = OrderSettings(size=50, shuffle=True, buffer_size=7, seed=3, epoch_shuffle_seed=None)
    order, other = ReadingOrder(settings), ReadingOrder(settings)
    order.take(31)
    other.restore(json.loads(json.dumps(order.state())))
    assert other.take(40).tolist() == order.take(40).tolist()
