"""Presets with the usual sizes of models give the same results on GPU and CPU, bit for bit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tested_gpu

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from configurations import CONFIGURATIONS, FAMILIES, SMALL
from processors import backends_of, pictures
from test_presets_on_devices import check_equal

LARGE = [name for name in CONFIGURATIONS if name not in (*SMALL, *FAMILIES)]


@pytest.mark.every_case
@pytest.mark.parametrize("name", LARGE)
def test_a_gpu_gives_what_the_cpu_gives(name: str) -> None:
    # GLM-Image accepts sides of at least 28 pixels, and aspect ratios of at most 4 to 1.
    fair = (p for p in pictures(12, 900) if 4 * min(p.image.size) >= max(p.image.size) and min(p.image.size) >= 28)
    files = [picture.file for picture in fair]
    for backend in backends_of(name):
        check_equal(CONFIGURATIONS[name], files, backend=backend, device_id=tested_gpu.device(), num_threads=4)
