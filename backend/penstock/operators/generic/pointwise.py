"""A chain of pointwise operators, computed block by block."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.schema import Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.fused import ComputeSample, FirstStepFailed, FusedOperator
from penstock.schema.image_chain import ChainOperator, NotFusable, launch_chain
from penstock.schema.pointwise import PointwiseOperator
from penstock.tensors import TensorList

_PIECE = 3 << 16
"""Elements per block; a multiple of 3, so that pixels of three channels are not split. Smaller blocks fit the caches better but take
more calls."""

_MIN_ELEMENTS_PER_BLOCK = 1 << 14
"""The chain is computed in blocks only if at least one sample of the batch has this many elements: otherwise that is slower."""


@register_operator
class Pointwise(FusedOperator):
    """Passes each block of a sample through all operators of the chain. Each operator rounds its results as it does without the chain."""

    schema = Schema(name="_fused__Pointwise", devices=("cpu",), fuses=(), fused_by="fuse_pointwise", hidden=True)

    def setup(self) -> None:
        self._local = threading.local()

    @classmethod
    def joins(cls, operator: Operator, is_first: bool) -> bool:
        return isinstance(operator, PointwiseOperator) and operator.is_pointwise()

    @classmethod
    def exceptions(cls, operators: Sequence[Operator]) -> tuple[str, ...]:
        return ("frames",) if any(operator.schema.sequences for operator in operators) else ()

    def check_input(self, batch: TensorList) -> None:
        if all(map(_is_small, batch.shapes)):
            raise NotFusable("small samples")

    def compute_together(self, steps: Sequence[Workspace]) -> tuple[Sequence[int], ComputeSample]:
        chained = [operator for operator in self.operators if isinstance(operator, ChainOperator) and operator.launches]
        if len(chained) == len(self.operators) and launch_chain(chained, steps):
            return range(0), self.compute_fused
        return super().compute_together(steps)

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        output = samples[-1].outputs[0]
        source = np.ascontiguousarray(samples[0].inputs[0]).reshape(-1)
        target = output.reshape(-1)
        types = [numpy_dtype(sample.workspace.inputs[0].dtype) for sample in samples[1:]]
        # Compute an empty sample, too: an operator may reject its constants whatever the data.
        for start in range(0, max(len(source), 1), _PIECE):
            piece = slice(start, start + _PIECE)
            between = [self._buffer(index % 2, min(_PIECE, len(source) - start), t) for index, t in enumerate(types)]
            arrays = [source[piece], *between, target[piece]]
            for position, sample in enumerate(samples):
                self._compute(position, sample, arrays[position], arrays[position + 1])

    def _compute(self, position: int, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        operator = self.operators[position]
        assert isinstance(operator, PointwiseOperator)
        try:
            operator.compute_elements(sample, source, target)
        except Exception as error:
            if position == 0:
                raise FirstStepFailed(error) from error
            raise

    def _buffer(self, which: int, size: int, dtype: np.dtype) -> np.ndarray:
        """Return ``size`` elements of one of this thread's two scratch buffers, which operators use by turns as input and output."""
        if not hasattr(self._local, "buffers"):
            self._local.buffers = np.empty((2, _PIECE * 8), np.uint8)
        buffer: np.ndarray = self._local.buffers[which]
        return buffer.view(dtype)[:size]


def _is_small(shape: Sequence[int]) -> bool:
    return prod(shape) < _MIN_ELEMENTS_PER_BLOCK
