"""Batches as JAX arrays, and JAX functions. Several devices are tested in a separate process."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.plugin.jax import DALIGenericIterator, LastBatchPolicy, data_iterator, integration
from penstock.plugin.jax.clu import DALIGenericPeekableIterator, peekable_data_iterator
from penstock.plugin.jax.fn import jax_function
from penstock.plugin.jax.shards import batch_shards
from penstock.tensors import TensorCPU

sys.path.insert(0, str(Path(__file__).parent / "processes"))

from recipes import free_address

BACKEND = Path(__file__).parents[2] / "backend"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    for number in range(8):
        (folder / f"{number}.bin").write_bytes(b"x")
    return sorted(map(str, folder.iterdir()))


def numbered(batches: int = 3) -> Pipeline:
    pipe = Pipeline(2, 1, None)
    with pipe:
        source = [(np.full((2, 3), i, np.float32), np.full((2, 1), i, np.int32)) for i in range(batches)]
        pipe.set_outputs(*fn.external_source(source, num_outputs=2, cycle="raise"))
    return pipe


def test_batches_are_dictionaries_of_arrays() -> None:
    iterator = DALIGenericIterator(numbered(), ["images", "labels"], auto_reset=True)
    for _ in range(2):
        batches = list(iterator)
        assert [batch["labels"].tolist() for batch in batches] == [[[i], [i]] for i in range(3)]
        assert all(isinstance(batch["images"], jax.Array) for batch in batches)
        assert batches[0]["images"].shape == (2, 3)


def test_kept_batches_are_not_overwritten() -> None:
    batches = list(DALIGenericIterator(numbered(20), ["x", "y"]))
    assert [int(batch["x"][0, 0]) for batch in batches] == list(range(20))


def test_leading_dimension_for_pmap() -> None:
    iterator = DALIGenericIterator(numbered(), ["x", "y"], pmap_compatible=True)
    assert next(iterator)["x"].shape == (1, 2, 3)


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_pipelines_of_one_device_are_stacked() -> None:
    iterator = DALIGenericIterator([numbered(), numbered()], ["x", "y"], size=8)
    assert next(iterator)["x"].shape == (2, 2, 3)


def test_wrong_arguments() -> None:
    with pytest.raises(AssertionError, match="distinct"):
        DALIGenericIterator(numbered(), ["x", "x"])
    with pytest.raises(AssertionError, match="partial"):
        DALIGenericIterator(numbered(), ["x", "y"], last_batch_policy=LastBatchPolicy.PARTIAL)
    with pytest.raises(AssertionError, match="sharding"):
        DALIGenericIterator(numbered(), ["x", "y"], sharding="all")
    with pytest.raises(IndexError, match="fewer outputs"):
        DALIGenericIterator(numbered(), ["x", "y", "z"])
    with pytest.raises(ValueError, match="Only one"):
        data_iterator(output_map=["x"], sharding=object(), devices=jax.devices())


def test_data_iterator(files: list[str]) -> None:
    @data_iterator(output_map=["label"], reader_name="reader", auto_reset=True)
    def labels(offset: int = 0) -> Any:
        return fn.readers.file(name="reader", files=files, labels=list(range(8)))[1] + offset

    iterator = labels(offset=10, batch_size=3)
    assert len(iterator) == 3
    assert [batch["label"].reshape(-1).tolist() for batch in iterator] == [[10, 11, 12], [13, 14, 15], [16, 17, 10]]
    assert [batch["label"].reshape(-1).tolist() for batch in iterator] == [[11, 12, 13], [14, 15, 16], [17, 10, 11]]


def test_checkpoints(files: list[str]) -> None:
    @data_iterator(output_map=["label"], reader_name="reader", auto_reset=True)
    def labels() -> Any:
        return fn.readers.file(name="reader", files=files, labels=list(range(8)), random_shuffle=True)[1]

    iterator = labels(batch_size=2, enable_checkpointing=True, seed=3)
    next(iterator)
    saved = iterator.checkpoints()
    expected = [next(iterator)["label"].tolist() for _ in range(3)]
    restored = labels(batch_size=2, enable_checkpointing=True, seed=3, checkpoints=saved)
    assert [next(restored)["label"].tolist() for _ in range(3)] == expected


def test_peeking(files: list[str]) -> None:
    @peekable_data_iterator(
        output_map=["label"], reader_name="reader", last_batch_policy=LastBatchPolicy.FILL, auto_reset=True
    )
    def labels() -> Any:
        return fn.readers.file(name="reader", files=files, labels=list(range(8)), pad_last_batch=True)[1]

    iterator = labels(batch_size=3, enable_checkpointing=True)
    spec = iterator.element_spec["label"]
    assert (spec.shape, spec.dtype) == ((3, 1), np.int32)
    assert iterator.peek()["label"].reshape(-1).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="peek"):
        iterator.checkpoints()
    assert iterator.peek_async().result()["label"][0] == 0
    assert next(iterator)["label"].reshape(-1).tolist() == [0, 1, 2]
    assert iterator.is_nonpadding.tolist() == [True] * 3
    assert len(iterator.checkpoints()) == 1
    next(iterator)
    assert next(iterator)["label"].reshape(-1).tolist() == [6, 7, 7]
    assert iterator.is_nonpadding.tolist() == [True, True, False]


def test_what_peeks_is_called_as_what_does_not() -> None:
    for peeking, plain in ((DALIGenericPeekableIterator, DALIGenericIterator), (peekable_data_iterator, data_iterator)):
        assert inspect.signature(peeking) == inspect.signature(plain)
        assert peeking.__doc__ != plain.__doc__


def test_peeking_wants_constant_shapes() -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source([np.zeros((2, 1)), np.zeros((2, 2))]))
    iterator = DALIGenericPeekableIterator(pipe, ["x"])
    next(iterator)
    with pytest.raises(ValueError, match="changed between iterations"):
        next(iterator)


def run(define: Any) -> tuple[Any, ...]:
    return pipeline_def(define, batch_size=2, num_threads=1, device_id=None)().run()


def test_functions() -> None:
    @jax_function
    @jax.jit
    def flipped(images: Any) -> Any:
        return images[:, ::-1]

    @jax_function(num_outputs=2, output_layouts=["A", ""])
    def both(images: Any) -> Any:
        return images.sum(axis=1), images[:, 0]

    def define() -> Any:
        images = fn.external_source([np.arange(12, dtype=np.float32).reshape(2, 3, 2)], layout="HW")
        return flipped(images), *both(images)

    mirrored, sums, first = run(define)
    assert mirrored.as_array()[0].tolist() == [[4, 5], [2, 3], [0, 1]]
    assert mirrored.layout() == "HW"
    assert sums.as_array()[0].tolist() == [6, 9]
    assert (sums.layout(), first.layout()) == ("A", "")


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        (lambda x: (x, x), {"num_outputs": 2, "output_layouts": ["A"]}, "must match the `num_outputs` argument"),
        (lambda x: (x, x), {}, r"\(a tuple of\) `num_outputs=1` outputs, but returned 2"),
        (lambda x: x, {"num_outputs": 2}, r"\(a tuple of\) `num_outputs=2` outputs, but returned 1"),
        (lambda x: None, {}, r"\(a tuple of\) `num_outputs=1` outputs, but returned 0"),
    ],
)
def test_wrong_numbers_of_outputs(function: Any, settings: dict[str, Any], message: str) -> None:
    def define() -> Any:
        outputs = jax_function(function, **settings)(types.Constant(np.zeros(3, np.float32)))
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with pytest.raises(RuntimeError, match=message):
        run(define)


def test_each_device_of_a_sharding_has_a_pipeline() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    with (
        pytest.warns(UserWarning, match="reader_name"),
        pytest.raises(ValueError, match=r"Expected 1 pipelines.* got 2"),
    ):
        DALIGenericIterator([numbered(), numbered()], ["x", "y"], size=4, sharding=sharding)


def test_tensors_alone() -> None:
    tensor = TensorCPU(np.arange(3, dtype=np.float32))
    array = integration._to_jax_array(tensor, copy=True)
    assert array.tolist() == [0, 1, 2]
    assert integration._jax_device(array) == jax.devices("cpu")[0]


def test_function_without_outputs_is_called() -> None:
    seen = []
    noting = jax_function(lambda x: seen.append(x.shape), num_outputs=0)

    def define() -> Any:
        data = types.Constant(np.zeros(3, np.float32))
        assert noting(data) == []
        return data

    run(define)
    assert seen[0] == (2, 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros((2, 1)), "JAX arrays"),
        (lambda x: x[0], "shape"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_functions_that_fail(function: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(lambda: jax_function(function)(fn.external_source([np.zeros((2, 3), np.float32)])))


def on_cpu_devices(count: int) -> dict[str, str]:
    """Return environment variables with which JAX has this many CPU devices, and no GPU."""
    path = os.pathsep.join(filter(None, [str(BACKEND), os.environ.get("PYTHONPATH")]))
    flags = f"--xla_force_host_platform_device_count={count}"
    return os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


SEVERAL_DEVICES = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from penstock import fn
from penstock.plugin.jax import data_iterator
from penstock.plugin.jax.fn import jax_function
from penstock.plugin.jax.shards import batch_shards

files = sys.argv[1:]
sharding = NamedSharding(Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))

def labels(shard_id, num_shards):
    return fn.readers.file(name="reader", files=files, labels=list(range(8)), shard_id=shard_id, num_shards=num_shards)[1]

assert len(jax.devices()) == 2
iterator = data_iterator(labels, output_map=["label"], reader_name="reader", sharding=sharding)(batch_size=4)
batches = [batch["label"] for batch in iterator]
assert all(batch.sharding == sharding and batch.shape == (4, 1) for batch in batches)
print([batch.reshape(-1).tolist() for batch in batches], len(iterator))
print([int(batch.sum()) for batch in batches])

iterator = data_iterator(labels, output_map=["label"], reader_name="reader", devices=jax.devices())(batch_size=4)
batch = next(iterator)["label"]
assert batch.shape == (2, 2, 1) and len(batch.devices()) == 2
print(jax.pmap(lambda x: x.sum())(batch).tolist())

try:
    jax_function(lambda x: x, sharding=sharding)
except NotImplementedError as error:
    print("one device" in str(error))
"""


def test_several_devices(files: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SEVERAL_DEVICES, *files], capture_output=True, text=True, env=on_cpu_devices(2)
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["[[0, 1, 4, 5], [2, 3, 6, 7]] 2", "[10, 18]", "[1, 9]", "True"]


SEVERAL_PROCESSES = """
import functools, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
from penstock import fn
from penstock.plugin.jax import data_iterator

# Gloo, by which JAX's processes talk, writes to stdout.
print = functools.partial(print, file=open(sys.argv[3], "w"), flush=True)
files = sys.argv[4:]
assert jax.device_count() == 4 and jax.local_device_count() == 2

def labels(shard_id, num_shards):
    read = fn.readers.file(name="reader", files=files, labels=list(range(8)), shard_id=shard_id, num_shards=num_shards)[1]
    return read, fn.random.uniform(read, range=(0, 1))

def epoch(mesh, **settings):
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    iterator = data_iterator(labels, output_map=["label", "drawn"], reader_name="reader", sharding=sharding)
    total = jax.jit(lambda batch: batch.sum())
    for batch in iterator(batch_size=4, **settings):
        label, drawn = batch["label"], batch["drawn"]
        assert label.shape == (4, 1) and label.sharding == sharding
        for one in drawn.addressable_shards:
            for other in drawn.addressable_shards:
                assert one.index != other.index or np.array_equal(one.data, other.data)
        shards = [(shard.index[0].start or 0, np.asarray(shard.data).reshape(-1).tolist()) for shard in label.addressable_shards]
        print(sorted(shards), int(total(label)))

devices = np.array(jax.devices())
epoch(Mesh(devices, ("data",)))
print("reversed")
epoch(Mesh(devices[::-1], ("data",)))
print("copies in a process")
epoch(Mesh(devices.reshape(2, 2), ("data", "model")))
print("copies in both processes")
across = Mesh(devices.reshape(2, 2).T, ("data", "model"))
try:
    epoch(across)
except ValueError as error:
    print("set `seed`" in str(error))
epoch(across, seed=3)
"""

OF_BOTH_PROCESSES = [
    """\
[(0, [0]), (1, [2])] 12
[(0, [1]), (1, [3])] 16
reversed
[(2, [4]), (3, [6])] 12
[(2, [5]), (3, [7])] 16
copies in a process
[(0, [0, 1]), (0, [0, 1])] 10
[(0, [2, 3]), (0, [2, 3])] 18
copies in both processes
True
[(0, [0, 1]), (2, [4, 5])] 10
[(0, [2, 3]), (2, [6, 7])] 18
""",
    """\
[(2, [4]), (3, [6])] 12
[(2, [5]), (3, [7])] 16
reversed
[(0, [0]), (1, [2])] 12
[(0, [1]), (1, [3])] 16
copies in a process
[(2, [4, 5]), (2, [4, 5])] 10
[(2, [6, 7]), (2, [6, 7])] 18
copies in both processes
True
[(0, [0, 1]), (2, [4, 5])] 10
[(0, [2, 3]), (2, [6, 7])] 18
""",
]


def test_several_processes(files: list[str], tmp_path: Path) -> None:
    told = [tmp_path / str(number) for number in range(2)]
    address = free_address()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SEVERAL_PROCESSES, address, str(number), str(told[number]), *files],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=on_cpu_devices(2),
        )
        for number in range(2)
    ]
    try:
        results = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert [process.returncode for process in processes] == [0, 0], results
    assert [path.read_text() for path in told] == OF_BOTH_PROCESSES


def test_a_sharding_of_other_dimensions_is_refused() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data", "model"))
    with pytest.raises(ValueError, match="splits more than the first dimension"):
        batch_shards(sharding)
