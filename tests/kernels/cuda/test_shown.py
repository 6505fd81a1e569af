"""How batches and operators on a GPU are displayed, in pictures and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import Pipeline, fn, types
from penstock.schema.fused import FusedOperator

IMAGES = [np.random.default_rng(0).integers(0, 255, (20 + i, 30, 3), np.uint8) for i in range(3)]


def resized(device: str) -> Pipeline:
    with Pipeline(batch_size=4, num_threads=1, device_id=0, prefetch_queue_depth=1) as pipe:
        images: Any = fn.external_source(name="images", layout="HWC")
        images = images.gpu() if device == "gpu" else images
        pipe.set_outputs(fn.crop_mirror_normalize(fn.resize(images, size=[10, 12]), dtype=types.FLOAT))
    return pipe


def test_batches_on_a_gpu_are_copied_to_be_shown() -> None:
    html = []
    for device in ("cpu", "gpu"):
        pipe = resized(device)
        (batch,) = pipe.run(images=IMAGES)
        html.append(batch._repr_html_().replace("TensorListGPU", "TensorListCPU"))
        assert batch.device_type == device, "looking at a batch leaves it where it is"
        assert batch[0]._repr_html_().count("<img") == 1
        pipe.close()
    assert html[0].count("<img") == 3
    assert html[0].partition("<img")[0] == html[1].partition("<img")[0]


def test_what_a_fused_operator_computes_is_counted_also_where_a_launch_is_repeated() -> None:
    pipe = resized("gpu")
    for _ in range(5):
        pipe.run(images=IMAGES)
    (fused,) = (s.operator for s in pipe.executor.plan.operators if isinstance(s.operator, FusedOperator))
    assert fused.take_counts() == {"fused": 15}
    assert not fused.counts
    pipe.close()
