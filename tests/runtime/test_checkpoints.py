"""A restored pipeline continues with exactly the batches that the first would have given."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def
from penstock.errors import SerializationError, UnsupportedVersionError


@pipeline_def(batch_size=3, num_threads=2, enable_checkpointing=True)
def example() -> Any:
    count = fn.external_source(lambda info: np.float32(info.idx_in_epoch), batch=False)
    return count + fn.random.uniform(), fn.random.normal(shape=[2]), fn.batch_permutation()


def outputs(pipeline: Pipeline) -> list[np.ndarray]:
    return [np.array(batch.as_array()) for batch in pipeline.run()]


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.parametrize("batches", [0, 1, 5])
def test_continues_mid_epoch(seed: int | None, batches: int) -> None:
    first = example(seed=seed)
    for _ in range(batches):
        first.run()
    checkpoint = first.checkpoint()
    second = example(seed=seed, checkpoint=checkpoint)
    for _ in range(4):
        for a, b in zip(outputs(first), outputs(second)):
            assert np.array_equal(a, b)
    assert second.is_restored_from_checkpoint


def test_checkpoints_must_be_enabled() -> None:
    with pytest.raises(RuntimeError, match="enable_checkpointing"):
        example(enable_checkpointing=False).checkpoint()


@pytest.mark.parametrize("data", ["", "{}", '{"format": "penstock-checkpoint", "version": 1}', b"\xff\xff"])
def test_what_is_no_checkpoint_is_refused(data: Any) -> None:
    with pytest.raises((SerializationError, UnicodeDecodeError)):
        example(checkpoint=data).build()


def test_checkpoints_of_other_pipelines_and_versions_are_refused() -> None:
    @pipeline_def(batch_size=3, num_threads=1, enable_checkpointing=True)
    def other() -> Any:
        return fn.random.coin_flip()

    with pytest.raises(SerializationError, match="another pipeline"):
        example(checkpoint=other().checkpoint()).build()
    document = json.loads(example().checkpoint())
    with pytest.raises(UnsupportedVersionError, match="upgrade"):
        example(checkpoint=json.dumps(document | {"version": 99})).build()
