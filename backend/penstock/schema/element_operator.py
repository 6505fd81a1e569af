"""The base class of elementwise operators whose CPU and GPU kernels read a record of parameters for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.core.chains import StageKind, StageRecords, array_part, compute_part
from penstock.data_types import DALIDataType, dtype_name, numpy_dtype
from penstock.kernels.cpu.callables import Kernel
from penstock.kernels.cuda.structs import Struct, layout_of
from penstock.schema.outputs import OutputSpec, Shape
from penstock.schema.plans import PlanColumns
from penstock.schema.pointwise import PointwiseOperator
from penstock.schema.samples import Samples
from penstock.schema.workspace import Sample, Workspace


@dataclass(eq=False)
class RecordRows(PlanColumns[np.ndarray]):
    """The records of many samples.

    Attributes:
        records: a structured array with an element for each sample.
    """

    records: np.ndarray

    def __len__(self) -> int:
        return len(self.records)

    def row(self, number: int) -> np.ndarray:
        return self.records[number : number + 1]


class ElementOperator(PointwiseOperator[None, np.ndarray, RecordRows]):
    """Base class of operators whose output elements depend only on the same input element and on a record of the sample.

    The output has the shape, type and layout of the input.

    Attributes:
        types: the accepted types of elements.
        record: the class that declares the record's fields, for the array as well as for both kernels.
        cpu: the CPU kernel. Its parameters are a pointer to the record, the addresses of the elements to read and to write, their number,
            and a value of the input's and of the output's type (:mod:`penstock.kernels.cpu.parts`).
        cuda: the body of the GPU kernel: C++ statements that return a ``Result`` computed from ``value`` and ``record``.
    """

    types: ClassVar[tuple[DALIDataType, ...]]
    record: ClassVar[Struct]
    cpu: ClassVar[Kernel]
    cuda: ClassVar[str]

    described_by_kind = True
    launches = True
    shares_plans_in_chains = True
    repeats_plans = True

    def fill(self, samples: Samples[None, np.ndarray, RecordRows], records: np.ndarray) -> None:
        """Fill in the records of samples from their arguments; all records are zeros at first.

        Raises:
            ValueError: an argument is out of range.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `fill`")

    def describe(self, workspace: Workspace[None, np.ndarray, RecordRows]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in self.types:
            names = ", ".join(map(dtype_name, self.types))
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}. Supported are: {names}")
        return [OutputSpec(batch.dtype, self.input_layout(workspace), batch.ndim())]

    def infer_batch(self, samples: Samples[None, np.ndarray, RecordRows]) -> tuple[list[list[Shape]], RecordRows]:
        records = np.zeros(len(samples), layout_of(self.record).dtype)
        self.fill(samples, records)
        return [samples.shape_list()], RecordRows(records)

    def stage_records(self, workspace: Workspace[None, np.ndarray, RecordRows]) -> StageRecords:
        batch = workspace.inputs[0]
        return self._stage_records(workspace.plans.records, batch.shape_array(), numpy_dtype(batch.dtype))

    def _stage_records(self, records: np.ndarray, shapes: np.ndarray, dtype: np.dtype) -> StageRecords:
        from penstock.kernels.cpu.parts import RUN, address_of

        kernel = address_of(self.cpu, records.dtype, RUN, dtype, dtype)
        return StageRecords(StageKind.POINTWISE, records, shapes, dtype.itemsize, compute=kernel)

    def compute(self, sample: Sample[None, np.ndarray]) -> None:
        self.compute_elements(sample, np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0].reshape(-1))

    def compute_elements(self, sample: Sample[None, np.ndarray], source: np.ndarray, target: np.ndarray) -> None:
        if target.size:
            stage = self._stage_records(sample.plan, np.array([target.shape]), target.dtype)
            compute_part(stage, array_part(source, (0,)), array_part(target, (0,)))

    def compute_batch(self, workspace: Workspace[None, np.ndarray, RecordRows]) -> None:
        from penstock.kernels.cuda.elements import apply_records
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        apply_records(self.record, self.cuda, workspace.plans.records, sources, targets)
