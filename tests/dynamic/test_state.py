"""Random numbers, readers, sources, and their checkpoints."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from penstock import dynamic, fn, pipeline_def
from penstock.dynamic import ExternalSource
from penstock.dynamic.checkpoint import Checkpoint
from penstock.dynamic.random import RNG

pytestmark = pytest.mark.every_case


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_numbers_are_philox() -> None:
    rng = RNG(seed=42)
    # Recorded from DALI 2.4.
    assert [rng() for _ in range(8)][2:] == [314527917, 1463989207, 4242219303, 1404726525, 2207210094, 1951270651]
    assert str(rng.state) == "Philox_000000000000002A_0000000000000000:0000000000000002_0"


def test_states_of_generators() -> None:
    rng = RNG(seed=1234)
    rng.advance(3)
    copies = [rng.clone(), RNG(state=str(rng.state)), RNG(seed=1234)]
    copies[2].advance(3)
    expected = rng.draw(100)
    assert all(copy.draw(100) == expected for copy in copies)
    with pytest.raises(ValueError, match="not the state"):
        rng.set_state("x")
    with pytest.raises(ValueError, match="go back"):
        rng.advance(-1)


def test_random_operators_draw_from_what_they_are_given() -> None:
    first, second = RNG(seed=3), RNG(seed=3)
    numbers = [dynamic.random.uniform(range=[0, 1], shape=[4], batch_size=2, rng=rng) for rng in (first, second, first)]
    assert np.array_equal(numbers[0], numbers[1])
    assert not np.array_equal(numbers[0], numbers[2])
    dynamic.random.set_seed(3)
    assert np.array_equal(dynamic.random.uniform(range=[0, 1], shape=[4], batch_size=2), numbers[0])
    with pytest.raises(ValueError, match="instance of RNG"):
        dynamic.random.uniform(rng=5)


# -- readers -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    for number in range(7):
        (root / str(number % 2)).mkdir(exist_ok=True)
        Image.new("RGB", (8 + number, 6), (number * 30, 0, 0)).save(root / str(number % 2) / f"{number}.png")
    return root


def widths(reader: dynamic.ops.Reader, batch_size: int) -> list[list[int]]:
    epoch = reader.next_epoch(batch_size=batch_size)
    return [[shape[1] for shape in dynamic.decoders.image(encoded).shape] for encoded, _ in epoch]


def test_readers_read_what_pipelines_read(folder: Path) -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def reading():
        encoded, _ = fn.readers.file(file_root=str(folder), random_shuffle=True, seed=4)
        return fn.decoders.image(encoded)

    reader = dynamic.readers.File(file_root=str(folder), random_shuffle=True, seed=4)
    found = widths(reader, 3) + widths(reader, 3)
    pipeline = reading()
    assert found == [[shape[1] for shape in pipeline.run()[0].shape()] for _ in found]


def test_samples_one_by_one(folder: Path) -> None:
    reader = dynamic.readers.File(file_root=str(folder))
    samples = list(reader.next_epoch())
    assert len(samples) == 7
    encoded, label = samples[-1]
    assert (encoded.dtype, label.shape, label.item()) == (dynamic.uint8, (1,), 1)
    assert reader.get_metadata()["epoch_size"] == 7


def test_shards(folder: Path) -> None:
    reader = dynamic.readers.File(file_root=str(folder), num_shards=2, shard_id=1)
    assert [len(list(reader.next_epoch())) for _ in range(3)] == [4, 3, 4]
    with pytest.raises(ValueError, match="shard_id=2"):
        dynamic.readers.File(file_root=str(folder), num_shards=2, shard_id=2)


def test_one_batch_size_for_a_reader(folder: Path) -> None:
    reader = dynamic.readers.File(file_root=str(folder))
    list(reader.next_epoch(batch_size=3))
    with pytest.raises(ValueError, match="different"):
        next(reader.next_epoch(batch_size=4))


def test_states_of_readers(folder: Path) -> None:
    reader = dynamic.readers.File(file_root=str(folder), enable_checkpointing=True)
    with pytest.raises(RuntimeError, match="before its first iteration"):
        reader.get_state()
    epoch = reader.next_epoch(batch_size=2)
    next(epoch)
    state = reader.get_state()
    expected = np.asarray(next(epoch)[1])
    for given in (state, str(state), str(state).encode()):
        other = dynamic.readers.File(file_root=str(folder))
        other.set_state(given)
        assert np.array_equal(next(other.next_epoch(batch_size=2))[1], expected)
    with pytest.raises(RuntimeError, match="after iteration has begun"):
        reader.set_state(state)
    with pytest.raises(TypeError, match="ReaderState"):
        dynamic.readers.File(file_root=str(folder)).set_state(42)


@pytest.mark.parametrize(("name", "own"), [("File", "file_root"), ("TFRecord", "features")])
def test_readers_list_their_arguments(name: str, own: str) -> None:
    parameters = inspect.signature(getattr(dynamic.readers, name)).parameters
    assert list(parameters)[:4] == ["max_batch_size", "name", "device", "num_inputs"]
    assert {own, "seed", "enable_checkpointing"} < set(parameters)
    assert not {"arguments", "preserve", "feature_names"} & set(parameters)


@pytest.mark.parametrize("wrong", ["file_rot", "batch_size", "preserve"])
def test_readers_refuse_other_arguments(folder: Path, wrong: str) -> None:
    with pytest.raises(TypeError, match=rf"^File\.__init__\(\) got an unexpected keyword argument '{wrong}'"):
        dynamic.readers.File(file_root=str(folder), **{wrong: 1})


def test_imread(folder: Path) -> None:
    paths = [folder / "0" / "0.png", str(folder / "1" / "1.png")]
    assert dynamic.imread(paths[0]).shape == (6, 8, 3)
    assert dynamic.imread(paths).shape == [(6, 8, 3), (6, 9, 3)]
    with pytest.raises(TypeError, match="path"):
        dynamic.imread(5)


# -- sources -----------------------------------------------------------------------------------------------------------


def test_sources_give_items_in_turn() -> None:
    source = ExternalSource([np.full((2,), number) for number in range(2)])
    assert [np.asarray(source()).tolist() for _ in range(2)] == [[0, 0], [1, 1]]
    with pytest.raises(StopIteration):
        source()


@pytest.mark.parametrize(
    ("cycle", "expected"), [("quiet", "010101"), (True, "010101"), ("raise", "01-01-"), ("no", "01----")]
)
def test_ends_of_sources(cycle: object, expected: str) -> None:
    source = ExternalSource([0, 1], cycle=cycle)
    found = ""
    for _ in range(6):
        try:
            found += str(source().item())
        except StopIteration:
            found += "-"
    assert found == expected


def test_sources_of_batches_and_of_several_outputs() -> None:
    pairs = ExternalSource(
        lambda: (np.zeros((4, 4, 3)), np.zeros(2)),
        num_outputs=2,
        layout=["HWC", "X"],
        dtype=[dynamic.float32, dynamic.int32],
    )
    image, vector = pairs()
    assert (image.layout, image.dtype, vector.layout, vector.dtype) == ("HWC", dynamic.float32, "X", dynamic.int32)
    assert pairs(batch_size=3)[0].batch_size == 3
    batches = ExternalSource(lambda: dynamic.batch([1, 2]))
    assert batches().batch_size == 2
    with pytest.raises(ValueError, match="expected batch size 5"):
        batches(batch_size=5)
    with pytest.raises(ValueError, match="expected 2 outputs"):
        ExternalSource(lambda: (1,), num_outputs=2)()
    with pytest.raises(ValueError, match=r"expected a sequence of size 2|Expected a sequence of size 2"):
        ExternalSource(lambda: (1, 2), num_outputs=2, layout=["A", "B", "C"])
    with pytest.raises(ValueError, match="no parameters"):
        ExternalSource(lambda info: info)


# -- checkpoints -------------------------------------------------------------------------------------------------------


def collected(**objects: object) -> Checkpoint:
    checkpoint = Checkpoint()
    for name, own in objects.items():
        checkpoint.register(own, name)
    checkpoint.collect()
    return checkpoint


def test_a_program_continues(folder: Path, tmp_path: Path) -> None:
    reader, rng = dynamic.readers.File(file_root=str(folder), enable_checkpointing=True), RNG(seed=9)
    epoch = reader.next_epoch(batch_size=2)
    next(epoch), rng()
    checkpoint = collected(reader=reader, rng=rng)
    assert checkpoint.is_complete
    pattern = str(tmp_path / "step_{seq:03d}.json")
    assert [Path(checkpoint.save(pattern)).name for _ in range(2)] == ["step_000.json", "step_001.json"]
    expected = np.asarray(next(epoch)[1]).tolist(), rng()

    other, generator = dynamic.readers.File(file_root=str(folder)), RNG(seed=0)
    loaded = Checkpoint()
    assert Path(loaded.load(pattern)).name == "step_001.json"
    assert loaded.is_loaded
    loaded.register(other, "reader")
    loaded.register(generator, "rng")
    assert (np.asarray(next(other.next_epoch(batch_size=2))[1]).tolist(), generator()) == expected


def test_objects_without_names() -> None:
    first, second = RNG(seed=1), RNG(seed=2)
    checkpoint = Checkpoint()
    assert [checkpoint.register(rng) for rng in (first, second, first)] == ["__op_0", "__op_1", "__op_0"]
    checkpoint.collect()
    loaded, others = Checkpoint(), [RNG(seed=8), RNG(seed=9)]
    loaded.deserialize(checkpoint.serialize())
    for rng in others:
        loaded.register(rng)
    assert [rng() for rng in others] == [first(), second()]
    with pytest.raises(KeyError, match="Loaded checkpoint has no state"):
        loaded.register(RNG())


def test_what_does_not_fit() -> None:
    checkpoint = collected(rng=RNG(seed=1))
    with pytest.raises(RuntimeError, match="completed"):
        checkpoint.register(RNG())
    with pytest.raises(KeyError):
        checkpoint.set_state("other", "x")
    typed = Checkpoint()
    typed.set_state("x", "y", op_type=dynamic.readers.File)
    with pytest.raises(TypeError, match=r"Type mismatch.*'File'.*'RNG'"):
        typed.register(RNG(), "x")
    typed.clear()
    typed.register(RNG(), "x")
    with pytest.raises(TypeError, match=r"Cannot replace operator.*'RNG'.*'File'"):
        typed.register(dynamic.readers.File(file_root="."), "x")
    partial = Checkpoint()
    partial.register(RNG(), "a")
    partial.register(RNG(), "b")
    partial.restore()
    partial.set_state("a", str(RNG().state))
    with pytest.raises(RuntimeError, match="incomplete"):
        partial.restore()
    partial.set_state("ghost", "x")
    for action in (partial.collect, partial.restore):
        with pytest.raises(RuntimeError, match=r"no corresponding registered ops.*ghost"):
            action()
    with pytest.raises(RuntimeError, match="empty"):
        Checkpoint().serialize()


@pytest.mark.parametrize(
    ("document", "match"),
    [
        ({"version": 1, "states": {}}, "version"),
        ({"version": 2, "states": {"rng": "text"}}, "Invalid checkpoint entry"),
        ({"version": 2, "states": {"rng": {"type": "RNG"}}}, "Invalid checkpoint entry"),
        ({"version": 2, "states": {"rng": {"state": "x", "type": 42}}}, "Invalid `type`"),
        ({"version": 2}, "no `states`"),
    ],
)
def test_damaged_checkpoints(document: object, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Checkpoint().deserialize(json.dumps(document))


def test_names_of_files(tmp_path: Path) -> None:
    checkpoint = collected(rng=RNG(seed=1))
    for name in ("plain.json", "{seq}_{seq}.json", "{other}.json"):
        with pytest.raises(ValueError, match="seq"):
            checkpoint.save(str(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        checkpoint.load(str(tmp_path / "missing_{seq}.json"))


def test_the_context_s_checkpoint() -> None:
    assert dynamic.checkpoint.current() is dynamic.EvalContext.current().checkpoint


def test_generators_count_all_blocks_of_all_streams() -> None:
    # Numbers recorded from DALI 2.4.
    rng = RNG(state="Philox_0000000000000007_0000000000000000:3FFFFFFFFFFFFFFF_3")
    assert [rng() for _ in range(3)] == [3327943494, 767694153, 1431613303]
    rng = RNG(state="Philox_0000000000000007_FFFFFFFFFFFFFFFF:FFFFFFFFFFFFFFFF_3")
    assert [rng() for _ in range(3)] == [2274073934, 4099963437, 3221879260]
    assert rng.state == "Philox_0000000000000007_0000000000000000:0000000000000000_2"
    rng.advance(2**64 - 1)
    assert rng.state == "Philox_0000000000000007_0000000000000000:4000000000000000_1"


def test_operators_begin_at_any_block() -> None:
    # The state that the operator draws with this seed begins beyond block 2**62; the expected numbers are those of DALI 2.4.
    drawn = dynamic.random.uniform(range=[0, 1], batch_size=3, rng=RNG(seed=5))
    wanted = [0.009012196213006973, 0.11575716733932495, 0.07409438490867615]
    assert [float(number) for number in drawn.tensors] == wanted
    image = np.arange(300, dtype=np.uint8).reshape(10, 10, 3)
    rng = RNG(seed=5)
    cropped = dynamic.random_resized_crop(image, size=[10, 10], rng=rng)
    assert np.array_equal(cropped, dynamic.random_resized_crop(image, size=[10, 10], rng=RNG(seed=5)))
    assert rng.state == "Philox_0000000000000005_0000000000000000:0000000000000001_3"
