"""Chains of stages, which the compiled core runs on each sample of a batch; `backend/core/core.h` defines the structs."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from penstock.core.arrays import MAX_RANK, address, addresses
from penstock.core.loading import core

_STRIP_BYTES = 1 << 20
"""The maximum size in bytes of the results between two stages that are computed at a time: smaller strips fit in the caches better,
but need more calls.
"""
WORTH_WAKING_NS = 100_000
"""The calling thread wakes other threads if its remaining work would take longer than this, in nanoseconds: waking a thread takes 50
microseconds, and some of the calling thread's time.
"""

_EXTENTS = (np.int64, MAX_RANK)
REGION = np.dtype([("anchor", *_EXTENTS), ("extents", *_EXTENTS)])
"""``PenstockRegion``: a box in an array."""
PART = np.dtype([("data", np.int64), ("strides", *_EXTENTS), ("anchor", *_EXTENTS), ("extents", *_EXTENTS)])
"""``PenstockPart``: the elements of a region in memory; ``data``, the first field, is the address of the element at the anchor."""
PLACEMENT = np.dtype(
    [
        ("anchor", *_EXTENTS),
        ("shape_in", *_EXTENTS),
        ("shape", *_EXTENTS),
        ("mirrored", *_EXTENTS),
        ("fill", np.int64),
        ("channel_axis", np.int64),
        ("element_bytes", np.int64),
    ]
)
"""``PenstockPlacement``: ``output[i] = input[anchor + i]``, reversed along mirrored axes, filled outside the input."""
IMAGE = np.dtype(
    [
        ("source", np.int64),
        ("target", np.int64),
        ("source_strides", np.int64, 3),
        ("target_strides", np.int64, 3),
        ("extents", np.int64, 3),
    ]
)
"""``PenstockImage``: a source image and a target image with the same number of rows, columns and channels."""
STORE = np.dtype(
    [("placement", PLACEMENT), ("permutation", *_EXTENTS), ("image_axes", np.int64, 3), ("values", np.int64)]
)
"""``PenstockStore``: a placement whose output has its dimensions in another order; a kernel computes all values that are not
filled.
"""
# ``PenstockStage``, ``PenstockChain`` and ``PenstockCrew``, whose fields are all 64-bit integers.
_STAGE, _CHAIN, _CREW = struct.Struct("13q"), struct.Struct("8q"), struct.Struct("3q")
# The status that the core returns if an array is empty.
_EMPTY = 1


class StageKind(IntEnum):
    """The kind of a stage: ``PenstockStageKind``."""

    PLACEMENT = 0
    POINTWISE = 1
    STORE = 2
    PARTS = 3


@dataclass(frozen=True)
class StageRecords:
    """One step of a chain, for all samples of a batch.

    Attributes:
        kind: the kind of operation.
        records: a struct for each sample, contiguous.
        shapes: the outputs' shapes: int64 of shape (samples, rank).
        element_bytes: the size in bytes of an element of the outputs.
        compute: the address of the kernel; 0 for placements.
        covers: the address of a kernel that extends a region of the output to the region that has to be computed; 0: the same region.
        reads: the address of a kernel that changes a region of the output to the region of the input that is read; 0: the same region.
        group: the number of elements of the last dimension that a pointwise stage computes together.
        reads_neighbours: whether the stage's input has to be computed completely before the stage begins.
        permutation: for each dimension of the output, the corresponding dimension of the input; empty: the same order.
        strided: whether a ``PARTS`` kernel accepts input with any strides; otherwise, its input is contiguous.
        scratch_bytes: the size in bytes of the scratch memory for a ``PARTS`` kernel.
        keep: objects to keep alive, because records refer to their memory.
    """

    kind: StageKind
    records: np.ndarray
    shapes: np.ndarray
    element_bytes: int
    compute: int = 0
    covers: int = 0
    reads: int = 0
    group: int = 1
    reads_neighbours: bool = False
    permutation: tuple[int, ...] = ()
    strided: bool = False
    scratch_bytes: int = 0
    keep: object = None


def placements(
    anchors: np.ndarray | int,
    shapes: np.ndarray,
    shapes_in: np.ndarray,
    element_bytes: int,
    mirrored: np.ndarray | None = None,
    fill: np.ndarray | None = None,
    channel_axis: int = -1,
    records: np.ndarray | None = None,
) -> np.ndarray:
    """Return records of placements.

    Args:
        anchors: the positions in inputs at which outputs begin: int64 of shape (samples, rank), or 0.
        shapes, shapes_in: the shapes of outputs and inputs: int64 of shape (samples, rank).
        element_bytes: the size in bytes of an element, the same for inputs and outputs.
        mirrored: whether each dimension of each sample is mirrored; None: no dimension is.
        fill: the values outside the input, in the outputs' type, of shape (values,) for all samples, or (samples, values): one value or,
            with ``channel_axis``, one for each channel. The caller must keep the array alive. None: nothing lies outside the input.
        channel_axis: the dimension of channels, if each channel has a separate fill value.
        records: the records to fill; None: new records.
    """
    count, rank = shapes.shape
    if records is None:
        records = np.zeros(count, PLACEMENT)
    records["anchor"][:, :rank], records["shape"][:, :rank], records["shape_in"][:, :rank] = anchors, shapes, shapes_in
    if mirrored is not None:
        records["mirrored"][:, :rank] = mirrored
    records["channel_axis"], records["element_bytes"] = channel_axis, element_bytes
    if fill is not None:
        records["fill"] = address(fill)
        if fill.ndim > 1:
            records["fill"] += np.arange(count) * fill.strides[0]
    return records


def array_part(array: np.ndarray, anchor: tuple[int, ...]) -> np.ndarray:
    """Return a ``PART`` that describes an array as the part of a larger array at ``anchor``. The caller must keep the array alive."""
    part = np.zeros((), PART)
    rank = array.ndim
    part["data"] = address(array)
    part["strides"][:rank], part["anchor"][:rank], part["extents"][:rank] = array.strides, anchor, array.shape
    return part


def compute_part(stage: StageRecords, source: np.ndarray, target: np.ndarray) -> None:
    """Compute a part of the output of one sample, as :func:`run_chain` does.

    Args:
        stage: the stage, with the records of one sample.
        source: a ``PART`` that contains the region of the input that the stage reads for ``target``.
        target: the ``PART`` of the output to compute; it must be a region that the stage can compute, see :attr:`StageRecords.covers`.
    """
    pointers = _addresses([stage.records, stage.shapes, source, target])
    row = _row(stage, pointers[0], pointers[1], 0)
    if core().penstock_compute_part(row, stage.shapes.shape[1], pointers[2], pointers[3]):
        raise MemoryError("there is not enough memory for an operator's input")


def _row(stage: StageRecords, records: int, shapes: int, strip_axis: int) -> bytes:
    """Return a stage as a ``PenstockStage``; ``records`` and ``shapes``: the addresses of the stage's records and shapes."""
    return _STAGE.pack(
        stage.kind,
        records,
        stage.records.itemsize,
        stage.compute,
        stage.covers,
        stage.reads,
        shapes,
        stage.element_bytes,
        stage.group,
        stage.reads_neighbours,
        strip_axis,
        stage.strided,
        stage.scratch_bytes,
    )


def _addresses(arrays: list[np.ndarray]) -> list[int]:
    pointers = addresses(arrays)
    assert pointers is not None, "the core reads contiguous arrays"
    found: list[int] = pointers.tolist()
    return found


@dataclass(frozen=True)
class Chain:
    """The samples of a batch, and the chain of stages that computes them.

    Attributes:
        header, table: the ``PenstockChain``, and the ``PenstockStage`` of each stage.
        samples, rank: the number of samples, and of their dimensions.
        keep: objects to keep alive, because ``header`` and ``table`` refer to their memory.
    """

    header: bytes
    table: bytes
    samples: int
    rank: int
    keep: object

    @classmethod
    def of(
        cls,
        sources: np.ndarray | None,
        shapes: np.ndarray,
        element_bytes: int,
        stages: Sequence[StageRecords],
        targets: np.ndarray,
    ) -> Chain:
        """Describe a batch.

        Args:
            sources, targets: the addresses of contiguous samples, int64. ``sources`` may be None if only :meth:`run_sample` is called.
            shapes: the sources' shapes: int64 of shape (samples, rank), contiguous.
            element_bytes: the size in bytes of an element of the sources.
            stages: the stages in order, all with records for the same samples.
        """
        samples, rank = shapes.shape
        arrays = [shapes, targets]
        for stage in stages:
            arrays += stage.records, stage.shapes
        source_shapes, target_places, *rest = _addresses(arrays)
        rows, strip_axis = [], 0
        for number, stage in enumerate(stages):
            if stage.reads_neighbours:
                strip_axis = 0
            if stage.permutation:
                strip_axis = stage.permutation.index(strip_axis)
            rows.append(_row(stage, rest[2 * number], rest[2 * number + 1], strip_axis))
        first = 0 if sources is None else address(sources)
        chain = _CHAIN.pack(rank, samples, len(rows), first, source_shapes, element_bytes, target_places, _STRIP_BYTES)
        return cls(chain, b"".join(rows), samples, rank, (sources, arrays, stages))

    def run(self, threads: int, cores: Sequence[int] | None = None) -> bool:
        """Compute all samples, without the GIL; return False, and do nothing, if an array or a result between stages is empty.

        Args:
            threads: the maximum number of threads that share the samples; for little work, fewer are used.
            cores: the cores to which threads are bound in turn while they work, the calling thread first; None: threads
                are not bound.

        Raises:
            MemoryError: there is not enough memory for results between two stages.
        """
        bound = () if cores is None else cores
        crew = _CREW.pack(threads, WORTH_WAKING_NS, len(bound))
        status = core().penstock_run_chain(self.header, self.table, crew, struct.pack(f"{len(bound)}q", *bound))
        return _is_done(status)

    def read_regions(self) -> np.ndarray | None:
        """Return the region of its source on which each sample depends, as a ``REGION``; None if an array or a result between stages is
        empty.

        Raises:
            MemoryError: as for :meth:`run`.
        """
        regions = np.empty(self.samples, REGION)
        return regions if _is_done(core().penstock_read_regions(self.header, self.table, address(regions))) else None

    def consumer(self, sources: np.ndarray, pixels: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the address of a C function that computes a sample from an image that was decoded to ``pixels``, and its first argument;
        see ``Consumer`` in ``kernels/cpu/jpeg/scan.py``. The caller must keep this chain, the argument, ``sources`` and ``pixels`` alive.

        Args:
            sources: a ``PART`` of each sample's source, whose address of elements the function sets; see :meth:`run_sample`.
            pixels: memory in which a thread decodes one image after the other.
        """
        header, table = (np.frombuffer(words, np.uint8) for words in (self.header, self.table))
        function = ctypes.cast(core().penstock_run_decoded, ctypes.c_void_p).value or 0
        return function, np.array([address(each) for each in (header, table, sources, pixels)])

    def run_sample(self, sample: int, source: np.ndarray) -> None:
        """Compute one sample on the calling thread, without the GIL.

        Args:
            sample: the sample's number.
            source: a ``PART`` of the sample's source that contains the region on which the sample depends.

        Raises:
            MemoryError: as for :meth:`run`.
        """
        _is_done(core().penstock_run_sample(self.header, self.table, sample, address(source)))


def _is_done(status: int) -> bool:
    """Return whether the core computed the samples: False if an array was empty. Raise MemoryError if there was not enough memory."""
    if status < 0:
        raise MemoryError("there is not enough memory for results between two operators")
    return status != _EMPTY


def run_chain(
    sources: np.ndarray,
    shapes: np.ndarray,
    element_bytes: int,
    stages: Sequence[StageRecords],
    targets: np.ndarray,
    threads: int,
    cores: Sequence[int] | None = None,
) -> bool:
    """Compute all samples of a batch by a chain of stages, without the GIL; return False, and do nothing, if an array or a result between
    stages is empty.

    Args:
        sources, targets: the addresses of contiguous samples, int64.
        shapes: the sources' shapes: int64 of shape (samples, rank), contiguous.
        element_bytes: the size in bytes of an element of the sources.
        stages: the stages in order, all with records for the same samples.
        threads: the maximum number of threads that share the samples; for little work, fewer are used.
        cores: the cores to which threads are bound in turn while they work, the calling thread first; None: threads are
            not bound.

    Raises:
        MemoryError: there is not enough memory for results between two stages.
    """
    return Chain.of(sources, shapes, element_bytes, stages, targets).run(threads, cores)
