"""Presets of models that resize all images alike give on a GPU what they give on the CPU, to the bit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tested_gpu

from penstock import fn, pipeline_def, types
from penstock.presets import Family, read_configuration

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from processors import CONFIGURATIONS, SMALL, backends_of, pictures

CHOSEN = [(name, backend) for name in SMALL for backend in backends_of(name)]


def processed(family: Family, backend: str, given: Sequence[np.ndarray], device_id: int | None) -> list[np.ndarray]:
    """All samples of all outputs."""

    @pipeline_def(batch_size=len(given), num_threads=2, device_id=device_id, prefetch_queue_depth=1)
    def pipeline() -> Any:
        images = fn.external_source(name="images", dtype=types.UINT8, layout="HWC")
        return family.process(images if device_id is None else images.gpu(), backend)

    running = pipeline()
    outputs = running.run(images=list(given))
    found = [np.array(sample) for batch in outputs for sample in batch.as_cpu()]
    running.close()
    return found


@pytest.mark.parametrize(("name", "backend"), CHOSEN)
def test_a_gpu_gives_what_the_cpu_gives(name: str, backend: str) -> None:
    family = read_configuration(CONFIGURATIONS[name])
    given = [np.asarray(picture.image) for picture in pictures(6, 90)]
    on_cpu = processed(family, backend, given, None)
    on_gpu = processed(family, backend, given, tested_gpu.device())
    assert len(on_gpu) == len(on_cpu) >= len(given)
    for ours, theirs in zip(on_gpu, on_cpu):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
