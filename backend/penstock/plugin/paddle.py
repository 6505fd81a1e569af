"""Iterators that give a pipeline's batches as PaddlePaddle tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from penstock.pipeline import Pipeline
from penstock.plugin.base_iterator import BaseIterator, LastBatchPolicy

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "LastBatchPolicy", "feed_ndarray"]

Batch = dict[str, Any]


class DALIGenericIterator(BaseIterator):
    """Gives batches as a list with one ``{name: paddle.Tensor}`` for each pipeline.

    Tensors have the batch as their first dimension. Samples of one output must be equal in shape, unless its entry of the output
    map says that they are ragged: then the batch is a list of tensors, one for each sample.

    Args:
        pipelines: one, or a list (one for each GPU), of equal batch size.
        output_map: names for the pipeline's outputs, in their order; or pairs of a name and the number of dimensions in which the
            samples differ (0: none).
        dynamic_shape: accepted and not needed: shapes may change from batch to batch.
        size, reader_name, auto_reset, fill_last_batch, last_batch_padded, last_batch_policy, prepare_first_batch: see
            :class:`~penstock.plugin.base_iterator.BaseIterator`.

    Raises:
        AssertionError, ValueError, RuntimeError: see there.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str | tuple[str, int]],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        entries = [(entry, 0) if isinstance(entry, str) else (entry[0], entry[1]) for entry in output_map]
        if len({name for name, _ in entries}) != len(entries):
            raise AssertionError("output_map names should be distinct")
        self.output_map = [name for name, _ in entries]
        self._ragged = {name for name, levels in entries if levels}
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _converted(self, outputs: list[tuple[Any, ...]]) -> list[Batch]:
        return [self._batch(pipe_outputs) for pipe_outputs in outputs]

    def _batch(self, outputs: tuple[Any, ...]) -> Batch:
        if len(outputs) < len(self.output_map):
            raise KeyError(self.output_map[len(outputs)])
        if len(outputs) > len(self.output_map):
            raise IndexError(
                f"`output_map` has {len(self.output_map)} names, and the pipeline {len(outputs)} outputs: one name is needed for each"
            )
        return {
            name: [_tensor(sample) for sample in batch] if name in self._ragged else _tensor(batch.as_tensor())
            for name, batch in zip(self.output_map, outputs)
        }

    def _trimmed(self, batch: list[Batch], kept: Sequence[int]) -> list[Batch]:
        return [{name: data[:count] for name, data in pipe_outputs.items()} for pipe_outputs, count in zip(batch, kept)]


class DALIClassificationIterator(DALIGenericIterator):
    """A :class:`DALIGenericIterator` whose two outputs are called ``data`` and ``label``."""

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )


def feed_ndarray(dali_tensor: Any, arr: paddle.Tensor) -> paddle.Tensor:
    """Copies a tensor of a pipeline (or a batch whose samples are equal in shape) into ``arr``, which it returns.

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
    """A copy: Paddle would not tell when it needs the pipeline's memory no more."""
    return paddle.to_tensor(np.asarray(tensor.as_cpu()), place=_place(tensor))


def _place(tensor: Any) -> Any:
    return paddle.CPUPlace() if tensor.device_type == "cpu" else paddle.CUDAPlace(int(tensor._array.device.id))
