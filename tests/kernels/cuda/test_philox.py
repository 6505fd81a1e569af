"""Random numbers on the GPU equal the CPU's, from any position in a stream; tests/operators/random compares short batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy_like as xp
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.kernels.cpu import distributions, noise, shots
from penstock.kernels.cuda.philox import Drawing, Sprinkling, draw_numbers, replace_by_shots, sprinkle
from penstock.kernels.random_streams import Stream, sample_stream

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (20, 30, 3), np.uint8)


def streams(start: int, count: int) -> list[Stream]:
    return [sample_stream(1 << 50, 7, index)._replace(start=np.uint64(start)) for index in range(count)]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4 * 2**33 + 3])
@pytest.mark.parametrize(("distribution", "dtype"), [("Uniform", np.float32), ("UniformDouble", np.float64)])
def test_draws_begin_anywhere(distribution: str, dtype: type, start: int) -> None:
    own = streams(start, 3)
    targets = [xp.empty((size,), dtype) for size in (5001, 0, 2)]
    step = 2.0**-32 if dtype == np.float32 else 2.0**-64
    draw_numbers(distribution, [Drawing(target, i, 0.0, step) for i, target in enumerate(targets)], own[0])
    fill: Callable[..., None] = distributions.fill_uniform if dtype == np.float32 else distributions.fill_uniform_double
    for target, stream in zip(targets, own):
        expected = np.empty(target.shape, dtype)
        fill(expected, *stream, dtype(0), np.nextafter(dtype(1), dtype(2)))
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("view", [(1, 4099, 3), (3, 1030, 1), (1, 1, 3), (2, 7, 5)])
def test_pixels_share_a_decision(view: tuple[int, int, int], start: int) -> None:
    source = RNG.integers(0, 256, view, np.uint8)
    target, (stream,) = xp.empty(view, np.uint8), streams(start, 1)
    sprinkle([Sprinkling(xp.put(source), target, 0, view, 0.5, 0.25, 255, 0)], stream)
    expected = np.empty(view, np.uint8)
    noise.sprinkle(expected, source, *stream, np.float32(0.5), np.float32(0.25), np.uint8(255), np.uint8(0))
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("start", range(4))
def test_shots_of_all_means(start: int) -> None:
    around = [0.01, 1, 11.9, 12, 12.5, 30, 511, 512.3, 1500, 1e7, 0, -3, np.nan, np.inf]
    source = np.repeat(np.float32(around), 300)
    RNG.shuffle(source)
    target, (stream,) = xp.empty(source.shape, np.float32), streams(start, 1)
    replace_by_shots([Drawing(target, 0, 1.0, source=xp.put(source))], stream)
    expected = np.empty_like(source)
    shots.replace_by_shots(expected, source, *stream, np.float32(1))
    np.testing.assert_array_equal(target, expected)


def _drawn(device: str) -> list[list[np.ndarray]]:
    images = [IMAGE] * 2

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def draws() -> Any:
        noisy = fn.noise.salt_and_pepper(
            fn.external_source(lambda: images, layout="HWC", batch=True, device=device), prob=0.4, seed=5
        )
        return noisy, fn.random.uniform(device=device, shape=3, seed=6), fn.random.uniform(noisy, device=device, seed=7)

    pipeline = draws()
    pipeline.build()
    batches = [pipeline.run() for _ in range(4)]
    found = [[np.asarray(sample) for output in batch for sample in output.as_cpu()] for batch in batches]
    pipeline.close()
    return found


def test_each_batch_has_numbers_of_its_own() -> None:
    on_gpu, expected = _drawn("gpu"), _drawn("cpu")
    for found, wanted in zip(on_gpu, expected):
        for one, other in zip(found, wanted):
            np.testing.assert_array_equal(one, other)
    assert not np.array_equal(on_gpu[2][2], on_gpu[3][2])


def test_what_is_launched_is_recorded() -> None:
    from penstock.kernels.cuda.philox import _run

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, seed=1)
    def noise() -> Any:
        images = fn.external_source(lambda: [IMAGE] * 2, layout="HWC", batch=True).gpu()
        return fn.noise.shot(images), fn.noise.gaussian(images), fn.jitter(images)

    worked_out: list[str] = []

    def counted(instance: str, *arguments: Any, **named: Any) -> None:
        worked_out.append(instance)
        _run(instance, *arguments, **named)

    pipeline = noise()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.kernels.cuda.philox._run", counted)
        for _ in range(4):
            pipeline.run()
    pipeline.close()
    # They are prepared once for the first batch, and once to record the launches for similar batches.
    assert len(worked_out) == 2 * 3


def test_a_bad_argument_fails_its_sample() -> None:
    pipeline = pipeline_def(
        lambda: fn.random.uniform(device="gpu", range=[3.0, 1.0]), batch_size=2, num_threads=1, device_id=0
    )()
    pipeline.build()
    with pytest.raises(RuntimeError, match="Invalid range"):
        pipeline.run()
    pipeline.close()
