"""Iterators that return a pipeline's batches as PyTorch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from penstock.data_types import PipelineAPIType
from penstock.pipeline import Pipeline
from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.named_outputs import DataAndLabels, NamedOutputsIterator
from penstock.plugin.pytorch.tensors import Lender, from_host, lend
from penstock.tensors import TensorList


class _TorchIterator(NamedOutputsIterator):
    @cached_property
    def _lender(self) -> Lender:
        return Lender()

    def _share_outputs(self, pipe: Pipeline) -> tuple[TensorList, ...]:
        # PyTorch's current stream waits for the batch; the calling thread does not wait.
        stream = None if pipe.device_id is None else torch.cuda.current_stream(pipe.device_id)
        with pipe.running_through(PipelineAPIType.ITERATOR):
            return pipe.share_outputs(stream)

    def _data(self, pipe: Pipeline, name: str, batch: Any) -> object:
        return self._tensor(pipe, batch.as_tensor())

    def _first(self, count: int, data: Any) -> object:
        is_sparse = isinstance(data, torch.Tensor) and data.is_sparse
        return data.narrow_copy(0, 0, count) if is_sparse else data[:count]

    def _tensor(self, pipe: Pipeline, tensor: Any) -> torch.Tensor:
        if tensor.device_type == "cpu":
            return from_host(tensor.array)
        return lend(tensor.array, pipe.output_stream(), self._lender)


class DALIGenericIterator(_TorchIterator):
    """Returns batches as a list with one ``{name: torch.Tensor}`` for each pipeline.

    A tensor's first dimension is the batch. Tensors share the pipeline's memory, and remain valid as long as the program
    refers to them. Samples of one output must have equal shapes.

    Args: those of :class:`~penstock.plugin.named_outputs.NamedOutputsIterator`.

    >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="files")  # doctest: +SKIP
    >>> for batch in loader:  # doctest: +SKIP
    ...     images, labels = batch[0]["images"], batch[0]["labels"]
    """


class DALIClassificationIterator(DataAndLabels, DALIGenericIterator):
    """A :class:`DALIGenericIterator` whose two outputs are called ``data`` and ``label``."""


class DALIRaggedIterator(_TorchIterator):
    """A :class:`DALIGenericIterator` for outputs whose samples have different shapes.

    Args:
        output_types: the type of each output: ``DENSE_TAG``: a tensor of samples with equal shapes;
            ``SPARSE_LIST_TAG``: a list of the samples; ``SPARSE_COO_TAG``: a sparse tensor in coordinate format, whose
            rows are the samples, which must be one-dimensional. None: all are dense.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        if not set(output_types or ()) <= {self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG}:
            raise AssertionError("Only DENSE_TAG, SPARSE_LIST_TAG and SPARSE_COO_TAG are allowed")
        if output_types is None:
            output_types = [self.DENSE_TAG] * len(output_map)
        if len(output_types) < len(output_map):
            raise IndexError(f"`output_types` has {len(output_types)} entries for {len(output_map)} outputs")
        self._output_types = dict(zip(output_map, output_types))
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _data(self, pipe: Pipeline, name: str, batch: Any) -> object:
        kind = self._output_types[name]
        if kind == self.DENSE_TAG:
            return super()._data(pipe, name, batch)
        samples = [self._tensor(pipe, sample) for sample in batch]
        return samples if kind == self.SPARSE_LIST_TAG else _sparse(samples)


def _sparse(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a sparse tensor whose rows are these one-dimensional tensors."""
    values = torch.hstack(list(rows))
    columns = [torch.arange(len(row), device=values.device) for row in rows]
    numbers = [torch.full_like(column, index) for index, column in enumerate(columns)]
    size = (len(rows), max(map(len, rows), default=0))
    return torch.sparse_coo_tensor(
        torch.stack([torch.hstack(numbers), torch.hstack(columns)]), values, size, check_invariants=False
    )
