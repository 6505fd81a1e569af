"""The base class that the iterators of PyTorch and PaddlePaddle share: outputs of a pipeline as a dictionary by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.pipeline import Pipeline
from penstock.plugin.base_iterator import BaseIterator
from penstock.plugin.epochs import LastBatchPolicy

Batch = dict[str, Any]


class NamedOutputsIterator(BaseIterator):
    """Returns batches as a list with one ``{name: data}`` for each pipeline; subclasses convert the
    data.

    Args:
        pipelines: a pipeline, or a list with one for each GPU, with equal batch sizes.
        output_map: names for the pipeline's outputs, in order.
        dynamic_shape: ignored: shapes may always change from batch to batch.
        size, reader_name, auto_reset, fill_last_batch, last_batch_padded, last_batch_policy, prepare_first_batch: see
            :class:`~penstock.plugin.base_iterator.BaseIterator`.

    Raises:
        AssertionError, ValueError, RuntimeError: see that class.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[object],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        self.output_map = self._names(output_map)
        # Programs for DALI read the names from this attribute.
        self._output_categories = set(self.output_map)
        if len(set(self.output_map)) != len(self.output_map):
            raise AssertionError("output_map names should be distinct")
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

    # -- implemented by each framework -----------------------------------------------------------------------------

    def _names(self, output_map: Sequence[Any]) -> list[str]:
        """Return the names of the outputs; ``output_map`` is the user's argument."""
        return list(output_map)

    def _data(self, pipe: Pipeline, name: str, batch: object) -> object:
        """Convert one output of a pipeline."""
        raise NotImplementedError

    def _first(self, count: int, data: Any) -> object:
        """Return the first ``count`` samples of a converted output."""
        return data[:count]

    # -- shared by all frameworks ------------------------------------------------------------------------------------

    def _converted(self, outputs: list[tuple[object, ...]]) -> list[Batch]:
        return [self._batch(pipe, of_pipe) for pipe, of_pipe in zip(self._pipes, outputs)]

    def _batch(self, pipe: Pipeline, outputs: tuple[object, ...]) -> Batch:
        if len(outputs) < len(self.output_map):
            raise KeyError(self.output_map[len(outputs)])
        if len(outputs) > len(self.output_map):
            raise IndexError(
                f"`output_map` has {len(self.output_map)} names, and the pipeline {len(outputs)} outputs: one name is needed "
                "for each"
            )
        return {name: self._data(pipe, name, batch) for name, batch in zip(self.output_map, outputs)}

    def _trimmed(self, batch: list[Batch], rows: Sequence[int]) -> list[Batch]:
        return [
            {name: self._first(count, data) for name, data in of_pipe.items()} for of_pipe, count in zip(batch, rows)
        ]


class DataAndLabels(NamedOutputsIterator):
    """A mixin for iterators whose two outputs are called ``data`` and ``label``."""

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
