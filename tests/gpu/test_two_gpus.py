"""Pipelines on two GPUs of one process, whichever GPU is current."""

from __future__ import annotations

import io
from typing import Any

import cupy
import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn
from penstock.tensors import TensorListGPU


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
