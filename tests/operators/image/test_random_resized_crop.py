"""`random_resized_crop` returns the same bits for images, which one compiled call plans, as for sequences of one frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import results, typed

from penstock import fn, types

# A real GPU or, if there is none, an emulated one, for which kernels are compiled with g++.
pytestmark = pytest.mark.usefixtures("with_gpu")

CALLS: list[dict[str, Any]] = [
    {"size": [20, 14]},
    {"size": [-1, 30]},
    {"size": 24, "dtype": types.FLOAT, "antialias": False},
    {"size": [50, 70], "mag_filter": types.INTERP_CUBIC, "min_filter": types.INTERP_TRIANGULAR},
]


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("kind", ["uint8", "int16", "float"])
def test_images_and_frames_agree(kind: str, call: dict[str, Any]) -> None:
    def of_images(device: str) -> Any:
        return fn.random_resized_crop(typed(device, kind), seed=5, **call)

    def of_frames(device: str) -> Any:
        frames = fn.reshape(typed(device, kind), rel_shape=[-1, 1, 1, 1], src_dims=[-1, 0, 1, 2], layout="FHWC")
        return fn.random_resized_crop(frames, seed=5, **call)

    for image, (frame,) in zip(results(of_images, "gpu"), results(of_frames, "gpu"), strict=True):
        np.testing.assert_array_equal(image, frame)
