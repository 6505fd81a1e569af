"""JPEGs have the same pixels if the CPU has to decode them because the GPU has too little memory, or the GPU's engine
fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from broken_batches import saved
from short_memory import Decode, answers, check_same, cropped, normalized, whole

from penstock import types
from penstock.kernels.codecs import image_codec_gpu
from penstock.kernels.codecs.gpu import host_decoder
from penstock.kernels.codecs.nvimgcodec import on_gpu
from penstock.kernels.codecs.nvimgcodec.decoder import BatchDecoder, Decoded
from penstock.kernels.codecs.nvimgcodec.library import Backend, Share

RNG = np.random.default_rng(17)
ROUNDS = 12


def photographs() -> list[np.ndarray]:
    """Return photographs with the subsamplings 4:4:4, 4:2:2 and 4:2:0, some of them with odd sizes."""
    sizes = [(40, 56), (33, 71), (8, 9), (65, 32), (17, 18), (48, 48), (51, 3)]
    return [saved(height=height, width=width, subsampling=k % 3) for k, (height, width) in enumerate(sizes)]


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets an entry for each image that the CPU decodes in place of the GPU."""
    told: list[int] = []
    original = host_decoder.decode

    def noted(*how: Any) -> None:
        told.append(1)
        original(*how)

    monkeypatch.setattr(host_decoder, "decode", noted)
    return told


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(
    ("decode", "options"),
    [
        (whole, {}),
        (whole, {"output_type": types.BGR}),
        (whole, {"output_type": types.GRAY}),
        (cropped, {}),
        (normalized, {}),
    ],
)
def test_memory_that_is_not_there_at_times(
    decode: Decode, options: dict[str, Any], smooth: bool, monkeypatch: pytest.MonkeyPatch, on_the_cpu: list[int]
) -> None:
    monkeypatch.setattr(image_codec_gpu, "library", lambda: None)
    images = photographs()
    batches = [images[k % 7 :] + images[: k % 7] for k in range(ROUNDS)]
    expected = answers(decode, batches, 24, jpeg_fancy_upsampling=smooth, **options)
    assert not on_the_cpu
    cupy, random = sys.modules["cupy"], np.random.default_rng(17)

    def short(function: Callable[..., object]) -> Callable[..., object]:
        def at_times(*size: object) -> object:
            if random.random() < 0.3:
                raise MemoryError
            return function(*size)

        return at_times

    monkeypatch.setattr(cupy, "empty", short(cupy.empty))
    monkeypatch.setattr(cupy.cuda, "alloc", short(cupy.cuda.alloc))
    assert check_same(answers(decode, batches, 24, jpeg_fancy_upsampling=smooth, **options), expected)
    assert on_the_cpu


@pytest.mark.parametrize("smooth", [True, False])
def test_an_engine_that_fails_at_times(smooth: bool, monkeypatch: pytest.MonkeyPatch, on_the_cpu: list[int]) -> None:
    """nvImageCodec's CPU decoder is used in place of the engine."""

    def on_cpu(
        _device: int, threads: int, _first: object, _second: object, options: str, _leaves_baseline: bool
    ) -> BatchDecoder:
        return BatchDecoder(None, threads, [Share(Backend.CPU_ONLY)], options=options)

    monkeypatch.setattr(on_gpu, "BatchDecoder", on_cpu)
    batches = [photographs()] * ROUNDS
    options: dict[str, Any] = {"jpeg_fancy_upsampling": smooth, "hw_decoder_load": 1.0}
    expected = answers(whole, batches, 8, **options)
    assert not on_the_cpu
    original = Decoded.wait
    monkeypatch.setattr(Decoded, "wait", lambda self: [state * int(RNG.random() < 0.5) for state in original(self)])

    class NoPythonApi:
        """A decoder that decodes nothing."""

        def __init__(self, *_settings: object) -> None:
            pass

        def decode(self, images: Sequence[Any], *_how: object) -> list[None]:
            return [None] * len(images)

    monkeypatch.setattr(image_codec_gpu, "PythonApi", NoPythonApi)
    assert check_same(answers(whole, batches, 8, **options), expected) == ROUNDS
    assert on_the_cpu
