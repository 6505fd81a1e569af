"""A restored pipeline continues with exactly the same batches."""

from __future__ import annotations

import json
from pathlib import Path
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


def test_checkpoints_are_restored_only_where_they_can_be_made() -> None:
    def define() -> Any:
        return fn.random.uniform()

    settings: dict[str, Any] = {"batch_size": 1, "num_threads": 1, "device_id": None}
    checkpoint = pipeline_def(define, enable_checkpointing=True, **settings)().checkpoint()
    with pytest.raises(RuntimeError, match="Cannot restore checkpoint"):
        pipeline_def(define, checkpoint=checkpoint, **settings)().build()


def test_operators_from_outside_keep_a_pipeline_from_checkpoints() -> None:
    outside = fn.external_source(name="outside")
    pipe = pipeline_def(lambda node: node + 0, batch_size=1, num_threads=1, enable_checkpointing=True)(outside)
    with pytest.raises(RuntimeError, match=r"does not support checkpointing.*outside the pipeline.*outside"):
        pipe.build()


@pytest.mark.parametrize("source", [[np.int32([1])], lambda: np.int32([1])], ids=["iterable", "callback"])
def test_sources_whose_state_is_not_kept_warn(source: Any) -> None:
    pipe = pipeline_def(lambda: fn.external_source(source), batch_size=1, num_threads=1, enable_checkpointing=True)()
    with pytest.warns(UserWarning, match="doesn't capture state of such 'source'"):
        pipe.build()


def test_epochs_are_shuffled_from_the_list_as_in_dali(tmp_path: Path) -> None:
    files = [tmp_path / f"{i:02}.bin" for i in range(11)]
    for i, file in enumerate(files):
        file.write_bytes(bytes([i]))

    def define() -> Any:
        return fn.readers.file(files=[str(file) for file in files], shuffle_after_epoch=True)[0]

    pipe = pipeline_def(define, batch_size=11, num_threads=1, device_id=None, enable_checkpointing=True)()
    # Recorded from DALI 2.4.0.
    assert [pipe.run()[0].as_array().ravel().tolist() for _ in range(3)] == [
        [8, 2, 7, 6, 3, 5, 9, 1, 10, 0, 4],
        [9, 1, 5, 3, 7, 6, 0, 8, 4, 2, 10],
        [6, 8, 4, 1, 9, 0, 3, 7, 10, 5, 2],
    ]
