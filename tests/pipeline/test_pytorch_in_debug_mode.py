"""In debug mode, batches can be PyTorch tensors."""

from __future__ import annotations

from typing import Any

import torch

from penstock import fn, types
from penstock.pipeline.experimental import pipeline_def


def test_tensors_are_batches() -> None:
    @pipeline_def(debug=True, batch_size=2, num_threads=1, device_id=None)
    def cast() -> Any:
        return fn.cast(torch.ones(2, 3), dtype=types.INT32)

    (output,) = cast().run()
    assert output.as_array().shape == (2, 3)
