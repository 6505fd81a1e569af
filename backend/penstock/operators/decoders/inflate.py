"""`decoders.inflate`: arrays out of LZ4 blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from penstock.schema import Alias, Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.types import UINT8, dtype_name, numpy_dtype


@dataclass(frozen=True)
class _Chunks:
    """Where the blocks of a sample stand in its bytes, and the bytes that each of them inflates to."""

    starts: list[int]
    sizes: list[int]
    inflated: int


@register_operator
class Inflate(Operator):
    """Decompresses LZ4 blocks (without a frame around them) to arrays of a known shape.

    A sample is one block; or, with ``chunk_offsets`` or ``chunk_sizes``, a sequence of blocks of one shape each, which
    become the outermost dimension. The CPU decompresses, on the pool's threads, also for GPU data.

    >>> frames = fn.decoders.inflate(packed, shape=[480, 640], layout="HW", chunk_sizes=sizes)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Inflate",
        devices=("cpu", "gpu"),
        inputs=(Input("input", device="match_or_cpu", doc="LZ4 blocks: uint8 of shape (n,)."),),
        arguments=(
            Argument("algorithm", "string", "LZ4", "The compression: LZ4."),
            Argument("check_output_size", "bool", False, "Accepted for compatibility; the size is always checked."),
            Argument(
                "chunk_offsets",
                "int32[]",
                None,
                "Where the blocks begin; by default one follows the other.",
                tensor=True,
            ),
            Argument(
                "chunk_sizes", "int32[]", None, "Bytes of the blocks; by default up to the next one.", tensor=True
            ),
            Argument("dtype", "DALIDataType", UINT8, "Type of the output."),
            Argument("layout", "layout", "", "Layout of an inflated block."),
            Argument("sequence_axis_name", "layout", "F", "Letter of the dimension that the blocks of a sample form."),
            Argument("shape", "int32[]", None, "Shape of an inflated block.", required=True, tensor=True),
        ),
        aliases=(Alias("experimental__Inflate", "2.0"),),
    )

    def setup(self) -> None:
        if self.args["algorithm"].upper() != "LZ4":
            raise ValueError(f"Unknown algorithm '{self.args['algorithm']}': use LZ4")
        if len(self.args["sequence_axis_name"]) != 1:
            raise ValueError(f"`sequence_axis_name` is one letter, got '{self.args['sequence_axis_name']}'")
        self._sequence = self.given("chunk_offsets") or self.given("chunk_sizes")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise ValueError(f"Compressed data are bytes (uint8), got {dtype_name(batch.dtype)}")
        layout = self.args["layout"]
        if layout and self._sequence:
            layout = self.args["sequence_axis_name"] + layout
        return [OutputSpec(self.args["dtype"], layout)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        shape = tuple(sample["shape"])
        if any(extent < 0 for extent in shape):
            raise ValueError(f"The shape of an inflated block must not be negative, got {shape}")
        available = math.prod(sample.shapes[0])
        starts, sizes = self._spans(sample, available)
        for start, size in zip(starts, sizes):
            if start < 0 or size <= 0 or start + size > available:
                raise ValueError(
                    f"The block of {size} bytes from byte {start} on is not in the {available} bytes given"
                )
        sample.plan = _Chunks(starts, sizes, math.prod(shape) * numpy_dtype(self.args["dtype"]).itemsize)
        return [(len(starts), *shape) if self._sequence else shape]

    def _spans(self, sample: Sample, available: int) -> tuple[list[int], list[int]]:
        offsets = list(sample["chunk_offsets"]) if sample.given("chunk_offsets") else None
        sizes = list(sample["chunk_sizes"]) if sample.given("chunk_sizes") else None
        if offsets is None and sizes is None:
            return [0], [available]
        if offsets is None:
            offsets = [0, *accumulate(sizes or ())][:-1]
        if sizes is None:
            sizes = [end - start for start, end in zip(offsets, [*offsets[1:], available])]
        if len(offsets) != len(sizes):
            raise ValueError(f"{len(offsets)} offsets and {len(sizes)} sizes of blocks are given")
        return offsets, sizes

    def compute(self, sample: Sample) -> None:
        _inflate(np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace) -> None:
        (output,) = workspace.outputs
        compressed = workspace.inputs[0].as_cpu().samples
        host: Any = TensorListCPU.allocate(output.shapes, output.dtype, output.layout())

        def task(position: int) -> None:
            sample = workspace.samples[position]
            if sample is None:
                return
            try:
                _inflate(compressed[position].reshape(-1), sample.plan, host.samples[position])
            except Exception as error:
                workspace.fail(position, error)

        workspace.parallel(task, workspace.batch_size, [math.prod(shape) for shape in output.shapes])
        workspace.outputs = [TensorListGPU.upload(host)]


def _inflate(compressed: np.ndarray, chunks: _Chunks, output: np.ndarray) -> None:
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
        if len(data) != chunks.inflated:
            raise ValueError(f"Block {number} inflates to {len(data)} bytes, not to {chunks.inflated}")
        begin = number * chunks.inflated
        target[begin : begin + chunks.inflated] = np.frombuffer(data, np.uint8)
