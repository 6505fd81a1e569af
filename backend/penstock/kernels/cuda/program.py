"""What an operator launches for a batch, worked out once and repeated for batches that differ in their addresses alone.

To work out descriptors in Python takes much longer than to launch a kernel. They follow from shapes, types and arguments,
but for the addresses in them: so an operator's ``compute_batch`` runs once on stand-ins for its batches, whose made-up
addresses tell where in the descriptors each one's go. For the next batch of the same kind those places are filled in.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.kernels.cuda import launch
from penstock.kernels.cuda.launch import THREADS, RunValue
from penstock.tensors import TensorList, TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.types import numpy_dtype

if TYPE_CHECKING:
    from penstock.schema import Workspace

# Made-up addresses lie above all real ones, and so far apart that offsets from them, of either sign, are told apart.
_FIRST, _APART = 1 << 50, 1 << 40
# Numbers below this are no addresses.
_LEAST_ADDRESS = 1 << 40
_ALIGNMENT, _WIDE_ALIGNMENT = 16, 256
# What addresses are relative to: memory of one run, tables, what is computed once, then each batch or sample; and at last
# the descriptors.
_SCRATCH, _TABLES, _KEPT, _DESCRIPTORS = 0, 1, 2, -1
# Batches come and go at the same few addresses, again and again: the descriptors of so many are kept on the device.
_MOST_PLACEMENTS = 8
_MOST_PROGRAMS = 16
# To record takes longer than to launch, so it is done for what comes again: so many kinds are remembered.
_MOST_SEEN = 64
_MOST_VALUE_BYTES = 1 << 16

# Launches one kernel, with what differs from run to run.
_Run = Callable[[Mapping[str, np.generic]], None]
RunValues = Callable[[], Mapping[str, np.generic]]


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
        self._elements = self
        self._places = None

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
class _Argument:
    """An argument of a kernel: a value (or the name of one of the run), or, where ``base`` is given, an offset from it."""

    value: Any
    base: int | None = None


@dataclass
class _Launch:
    """One kernel's launch."""

    function: Any
    grid: tuple[int]
    arguments: list[_Argument]
    shared: int


class _Parts:
    """Arrays that go to the device one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[np.ndarray] = []

    def add(self, array: np.ndarray) -> int:
        """Where the array begins, in bytes."""
        place = self.size
        self._parts.append(array)
        self.size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return place

    def words(self) -> np.ndarray:
        """All of them, as 64-bit words."""
        joined = np.zeros(self.size // 8, np.uint64)
        memory = joined.view(np.uint8)
        place = 0
        for part in self._parts:
            memory[place : place + part.nbytes] = part.reshape(-1).view(np.uint8)
            place += -(-part.nbytes // _ALIGNMENT) * _ALIGNMENT
        return joined


class Recorder:
    """Takes the place of the GPU while an operator works out what it launches."""

    def __init__(self) -> None:
        self._launches: list[_Launch] = []
        self._once: list[_Launch] = []
        self._scratch_bytes = 0
        self._kept_bytes = 0
        self._bases = _KEPT + 1
        self._tables = _Parts()
        self._descriptors = _Parts()
        self._relocations = _Relocations()

    # -- what `launch` hands over ----------------------------------------------------------------------------------

    def scratch(self, size: int) -> int:
        """The made-up address of so many bytes that are needed during a run."""
        place = self._scratch_bytes
        self._scratch_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(_SCRATCH, place)

    def kept(self, size: int) -> int:
        """The made-up address of so many bytes that keep their contents for as long as the program is kept."""
        place = self._kept_bytes
        self._kept_bytes += -(-size // _WIDE_ALIGNMENT) * _WIDE_ALIGNMENT
        return _address(_KEPT, place)

    def table(self, array: np.ndarray) -> int:
        """The made-up address of an array that stays on the device for as long as the program is kept."""
        return _address(_TABLES, self._tables.add(np.ascontiguousarray(array)))

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
        if once and any(argument.base not in (None, _TABLES, _KEPT) for argument in arguments):
            raise CannotRecord("a launch for all batches that depends on one")
        (self._once if once else self._launches).append(_Launch(function, (blocks,), arguments, shared))

    # -- made-up addresses -----------------------------------------------------------------------------------------

    def stand_ins(self, batches: Sequence[Any]) -> list[Any]:
        """What stands for batches on the GPU; others stay themselves."""
        return [self._stand_in(batch) if isinstance(batch, TensorListGPU) else batch for batch in batches]

    def _stand_in(self, batch: TensorListGPU) -> Placeholder:
        """Stands for a batch; a contiguous one has one base, any other one for each sample."""
        first = self._bases
        if batch._elements is None:
            self._bases += len(batch)
            offsets = np.arange(len(batch), dtype=np.uint64) * np.uint64(_APART)
        else:
            self._bases += 1
            offsets = batch.pointers() - np.uint64(batch._elements.data.ptr)
        return Placeholder(batch, np.uint64(_address(first)) + offsets)

    def program(self, outputs: Sequence[TensorListGPU]) -> Program:
        """What was recorded, ready to run.

        Raises:
            CannotRecord: outputs were not filled by what was launched.
        """
        if not self._launches and any(batch._elements.size for batch in outputs):
            raise CannotRecord("outputs that nothing fills")
        words, tables = self._descriptors.words(), self._tables.words()
        relocations = self._relocations.joined()
        program = Program(self._launches, words, relocations, tables, self._scratch_bytes, outputs)
        program.prepare(self._once, self._kept_bytes)
        return program

    def _argument(self, value: Any) -> _Argument:
        if isinstance(value, np.ndarray):
            return self._array(np.ascontiguousarray(value))
        if not isinstance(value, np.uint64):
            return _Argument(value)
        made_up, which, offsets = self._resolved(np.array([value]))
        return _Argument(int(offsets[0]), int(which[0])) if made_up[0] else _Argument(int(value))

    def _array(self, array: np.ndarray) -> _Argument:
        """An array that goes to the device: with the descriptors where it holds addresses, else once and for all."""
        words = _address_words(array)
        if not words.size:
            return _Argument(self._tables.add(array), _TABLES)
        place = self._descriptors.add(array)
        made_up, which, offsets = self._resolved(array.reshape(-1).view(np.uint64)[words])
        self._relocations.places.append(place // 8 + words[made_up])
        self._relocations.which.append(which)
        self._relocations.offsets.append(offsets)
        return _Argument(place, _DESCRIPTORS)

    def _resolved(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the values are made-up addresses, and of these the bases and the offsets from them.

        Raises:
            CannotRecord: a value is the address of real memory.
        """
        made_up = (values >= _address(0) - _APART // 2) & (values < _address(self._bases) - _APART // 2)
        real = values[~made_up & (values >= _LEAST_ADDRESS)]
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


@dataclass
class _Output:
    """What is needed to allocate an output."""

    shapes: list[tuple[int, ...]]
    dtype: Any
    kind: np.dtype
    layout: str
    ndim: int
    elements: int

    @classmethod
    def of(cls, batch: TensorListGPU) -> _Output:
        elements = batch._elements
        return cls(batch.shapes, batch.dtype, elements.dtype, batch.layout(), batch.ndim(), elements.size)

    def allocate(self) -> TensorListGPU:
        batch = TensorListGPU.of_elements(require_cupy().empty(self.elements, self.kind), self.shapes, self.layout)
        batch._dtype, batch._ndim = self.dtype, self.ndim
        return batch


class Program:
    """The launches of an operator for one kind of batch.

    Args:
        launches: in order.
        descriptors: of all of them, as 64-bit words.
        relocations: the places of addresses in these words, which base each is of, and its offset from that.
        tables: what else kernels read, as 64-bit words.
        scratch_bytes: what they write and read again.
        outputs: what outputs are like.
    """

    def __init__(
        self,
        launches: list[_Launch],
        descriptors: np.ndarray,
        relocations: tuple[np.ndarray, np.ndarray, np.ndarray],
        tables: np.ndarray,
        scratch_bytes: int,
        outputs: Sequence[TensorListGPU],
    ) -> None:
        self._launches = launches
        self._descriptors = descriptors
        self._places, self._which, self._offsets = relocations
        self._tables = launch.staging().upload([tables]) if tables.size else (None, [0])
        self._scratch_bytes = scratch_bytes
        self._varies = any(isinstance(argument.value, RunValue) for one in launches for argument in one.arguments)
        self._outputs = [_Output.of(batch) for batch in outputs]
        self._placements: OrderedDict[tuple[int, ...], tuple[Any, list[_Run]]] = OrderedDict()
        self._kept: Any = None

    def prepare(self, launches: Sequence[_Launch], kept_bytes: int) -> None:
        """Launches, on the current stream, what fills memory that is kept for all runs."""
        if not kept_bytes:
            return
        self._kept = require_cupy().empty(kept_bytes, np.uint8)
        bases = [0, self._tables[1][0], self._kept.data.ptr]
        for one in launches:
            _bound(one.function, one.grid, _placed_arguments(one, bases), one.shared)({})

    def allocate(self) -> list[TensorListGPU]:
        """Outputs of undefined contents."""
        return [output.allocate() for output in self._outputs]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], values: RunValues) -> None:
        """Launches all on the current stream; ``values`` gives what differs from the batches before."""
        scratch = require_cupy().empty(self._scratch_bytes, np.uint8) if self._scratch_bytes else None
        kept = 0 if self._kept is None else self._kept.data.ptr
        bases = [0 if scratch is None else scratch.data.ptr, self._tables[1][0], kept]
        for batch in (*inputs, *outputs):
            if isinstance(batch, TensorListGPU):
                bases += _bases_of(batch)
        key = tuple(bases)
        placement = self._placements.get(key)
        if placement is None:
            placement = self._placements[key] = self._placed(bases)
            if len(self._placements) > _MOST_PLACEMENTS:
                self._placements.popitem(last=False)
        own = values() if self._varies else {}
        for run in placement[1]:
            run(own)

    def _placed(self, bases: list[int]) -> tuple[Any, list[_Run]]:
        """The descriptors for these addresses, uploaded, and the launches with all their arguments."""
        words = self._descriptors.copy()
        words[self._places] = np.array(bases, np.int64)[self._which] + self._offsets
        buffer, (address,) = launch.staging().upload([words]) if words.size else (None, [0])
        bases = [*bases, address]
        runs = [_bound(one.function, one.grid, _placed_arguments(one, bases), one.shared) for one in self._launches]
        return buffer, runs


def _placed_arguments(one: _Launch, bases: Sequence[int]) -> tuple[Any, ...]:
    return tuple(
        argument.value if argument.base is None else bases[argument.base] + argument.value for argument in one.arguments
    )


def _bound(function: Any, grid: tuple[int], arguments: tuple[Any, ...], shared: int) -> _Run:
    def run(_values: Mapping[str, np.generic]) -> None:
        function(grid, (THREADS,), arguments, shared_mem=shared)

    def run_with(values: Mapping[str, np.generic]) -> None:
        own = tuple(values[argument.name] if isinstance(argument, RunValue) else argument for argument in arguments)
        function(grid, (THREADS,), own, shared_mem=shared)

    return run_with if any(isinstance(argument, RunValue) for argument in arguments) else run


class Programs:
    """What one operator launches for the kinds of batches that it has seen."""

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Program] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._recordable = True

    def run(self, workspace: Workspace, values: RunValues, varying: Collection[str] = ()) -> bool:
        """Launches what was recorded for a batch of this kind, and sets the outputs; tells whether there was such.

        Args:
            workspace: of the batch.
            values: what differs between batches of one kind.
            varying: names of the arguments of which these follow, and nothing else.
        """
        workspace.kind = _kind(workspace, varying) if self._recordable else None
        program = self._known.get(workspace.kind)
        if program is None:
            return False
        self._known.move_to_end(workspace.kind)
        workspace.outputs = program.allocate()
        program.run(workspace.inputs, workspace.outputs, values)
        return True

    def record(self, workspace: Workspace, compute_batch: Callable[[Workspace], None], values: RunValues) -> bool:
        """Records what ``compute_batch`` launches, and launches it; tells whether that could be done."""
        if workspace.kind is None or not self._recordable or not self._comes_again(workspace.kind):
            return False
        try:
            program = _recorded(workspace, compute_batch)
        except CannotRecord:
            self._recordable = False
            return False
        # The next batch of this kind must be found to fail, too.
        if not workspace.failures:
            self._known[workspace.kind] = program
        if len(self._known) > _MOST_PROGRAMS:
            self._known.popitem(last=False)
        program.run(workspace.inputs, workspace.outputs, values)
        return True

    def _comes_again(self, kind: Any) -> bool:
        """Whether a batch of this kind was there before; those of random shapes or arguments never come again."""
        key = hash(kind)
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return False


def _recorded(workspace: Workspace, compute_batch: Callable[[Workspace], None]) -> Program:
    """What ``compute_batch`` launches for batches like those of the workspace; nothing runs.

    Raises:
        CannotRecord: it does more than to launch.
    """
    recorder = Recorder()
    inputs, outputs = workspace.inputs, workspace.outputs
    workspace.inputs, workspace.outputs = map(recorder.stand_ins, (inputs, outputs))
    try:
        with launch.recording(recorder):
            compute_batch(workspace)
    finally:
        workspace.inputs, workspace.outputs = inputs, outputs
    return recorder.program(outputs)


def _bases_of(batch: TensorListGPU) -> list[int]:
    """The addresses that those of the samples follow from: of all of them, or of each."""
    if batch._elements is not None:
        return [batch._elements.data.ptr]
    if batch._places is not None:
        return [place.address for place in batch._places]
    return [sample.data.ptr for sample in batch.samples]


def _kind(workspace: Workspace, varying: Collection[str]) -> Any:
    """Equal for batches for which an operator launches the same; None where that is not known."""
    parts: list[Any] = [require_cupy().cuda.get_current_stream().ptr, workspace.batch_size]
    for batch in workspace.inputs:
        parts.append(_described(batch) if isinstance(batch, TensorListGPU) else _value(batch))
    for name, values in workspace.arguments.items():
        parts.append(name if name in varying else _value(values))
    return None if None in parts else tuple(parts)


def _described(batch: TensorListGPU) -> Any:
    """The types and shapes of a batch on GPU; None for one whose samples lie as stand-ins never do."""
    scattered = batch._elements is None
    if scattered and batch._places is None and not all(sample.flags.c_contiguous for sample in batch.samples):
        return None
    # Kernels read several elements at a time where addresses are multiples of so many bytes, as made-up ones are.
    if functools.reduce(operator.or_, _bases_of(batch), 0) % _ALIGNMENT:
        return None
    return batch._dtype, batch._layout, tuple(batch.shapes), scattered


def _value(batch: TensorList) -> Any:
    """The types, shapes and contents of a batch on CPU; None where there is too much of it."""
    samples = batch.samples
    if sum(sample.nbytes for sample in samples) > _MOST_VALUE_BYTES:
        return None
    return batch.dtype, batch.layout(), tuple(batch.shapes), b"".join(sample.tobytes() for sample in samples)
