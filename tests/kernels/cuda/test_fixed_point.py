"""Resampling of bytes, and lookups, give the same results on GPU and CPU, bit for bit."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cpu.fixed_point import resample_image
from penstock.kernels.cpu.translucency import premultiplied, unmultiply
from penstock.kernels.cuda.fixed_point import BytesResampling, resample_bytes
from penstock.kernels.reference_filters import ReferenceAxis, ReferenceTaps, pil_taps, torch_taps
from penstock.operators.image._lookup_store import look_up as look_up_on_cpu
from penstock.operators.image._normalizing import table_of
from penstock.operators.image._rescale_normalize_cuda import look_up

RNG = np.random.default_rng(5)
SHAPES = [((40, 61, 3), (17, 29)), ((9, 7, 3), (31, 80)), ((70, 3, 3), (2, 40)), ((1, 1, 3), (5, 6))]


def _axis(library: str, size: int, outputs: int, name: str) -> ReferenceTaps:
    axis = ReferenceAxis(size, outputs, 0.0, size, name, True, True)
    return pil_taps(axis) if library == "pil" else torch_taps(axis)


@pytest.mark.every_case
@pytest.mark.parametrize("columns_first", [True, False])
@pytest.mark.parametrize(("library", "name"), [("pil", "bicubic"), ("pil", "box"), ("torchvision", "bilinear")])
def test_both_passes(library: str, name: str, columns_first: bool) -> None:
    jobs, expected = [], []
    for (height, width, channels), (h, w) in SHAPES:
        image, result = RNG.integers(0, 256, (height, width, channels), np.uint8), np.empty((h, w, channels), np.uint8)
        vertical, horizontal = _axis(library, height, h, name), _axis(library, width, w, name)
        resample_image(image, vertical, horizontal, result, columns_first)
        target = xp.empty((1, h, w, channels))
        jobs.append(BytesResampling(xp.put(image[None]), target, vertical, horizontal, columns_first))
        expected.append(result)
    resample_bytes([*jobs, BytesResampling(xp.empty((1, 0, 3, 3)), xp.empty((1, 0, 3, 3)), vertical, horizontal)])
    for job, result in zip(jobs, expected):
        np.testing.assert_array_equal(job.target[0], result)


@pytest.mark.parametrize("channels", [2, 4])
def test_translucent(channels: int) -> None:
    image, result = RNG.integers(0, 256, (30, 20, channels), np.uint8), np.empty((11, 33, channels), np.uint8)
    image[:9, :, -1] = 0
    vertical, horizontal = _axis("pil", 30, 11, "lanczos"), _axis("pil", 20, 33, "lanczos")
    resample_image(premultiplied(image), vertical, horizontal, result)
    unmultiply(result)
    job = BytesResampling(xp.put(image[None]), xp.empty((1, *result.shape)), vertical, horizontal, translucent=True)
    resample_bytes([job])
    np.testing.assert_array_equal(job.target[0], result)


NO_FACTORS = np.empty((0, 3), np.float32)


@pytest.mark.every_case
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("tables", [1, 3])
def test_lookups(planar: bool, tables: int) -> None:
    table = table_of("to_tensor", 255.0, [0.4, 0.5, 0.6][:tables], [0.2, 0.3, 0.25][:tables])
    frames = [RNG.integers(0, 256, shape, np.uint8) for shape in ((2, 5, 7, 3), (1, 300, 11, 3), (1, 0, 4, 3))]
    targets, expected = [], []
    order = (2, 0, 1) if planar else (0, 1, 2)
    for batch in frames:
        shape = (len(batch), *(batch.shape[1:][axis] for axis in order))
        results = np.empty(shape, np.float32)
        for frame, result in zip(batch, results):
            look_up_on_cpu(frame, table, result, order, NO_FACTORS)
        targets.append(xp.empty(shape, np.float32))
        expected.append(results)
    look_up([(xp.put(batch), target) for batch, target in zip(frames, targets)], table, planar)
    for target, results in zip(targets, expected):
        np.testing.assert_array_equal(target, results)
