"""Working out what an operator launches for a batch, without a batch: addresses are made up, and looked for afterwards.

An operator's ``compute_batch`` runs on stand-ins for its batches. Where their made-up addresses end up in descriptors and
arguments is noted, so that :mod:`penstock.kernels.cuda.program` can fill real ones in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.tensors import TensorListGPU

# Made-up addresses lie above all real ones, and so far apart that offsets from them, of either sign, are told apart.
_FIRST, _APART = 1 << 50, 1 << 40
# Numbers below this are no addresses.
_MIN_ADDRESS = 1 << 40
ALIGNMENT, _WIDE_ALIGNMENT = 16, 256
# What addresses are relative to: memory of one run, tables, memory of all runs, then each batch or sample; and at last the
# descriptors.
SCRATCH, TABLES, KEPT, DESCRIPTORS = 0, 1, 2, -1


class CannotRecord(Exception):
    """What an operator does for a batch cannot be repeated: it looks at the data, or uses other memory."""


class Placeholder:
    """Stands for a batch while launches are recorded: all is known of it but its contents."""

    device_type = "gpu"

    def __init__(self, batch: TensorListGPU, addresses: np.ndarray) -> None:
        self.shapes = batch.shapes
        self.dtype = batch.dtype
        self.positions = batch.positions
        self._batch = batch
        self._addresses = addresses
        # What `locate_all` takes for the owner of the memory.
        self.elements = self
        self.located = None

    def unfolded(self) -> Placeholder:
        """As :meth:`TensorList.unfolded`."""
        size = numpy_dtype(self.dtype).itemsize
        parts = [
            address + np.arange(shape[0], dtype=np.uint64) * np.uint64(math.prod(shape[1:]) * size)
            for address, shape in zip(self._addresses, self.shapes)
        ]
        return Placeholder(self._batch.unfolded(), np.concatenate(parts))

    def repeated(self, counts: Sequence[int]) -> Placeholder:
        """As :meth:`TensorList.repeated`."""
        return Placeholder(self._batch.repeated(counts), np.repeat(self._addresses, counts))

    def layout(self) -> str:
        return self._batch.layout()

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
    """Where addresses stand among 64-bit words: ``words[places] = bases[which] + offsets``."""

    places: list[np.ndarray] = field(default_factory=list)
    which: list[np.ndarray] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tuple(  # type: ignore[return-value]
            np.concatenate(parts) if parts else np.zeros(0, np.int64)
            for parts in (self.places, self.which, self.offsets)
        )


@dataclass
class Argument:
    """An argument of a kernel: a value (or the name of one of the run), or, where ``base`` is given, an offset from it."""

    value: Any
    base: int | None = None


@dataclass
class Launch:
    """One kernel's launch."""

    function: Any
    grid: tuple[int]
    arguments: list[Argument]
    shared: int


@dataclass
class Recording:
    """What an operator launches for one kind of batch.

    Attributes:
        launches: in order.
        descriptors: of all of them, as 64-bit words.
        relocations: the places of addresses in these words, which base each is of, and its offset from that.
        tables: what else kernels read, as 64-bit words.
        scratch_bytes: what they write and read again.
        once: launches that fill what is kept, before the first run.
        kept_bytes: what is kept for all runs.
    """

    launches: list[Launch]
    descriptors: np.ndarray
    relocations: tuple[np.ndarray, np.ndarray, np.ndarray]
    tables: np.ndarray
    scratch_bytes: int
    once: list[Launch]
    kept_bytes: int


class _Parts:
    """Arrays that go to the device one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[np.ndarray] = []

    def add(self, array: np.ndarray) -> int:
        """Where the array begins, in bytes."""
        place = self.size
        self._parts.append(array)
        self.size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return place

    def words(self) -> np.ndarray:
        """All of them, as 64-bit words."""
        joined = np.zeros(self.size // 8, np.uint64)
        memory = joined.view(np.uint8)
        place = 0
        for part in self._parts:
            memory[place : place + part.nbytes] = part.reshape(-1).view(np.uint8)
            place += -(-part.nbytes // ALIGNMENT) * ALIGNMENT
        return joined


class Recorder:
    """Takes the place of the GPU while an operator works out what it launches."""

    def __init__(self) -> None:
        self._launches: list[Launch] = []
        self._once: list[Launch] = []
        self._scratch_bytes = 0
        self._kept_bytes = 0
        self._bases = KEPT + 1
        self._tables = _Parts()
        self._descriptors = _Parts()
        self._relocations = _Relocations()

    # -- what `launch` hands over ----------------------------------------------------------------------------------

    def scratch(self, size: int) -> int:
        """The made-up address of so many bytes that are needed during a run."""
        place = self._scratch_bytes
        self._scratch_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(SCRATCH, place)

    def kept(self, size: int) -> int:
        """The made-up address of so many bytes that keep their contents for as long as the program is kept."""
        place = self._kept_bytes
        self._kept_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(KEPT, place)

    def table(self, array: np.ndarray) -> int:
        """The made-up address of an array that stays on the device for as long as the program is kept."""
        return _address(TABLES, self._tables.add(np.ascontiguousarray(array)))

    def launch(
        self,
        function: Any,
        starts: np.ndarray,
        descriptors: np.ndarray,
        extra: Sequence[Any],
        shared: int,
        blocks: int,
        once: bool = False,
    ) -> None:
        """Notes a launch.

        Raises:
            CannotRecord: what is launched once reads or fills a batch.
        """
        values = (starts, descriptors, np.int32(len(descriptors)), *extra)
        arguments = [self._argument(value) for value in values]
        if once and any(argument.base not in (None, TABLES, KEPT) for argument in arguments):
            raise CannotRecord("a launch for all batches that depends on one")
        (self._once if once else self._launches).append(Launch(function, (blocks,), arguments, shared))

    # -- made-up addresses -----------------------------------------------------------------------------------------

    def stand_ins(self, batches: Sequence[Any]) -> list[Any]:
        """What stands for batches on the GPU; others stay themselves."""
        return [self._stand_in(batch) if isinstance(batch, TensorListGPU) else batch for batch in batches]

    def _stand_in(self, batch: TensorListGPU) -> Placeholder:
        """Stands for a batch; a contiguous one has one base, any other one for each sample."""
        first = self._bases
        if batch.elements is None:
            self._bases += len(batch)
            offsets = np.arange(len(batch), dtype=np.uint64) * np.uint64(_APART)
        else:
            self._bases += 1
            offsets = batch.pointers() - np.uint64(batch.elements.data.ptr)
        return Placeholder(batch, np.uint64(_address(first)) + offsets)

    def recording(self) -> Recording:
        """What was recorded."""
        return Recording(
            self._launches,
            self._descriptors.words(),
            self._relocations.joined(),
            self._tables.words(),
            self._scratch_bytes,
            self._once,
            self._kept_bytes,
        )

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, np.ndarray):
            return self._array(np.ascontiguousarray(value))
        if not isinstance(value, np.uint64):
            return Argument(value)
        made_up, which, offsets = self._resolved(np.array([value]))
        return Argument(int(offsets[0]), int(which[0])) if made_up[0] else Argument(int(value))

    def _array(self, array: np.ndarray) -> Argument:
        """An array that goes to the device: with the descriptors where it holds addresses, else once and for all."""
        words = _address_words(array)
        if not words.size:
            return Argument(self._tables.add(array), TABLES)
        place = self._descriptors.add(array)
        made_up, which, offsets = self._resolved(array.reshape(-1).view(np.uint64)[words])
        self._relocations.places.append(place // 8 + words[made_up])
        self._relocations.which.append(which)
        self._relocations.offsets.append(offsets)
        return Argument(place, DESCRIPTORS)

    def _resolved(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the values are made-up addresses, and of these the bases and the offsets from them.

        Raises:
            CannotRecord: a value is the address of real memory.
        """
        made_up = (values >= _address(0) - _APART // 2) & (values < _address(self._bases) - _APART // 2)
        real = values[~made_up & (values >= _MIN_ADDRESS)]
        if real.size:
            raise CannotRecord(f"memory at {int(real[0]):#x}")
        relative = values[made_up].astype(np.int64) - _FIRST + _APART // 2
        return made_up, relative // _APART, relative % _APART - _APART // 2


def _address(base: int, offset: int = 0) -> int:
    """A made-up address."""
    return _FIRST + base * _APART + offset


def _address_words(array: np.ndarray) -> np.ndarray:
    """The indices of the 64-bit words of an array that may hold addresses: those of type uint64."""
    if array.dtype == np.uint64:
        return np.arange(array.size)
    fields: Mapping[str, Any] = array.dtype.fields or {}
    own = [
        offset // 8 + number
        for kind, offset, *_ in fields.values()
        if kind.base == np.uint64
        for number in range(kind.itemsize // 8)
    ]
    if not own:
        return np.zeros(0, np.int64)
    return (np.arange(array.size)[:, None] * (array.dtype.itemsize // 8) + np.array(own)).reshape(-1)
