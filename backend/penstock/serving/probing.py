"""What a pipeline gives, learned by running it on small made-up inputs of two sizes."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.pipeline import Pipeline
from penstock.types import DALIDataType, numpy_dtype


@dataclass(frozen=True)
class OutputInfo:
    """One output as a probe saw it.

    Attributes:
        name: of the node.
        dtype: of its elements, or None where it is not known.
        dims: extents of a sample, -1 where they depend on the input; None where the rank is not known.
    """

    name: str
    dtype: DALIDataType | None
    dims: tuple[int, ...] | None


def probe(pipeline: Pipeline) -> list[OutputInfo]:
    """The outputs of a pipeline, as far as made-up inputs or declarations tell.

    Runs the pipeline, so that its kernels are compiled when the first request comes; encoded images are JPEGs, whose decoding
    has the most of them.
    """
    for kind in _ENCODED:
        try:
            small, large = (_run(pipeline, kind, scale) for scale in (1, 2))
        except Exception:
            continue
        return [
            OutputInfo(node.name, batch.dtype, _common(batch.shapes[0], other.shapes[0]))
            for node, batch, other in zip(pipeline.graph.outputs, small, large)
        ]
    return [
        OutputInfo(node.name, dtype, None if ndim is None else (-1,) * ndim)
        for node, dtype, ndim in zip(pipeline.graph.outputs, pipeline.output_dtype(), pipeline.output_ndim())
    ]


def _run(pipeline: Pipeline, kind: str, scale: int) -> list[Any]:
    executor = pipeline.executor
    for step in executor.plan.operators:
        if step.node.schema.name == "ExternalSource":
            pipeline.feed_input(step.node.name, [_made_up(step.node.arguments, kind, scale)])
    result = executor.run_once()
    if result.ready is not None:
        result.ready.synchronize()
    return result.outputs


def _made_up(declared: dict[str, Any], kind: str, scale: int) -> np.ndarray:
    dtype, ndim, layout = (declared.get(key) for key in ("dtype", "ndim", "layout"))
    if ndim is None and layout:
        ndim = len(layout)
    if dtype not in (None, DALIDataType.UINT8) or (ndim is not None and ndim != 1):
        extents = [3 if layout and layout[axis] == "C" else 16 * scale + 8 * axis for axis in range(ndim or 0)]
        return np.ones(extents, numpy_dtype(dtype if dtype is not None else DALIDataType.UINT8))
    return np.frombuffer(_ENCODED[kind](scale), np.uint8)


def _jpeg(scale: int) -> bytes:
    """A grey JPEG in colour, whose code tables have one code each: that of no difference, and of no more coefficients."""
    width, height = 320 * scale, 288 * scale + 32

    def segment(marker: int, body: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body

    factors = b"".join(bytes((number, 0x22 if number == 1 else 0x11, 0)) for number in (1, 2, 3))
    code = bytes((1, *[0] * 15, 0))
    segments = (
        segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        segment(0xDB, bytes((0, *[1] * 64))),
        segment(0xC0, struct.pack(">BHHB", 8, height, width, 3) + factors),
        segment(0xC4, b"\x00" + code + b"\x10" + code),
        segment(0xDA, b"\3\1\0\2\0\3\0\0\x3f\0"),
    )
    # Six blocks of two codes, each of one bit, for each 16x16 pixels; units are whole, and bits fill bytes.
    units = (width // 16) * (height // 16)
    return b"\xff\xd8" + b"".join(segments) + bytes(units * 12 // 8) + b"\xff\xd9"


def _png(scale: int) -> bytes:
    width, height = 320 * scale, 288 * scale + 32
    rows = b"".join(b"\0" + bytes((x * 7 + y * 3) & 255 for x in range(width)) for y in range(1)) * height

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _wav(scale: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((np.sin(np.arange(16000 * scale) / 10) * 8000).astype(np.int16).tobytes())
    return buffer.getvalue()


_ENCODED = {"jpeg": _jpeg, "png": _png, "audio": _wav}


def _common(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    if len(small) != len(large):
        return (-1,) * len(small)
    return tuple(a if a == b else -1 for a, b in zip(small, large))


def source_steps(pipeline: Pipeline) -> Iterator[Any]:
    """The pipeline's external sources, in order."""
    return (op for op in pipeline.graph.operators if op.schema.name == "ExternalSource")
