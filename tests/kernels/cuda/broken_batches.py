"""Runs many batches with images that cannot be decoded, and checks the errors, the pixels of the other images, and the retained memory.

Tests use this with a real GPU (`tests/gpu`) and with an emulated one.
"""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from penstock import fn, pipeline_def

BATCHES = 1000
MOST_PIXELS = 300 * 300
# Memory is measured after `_AT_FIRST` batches, and then after every `_WINDOW` batches: a leak grows in each window, other memory only once.
_AT_FIRST, _WINDOW = 300, 100
_KEPT_BY_HOST, _KEPT_BY_GPU = 128 << 10, 1 << 20


def saved(kind: str = "JPEG", height: int = 40, width: int = 56, **options: Any) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([128 + 100 * np.sin(x / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _turned() -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(exif=exif)


def good() -> list[np.ndarray]:
    """Return images that can be decoded; for some of them, decoders other than the GPU's JPEG engine are needed."""
    jpegs = [saved(height=30 + 5 * k, width=50 + 7 * k, quality=70 + 5 * k) for k in range(4)]
    return [*jpegs, saved(subsampling=0), saved(progressive=True), _turned(), saved("PNG"), saved("BMP")]


def _changed(place: bytes, offset: int, values: Sequence[int]) -> np.ndarray:
    """Return a JPEG with other bytes at an offset from a marker."""
    image = saved().copy()
    first = image.tobytes().find(place) + offset
    image[first : first + len(values)] = values
    return image


def _half(image: np.ndarray) -> np.ndarray:
    return image[: len(image) // 2]


_FRAME, _CODES = b"\xff\xc0", b"\xff\xc4"


def broken() -> dict[str, np.ndarray]:
    """Return images, by name, that no decoder accepts or that exceed the pipeline's limit."""
    whole = saved()
    return {
        "cut in its tables": whole[:300],
        "cut in its pixels": whole[:-200],
        "progressive, cut": _half(saved(height=200, width=160, progressive=True)),
        "a PNG, cut": _half(saved("PNG")),
        "of twelve bits": _changed(_FRAME, 4, [12]),
        "lossless": _changed(_FRAME, 1, [0xC3]),
        "of 16k by 16k": _changed(_FRAME, 5, [0x3E, 0x80, 0x3E, 0x80]),
        "without pixels": _changed(_FRAME, 5, [0, 0, 0, 0]),
        "with impossible codes": _changed(_CODES, 4, [255] * 16),
        "beyond the limit": saved(height=301, width=300),
        "only a beginning": np.frombuffer(b"\xff\xd8\xff\xe0 no image", np.uint8),
        "zeros": np.zeros(50, np.uint8),
        "nothing": np.zeros(0, np.uint8),
    }


def mixtures(seed: int = 0) -> Iterator[list[str | int]]:
    """Yield endless batches, as indices of good images and names of broken ones: some batches are mixed, others have only broken images."""
    rng, names, count = np.random.default_rng(seed), list(broken()), len(good())
    step = 0
    while True:
        name = names[step % len(names)]
        if step % 7 == 6:
            yield [name, *rng.choice(names, 3).tolist()]
        else:
            batch: list[str | int] = rng.integers(0, count, rng.integers(2, 6)).tolist()
            batch.insert(len(batch) // 2, name)
            yield batch
        step += 1


def running(device_id: int, define: Callable[[Any], Any] = lambda images: images) -> Any:
    """Return a pipeline that decodes the input ``encoded`` on the GPU, with a limit on the number of pixels."""

    @pipeline_def(batch_size=8, num_threads=2, device_id=device_id, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return define(fn.decoders.image(fn.external_source(name="encoded"), device="mixed"))

    made: Any = pipeline()
    made.tighten_limits(MOST_PIXELS, None, None)
    made.build()
    return made


def _result_of(pipe: Any, encoded: list[np.ndarray]) -> Any:
    pipe.feed_input("encoded", encoded)
    return pipe.executor.run_once(isolate=True)


def check_broken_batches(device_id: int, gpu_memory: Callable[[], int], batches: int = BATCHES) -> None:
    """Run batches, and check the errors of broken images, the pixels of the other images, and the retained memory.

    Args:
        device_id: the number of the GPU.
        gpu_memory: function that returns how many bytes of GPU memory are in use.
        batches: the number of batches to run.
    """
    pipe, whole, bad = running(device_id), good(), broken()
    alone = [np.array(_result_of(pipe, [data]).outputs[0].as_cpu()[0]) for data in whole]
    kept: list[tuple[int, int]] = []
    for step, names in zip(range(batches), mixtures()):
        result = _result_of(pipe, [bad[name] if isinstance(name, str) else whole[name] for name in names])
        wrong = {place for place, name in enumerate(names) if isinstance(name, str)}
        assert set(result.failures) == wrong, names
        for place in wrong:
            error = result.failures[place]
            assert isinstance(error, ValueError), (names, error)
            assert f"sample #{place}" in str(error)
        images = result.outputs[0].as_cpu()
        for place, name in enumerate(names):
            if isinstance(name, int):
                np.testing.assert_array_equal(
                    np.array(images[place]), alone[name], f"image {name} of batch {step}: {names}"
                )
        if step >= _AT_FIRST and step % _WINDOW == 0:
            gc.collect()
            kept.append((resident_bytes(), gpu_memory()))
    pipe.close()
    growth = np.diff(kept, axis=0).min(0)
    assert growth[0] < _KEPT_BY_HOST, kept
    assert growth[1] < _KEPT_BY_GPU, kept


def resident_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
