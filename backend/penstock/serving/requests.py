"""Converts the tensors of requests to batches, and batches to the tensors of answers."""

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
    """Raised if a request is invalid."""


class Request(Protocol):
    """A request to a model, independent of how it was received."""

    @property
    def id(self) -> str:
        """The client's name for the request; an empty string if it has none."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The request's parameters by name: strings, numbers and booleans."""

    @property
    def wanted(self) -> Collection[str]:
        """The names of the requested outputs."""

    def tensor(self, name: str) -> object:
        """Return an input as an array (byte strings as an array of objects, or as :class:`ByteStrings`); None if the request omits it."""

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> np.ndarray | None:
        """Return uninitialized memory of the answer for an output; write to it, and pass it as the output. None if it
        cannot be reserved.
        """

    def trace(self) -> int:
        """Return the address of Triton's trace of the request; 0: it is not traced, or the trace is unknown."""

    def is_cancelled(self) -> bool:
        """Return whether the request was cancelled."""


class ByteStrings(list[np.ndarray]):
    """The byte strings of a tensor in order, as arrays.

    Attributes:
        shape: the shape of the tensor.
    """

    shape: tuple[int, ...]


@dataclass(frozen=True)
class InputSpec:
    """Specifies how to convert the tensors of an input to samples.

    Attributes:
        name: the input's name.
        is_bytes: whether elements are byte strings. Each string is a sample, unless samples have several dimensions, the last of which
            then contains the bytes of each string.
        dtype: the type of the elements, if known.
        ndim: the number of dimensions of a sample, if the pipeline declares it.
        layout: the layout of a sample; an empty string if unknown.
        optional: whether a request may omit the input.
        default: the sample that is used if a request omits the input, or None.
        repeats: whether the samples of the last request that had the input may be used if a request omits it.
        multi_run: whether a sample may last for several runs of the pipeline, such as a video that is returned in sequences.
        is_control: whether the input is a control of Triton's sequence batcher, with one value for all samples of a request.
        max_bytes: the largest size in bytes of a sample with several strings; None: no limit.
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
    """Return the samples in a request's tensor, as views of the tensor's memory.

    Args:
            tensor: an array of shape (samples, ...), on the CPU or GPU. Byte strings may also be a list of ``bytes`` or of
                arrays; if a sample consists of several strings, the list must have the attribute ``shape``.
        spec: the specification of the input.

    Raises:
        RequestError: the tensor is not a batch of samples of this input.
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
    """Return samples that each consist of several strings, of shape (..., bytes); shorter strings are padded with zeros.

    Args:
        strings: the strings of all samples.
        shape: the shape of the tensor; the first extent is the number of samples.
        spec: the specification of the input.

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
    """Convert a plain value to a sample: a number, a list of numbers, or a string.

    A string is the sample itself if the input takes bytes; otherwise it is JSON, because Triton's parameters cannot be lists.

    Raises:
        ValueError: the value cannot be converted to a sample of this input.
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
    """Return samples of an input as a batch that shares their memory, on the GPU if all samples are on the GPU; otherwise on the CPU."""
    on_cpu = [isinstance(sample, np.ndarray) for sample in samples]
    if not any(on_cpu):
        return TensorListGPU.of_samples([device_view(sample) for sample in samples], spec.layout)
    gathered = [sample if here else array_to_host(sample) for sample, here in zip(samples, on_cpu)]
    return TensorListCPU.of_samples(gathered, spec.layout)


@dataclass(frozen=True)
class OutputSpec:
    """Specifies how to convert an output of the pipeline to a tensor of a response.

    Attributes:
        name: the name that clients see.
        is_bytes: whether the output becomes byte strings: a sample with one dimension becomes one string; a sample with more dimensions,
            one string for each row, without the zeros at its end.
        split: whether the slices of a sample along its outer dimension become samples.
        ndim: the tensor's number of dimensions; if it is 2, samples that are scalars get a dimension of extent 1.
        dims: the configured dimensions of a sample, for outputs without samples.
    """

    name: str
    is_bytes: bool = False
    split: bool = False
    ndim: int = 2
    dims: tuple[int, ...] = ()


class OutputParts:
    """An output of a batch, from which the parts for each request are taken.

    Args:
        batch: the output.
        spec: the specification of the output.
    """

    def __init__(self, batch: TensorList, spec: OutputSpec) -> None:
        self._batch, self._spec = batch, spec

    def of(self, start: int, stop: int) -> Any:
        """Return the samples from ``start`` to ``stop``, exclusive, or the parts made from them, as one array whose first dimension
        is the samples or parts; without a copy if possible.

        Raises:
            RequestError: the samples differ in shape.
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
        """All samples as one array; None unless they have equal shapes, are contiguous in memory, and are not split."""
        batch, spec = self._batch, self._spec
        if spec.split or batch.elements is None or not batch.is_dense_tensor():
            return None
        sample = shape_of_part(batch.shapes[:1], spec)[1:]
        return batch.elements.reshape(len(batch), *sample)


def _strings_of_rows(batch: TensorList, start: int, stop: int, spec: OutputSpec) -> np.ndarray:
    """Return each row of bytes in the samples as a string, without the zeros at its end."""
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
    """Return an empty tensor for samples without parts; on the CPU, as there is no memory to share."""
    if spec.is_bytes:
        return np.empty((0, *[1] * (spec.ndim - 1)), np.object_)
    # In an empty array, variable extents may have any value.
    extents = [max(extent, 0) for extent in spec.dims]
    return np.empty((0, *extents), numpy_dtype(batch.dtype))


def _concatenated(batch: TensorList, start: int, stop: int) -> Any:
    """Return the elements of the samples from ``start`` to ``stop``, exclusive, as one array."""
    samples = batch.samples[start:stop]
    if stop - start == 1:
        return samples[0]
    elements = batch.elements
    if elements is not None:
        # The samples are contiguous: compute the position at which the first one begins.
        begin = sum(math.prod(shape) for shape in batch.shapes[:start])
        return elements[begin : begin + sum(math.prod(shape) for shape in batch.shapes[start:stop])]
    if isinstance(batch, TensorListCPU):
        return np.concatenate([sample.reshape(-1) for sample in samples])
    return joined_on_gpu([sample.reshape(-1) for sample in samples])


def joined_on_gpu(arrays: Sequence[Any]) -> Any:
    """Concatenate CuPy arrays; wait until this is done, because answers are copied on other streams."""
    cupy = require_cupy()
    with arrays[0].device:
        joined = cupy.concatenate(arrays)
        cupy.cuda.get_current_stream().synchronize()
    return joined
