"""What a request is; from its tensors to batches, and from batches to the tensors of answers."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.tensor import device_view


class RequestError(ValueError):
    """A request is at fault."""


class Request(Protocol):
    """What a model is asked, whoever brings it."""

    @property
    def id(self) -> str:
        """The client's name for the request, or empty."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the client sent along: texts, numbers and booleans by name."""

    @property
    def wanted(self) -> Collection[str]:
        """The names of the outputs that are asked for."""

    def tensor(self, name: str) -> Any:
        """The array of an input (byte strings as objects, or as a list of arrays); None where the request leaves it out."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""


@dataclass(frozen=True)
class InputSpec:
    """How the tensors of one input become samples.

    Attributes:
        name: of the input.
        is_bytes: elements are byte strings, each of which is a sample.
        dtype: of the elements, where it is known.
        ndim: of a sample, where the pipeline declares it.
        layout: of a sample, or empty.
        optional: a request may leave it out.
        default: the sample to take then, or None.
        repeats: the samples of the last request that had the input may be taken then.
        multi_run: a sample may last for several runs of the pipeline, as a video does that is given in sequences.
    """

    name: str
    is_bytes: bool
    dtype: Any = None
    ndim: int | None = None
    layout: str = ""
    optional: bool = False
    default: Any = None
    repeats: bool = False
    multi_run: bool = False


def samples_of(tensor: Any, spec: InputSpec) -> list[Any]:
    """The samples of one request's tensor, as views of its memory.

    Args:
        tensor: an array of shape (samples, ...), on CPU or GPU; byte strings also as a list, of ``bytes`` or of arrays of them.
        spec: what it is.

    Raises:
        RequestError: it is no batch of such samples.
    """
    if spec.is_bytes:
        items = tensor if isinstance(tensor, list) else tensor.reshape(-1)
        return [_bytes_of(item, spec.name) for item in items]
    if tensor.ndim == 0:
        raise RequestError(f"input '{spec.name}' has no batch dimension")
    if spec.ndim == 0 and tensor.size == tensor.shape[0]:
        tensor = tensor.reshape(tensor.shape[0])
        return [tensor[i : i + 1].reshape(()) for i in range(tensor.shape[0])]
    if spec.ndim is not None and tensor.ndim != spec.ndim + 1:
        raise RequestError(
            f"input '{spec.name}' has shape {list(tensor.shape)}: expected a batch of samples with {spec.ndim} dimensions"
        )
    return list(tensor)


def sample_of(value: object, spec: InputSpec) -> np.ndarray:
    """One sample that is given as a plain value: a number, a list of numbers, or a text.

    A text is itself where the input takes bytes, else the JSON of a value: Triton knows no other parameters.

    Raises:
        ValueError: it is no sample of this input.
    """
    sample = _checked_value(value, spec)
    if spec.ndim is not None and sample.ndim < spec.ndim:
        sample = sample.reshape((1,) * (spec.ndim - sample.ndim) + sample.shape)
    if spec.ndim is not None and sample.ndim != spec.ndim:
        raise ValueError(f"input '{spec.name}' takes samples with {spec.ndim} dimensions, not {value!r}")
    return sample


def _checked_value(value: Any, spec: InputSpec) -> np.ndarray:
    dtype = None if spec.dtype is None else np.dtype(spec.dtype)
    if isinstance(value, str):
        given = np.frombuffer(value.encode(), np.uint8) if dtype in (None, np.uint8) else np.array(json.loads(value))
    else:
        given = np.array(value)
    dtype = dtype or given.dtype
    fits = given.dtype.kind in "biuf"
    sample = given.astype(dtype) if fits else given
    if not fits or (dtype.kind in "biu" and not np.array_equal(sample, given)):
        raise ValueError(f"input '{spec.name}' of type {dtype} cannot hold {value!r}")
    return sample


def _bytes_of(item: object, name: str) -> np.ndarray:
    if isinstance(item, np.ndarray):
        return item
    if isinstance(item, bytes):
        return np.frombuffer(item, np.uint8)
    if isinstance(item, str):
        return np.frombuffer(item.encode(), np.uint8)
    raise RequestError(f"input '{name}' holds a {type(item).__name__} where bytes are expected")


def to_batch(samples: Sequence[Any], spec: InputSpec) -> TensorList:
    """All requests' samples of one input as a batch that shares their memory; on CPU if some are there."""
    on_cpu = [isinstance(sample, np.ndarray) for sample in samples]
    if not any(on_cpu):
        return TensorListGPU.of_samples([device_view(sample) for sample in samples], spec.layout)
    gathered = [sample if here else sample.get() for sample, here in zip(samples, on_cpu)]
    return TensorListCPU.of_samples(gathered, spec.layout)


@dataclass(frozen=True)
class OutputSpec:
    """How one output of the pipeline becomes a response's tensor.

    Attributes:
        name: as clients call it.
        is_bytes: each sample, a row of bytes, becomes one element.
        split: the parts of a sample along its outer dimension become samples.
        ndim: of the tensor, which tells whether numbers have a dimension of their own.
    """

    name: str
    is_bytes: bool = False
    split: bool = False
    ndim: int = 2


def part_of(batch: TensorList, start: int, stop: int, spec: OutputSpec) -> Any:
    """The samples from ``start`` to ``stop`` as one array whose first dimension counts them; without a copy where possible.

    Raises:
        RequestError: their shapes differ.
    """
    shapes = batch.shapes[start:stop]
    if spec.is_bytes:
        values = [np.asarray(sample).tobytes() for sample in batch.samples[start:stop]]
        return np.array(values, dtype=np.object_).reshape(-1, *[1] * (spec.ndim - 1))
    if spec.split:
        if not shapes[0]:
            raise RequestError(
                f"the samples of output '{spec.name}' are numbers: there is no outer axis to split along"
            )
        lengths, shapes = [shape[0] for shape in shapes], [shape[1:] for shape in shapes]
    else:
        lengths = [1] * len(shapes)
    if any(shape != shapes[0] for shape in shapes):
        raise RequestError(
            f"the samples of this request have different shapes {sorted(set(shapes))} in output '{spec.name}', so they cannot "
            "be one tensor: send them in requests of one sample each, or pad or resize them in the pipeline"
        )
    array = _joined(batch, start, stop).reshape(sum(lengths), *shapes[0])
    return array.reshape(-1, 1) if array.ndim == 1 and spec.ndim == 2 else array


def _joined(batch: TensorList, start: int, stop: int) -> Any:
    """The elements of the samples from ``start`` to ``stop``, one sample behind the other."""
    samples = batch.samples[start:stop]
    if stop - start == 1:
        return samples[0]
    elements = batch.elements
    if elements is not None:
        # The samples lie one behind the other: find where the first begins.
        begin = sum(math.prod(shape) for shape in batch.shapes[:start])
        return elements[begin : begin + sum(math.prod(shape) for shape in batch.shapes[start:stop])]
    if isinstance(batch, TensorListCPU):
        return np.concatenate([sample.reshape(-1) for sample in samples])
    from penstock.tensors.cuda import require_cupy

    with samples[0].device:
        return require_cupy().concatenate([sample.reshape(-1) for sample in samples])
