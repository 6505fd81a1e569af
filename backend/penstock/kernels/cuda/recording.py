"""Records an operator's launches for a kind of batch, with placeholder addresses that are replaced by real ones later.

``compute_batch`` runs on placeholders of its batches. The recorder stores each pointer in descriptors and arguments as an offset from a
base, so that :mod:`penstock.kernels.cuda.program` can fill in the addresses of each run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.kernels.cuda.launch import Extra, Located, RunValue
from penstock.kernels.cuda.sources import Kernel
from penstock.kernels.cuda.structs import Records
from penstock.tensors import TensorListGPU

# A placeholder address encodes a base and a signed offset from it. All placeholders are above any real address.
_FIRST, _APART = 1 << 60, 1 << 40
ALIGNMENT, _WIDE_ALIGNMENT = 16, 256
# The bases: scratch memory of a run, tables, and memory retained across runs; then one for each contiguous batch and for each sample of
# other batches; the last one is that of the descriptors.
SCRATCH, TABLES, KEPT, DESCRIPTORS = 0, 1, 2, -1


class CannotRecord(Exception):
    """An operator's work for a batch cannot be replayed: it reads the batch's data, or uses memory that was not recorded."""


class Placeholder:
    """Stands in for a batch while launches are recorded; everything about the batch is known, except its contents."""

    device_type = "gpu"

    def __init__(self, batch: TensorListGPU, addresses: np.ndarray) -> None:
        self.shapes = batch.shapes
        self.dtype = batch.dtype
        self.positions = batch.positions
        self._batch = batch
        self._addresses = addresses
        # `locate_all` passes this on as the owner of the memory.
        self.elements = self
        self.located = None

    def unfolded(self) -> Placeholder:
        """Same as :meth:`TensorList.unfolded`."""
        size = numpy_dtype(self.dtype).itemsize
        parts = [
            address + np.arange(shape[0], dtype=np.uint64) * np.uint64(math.prod(shape[1:]) * size)
            for address, shape in zip(self._addresses, self.shapes)
        ]
        return Placeholder(self._batch.unfolded(), np.concatenate(parts))

    def repeated(self, counts: Sequence[int]) -> Placeholder:
        """Same as :meth:`TensorList.repeated`."""
        return Placeholder(self._batch.repeated(counts), np.repeat(self._addresses, counts))

    def layout(self) -> str:
        return self._batch.layout()

    def shape_array(self) -> np.ndarray:
        return self._batch.shape_array()

    def ndim(self) -> int:
        return self._batch.ndim()

    def pointers(self) -> np.ndarray:
        return self._addresses

    def __len__(self) -> int:
        return len(self.shapes)

    def __getattr__(self, name: str) -> Any:
        raise CannotRecord(f"`{name}` of a batch")


@dataclass
class _Relocations:
    """The positions of addresses among 64-bit words; to fill them in: ``words[places] = bases[which] + offsets``."""

    places: list[np.ndarray] = field(default_factory=list)
    which: list[np.ndarray] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _joined(self.places), _joined(self.which), _joined(self.offsets)


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@dataclass
class Relative:
    """An address as an offset, in bytes, from one of the bases."""

    base: int
    offset: int


# A value that is passed to a kernel.
Argument = np.generic | RunValue | Relative


@dataclass
class Launch:
    """A launch of a kernel."""

    function: Kernel
    grid: tuple[int]
    arguments: list[Argument]
    shared: int


@dataclass
class Recording:
    """An operator's launches for one kind of batch.

    Attributes:
        launches: the launches of each run, in order.
        descriptors: the descriptors of all launches, as 64-bit words.
        relocations: the positions of addresses in ``descriptors``, the base of each, and the offset from it.
        tables: other data that kernels read, as 64-bit words.
        scratch_bytes: the size of the memory that a run needs for intermediate results.
        once: the launches that fill the retained memory; they are made before the first run.
        kept_bytes: size of the memory retained across runs.
    """

    launches: list[Launch]
    descriptors: np.ndarray
    relocations: tuple[np.ndarray, np.ndarray, np.ndarray]
    tables: np.ndarray
    scratch_bytes: int
    once: list[Launch]
    kept_bytes: int


class _Parts:
    """Arrays that are uploaded as one; the offset of each is aligned."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[np.ndarray] = []

    def add(self, array: np.ndarray) -> int:
        """Add an array; return its offset in bytes."""
        place = self.size
        self._parts.append(array)
        self.size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return place

    def words(self) -> np.ndarray:
        """Return all arrays as 64-bit words."""
        joined = np.zeros(self.size // 8, np.uint64)
        memory = joined.view(np.uint8)
        place = 0
        for part in self._parts:
            memory[place : place + part.nbytes] = part.reshape(-1).view(np.uint8)
            place += -(-part.nbytes // ALIGNMENT) * ALIGNMENT
        return joined


class Recorder:
    """Stands in for the GPU while an operator's launches are recorded."""

    def __init__(self) -> None:
        self._launches: list[Launch] = []
        self._once: list[Launch] = []
        self._scratch_bytes = 0
        self._kept_bytes = 0
        self._bases = KEPT + 1
        self._tables = _Parts()
        self._descriptors = _Parts()
        self._relocations = _Relocations()

    # -- called by `launch` ----------------------------------------------------------------------------------------

    def scratch(self, size: int) -> int:
        """Return the placeholder address of ``size`` bytes of memory that is needed only during a run."""
        place = self._scratch_bytes
        self._scratch_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(SCRATCH, place)

    def kept(self, size: int) -> int:
        """Return the placeholder address of ``size`` bytes of memory whose contents last as long as the program."""
        place = self._kept_bytes
        self._kept_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(KEPT, place)

    def table(self, array: np.ndarray) -> int:
        """Return the placeholder address of an array that stays on the device as long as the program exists."""
        return _address(TABLES, self._tables.add(np.ascontiguousarray(array)))

    def launch(
        self,
        function: Kernel,
        starts: np.ndarray,
        descriptors: Records,
        extra: Sequence[Extra],
        shared: int,
        blocks: int,
        once: bool = False,
    ) -> None:
        """Record a launch.

        Raises:
            CannotRecord: the launch has ``once`` set, but reads or fills a batch.
        """
        values: tuple[Extra, ...] = (starts, descriptors, np.int32(len(descriptors)), *extra)
        arguments = [self._argument(value) for value in values]
        if once and any(isinstance(one, Relative) and one.base not in (TABLES, KEPT) for one in arguments):
            raise CannotRecord("a launch that runs only once, but depends on a batch")
        (self._once if once else self._launches).append(Launch(function, (blocks,), arguments, shared))

    # -- placeholder addresses -------------------------------------------------------------------------------------

    def stand_ins(self, batches: Sequence[object]) -> list[object]:
        """Return the batches, with those on the GPU replaced by placeholders."""
        return [self._stand_in(batch) if isinstance(batch, TensorListGPU) else batch for batch in batches]

    def _stand_in(self, batch: TensorListGPU) -> Placeholder:
        """Return a placeholder for a batch, with one base if the batch is contiguous, otherwise one for each sample."""
        first = self._bases
        if batch.elements is None:
            self._bases += len(batch)
            offsets = np.arange(len(batch), dtype=np.uint64) * np.uint64(_APART)
        else:
            self._bases += 1
            offsets = batch.pointers() - np.uint64(batch.elements.data.ptr)
        return Placeholder(batch, np.uint64(_address(first)) + offsets)

    def recording(self) -> Recording:
        """Return everything that has been recorded so far."""
        return Recording(
            self._launches,
            self._descriptors.words(),
            self._relocations.joined(),
            self._tables.words(),
            self._scratch_bytes,
            self._once,
            self._kept_bytes,
        )

    def _argument(self, value: Extra) -> Argument:
        if isinstance(value, Records):
            return self._structs(value)
        if isinstance(value, np.ndarray):
            return Relative(TABLES, self._tables.add(np.ascontiguousarray(value)))
        if isinstance(value, Located):
            given, which, offsets = self._resolved(np.array([value.address], np.uint64))
            return Relative(int(which[0]), int(offsets[0])) if given[0] else np.uint64(0)
        return np.uint64(0) if value is None else value

    def _structs(self, records: Records) -> Relative:
        """Add structs and return their location: among the descriptors if they hold addresses, which change from run to run, otherwise
        among the tables.
        """
        rows, words = np.ascontiguousarray(records.rows), records.addresses()
        if not words.size:
            return Relative(TABLES, self._tables.add(rows))
        place = self._descriptors.add(rows)
        given, which, offsets = self._resolved(rows.view(np.uint64)[words])
        self._relocations.places.append(place // 8 + words[given])
        self._relocations.which.append(which)
        self._relocations.offsets.append(offsets)
        return Relative(DESCRIPTORS, place)

    def _resolved(self, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Resolve placeholder addresses: return a mask of the addresses that are not null, and the base and the offset of each of those.

        Raises:
            CannotRecord: an address points to real memory.
        """
        given = addresses != 0
        real = addresses[given & (addresses < _address(0) - _APART // 2)]
        if real.size:
            raise CannotRecord(f"memory at {int(real[0]):#x}")
        relative = addresses[given].astype(np.int64) - _FIRST + _APART // 2
        return given, relative // _APART, relative % _APART - _APART // 2


def _address(base: int, offset: int = 0) -> int:
    """Return a placeholder address."""
    return _FIRST + base * _APART + offset
