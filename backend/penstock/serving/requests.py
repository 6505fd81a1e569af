"""Requests: from their tensors to batches, and from batches to the tensors of answers."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.tensors.tensor import device_view
from penstock.tensors.transfers import array_to_host


class RequestError(ValueError):
    """A request is invalid."""


class Request(Protocol):
    """A request to a model, however it was received."""

    @property
    def id(self) -> str:
        """The client's name for the request, or empty."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters sent with the request: strings, numbers and booleans by name."""

    @property
    def wanted(self) -> Collection[str]:
        """The names of the requested outputs."""

    def tensor(self, name: str) -> object:
        """Return the array of an input (byte strings as objects, or as :class:`ByteStrings`); None if the request omits it."""

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> np.ndarray | None:
        """Return memory of the answer for an output, uninitialized, to be written and then passed as the output; None if there is none."""

    def trace(self) -> int:
        """Return the address of Triton's trace of the request; 0: it is not traced, or not known here."""

    def is_cancelled(self) -> bool:
        """Return whether the answer is no longer wanted."""


class ByteStrings(list[np.ndarray]):
    """The byte strings of a tensor in order, as arrays.

    Attributes:
        shape: the tensor's shape.
    """

    shape: tuple[int, ...]


@dataclass(frozen=True)
class InputSpec:
    """How to convert an input's tensors to samples.

    Attributes:
        name: the input's name.
        is_bytes: whether elements are byte strings. Each is a sample, unless samples have several dimensions: the last one then holds the
            bytes of each string.
        dtype: the elements' dtype, if known.
        ndim: a sample's number of dimensions, if the pipeline declares it.
        layout: a sample's layout, or empty.
        optional: whether a request may omit it.
        default: the sample used then, or None.
        repeats: whether the samples of the last request with the input may be used then.
        multi_run: whether a sample may last for several runs of the pipeline, like a video returned in sequences.
        is_control: whether it is a control of Triton's sequence batcher, one value for all samples of a request.
        max_bytes: the largest size of a sample of several strings, in bytes, if limited.
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
    is_control: bool = False
    max_bytes: int | None = None


def samples_of(tensor: Any, spec: InputSpec) -> list[object]:
    """Return the samples of one request's tensor, as views of its memory.

    Args:
        tensor: an array of shape (samples, ...), on the CPU or GPU; byte strings also as a list of ``bytes`` or of
            arrays, which has a shape if a sample has several.
        spec: the input's spec.

    Raises:
        RequestError: the tensor is not a batch of such samples.
    """
    if spec.is_bytes:
        items = tensor if isinstance(tensor, list) else tensor.reshape(-1)
        strings = [_bytes_of(item, spec.name) for item in items]
        return list(strings) if spec.ndim in (None, 1) else _padded_samples(strings, tensor.shape, spec)
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


def _padded_samples(strings: Sequence[np.ndarray], shape: Sequence[int], spec: InputSpec) -> list[object]:
    """Return samples of several strings each, of shape (..., bytes): shorter strings are padded with zeros.

    Args:
        strings: the strings of all samples.
        shape: the tensor's shape, with samples first.
        spec: the input's spec.

    Raises:
        RequestError: the rank is wrong, or a sample would become too large.
    """
    if len(shape) != spec.ndim:
        raise RequestError(
            f"input '{spec.name}' has shape {list(shape)}: expected a batch of samples with {(spec.ndim or 0) - 1} dimensions of strings"
        )
    per_sample = math.prod(shape[1:])
    samples = list[object]()
    for first in range(0, len(strings), per_sample or 1):
        row_strings = strings[first : first + per_sample]
        length = max(1, *(string.size for string in row_strings))
        if spec.max_bytes is not None and per_sample * length > spec.max_bytes:
            raise RequestError(
                f"input '{spec.name}': {per_sample} strings, padded to {length} bytes like the longest, are more than the limit of "
                f"{spec.max_bytes} bytes"
            )
        rows = np.zeros((per_sample, length), np.uint8)
        for row, string in zip(rows, row_strings):
            row[: string.size] = string
        samples.append(rows.reshape(*shape[1:], length))
    return samples


def sample_of(value: object, spec: InputSpec) -> np.ndarray:
    """Return a sample from a plain value: a number, a list of numbers, or a string.

    A string is the sample itself if the input takes bytes, otherwise JSON: Triton's parameters have no lists.

    Raises:
        ValueError: the value is not a sample of this input.
    """
    sample = _checked_value(value, spec)
    if spec.ndim is not None and sample.ndim < spec.ndim:
        sample = sample.reshape((1,) * (spec.ndim - sample.ndim) + sample.shape)
    if spec.ndim is not None and sample.ndim != spec.ndim:
        raise ValueError(f"input '{spec.name}' takes samples with {spec.ndim} dimensions, not {value!r}")
    return sample


def _checked_value(value: object, spec: InputSpec) -> np.ndarray:
    dtype = None if spec.dtype is None else np.dtype(spec.dtype)
    if isinstance(value, str):
        parsed = np.frombuffer(value.encode(), np.uint8) if dtype in (None, np.uint8) else np.array(json.loads(value))
    else:
        parsed = np.array(value)
    dtype = dtype or parsed.dtype
    fits = parsed.dtype.kind in "biuf"
    sample = parsed.astype(dtype) if fits else parsed
    if not fits or (dtype.kind in "biu" and not np.array_equal(sample, parsed)):
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
    """Return all requests' samples of one input as a batch that shares their memory; on the CPU if any of them is there."""
    on_cpu = [isinstance(sample, np.ndarray) for sample in samples]
    if not any(on_cpu):
        return TensorListGPU.of_samples([device_view(sample) for sample in samples], spec.layout)
    gathered = [sample if here else array_to_host(sample) for sample, here in zip(samples, on_cpu)]
    return TensorListCPU.of_samples(gathered, spec.layout)


@dataclass(frozen=True)
class OutputSpec:
    """How to convert an output of the pipeline to a response's tensor.

    Attributes:
        name: the name that clients see.
        is_bytes: whether each sample, a row of bytes, becomes one byte string. A sample with more dimensions becomes one string per row,
            without the zeros at its end.
        split: whether the slices of a sample along its outer dimension become samples.
        ndim: the tensor's number of dimensions, by which scalars with a dimension are recognized.
        dims: the dimensions of a sample, as configured, for outputs without samples.
    """

    name: str
    is_bytes: bool = False
    split: bool = False
    ndim: int = 2
    dims: tuple[int, ...] = ()


class OutputParts:
    """An output of a batch, which is cut into its requests' parts.

    Args:
        batch: the output.
        spec: the output's spec.
    """

    def __init__(self, batch: TensorList, spec: OutputSpec) -> None:
        self._batch, self._spec = batch, spec

    def of(self, start: int, stop: int) -> Any:
        """Return the samples from ``start`` to ``stop``, or the parts made of them, as one array, with a leading dimension for
        them; without a copy if possible.

        Raises:
            RequestError: their shapes differ.
        """
        batch, spec = self._batch, self._spec
        start, stop = batch.made_of(start, stop)
        if start == stop:
            return _no_parts(batch, spec)
        if spec.is_bytes:
            if batch.ndim() > 1:
                return _strings_of_rows(batch, start, stop, spec)
            values = [np.asarray(sample).tobytes() for sample in batch.samples[start:stop]]
            return np.array(values, dtype=np.object_).reshape(-1, *[1] * (spec.ndim - 1))
        if self._stacked is not None:
            return self._stacked[start:stop]
        shape = shape_of_part(batch.shapes[start:stop], spec)
        return _concatenated(batch, start, stop).reshape(shape)

    @functools.cached_property
    def _stacked(self) -> Any:
        """All samples as one array, if they are equal in shape and contiguous in memory, and no part is split."""
        batch, spec = self._batch, self._spec
        if spec.split or batch.elements is None or not batch.is_dense_tensor():
            return None
        sample = shape_of_part(batch.shapes[:1], spec)[1:]
        return batch.elements.reshape(len(batch), *sample)


def _strings_of_rows(batch: TensorList, start: int, stop: int, spec: OutputSpec) -> np.ndarray:
    """Return the strings of samples that are rows of bytes, without the zeros at their ends."""
    shapes = [shape[:-1] for shape in batch.shapes[start:stop]]
    rows = [
        np.asarray(sample).reshape(math.prod(shape[:-1]), shape[-1])
        for sample, shape in zip(batch.samples[start:stop], batch.shapes[start:stop])
    ]
    values = [row.tobytes().rstrip(b"\0") for sample in rows for row in sample]
    strings = np.empty(len(values), np.object_)
    strings[:] = values
    return strings.reshape(shape_of_part(shapes, spec))


def shape_of_part(shapes: Sequence[tuple[int, ...]], spec: OutputSpec) -> tuple[int, ...]:
    """Return the shape of a tensor with samples of these shapes.

    Raises:
        RequestError: the shapes differ.
    """
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
    return (sum(lengths), *shapes[0]) if shapes[0] or spec.ndim != 2 else (sum(lengths), 1)


def _no_parts(batch: TensorList, spec: OutputSpec) -> np.ndarray:
    """Return the empty tensor of samples without parts, on the CPU, as there is no memory to share."""
    if spec.is_bytes:
        return np.empty((0, *[1] * (spec.ndim - 1)), np.object_)
    # In an empty array, a variable extent may have any value.
    extents = [max(extent, 0) for extent in spec.dims]
    return np.empty((0, *extents), numpy_dtype(batch.dtype))


def _concatenated(batch: TensorList, start: int, stop: int) -> Any:
    """Return the elements of the samples from ``start`` to ``stop``, concatenated."""
    samples = batch.samples[start:stop]
    if stop - start == 1:
        return samples[0]
    elements = batch.elements
    if elements is not None:
        # The samples are contiguous: find where the first begins.
        begin = sum(math.prod(shape) for shape in batch.shapes[:start])
        return elements[begin : begin + sum(math.prod(shape) for shape in batch.shapes[start:stop])]
    if isinstance(batch, TensorListCPU):
        return np.concatenate([sample.reshape(-1) for sample in samples])
    return joined_on_gpu([sample.reshape(-1) for sample in samples])


def joined_on_gpu(arrays: Sequence[Any]) -> Any:
    """Return the concatenation of CuPy arrays; wait until it is complete, as answers are copied on other streams."""
    cupy = require_cupy()
    with arrays[0].device:
        joined = cupy.concatenate(arrays)
        cupy.cuda.get_current_stream().synchronize()
    return joined
