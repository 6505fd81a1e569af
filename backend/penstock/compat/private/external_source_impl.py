"""Checks and conversions of the data of external sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.runtime.sources import Source, accepted_positional
from penstock.tensors import TensorCPU, TensorListCPU
from penstock.tensors.tensor import host_view

__all__ = [
    "accepted_arg_count",
    "assert_cpu_batch_data_type",
    "assert_cpu_sample_data_type",
    "batch_to_numpy",
    "get_callback_from_source",
    "sample_to_numpy",
]

_UNSUPPORTED = "Unsupported callback return type. Got: `{}`."


def accepted_arg_count(callable: Callable[..., object]) -> int:
    """Return the number of arguments that a source's callback takes: 0 or 1."""
    return accepted_positional(callable)


def get_callback_from_source(
    source: object, cycle: str | bool | None, batch_info: bool = False
) -> tuple[Callable[..., object], Source]:
    """Return a function that returns the data of a source, and an object that describes the source."""
    described = Source(source, cycle, batch_info=batch_info)
    return described.call, described


def assert_cpu_sample_data_type(sample: object, error_str: str = _UNSUPPORTED) -> bool:
    """Return True for an array in the host's memory; raise TypeError for anything else."""
    gives_data = isinstance(sample, (np.ndarray, TensorCPU)) or hasattr(sample, "__dlpack__")
    if not gives_data or hasattr(sample, "__cuda_array_interface__"):
        raise TypeError(error_str.format(type(sample)))
    return True


def assert_cpu_batch_data_type(batch: object, error_str: str = _UNSUPPORTED) -> bool:
    """Return True for a batch in the host's memory, as a list or as one array; raise TypeError for anything else."""
    if isinstance(batch, list):
        return all(assert_cpu_sample_data_type(sample, error_str) for sample in batch)
    return isinstance(batch, TensorListCPU) or assert_cpu_sample_data_type(batch, error_str)


def sample_to_numpy(sample: object, error_str: str = _UNSUPPORTED) -> np.ndarray:
    """Return a sample as a numpy array; raise TypeError unless it is an array in the host's memory."""
    assert_cpu_sample_data_type(sample, error_str)
    return host_view(sample)


def batch_to_numpy(
    batch: object,
    error_str: str = _UNSUPPORTED,
    non_uniform_str: str = "Uniform input is required (batch of tensors of equal shapes), got {}.",
) -> np.ndarray:
    """Return a batch as one numpy array.

    Raises:
        TypeError: the data is not a batch in the host's memory.
        ValueError: the samples differ in shape.
    """
    assert_cpu_batch_data_type(batch, error_str)
    if isinstance(batch, TensorListCPU):
        if not batch.is_dense_tensor():
            raise ValueError(non_uniform_str.format(batch))
        return batch.as_array()
    if not isinstance(batch, list):
        return host_view(batch)
    arrays = [sample_to_numpy(sample, error_str) for sample in batch]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError(non_uniform_str.format(batch))
    return np.stack(arrays)
