"""Pipelines on two GPUs in one process, whichever GPU is current."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn
from penstock.tensors import TensorListGPU

sys.path.insert(0, str(Path(__file__).parents[1] / "plugin" / "processes"))

from recipes import check_jax_distributed, check_torchrun, free_address, run_together


def encoded(seed: int) -> np.ndarray:
    pixels = np.random.default_rng(seed).integers(0, 255, (20, 30, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((300, 200)).save(buffer, "JPEG", quality=95)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def decoding(device_id: int, batch_size: int = 6) -> Pipeline:
    pipe = Pipeline(batch_size, 2, device_id)
    with pipe:
        data = fn.external_source(lambda step: [encoded(step * batch_size + k) for k in range(batch_size)])
        image = fn.resize(fn.decoders.image(data, device="mixed"), size=(64, 64))
        pipe.set_outputs(fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(seed=3)))
    return pipe


def test_both_give_the_same_in_turns() -> None:
    pipes, current = [decoding(0), decoding(1)], cupy.cuda.Device().id
    for _ in range(4):
        first, second = (pipe.run()[0] for pipe in pipes)
        assert (first.device_id(), second.device_id()) == (0, 1)
        np.testing.assert_array_equal(first.as_cpu().as_array(), second.as_cpu().as_array())
    assert cupy.cuda.Device().id == current


@pytest.mark.parametrize("current", [0, 1])
def test_batches_of_another_device_than_the_current_one(current: int) -> None:
    other = 1 - current
    pipe = decoding(other)
    with cupy.cuda.Device(current):
        (batch,) = pipe.run()
        scattered = TensorListGPU([batch[k].array for k in range(len(batch))], contiguous=False)
        copied = TensorListGPU([batch[k].array for k in range(len(batch))])
        assert copied.device_id() == scattered.device_id() == batch._make_copy().device_id() == other
        expected = batch.as_cpu().as_array()
        np.testing.assert_array_equal(copied.as_cpu().as_array(), expected)
        target = np.empty(expected.shape, np.float32)
        scattered.copy_to_external(target.ctypes.data)
        np.testing.assert_array_equal(target, expected)


@pytest.mark.filterwarnings("ignore:Please set `reader_name`")
def test_a_torch_iterator_over_both() -> None:
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    expected = decoding(0).run()[0].as_cpu().as_array()
    for step, batches in enumerate(DALIGenericIterator([decoding(0), decoding(1)], ["image"], size=6 * 2 * 10)):
        assert [batch["image"].device for batch in batches] == [torch.device("cuda", 0), torch.device("cuda", 1)]
        first, second = (batch["image"].cpu().numpy() for batch in batches)
        np.testing.assert_array_equal(first, second)
        if step == 0:
            np.testing.assert_array_equal(first, expected)


def test_a_jax_iterator_of_each() -> None:
    pytest.importorskip("jax")
    from penstock.plugin.jax import DALIGenericIterator

    arrays: list[Any] = []
    for device_id in (0, 1):
        batch = next(iter(DALIGenericIterator(decoding(device_id), ["image"])))
        assert {device.id for device in batch["image"].devices()} == {device_id}
        arrays.append(np.asarray(batch["image"]))
    np.testing.assert_array_equal(*arrays)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_torchrun_takes_a_gpu_for_each_process(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    check_torchrun(tmp_path)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_jax_processes_that_see_one_gpu_each(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    check_jax_distributed(tmp_path, [{"CUDA_VISIBLE_DEVICES": str(number)} for number in range(2)])


MESHES = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
process = int(sys.argv[2])
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=process, local_device_ids=[process])
from penstock import fn, types
from penstock.plugin.jax import data_iterator

def numbers(shard_id, num_shards):
    values = fn.external_source(
        lambda sample: np.full(3, 100 * shard_id + sample.idx_in_epoch, np.float32), batch=False, dtype=types.FLOAT
    )
    return values.gpu()

def batches(mesh):
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    iterator = data_iterator(numbers, output_map=["value"], size=4, sharding=sharding)(batch_size=4, seed=3)
    batch = next(iter(iterator))["value"]
    assert batch.shape == (4, 3) and batch.sharding == sharding
    (own,) = batch.addressable_shards
    assert own.device.local_hardware_id == process == iterator._pipes[0].device_id
    total = int(jax.jit(lambda value: value[:, 0].sum())(batch))
    return [int(value) for value in np.asarray(own.data)[:, 0]], total

devices = np.array(jax.devices())
assert len(devices) == 2
print("seen", batches(Mesh(devices, ("data",))), batches(Mesh(devices[::-1].reshape(2, 1), ("data", "model"))))
print("copied", batches(Mesh(devices.reshape(1, 2), ("data", "model"))))
"""


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_jax_processes_that_see_both_gpus_and_use_one(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "meshes.py").write_text(MESHES)
    address = free_address()
    commands = [[str(tmp_path / "meshes.py"), address, str(number)] for number in range(2)]
    told = run_together(commands, [{}] * 2)
    shards = [[0, 1], [100, 101]]
    for process, text in enumerate(told):
        # Shards along one dimension; along two dimensions, with the devices in reverse order; and whole copies for both devices.
        assert f"seen {(shards[process], 202)} {(shards[1 - process], 202)}" in text, text
        assert f"copied {([0, 1, 2, 3], 6)}" in text, text
