"""Ranges of ``fn.random.uniform`` that differ between samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types


@pytest.mark.parametrize("dtype", [types.FLOAT, types.INT32])
def test_each_sample_has_its_own_range(dtype: types.DALIDataType) -> None:
    ranges = [np.array([start, start + 5], np.float32) for start in (0, 100, -40)]

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, seed=1)
    def pipeline() -> Any:
        bounds = fn.external_source(lambda: ranges)
        return fn.random.uniform(range=bounds, shape=[50], dtype=dtype), fn.random.uniform(range=bounds, dtype=dtype)

    for batch in pipeline().run():
        for sample, (low, high) in zip(map(np.asarray, batch), ranges, strict=True):
            assert low <= sample.min() <= sample.max() <= high
