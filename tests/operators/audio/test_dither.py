"""`dither` adds the noise that PyTorch draws with the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import DataNode, fn, pipeline_def, types
from penstock.errors import OperatorError

# For counts of numbers: some positions, and the numbers at these positions of
# `torch.randn(count, generator=torch.Generator().manual_seed(count))` in PyTorch 2.14.1.
DRAWN = {
    3: (range(3), [0.8032760620117188, 0.17483338713645935, 0.08897809684276581]),
    16: (range(0, 16, 5), [-0.339642196893692, -0.07864610850811005, 1.4549826383590698, -1.1504848003387451]),
    # If a count above 16 is not a multiple of 16, PyTorch replaces the last 16 numbers by newly drawn ones.
    33: ([0, 16, 17, 32], [0.6013742089271545, -0.4414600133895874, 0.32042211294174194, -0.008887055329978466]),
}


def dithered(signal: np.ndarray, amount: float) -> np.ndarray:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> DataNode:
        return fn.dither(fn.external_source(name="signal", dtype=types.FLOAT, ndim=signal.ndim), amount=amount)

    (batch,) = pipeline().run(signal=[signal])
    return np.array(batch[0])


@pytest.mark.parametrize("count", DRAWN)
def test_noise_is_pytorch_s(count: int) -> None:
    places, expected = DRAWN[count]
    noise = dithered(np.zeros(count, np.float32), 1.0)
    np.testing.assert_allclose(noise[list(places)], expected, rtol=0, atol=1e-6)


def test_noise_is_added_and_the_same_each_time() -> None:
    signal = np.linspace(-1, 1, 700, dtype=np.float32)
    first, second = dithered(signal, 0.01), dithered(signal, 0.01)
    np.testing.assert_array_equal(first, second)
    assert 0.009 < (first - signal).std() < 0.011
    np.testing.assert_array_equal(dithered(signal, 0.0), signal)
    assert dithered(signal[:0], 0.01).shape == (0,)


@pytest.mark.parametrize(
    ("signal", "amount", "told"),
    [
        (np.zeros(5, np.float32), -1.0, "`amount` must not be negative"),
        (np.zeros((5, 2), np.float32), 0.1, "one dimension"),
    ],
)
def test_what_is_refused(signal: np.ndarray, amount: float, told: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=told):
        dithered(signal, amount)
