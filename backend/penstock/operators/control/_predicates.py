"""Predicates of conditionals."""

from __future__ import annotations

import numpy as np

from penstock.tensors import TensorListCPU


def truths(batch: TensorListCPU) -> list[bool]:
    """Return for each sample whether it is true or, if it is not a scalar, whether any of its elements is true."""
    elements = batch.elements
    if elements is not None and batch.ndim() == 0 and len(elements) == len(batch):
        return list(elements.astype(bool).tolist())
    return [bool(sample) if sample.ndim == 0 else bool(np.any(sample)) for sample in batch.samples]
