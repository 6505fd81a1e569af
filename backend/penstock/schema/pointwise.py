"""Operators of which each element of the output comes from the same element of the input, whatever is beside it."""

from __future__ import annotations

import numpy as np

from penstock.schema.operator import Operator, Sample


class PointwiseOperator(Operator):
    """The base of operators that can compute a part of a sample at a time, so that a chain of them runs piece by piece."""

    def is_pointwise(self) -> bool:
        """Whether its arguments leave it so, with one input."""
        return True

    def compute_elements(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        """Computes, on CPU, what :meth:`compute` gives for some elements: contiguous arrays of shape (n,).

        Args:
            sample: whose shapes are inferred; its data may not be there.
            source: of the input's type.
            target: of the output's type.
        """
        raise NotImplementedError(f"{type(self).__name__} does not compute element by element")
