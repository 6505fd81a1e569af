"""The launches of an operator for one kind of batch, recorded once and repeated for batches that differ only in
addresses.

Computing descriptors in Python takes much longer than launching a kernel. Descriptors depend only on shapes, types and arguments, except
for the addresses in them, whose positions :mod:`penstock.kernels.cuda.recording` finds.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from penstock.core.threads import CALL_WORDS, make_calls
from penstock.kernels.cuda import launch
from penstock.kernels.cuda.launch import RunValue
from penstock.kernels.cuda.recording import ALIGNMENT, CannotRecord, Launch, Recorder, Recording, Relative
from penstock.kernels.cuda.sources import THREADS
from penstock.tensors import TensorList, TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.tensors.driver import context_of, driver, driver_error

# Batches recur at the same few addresses: the descriptors for this many sets of addresses are cached on the device.
_MAX_PLACEMENTS = 8
_MAX_PROGRAMS = 16
# Recording takes longer than launching, so a kind of batch is recorded only if it recurs while its program would still be
# cached.
_MAX_SEEN = _MAX_PROGRAMS
# Each batch of an unknown kind counts as 1 miss, and one of a known kind makes up for `_MISSES_PER_HIT` of them, as it saves more time than
# that many keys cost. Beyond `_MAX_MISSES`, kinds recur too rarely for recording to pay off, and only every `_RETRY_INTERVAL`-th batch is
# looked up.
_MAX_MISSES, _MISSES_PER_HIT, _RETRY_INTERVAL = 64, 8, 8
_MAX_VALUE_BYTES = 1 << 16
_WORD = 8

# Read attributes of CuPy arrays.
_POINTER, _IS_CONTIGUOUS = operator.attrgetter("data.ptr"), operator.attrgetter("flags.c_contiguous")

# A kernel argument; an integer is the address that has replaced a relative one.
_Placed = np.generic | RunValue | int
RunValues = Callable[[], Mapping[str, np.generic | np.ndarray]]


class Batch(Protocol):
    """The part of a workspace on which launches depend.

    Attributes:
        kind: a key shared by all batches with the same launches; None: unknown.
        batch_size: number of samples.
        inputs, outputs: the batches to read and to fill.
    """

    kind: Any
    batch_size: int
    inputs: Sequence[Any]
    outputs: list[Any]

    @property
    def arguments(self) -> Mapping[str, TensorList]:
        """The tensor arguments by name, on the CPU."""

    @property
    def failures(self) -> Mapping[int, BaseException]:
        """The errors of samples that failed, by sample index."""


AnyBatch = TypeVar("AnyBatch", bound=Batch)


@dataclass
class _Output:
    """The properties that are needed to allocate an output."""

    shapes: Sequence[tuple[int, ...]]
    dtype: Any
    kind: np.dtype
    layout: str
    ndim: int
    elements: int

    @classmethod
    def of(cls, batch: TensorListGPU) -> _Output:
        elements = batch.elements
        return cls(batch.shapes, batch.dtype, elements.dtype, batch.layout(), batch.ndim(), elements.size)

    def allocate(self) -> TensorListGPU:
        elements = require_cupy().empty(self.elements, self.kind)
        return TensorListGPU.of_elements(elements, self.shapes, self.layout, self.ndim, self.dtype)


class Program:
    """The recorded launches for one kind of batch, ready to run on the current stream.

    Args:
        recording: the launches.
        outputs: outputs whose types, shapes and layouts all batches of the kind share.
    """

    def __init__(self, recording: Recording, outputs: Sequence[TensorListGPU]) -> None:
        self._staging = launch.staging()
        self._launches = recording.launches
        self._descriptors = recording.descriptors
        self._places, self._which, self._offsets = recording.relocations
        self._tables = self._staging.upload([recording.tables]) if recording.tables.size else (None, [0])
        self._scratch_bytes = recording.scratch_bytes
        self._varies = any(isinstance(a, RunValue) for one in recording.launches for a in one.arguments)
        self._outputs = [_Output.of(batch) for batch in outputs]
        self._placements: OrderedDict[tuple[int, ...], tuple[object, _Calls]] = OrderedDict()
        self._kept = require_cupy().cuda.alloc(recording.kept_bytes) if recording.kept_bytes else None
        _Calls(recording.once, self._fixed_bases(0)).make({})

    def _fixed_bases(self, scratch: int) -> list[int]:
        """Return the base addresses that do not belong to batches; the first one, of scratch memory, differs between runs."""
        return [scratch, self._tables[1][0], 0 if self._kept is None else self._kept.ptr]

    def allocate(self) -> list[TensorListGPU]:
        """Return uninitialized outputs."""
        return [output.allocate() for output in self._outputs]

    def run(self, inputs: Sequence[int], outputs: Sequence[TensorListGPU], values: RunValues) -> None:
        """Make all launches on the current stream.

        Args:
            inputs: the base addresses of the inputs.
            outputs: the outputs to fill.
            values: function that returns the arguments that differ between batches.
        """
        scratch = require_cupy().cuda.alloc(self._scratch_bytes) if self._scratch_bytes else None
        bases = [*self._fixed_bases(0 if scratch is None else scratch.ptr), *inputs]
        for batch in outputs:
            bases += _bases_of(batch)
        key = tuple(bases)
        placement = self._placements.get(key)
        if placement is None:
            placement = self._placements[key] = self._placed(bases)
            if len(self._placements) > _MAX_PLACEMENTS:
                self._placements.popitem(last=False)
        own, buffer = self._uploaded(values()) if self._varies else ({}, None)
        placement[1].make(own)
        # Returns the memory to CuPy's pool, which reuses it only on the same stream, and thus after the launches.
        del buffer

    def _placed(self, bases: list[int]) -> tuple[object, _Calls]:
        """Upload the descriptors for these base addresses; return the buffer, and the launches with all their arguments."""
        words = self._descriptors.copy()
        words[self._places] = np.array(bases, np.int64)[self._which] + self._offsets
        buffer, (address,) = self._staging.upload([words]) if words.size else (None, [0])
        return buffer, _Calls(self._launches, [*bases, address])

    def _uploaded(self, values: Mapping[str, np.generic | np.ndarray]) -> tuple[Mapping[str, int], object]:
        """Upload the arrays among the values of a run; return the values as 64-bit words, arrays by address, and the owner of the
        memory.
        """
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        words = {name: _word_of(value) for name, value in values.items() if isinstance(value, np.generic)}
        if not arrays:
            return words, None
        buffer, addresses = self._staging.upload(list(arrays.values()))
        words.update(zip(arrays, addresses))
        return words, buffer


def _placed_arguments(one: Launch, bases: Sequence[int]) -> tuple[_Placed, ...]:
    return tuple(
        bases[argument.base] + argument.offset if isinstance(argument, Relative) else argument
        for argument in one.arguments
    )


class _Calls:
    """Driver calls that make launches on the current stream, without CuPy's work on the host for each launch.

    Args:
        launches: the launches to make, in order.
        bases: the base addresses to which relative arguments refer.
    """

    def __init__(self, launches: Sequence[Launch], bases: Sequence[int]) -> None:
        cuda, functions = require_cupy().cuda, driver()
        most = max((len(one.arguments) for one in launches), default=0)
        values, addresses = np.zeros((2, len(launches), most), np.uint64)
        addresses[:] = values.ctypes.data + _WORD * np.arange(values.size).reshape(values.shape)
        self._calls = np.zeros((1 + len(launches), CALL_WORDS), np.int64)
        self._calls[0, :2] = functions.set_context, context_of(cuda.Device().id)
        self._values, self._addresses, self._varying = values, addresses, list[tuple[int, int, str]]()
        self._place: int = self._calls.ctypes.data
        stream = cuda.get_current_stream().ptr
        for number, one in enumerate(launches):
            for place, argument in enumerate(_placed_arguments(one, bases)):
                if isinstance(argument, RunValue):
                    self._varying.append((number, place, argument.name))
                else:
                    values[number, place] = argument if isinstance(argument, int) else _word_of(argument)
            how = *one.grid, 1, 1, THREADS, 1, 1, one.shared, stream, addresses[number].ctypes.data
            self._calls[1 + number, : 2 + len(how)] = functions.launch, one.function.kernel.ptr, *how

    def make(self, words: Mapping[str, int]) -> None:
        """Make the launches; ``words``: the arguments that differ from run to run, as 64-bit words."""
        for number, place, name in self._varying:
            self._values[number, place] = words[name]
        status = make_calls(self._place, len(self._calls))
        if status:
            raise driver_error(status)


def _word_of(value: np.generic) -> int:
    return int.from_bytes(value.tobytes(), "little")


class Programs:
    """The programs of one operator, by kind of batch."""

    def __init__(self) -> None:
        # Least recently used first.
        self._known: OrderedDict[Any, Program] = OrderedDict()
        self._last: Program | None = None
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._recordable = True
        self._misses = self._skipped = 0

    def run(self, workspace: Batch, values: RunValues, varying: Collection[str] = ()) -> bool:
        """Repeat the launches recorded for this kind of batch, and set the outputs; return False if none are recorded.

        Args:
            workspace: the batch's workspace.
            values: function that returns the values that differ between batches of one kind.
            varying: names of the arguments that only affect ``values``.
        """
        self._skipped = (self._skipped + 1) % _RETRY_INTERVAL if self._misses >= _MAX_MISSES else 0
        program, bases, workspace.kind = None, [], None
        if self._recordable and not self._skipped:
            bases = _input_bases(workspace)
            workspace.kind = _kind(workspace, bases, varying)
            program = self._known.get(workspace.kind)
        if program is None:
            self._misses = min(self._misses + 1, _MAX_MISSES)
            return False
        self._misses = max(self._misses - _MISSES_PER_HIT, 0)
        if program is not self._last:
            self._known.move_to_end(workspace.kind)
            self._last = program
        workspace.outputs = program.allocate()
        program.run(bases, workspace.outputs, values)
        return True

    def record(self, workspace: AnyBatch, compute_batch: Callable[[AnyBatch], None], values: RunValues) -> bool:
        """Record the launches of ``compute_batch``, and make them; return False if they cannot be recorded."""
        if workspace.kind is None or not self._recordable or not self._recurs(workspace.kind):
            return False
        try:
            program = _recorded(workspace, compute_batch)
        except CannotRecord:
            self._recordable = False
            return False
        # If samples failed, the program is not cached: later batches of this kind must fail as well.
        if not workspace.failures:
            self._known[workspace.kind] = self._last = program
        if len(self._known) > _MAX_PROGRAMS:
            self._known.popitem(last=False)
        program.run(_input_bases(workspace), workspace.outputs, values)
        return True

    def _recurs(self, kind: object) -> bool:
        """Return whether a batch of this kind was seen before; batches with random shapes or arguments never recur."""
        key = hash(kind)
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)
        return False


def _recorded(workspace: AnyBatch, compute_batch: Callable[[AnyBatch], None]) -> Program:
    """Record the launches of ``compute_batch`` for batches of the workspace's kind, without running them.

    Raises:
        CannotRecord: ``compute_batch`` does more than launch kernels, or does not set outputs that they fill.
    """
    recorder = Recorder()
    inputs, outputs = workspace.inputs, workspace.outputs
    workspace.inputs, workspace.outputs = map(recorder.stand_ins, (inputs, outputs))
    try:
        with launch.recording(recorder):
            compute_batch(workspace)
    finally:
        workspace.inputs, workspace.outputs = inputs, outputs
    recording = recorder.recording()
    if not recording.launches and any(batch.elements.size for batch in outputs):
        raise CannotRecord("outputs that no launch fills")
    return Program(recording, outputs)


def _input_bases(workspace: Batch) -> list[int]:
    """Return the base addresses of all inputs on the GPU."""
    bases: list[int] = []
    for batch in workspace.inputs:
        if isinstance(batch, TensorListGPU):
            bases += _bases_of(batch)
    return bases


def _bases_of(batch: TensorListGPU) -> list[int]:
    """Return the base addresses of a batch: one if it is contiguous, otherwise one for each sample."""
    if batch.elements is not None:
        return [batch.elements.data.ptr]
    if batch.located is not None:
        addresses: list[int] = launch.addresses_of(batch.located).tolist()
        return addresses
    return list(map(_POINTER, batch.samples))


def _kind(workspace: Batch, bases: Sequence[int], varying: Collection[str]) -> object:
    """Return a key that is equal for batches with the same launches; None if unknown. ``bases``: the base addresses of the inputs."""
    # Kernels read several elements at a time only from addresses with this alignment, which placeholder addresses have.
    if functools.reduce(operator.or_, bases, 0) % ALIGNMENT:
        return None
    parts: list[Any] = [require_cupy().cuda.get_current_stream().ptr, workspace.batch_size]
    for batch in workspace.inputs:
        parts.append(_described(batch) if isinstance(batch, TensorListGPU) else _value(batch))
    for name, values in workspace.arguments.items():
        parts.append((name, *_form(values)) if name in varying else _value(values))
    return None if None in parts else tuple(parts)


def _described(batch: TensorListGPU) -> Any:
    """Return the types and shapes of a batch on the GPU; None if its samples are laid out differently from the placeholders' samples."""
    scattered = batch.elements is None
    are_known = batch.are_dense or batch.located is not None
    if scattered and not are_known and not all(map(_IS_CONTIGUOUS, batch.samples)):
        return None
    return *_form(batch), scattered


def _value(batch: TensorList) -> Any:
    """Return the types, shapes and contents of a batch on the CPU; None if it is too large."""
    samples = batch.samples
    if sum(sample.nbytes for sample in samples) > _MAX_VALUE_BYTES:
        return None
    return *_form(batch), b"".join(sample.tobytes() for sample in samples)


def _form(batch: TensorList) -> tuple[object, ...]:
    """Return the types and shapes of a batch."""
    shapes = batch.shapes
    is_uniform = shapes and shapes.count(shapes[0]) == len(shapes)
    return batch.dtype, batch.layout(), len(shapes), shapes[0] if is_uniform else tuple(shapes)
