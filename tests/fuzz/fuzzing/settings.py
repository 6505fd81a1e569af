"""Decoding settings of the fuzzed pipelines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.pipeline import Pipeline


@dataclass(frozen=True)
class Settings:
    """Arguments of :class:`penstock.pipeline.Pipeline`, by the same names."""

    isolate_decoders: str = "auto"
    max_pixels: int | None = 1 << 20
    max_bytes: int | None = 1 << 25
    max_frames: int | None = 1 << 20


def pipeline_with(settings: Settings, batch_size: int, define: Callable[[], Any]) -> Pipeline:
    """Return a built pipeline with a server's settings."""
    pipeline = Pipeline(
        batch_size=batch_size,
        num_threads=1,
        device_id=None,
        seed=1,
        prefetch_queue_depth=1,
        exec_async=False,
        exec_pipelined=False,
        **vars(settings),
    )
    with pipeline:
        outputs = define()
        pipeline.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    pipeline.build()
    return pipeline
