"""Ray Data: runs a pipeline as a stage of a data set's plan, on all machines of a Ray cluster.

>>> images = ray.data.read_binary_files("s3://bucket/photos", include_paths=True)  # doctest: +SKIP
>>> prepared = map_pipeline(  # doctest: +SKIP
...     images, preprocess, inputs={"encoded": "bytes"}, outputs=["pixels"], batch_size=64, concurrency=4
... )
>>> prepared.drop_columns(["bytes"]).write_parquet("s3://bucket/prepared")  # doctest: +SKIP
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.pipeline import Pipeline
from penstock.tensors import TensorList

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["map_pipeline"]

# One array for each column, with the values of all rows.
Columns = dict[str, np.ndarray]


def map_pipeline(
    dataset: Dataset,
    pipeline: Callable[..., Pipeline] | Pipeline | str | Path,
    *,
    inputs: Mapping[str, str],
    outputs: Sequence[str],
    batch_size: int = 64,
    concurrency: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    num_gpus: float = 0,
    **settings: object,
) -> Dataset:
    """Run a pipeline on each row and add its outputs as columns; rows keep their order and their other columns.

    The pipeline runs in actors, each of which builds it once. If an actor dies, Ray repeats the actor's batch, so each row appears
    exactly once; random numbers, and which rows share a batch, may then differ.

    Args:
        dataset: the dataset to process.
        pipeline: a function decorated with ``@pipeline_def``, a pipeline, or the path of a pipeline saved with
            ``Pipeline.save`` or ``serialize``. Each actor makes a separate pipeline from it.
        inputs: the column that feeds each external source of the pipeline, by the source's name. A column contains bytes, or
            arrays, which may differ in shape from row to row.
        outputs: the names of the columns for the pipeline's outputs, in order. If samples of an output differ in shape, each row
            of the column contains a separate array.
        batch_size: the number of rows that are processed together.
        concurrency: the number of actors, or a pair of the smallest and the largest number.
        num_cpus, num_gpus: the resources of each actor; with GPUs the pipeline's ``device_id`` is 0.
        settings: the pipeline's settings. With ``on_error="skip"``, rows that cannot be read are dropped.

    Raises:
        ValueError: ``inputs`` or ``outputs`` is empty, or the batch size is not positive.

    If a batch fails, ``ray.data`` raises its error, which names the position of the row in the batch.
    """
    if not inputs or not outputs:
        raise ValueError("Name the pipeline's inputs, each with a column, and its outputs")
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive, got {batch_size}")
    pipeline_settings = {
        "batch_size": batch_size,
        "num_threads": max(math.ceil(num_cpus), 1),
        "device_id": 0 if num_gpus else None,
        "prefetch_queue_depth": 1,
        **settings,
    }
    return dataset.map_batches(
        _Stage,
        fn_constructor_args=(_as_sent(pipeline), dict(inputs), list(outputs), pipeline_settings),
        batch_size=batch_size,
        batch_format="numpy",
        zero_copy_batch=True,
        concurrency=concurrency,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )


def _as_sent(pipeline: Callable[..., Pipeline] | Pipeline | str | Path) -> Callable[..., Pipeline] | bytes:
    """Return a pipeline in the form that is sent to actors: the function that makes it, or its saved bytes."""
    if isinstance(pipeline, Pipeline):
        return pipeline.serialize()
    return Path(pipeline).read_bytes() if isinstance(pipeline, (str, Path)) else pipeline


class _Stage:
    """A pipeline in an actor."""

    def __init__(
        self,
        source: Callable[..., Pipeline] | bytes,
        inputs: Mapping[str, str],
        outputs: Sequence[str],
        settings: Mapping[str, object],
    ) -> None:
        self._inputs, self._outputs = inputs, outputs
        if not isinstance(source, bytes):
            self._pipeline = source(**settings)
        elif source.lstrip()[:1] == b"{":
            from penstock.serialize.readable_format import from_text

            self._pipeline = from_text(source.decode(), Pipeline, overrides=dict(settings))
        else:
            from penstock.serialize.dali_format import from_wire

            self._pipeline = from_wire(source, Pipeline, dict(settings))
        self._pipeline.build()

    def __call__(self, rows: Columns) -> Columns:
        count = len(next(iter(rows.values())))
        for column in self._inputs.values():
            if column not in rows:
                raise KeyError(f"There is no column '{column}', only {', '.join(rows)}")
        skipped = self._pipeline.skipped
        before = skipped.count
        made = self._pipeline.run(**{name: list(map(_sample, rows[column])) for name, column in self._inputs.items()})
        if len(made) != len(self._outputs):
            raise ValueError(
                f"The pipeline has {len(made)} outputs, but {len(self._outputs)} columns are named for them"
            )
        recent = list(skipped)[-(skipped.count - before) :] if skipped.count > before else []
        left_out = {sample.sample for sample in recent if not sample.replaced}
        retained = [row for row in range(count) if row not in left_out]
        columns = rows if len(retained) == count else {name: values[retained] for name, values in rows.items()}
        return {**columns, **{name: _column(batch) for name, batch in zip(self._outputs, made)}}


def _sample(value: object) -> np.ndarray:
    """Return a row's value as a sample."""
    return np.frombuffer(value, np.uint8) if isinstance(value, (bytes, bytearray)) else np.asarray(value)


def _column(batch: TensorList) -> np.ndarray:
    """Return the samples of an output as one array; if they differ in shape, as an array of arrays."""
    host = batch.as_cpu()
    samples = host.samples
    if len({sample.shape for sample in samples}) <= 1:
        # Without a copy: the memory is not reused as long as Ray refers to it.
        return host.stacked()
    column = np.empty(len(samples), object)
    column[:] = [sample.copy() for sample in samples]
    return column
