"""CIE L*a*b* on the GPU equals OpenCV's bit for bit."""

from __future__ import annotations

import cupy_like as xp
import numpy as np

from penstock.kernels.cpu.opencv import opencv
from penstock.operators.image._lab_cuda import from_lab, to_lab

RNG = np.random.default_rng(0)
SHAPES = [(300, 400, 3), (0, 5, 3), (1, 7, 3)]


def test_forth_and_back() -> None:
    cv2 = opencv()
    images = [RNG.integers(0, 256, shape, np.uint8) for shape in SHAPES]
    for convert, code in ((to_lab, cv2.COLOR_RGB2LAB), (from_lab, cv2.COLOR_LAB2RGB)):
        targets = [xp.empty(shape) for shape in SHAPES]
        convert([(xp.put(image), target) for image, target in zip(images, targets)])
        for image, target in zip(images, targets):
            if image.size:
                np.testing.assert_array_equal(target, cv2.cvtColor(image, code))
