"""Runs pipelines that decode on a GPU with enough memory and with too little, and compares the outputs.

Tests use this with a real GPU (`tests/gpu`) and with an emulated one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock import fn, pipeline_def


def cropped(images: Any, **options: Any) -> Any:
    return fn.decoders.image_crop(images, device="mixed", crop=(3, 3), crop_pos_x=0.3, crop_pos_y=0.9, **options)


def whole(images: Any, **options: Any) -> Any:
    return fn.decoders.image(images, device="mixed", **options)


def normalized(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(fn.resize(whole(images, **options), size=(20, 16)), mean=[120.0, 110.0, 100.0])


Decode = Callable[..., Any]


def answers(
    decode: Decode, batches: Sequence[list[np.ndarray]], batch_size: int, device_id: int = 0, **options: Any
) -> list[Any]:
    """Run batches; return the samples of each batch, or the MemoryError with which it failed."""

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=device_id, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return decode(fn.external_source(name="encoded"), **options)

    pipe: Any = pipeline()
    pipe.build()
    found: list[Any] = []
    for batch in batches:
        pipe.feed_input("encoded", batch)
        try:
            found.append([np.array(sample) for sample in pipe.run()[0].as_cpu()])
        except MemoryError as error:
            found.append(error)
    return found


def check_same(ours: list[Any], theirs: list[Any]) -> int:
    """Compare the outputs of the batches that did not fail in either run; return the number of these batches."""
    checked = 0
    for batch, expected in zip(ours, theirs, strict=True):
        if not isinstance(batch, MemoryError):
            checked += 1
            for sample, other in zip(batch, expected, strict=True):
                np.testing.assert_array_equal(sample, other)
    return checked
