"""`decoders.inflate`: decompresses LZ4 blocks to arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from penstock.data_types import NUMBER_TYPES, UINT8, dtype_name, numpy_dtype
from penstock.operators.decoders._examples import lz4_blocks
from penstock.schema import (
    Alias,
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example
from penstock.schema.libraries import LZ4
from penstock.schema.tolerance import ON_ERROR
from penstock.tensors import TensorListCPU, TensorListGPU


@dataclass(frozen=True)
class _Chunks:
    """The compressed blocks of a sample.

    Attributes:
        starts, sizes: the offset and the number of bytes of each block.
        inflated: the number of bytes of each block when decompressed.
    """

    starts: list[int]
    sizes: list[int]
    inflated: int


@register_operator
class Inflate(Operator[None, _Chunks]):
    """Decompresses LZ4 blocks (without frames) to arrays of a known shape.

    A sample is one block or, with ``chunk_offsets`` or ``chunk_sizes``, a sequence of blocks of equal shape, which are stacked along a
    new first dimension. Data on the GPU is decompressed on the CPU, too.

    >>> frames = fn.decoders.inflate(packed, shape=[480, 640], layout="HW", chunk_sizes=sizes)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Inflate",
        devices=("cpu", "gpu"),
        needs=(LZ4,),
        inputs=(Input("input", device="match_or_cpu", doc="LZ4 blocks: uint8 of shape (n,).", example=lz4_blocks),),
        arguments=(
            Argument("algorithm", "string", "LZ4", "The compression: LZ4.", choices=("LZ4",)),
            ON_ERROR,
            Argument(
                "check_output_size",
                "bool",
                False,
                "Reject blocks that decompress to less than `shape`, instead of padding them with zeros.",
            ),
            Argument(
                "chunk_offsets",
                "int32[]",
                None,
                "Start of each block; by default they are contiguous.",
                tensor=True,
            ),
            Argument(
                "chunk_sizes",
                "int32[]",
                None,
                "Size of each block, in bytes; by default up to the next one.",
                tensor=True,
                exempt="the sizes are those of the samples",
            ),
            Argument("dtype", "DALIDataType", UINT8, "Type of the output."),
            Argument("layout", "layout", "", "Layout of a decompressed block.", example="HWC"),
            Argument(
                "sequence_axis_name",
                "layout",
                "F",
                "Letter of the dimension that the blocks of a sample form.",
                example="D",
            ),
            Argument(
                "shape",
                "int32[]",
                None,
                "Shape of a decompressed block.",
                required=True,
                tensor=True,
                example=[10, 20, 3],
            ),
        ),
        aliases=(Alias("experimental__Inflate", "2.0"),),
        examples=(Example(), Example({"chunk_offsets": [0]})),
        equivalents=(Equivalent("lz4.block.decompress"),),
    )

    def setup(self) -> None:
        if self.args["algorithm"].upper() != "LZ4":
            raise ValueError(f"Unknown inflate algorithm '{self.args['algorithm']}': use LZ4")
        if len(self.args["sequence_axis_name"]) != 1:
            name = self.args["sequence_axis_name"]
            raise ValueError(f'The `sequence_axis_name` must be a single character, got "{name}"')
        if self.args["dtype"] not in NUMBER_TYPES:
            raise ValueError(
                f"The inflate output type must have floating point or integral type, got {self.args['dtype']!r}"
            )
        self._sequence = self.given("chunk_offsets") or self.given("chunk_sizes")

    def describe(self, workspace: Workspace[None, _Chunks]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise ValueError(
                f"Compressed data must be bytes (uint8). Got tensor of type `{dtype_name(batch.dtype)}` instead."
            )
        if len(batch) and batch.ndim() != 1:
            raise ValueError(
                f"Compressed data must have one dimension. Got input with {batch.ndim()} dimensions instead."
            )
        layout = self.args["layout"]
        if layout and self._sequence:
            layout = self.args["sequence_axis_name"] + layout
        return [OutputSpec(self.args["dtype"], layout)]

    def infer(self, sample: Sample[None, _Chunks]) -> list[tuple[int, ...]]:
        shape_argument = sample.tensor_argument("shape")
        if shape_argument is not None and shape_argument.ndim > 1:
            raise ValueError(
                f"The shape argument must be a scalar or a 1D tensor, got {shape_argument.ndim} dimensions"
            )
        shape = tuple(sample["shape"])
        if any(extent < 0 for extent in shape):
            raise ValueError(f"The shape of an inflated block must not be negative, got {shape}")
        available = math.prod(sample.shapes[0])
        starts, sizes = self._spans(sample, available)
        inflated = math.prod(shape) * numpy_dtype(self.args["dtype"]).itemsize
        sample.workspace.decoding.limits.check_bytes(len(starts) * inflated, "The sample")
        sample.plan = _Chunks(starts, sizes, inflated)
        return [(len(starts), *shape) if self._sequence else shape]

    def _spans(self, sample: Sample[None, _Chunks], available: int) -> tuple[list[int], list[int]]:
        offsets = list(sample["chunk_offsets"]) if sample.given("chunk_offsets") else None
        sizes = list(sample["chunk_sizes"]) if sample.given("chunk_sizes") else None
        if offsets is None and sizes is None:
            return [0], [available]
        where = f"for sample of idx {sample.index}"
        if sizes is not None:
            _check_sizes(sizes, available, where)
        if offsets is not None:
            _check_offsets(offsets, available, where)
        if offsets is None:
            assert sizes is not None
            if sum(sizes) > available:
                raise ValueError(f"The sum of chunk sizes {where} exceeds the total size of the sample.")
            return [0, *accumulate(sizes)][:-1], sizes
        if sizes is None:
            sizes = [end - start for start, end in zip(offsets, [*offsets[1:], available])]
            if any(size <= 0 for size in sizes):
                raise ValueError(f"The inferred size of a chunk would be non-positive {where}: {sizes}")
        if len(offsets) != len(sizes):
            raise ValueError(
                f"Chunks need as many offsets as sizes, but {where} there are {len(offsets)} offsets and {len(sizes)} sizes"
            )
        if any(start + size > available for start, size in zip(offsets, sizes)):
            raise ValueError(f"Input chunk cannot exceed the sample size, which is {available} {where}")
        return offsets, sizes

    def compute(self, sample: Sample[None, _Chunks]) -> None:
        packed = np.ascontiguousarray(sample.inputs[0]).reshape(-1)
        _inflate(packed, sample.plan, sample.outputs[0], self.args["check_output_size"])

    def compute_batch(self, workspace: Workspace[None, _Chunks]) -> None:
        (output,) = workspace.outputs
        compressed = workspace.inputs[0].as_cpu().samples
        host = TensorListCPU.allocate(output.shapes, output.dtype, output.layout())

        def task(position: int) -> None:
            sample = workspace.samples[position]
            if sample is None:
                return
            try:
                packed = compressed[position].reshape(-1)
                _inflate(packed, sample.plan, host.samples[position], self.args["check_output_size"])
            except Exception as error:
                workspace.fail(position, error)

        workspace.parallel(task, workspace.batch_size, [math.prod(shape) for shape in output.shapes])
        workspace.outputs = [TensorListGPU.upload(host)]


def _check_sizes(sizes: Sequence[int], available: int, where: str) -> None:
    for size in sizes:
        if size <= 0:
            raise ValueError(f"Chunk sizes must be positive. Got chunk size {size} {where}")
        if size > available:
            raise ValueError(f"Input chunk size cannot exceed the sample size. Got {size} and {available} {where}")


def _check_offsets(offsets: Sequence[int], available: int, where: str) -> None:
    for offset in offsets:
        if offset < 0:
            raise ValueError(f"Input chunks offsets must be non-negative. Got chunk offset {offset} {where}")
        if offset >= available:
            raise ValueError(f"Got chunk offset {offset} while the sample size is {available} {where}")


def _inflate(compressed: np.ndarray, chunks: _Chunks, output: np.ndarray, exactly: bool) -> None:
    """Fill ``output`` with the decompressed blocks. Pad a block that is too short with zeros or, if ``exactly``, raise ValueError."""
    try:
        from lz4 import block
    except ImportError as error:
        raise ImportError("lz4 is needed to inflate: pip install lz4") from error

    target = output.reshape(-1).view(np.uint8)
    for number, (start, size) in enumerate(zip(chunks.starts, chunks.sizes)):
        try:
            data = block.decompress(compressed[start : start + size].data, uncompressed_size=chunks.inflated)
        except block.LZ4BlockError as error:
            raise ValueError(
                f"Block {number} ({size} bytes) does not inflate to {chunks.inflated} bytes: {error}"
            ) from error
        if exactly and len(data) != chunks.inflated:
            raise ValueError(f"Block {number} inflates to {len(data)} bytes, not to {chunks.inflated}")
        begin, end = number * chunks.inflated, (number + 1) * chunks.inflated
        target[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        target[begin + len(data) : end] = 0
