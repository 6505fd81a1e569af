"""From the tensors of Triton's requests to batches, and from batches to the tensors of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.tensor import device_view


class RequestError(ValueError):
    """A request is at fault."""


@dataclass(frozen=True)
class InputSpec:
    """How the tensors of one input become samples.

    Attributes:
        name: of the input.
        is_bytes: elements are byte strings, each of which is a sample.
        ndim: of a sample, where the pipeline declares it.
        layout: of a sample, or empty.
    """

    name: str
    is_bytes: bool
    ndim: int | None = None
    layout: str = ""


def samples_of(tensor: Any, spec: InputSpec) -> list[Any]:
    """The samples of one request's tensor, as views of its memory.

    Args:
        tensor: what Triton gives: an array of shape (batch, ...), on CPU or GPU.
        spec: what it is.
    """
    if spec.is_bytes:
        return [np.frombuffer(_as_bytes(item, spec.name), np.uint8) for item in tensor.reshape(-1)]
    if tensor.ndim == 0:
        raise RequestError(f"input '{spec.name}' has no batch dimension")
    if spec.ndim == 0:
        tensor = tensor.reshape(tensor.shape[0])
        return [tensor[i : i + 1].reshape(()) for i in range(tensor.shape[0])]
    if spec.ndim is not None and tensor.ndim != spec.ndim + 1:
        raise RequestError(
            f"input '{spec.name}' has shape {list(tensor.shape)}: expected a batch of samples with {spec.ndim} dimensions"
        )
    return list(tensor)


def _as_bytes(item: Any, name: str) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    raise RequestError(f"input '{name}' holds a {type(item).__name__} where bytes are expected")


def to_batch(samples: Sequence[Any], spec: InputSpec) -> TensorList:
    """All requests' samples of one input as a batch that shares their memory."""
    on_cpu = all(isinstance(sample, np.ndarray) for sample in samples)
    if on_cpu:
        return TensorListCPU.of_samples(samples, spec.layout)
    return TensorListGPU.of_samples([device_view(sample) for sample in samples], spec.layout)


@dataclass(frozen=True)
class OutputSpec:
    """How one output of the pipeline becomes a response's tensor.

    Attributes:
        name: as clients call it.
        is_bytes: each sample, a row of bytes, becomes one element.
        split: the outer dimension of a sample becomes part of the batch.
    """

    name: str
    is_bytes: bool = False
    split: bool = False


def part_of(batch: TensorList, start: int, stop: int, spec: OutputSpec) -> Any:
    """The samples from ``start`` to ``stop`` as one array with a leading batch dimension; without a copy where possible.

    Raises:
        RequestError: their shapes differ.
    """
    shapes = batch.shapes[start:stop]
    if spec.is_bytes:
        values = [np.asarray(sample).tobytes() for sample in batch.samples[start:stop]]
        return np.array(values, dtype=np.object_).reshape(-1, 1)
    if any(shape != shapes[0] for shape in shapes):
        raise RequestError(
            f"the samples of this request have different shapes {sorted(set(shapes))} in output '{spec.name}', so they cannot "
            "be one tensor: send them in requests of one sample each, or pad or resize them in the pipeline"
        )
    array = _rows(batch, start, stop)
    if spec.split:
        return array.reshape(-1, *array.shape[2:])
    return array.reshape(stop - start, 1) if not shapes[0] else array


def _rows(batch: TensorList, start: int, stop: int) -> Any:
    samples = batch.samples[start:stop]
    if stop - start == 1:
        return samples[0][None]
    elements = batch._elements
    if elements is not None:
        # The samples lie one behind the other: find where the first begins.
        begin = sum(int(np.prod(shape)) for shape in batch.shapes[:start])
        size = int(np.prod(batch.shapes[start]))
        return elements[begin : begin + size * (stop - start)].reshape(stop - start, *batch.shapes[start])
    if isinstance(batch, TensorListCPU):
        return np.stack(samples)
    from penstock.tensors.cuda import require_cupy

    return require_cupy().stack(samples)
