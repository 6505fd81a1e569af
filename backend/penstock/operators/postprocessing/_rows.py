"""Base class of operators whose number of results depends on the data, such as the boxes after suppression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, FLOAT16, DALIDataType, dtype_name
from penstock.schema import Operator, PlanColumns, Sample, Samples, Workspace
from penstock.schema.operator import Shape
from penstock.tensors import TensorList, TensorListGPU

if TYPE_CHECKING:
    from typing import Self

Tables = tuple[np.ndarray, ...]


@dataclass(eq=False)
class Rows(PlanColumns[Tables]):
    """The results for many samples: for each output, a table with the rows of all samples, one sample after the other.

    Attributes:
        tables: each output's table, of shape (rows, ...).
        counts: number of rows of each sample in each output, int64 of shape (samples, outputs).
    """

    tables: list[np.ndarray]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def row(self, number: int) -> Tables:
        firsts, counts = self.counts[:number].sum(axis=0).tolist(), self.counts[number].tolist()
        return tuple(table[first : first + count] for table, first, count in zip(self.tables, firsts, counts))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        tables = [np.concatenate(own) for own in zip(*(part.tables for part in parts))]
        return cls(tables, np.concatenate([part.counts for part in parts]))

    def shapes(self) -> list[np.ndarray]:
        """Return the shapes of each output, int64 with a row for each sample."""
        shapes = [np.empty((len(self), table.ndim), np.int64) for table in self.tables]
        for rows, table, counts in zip(shapes, self.tables, self.counts.T):
            rows[:, 0], rows[:, 1:] = counts, table.shape[1:]
        return shapes


class RowsOperator(Operator[None, Tables, Rows]):
    """Base class of operators that compute results when a batch is planned, because shapes depend on them.

    :meth:`compute` only copies the results to the outputs.

    On a GPU, inputs are copied to the host and results back.
    """

    def run_batch(self, workspace: Workspace[None, Tables, Rows]) -> None:
        if workspace.device == "cpu":
            super().run_batch(workspace)
            return
        on_host = replace(workspace, inputs=[batch.as_cpu() for batch in workspace.inputs], device="cpu")
        super().run_batch(on_host)
        workspace.samples = on_host.samples
        host_outputs = self.schema.host_outputs
        workspace.outputs = [
            batch if number in host_outputs else TensorListGPU.upload(batch)
            for number, batch in enumerate(on_host.outputs)
        ]

    def compute_samples(self, workspace: Workspace[None, Tables, Rows], shapes: Sequence[Shape]) -> None:
        if workspace.failures or not all(batch.elements is not None for batch in workspace.outputs):
            super().compute_samples(workspace, shapes)
            return
        for batch, table in zip(workspace.outputs, workspace.plans.tables if workspace.batch_size else ()):
            batch.elements[:] = table.reshape(-1)

    def compute(self, sample: Sample[None, Tables]) -> None:
        for output, table in zip(sample.outputs, sample.plan):
            output[...] = table


def check_real(workspace: Workspace, number: int, name: str) -> None:
    """Raise RuntimeError unless input ``number`` is of type FLOAT or FLOAT16."""
    batch = workspace.inputs[number]
    if len(batch) and batch.dtype not in (FLOAT, FLOAT16):
        raise RuntimeError(f"`{name}` must be FLOAT or FLOAT16, got {dtype_name(batch.dtype)}")


def check_type(workspace: Workspace, number: int, name: str, dtype: DALIDataType) -> None:
    """Raise RuntimeError unless input ``number`` is of type ``dtype``."""
    batch = workspace.inputs[number]
    if len(batch) and batch.dtype != dtype:
        raise RuntimeError(f"`{name}` must be {dtype_name(dtype)}, got {dtype_name(batch.dtype)}")


def elements_of(samples: Samples, number: int, dtype: type[np.generic]) -> np.ndarray:
    """Return the elements of all samples of input ``number``, concatenated and converted to ``dtype``."""
    batch: TensorList = samples.workspace.inputs[number]
    if samples.are_all:
        elements = batch.contiguous_elements()
    else:
        elements = np.concatenate([np.ravel(array) for array in samples.of(batch.samples)])
    return np.ascontiguousarray(elements, dtype)


def firsts_of(counts: np.ndarray) -> np.ndarray:
    """Return the offset of each sample's elements, of which there are ``counts``, followed by the end of the last sample."""
    firsts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=firsts[1:])
    return firsts
