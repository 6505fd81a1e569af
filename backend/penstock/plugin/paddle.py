"""Iterators that return a pipeline's batches as PaddlePaddle tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from penstock.pipeline import Pipeline
from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.named_outputs import DataAndLabels, NamedOutputsIterator

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "LastBatchPolicy", "feed_ndarray"]


class DALIGenericIterator(NamedOutputsIterator):
    """Returns batches as a list with one ``{name: paddle.Tensor}`` for each pipeline.

    A tensor's first dimension is the batch. Samples of an output must have equal shapes, unless the output is declared as
    ragged in the output map; then the batch is a list of tensors, one for each sample.

    Args:
        pipelines: a pipeline, or a list with one for each GPU, with equal batch sizes.
        output_map: names for the pipeline's outputs, in order. Instead of a name, an item may be a pair of a name and the number
            of dimensions in which samples may differ (0: none).

    The other arguments are those of :class:`~penstock.plugin.named_outputs.NamedOutputsIterator`.
    """

    def _names(self, output_map: Sequence[str | tuple[str, int]]) -> list[str]:
        entries = [(entry, 0) if isinstance(entry, str) else (entry[0], entry[1]) for entry in output_map]
        self._ragged = {name for name, levels in entries if levels}
        return [name for name, _ in entries]

    def _data(self, pipe: Pipeline, name: str, batch: Any) -> object:
        return [_tensor(sample) for sample in batch] if name in self._ragged else _tensor(batch.as_tensor())


class DALIClassificationIterator(DataAndLabels, DALIGenericIterator):
    """A :class:`DALIGenericIterator` whose two outputs are called ``data`` and ``label``."""


def feed_ndarray(dali_tensor: object, arr: paddle.Tensor) -> paddle.Tensor:
    """Copy a tensor of a pipeline, or a batch of samples of equal shapes, to ``arr``; return ``arr``.

    Raises:
        AssertionError: shapes or types differ.
    """
    if hasattr(dali_tensor, "as_tensor"):
        dali_tensor = dali_tensor.as_tensor()
    source = _tensor(dali_tensor)
    assert list(source.shape) == list(arr.shape), f"Shapes do not match: {source.shape} and {arr.shape}"
    assert source.dtype == arr.dtype, f"The element type is {source.dtype}, but the target's is {arr.dtype}"
    paddle.assign(source, output=arr)
    return arr


def _tensor(tensor: Any) -> paddle.Tensor:
    """Return a copy of a tensor: Paddle does not report when it no longer reads memory, so the pipeline's is not shared."""
    return paddle.to_tensor(np.asarray(tensor.as_cpu()), place=_place(tensor))


def _place(tensor: Any) -> paddle.CPUPlace | paddle.CUDAPlace:
    return paddle.CPUPlace() if tensor.device_type == "cpu" else paddle.CUDAPlace(int(tensor.array.device.id))
