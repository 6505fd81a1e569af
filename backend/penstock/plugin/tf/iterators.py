"""A pipeline's next batch as an operation of a graph: DALI's older interface, which data sets replace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from penstock.pipeline import Pipeline
from penstock.plugin.tf.datasets import Copies, as_declared, serialize_pipeline
from penstock.tensors import TensorList


def DALIIterator() -> Callable[..., list[Any]]:
    """Return the function :func:`DALIIteratorWrapper`."""
    return DALIIteratorWrapper


def DALIRawIterator() -> Callable[..., list[Any]]:
    """Return the function :func:`DALIIteratorWrapper`, which accepts saved pipelines, too."""
    return DALIIteratorWrapper


def DALIIteratorWrapper(
    pipeline: Pipeline | None = None,
    serialized_pipeline: bytes | None = None,
    sparse: Sequence[bool] = (),
    shapes: Sequence[Any] = (),
    dtypes: Sequence[tf.DType] = (),
    batch_size: int = -1,
    prefetch_queue_depth: int | dict[str, int] = 2,
    exec_dynamic: bool | None = None,
    *,
    num_threads: int = 2,
    device_id: int | None = -1,
    **ignored: object,
) -> list[object]:
    """Return tensors that, each time the graph that contains them runs, get the pipeline's next batch.

    Args:
        pipeline, serialized_pipeline: the pipeline, or the bytes of a saved one.
        sparse: whether each output is a `tf.SparseTensor` of samples that may differ in shape.
        shapes: the shapes of the outputs, with the batch dimension.
        dtypes: the types of the outputs.
        batch_size: the batch size; -1: the first extent of the first of ``shapes``.
        prefetch_queue_depth, num_threads, device_id: the settings of the copy of the pipeline that runs.
        exec_dynamic, ignored: without effect.

    Raises:
        ValueError: there are neither shapes nor a batch size, or there is no pipeline.
    """
    if not len(shapes) and batch_size == -1:
        raise ValueError(
            "shapes and batch_size arguments cannot be empty, please provide at leas one shape argument element with the BATCH "
            "size or set batch_size"
        )
    if serialized_pipeline is None:
        if pipeline is None:
            raise ValueError("A `pipeline` or a `serialized_pipeline` is needed")
        serialized_pipeline = serialize_pipeline(pipeline)
    if batch_size == -1:
        first = shapes[0]
        batch_size = first if isinstance(first, int) else first[0]
    depth = max(prefetch_queue_depth.values()) if isinstance(prefetch_queue_depth, dict) else prefetch_queue_depth
    wanted = [
        _Wanted(dtype, shapes[index] if index < len(shapes) else None, index < len(sparse) and bool(sparse[index]))
        for index, dtype in enumerate(dtypes)
    ]
    batches = Copies(serialized_pipeline, (), batch_size, num_threads, device_id, depth).batches()

    def next_batch() -> list[np.ndarray]:
        return [array for index, batch in enumerate(next(batches)) for array in wanted[index].arrays(batch, index)]

    types = [dtype for output in wanted for dtype in output.types]
    arrays = iter(tf.numpy_function(next_batch, [], types, stateful=True))
    return [output.tensor(arrays) for output in wanted]


class _Wanted:
    """The form in which an output is requested."""

    def __init__(self, dtype: tf.DType, shape: object, sparse: bool) -> None:
        self.types = [tf.int64, dtype, tf.int64] if sparse else [dtype]
        self._sparse = sparse
        self._spec = tf.TensorSpec(None if sparse or shape in (None, ()) else shape, dtype)

    def arrays(self, batch: TensorList, index: int) -> list[np.ndarray]:
        """Return the arrays that TensorFlow gets for a batch."""
        return _coordinates(batch) if self._sparse else [as_declared(batch, self._spec, index)]

    def tensor(self, arrays: Iterator[tf.Tensor]) -> tf.Tensor | tf.SparseTensor:
        """Return the tensor for this output, made from the next arrays of the iterator."""
        if self._sparse:
            indices, values, shape = itertools.islice(arrays, 3)
            return tf.SparseTensor(indices, values, shape)
        return tf.ensure_shape(next(arrays), self._spec.shape)


def _coordinates(batch: TensorList) -> list[np.ndarray]:
    """Return the coordinates of all values, the values, and the smallest shape that contains all samples."""
    samples = batch.as_cpu().samples
    where = [
        np.insert(np.indices(sample.shape, np.int64).reshape(sample.ndim, -1).T, 0, number, axis=1)
        for number, sample in enumerate(samples)
    ]
    shape = [len(samples), *(max(sizes) for sizes in zip(*(sample.shape for sample in samples)))]
    return [np.concatenate(where), np.concatenate([sample.ravel() for sample in samples]), np.array(shape, np.int64)]
