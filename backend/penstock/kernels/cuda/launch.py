"""Launches of a kernel for a whole batch, with a single upload."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import DTypeLike

from penstock.core.once import Once
from penstock.data_types import numpy_dtype
from penstock.kernels.cuda.sources import THREADS, Kernel
from penstock.kernels.cuda.structs import Records
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import DeviceArray, require_cupy
from penstock.tensors.pinned import PinnedMemoryError, pinned_block
from penstock.tensors.streams import Event, Stream

Shape = tuple[int, ...]

_ALIGNMENT = 16
_MIN_PINNED = 64 * 1024
# Up to this many arrays, plain copies are faster than compiled code, which needs the addresses of the arrays first.
_MAX_PLAIN_COPIES = 2


@dataclass(frozen=True)
class RunValue:
    """A kernel argument that differs between batches of one kind.

    Attributes:
        name: the key under which ``Operator.run_values`` supplies the value for later batches.
        value: its value for this batch: a scalar, or an array, which is uploaded.
    """

    name: str
    value: np.generic | np.ndarray


# -- arrays ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Located:
    """A contiguous array on the GPU, reduced to what kernels need; much cheaper to create and reshape than a CuPy array.

    Attributes:
        address: the first element's address.
        shape: the shape, in elements.
        dtype: the elements' dtype.
        owner: object that keeps the memory alive.
    """

    address: int
    shape: Shape
    dtype: np.dtype
    owner: object = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def reshape(self, *shape: int) -> Located:
        """Return the same elements in another shape."""
        return Located(self.address, shape, self.dtype, self.owner)

    def part(self, start: int, count: int) -> Located:
        """Return ``count`` elements along the first axis, from ``start`` on."""
        step = math.prod(self.shape[1:]) * self.dtype.itemsize
        return Located(self.address + start * step, (count, *self.shape[1:]), self.dtype, self.owner)

    def array(self) -> Any:
        """Return the same memory as a CuPy array."""
        cuda = require_cupy().cuda
        memory = cuda.UnownedMemory(self.address, self.size * self.dtype.itemsize, self.owner)
        return require_cupy().ndarray(self.shape, self.dtype, cuda.MemoryPointer(memory, 0))

    def flat(self) -> Located:
        """Return the same elements in one dimension."""
        return self.reshape(self.size)


@dataclass(slots=True)
class Places(Sequence[Located]):
    """The locations of many arrays, stored together because they are mostly used together.

    Attributes:
        addresses: the first elements' addresses, uint64.
        shapes: the shapes, in elements.
        dtype: the elements' dtype.
        owner: object that keeps the memory alive.
    """

    addresses: np.ndarray
    shapes: Sequence[Shape]
    dtype: np.dtype
    owner: object = None

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, index: int) -> Located: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Located]: ...

    def __getitem__(self, index: int | slice) -> Located | Sequence[Located]:
        if isinstance(index, slice):
            return Places(self.addresses[index], self.shapes[index], self.dtype, self.owner)
        return Located(int(self.addresses[index]), self.shapes[index], self.dtype, self.owner)


# The types of arrays that kernels accept.
OnGpu = DeviceArray | Located


class Indexed(Protocol):
    """Any object with the index of a sample in its batch."""

    @property
    def index(self) -> int: ...


def locate(array: OnGpu) -> Located:
    """Return the location of a CuPy array, which is copied if it isn't contiguous."""
    if isinstance(array, Located):
        return array
    own: DeviceArray = array if array.flags.c_contiguous else require_cupy().ascontiguousarray(array)
    return Located(own.data.ptr, own.shape, own.dtype, own)


def locate_all(batch: TensorListGPU, samples: Sequence[Indexed]) -> list[Located]:
    """Return the locations of some samples of a batch."""
    elements, places = batch.elements, batch.located
    if places is not None:
        return [places[sample.index] for sample in samples]
    if elements is None:
        arrays = batch.samples
        return [locate(arrays[sample.index]) for sample in samples]
    dtype, addresses = numpy_dtype(batch.dtype), batch.pointers().tolist()
    return [Located(addresses[s.index], batch.shapes[s.index], dtype, elements) for s in samples]


def group_samples(
    sources: Sequence[Located], targets: Sequence[Located], plans: Sequence[object]
) -> tuple[list[int], list[int]]:
    """Group samples that differ only in their addresses: those with the same plan object and equal shapes.

    Returns:
        For each group the index of its first sample, and for each sample the number of its group.
    """
    known: dict[tuple[int, Shape, Shape], int] = {}
    firsts: list[int] = []
    kinds: list[int] = []
    for index, (source, target, plan) in enumerate(zip(sources, targets, plans)):
        kind = known.setdefault((id(plan), source.shape, target.shape), len(firsts))
        if kind == len(firsts):
            firsts.append(index)
        kinds.append(kind)
    return firsts, kinds


def addresses_of(arrays: Sequence[Located]) -> np.ndarray:
    """Return the addresses of the arrays' first elements, uint64."""
    if isinstance(arrays, Places):
        return arrays.addresses
    return np.array([array.address for array in arrays], np.uint64)


def places_of(batch: TensorListGPU) -> tuple[np.ndarray, object]:
    """Return the addresses of a batch's samples, uint64, and the object that owns their memory; non-contiguous samples are
    copied.
    """
    if batch.elements is not None:
        return batch.pointers(), batch.elements
    if batch.are_dense and batch.located is None:
        return batch.pointers(), batch.samples
    located = batch.located or [locate(sample) for sample in batch.samples]
    return addresses_of(located), located


class Columns(NamedTuple):
    """The locations of samples of a batch, as arrays with one row per sample.

    Attributes:
        addresses: the first elements' addresses, uint64.
        shapes: the shapes, int64 of shape (samples, dimensions).
        owner: object that keeps the memory alive.
    """

    addresses: np.ndarray
    shapes: np.ndarray
    owner: object

    @property
    def sizes(self) -> np.ndarray:
        """Each sample's number of elements, int64."""
        sizes: np.ndarray = self.shapes.prod(axis=1)
        return sizes


def columns_of(batch: TensorListGPU, indices: Sequence[int]) -> Columns:
    """Return the locations of the samples at these indices; non-contiguous samples are copied."""
    (addresses, owner), shapes = places_of(batch), batch.shape_array()
    if len(indices) < len(addresses):
        addresses, shapes = addresses[indices], shapes[indices]
    return Columns(addresses, shapes, owner)


def scratch(shapes: Sequence[Shape], dtype: DTypeLike, kept: bool = False) -> list[Located]:
    """Allocate uninitialized arrays together, in one allocation.

    Args:
        kept: whether launches with ``once`` fill the arrays; if so, their contents last across runs.
    """
    kind, recorder = np.dtype(dtype), _recording()
    sizes = [math.prod(shape) * kind.itemsize for shape in shapes]
    if recorder:
        memory: Any = None
        address = (recorder.kept if kept else recorder.scratch)(sum(sizes))
    else:
        memory = require_cupy().cuda.alloc(sum(sizes))
        address = memory.ptr
    located = []
    for shape, size in zip(shapes, sizes):
        located.append(Located(address, shape, kind, memory))
        address += size
    return located


def upload(arrays: Sequence[np.ndarray]) -> list[Located]:
    """Copy small host arrays to the GPU in one transfer; return their locations."""
    parts = [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]
    recorder = _recording()
    buffer, addresses = (None, list(map(recorder.table, parts))) if recorder else staging().upload(parts)
    return [Located(address, part.shape, part.dtype, buffer) for address, part in zip(addresses, parts)]


def strides_of(shape: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a contiguous array."""
    strides, step = [0] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return strides


@functools.lru_cache(4096)
def division_by(extent: int) -> int:
    """Return the multiplier and, in the upper 32 bits, the shift with which kernels divide numbers below 2^31 by an
    extent.
    """
    if not 0 < extent < 1 << 31:
        return 0
    shift = (extent - 1).bit_length()
    return -(-(1 << 31 + shift) // extent) | shift << 32


# -- uploads -----------------------------------------------------------------------------------------------------------


class Staging:
    """Pinned host memory through which small arrays are uploaded to one device.

    Copies from pinned memory are asynchronous, so a buffer may only be reused once the copy from it is done. An event of the buffer,
    recorded on the copy's stream after each copy, tells when that is, so streams and threads can share buffers.
    """

    def __init__(self) -> None:
        # Garbage collection may run while a thread holds the lock, and may return memory here, too: hence a reentrant lock.
        self._lock = threading.RLock()
        self._free: dict[int, list[Pinned]] = {}
        self._busy: deque[Pinned] = deque()

    def upload(self, parts: Sequence[np.ndarray]) -> tuple[object, list[int]]:
        """Upload arrays in one transfer on the current stream; return the device buffer, and the address of each array in it."""
        cuda = require_cupy("a descriptor").cuda
        pinned, offsets, size = self.fill(parts)
        stream = cuda.get_current_stream()
        buffer = cuda.alloc(size)
        buffer.copy_from_host_async(pinned.address, size, stream)
        self.give_back(pinned, stream)
        base = buffer.ptr
        return buffer, [base + offset for offset in offsets]

    def fill(self, parts: Sequence[np.ndarray]) -> tuple[Pinned, list[int], int]:
        """Copy arrays into pinned memory; return that memory, the offset of each array, and the total size in bytes."""
        from penstock.kernels.cpu.blocks import pack_arrays

        sizes = [part.nbytes for part in parts]
        offsets, size = [], 0
        for own in sizes:
            offsets.append(size)
            size += -(-own // _ALIGNMENT) * _ALIGNMENT
        pinned = self.take(size)
        if len(parts) <= _MAX_PLAIN_COPIES or not pack_arrays(parts, sizes, offsets, pinned.address):
            for part, own, offset in zip(parts, sizes, offsets):
                pinned.bytes[offset : offset + own] = part.reshape(-1).view(np.uint8)
        return pinned, offsets, size

    def give_back(self, pinned: Pinned, stream: Stream | None) -> None:
        """Make memory available for reuse: once the copies queued so far on ``stream`` are done, or at once if it is None."""
        if stream is None:
            with self._lock:
                self._free.setdefault(len(pinned.bytes), []).append(pinned)
            return
        stream.record(pinned.copied)
        with self._lock:
            self._busy.append(pinned)

    def release(self) -> None:
        """Free the memory that is not in use."""
        with self._lock:
            self._free.clear()

    def take(self, size: int) -> Pinned:
        """Return a buffer of at least ``size`` bytes."""
        capacity = max(_MIN_PINNED, 1 << (size - 1).bit_length())
        with self._lock:
            free = self._free.setdefault(capacity, [])
            # Events are queried only when memory is needed.
            while not free and self._busy and self._busy[0].copied.done:
                pinned = self._busy.popleft()
                self._free.setdefault(len(pinned.bytes), []).append(pinned)
            if free:
                return free.pop()
        return Pinned.of(capacity)


class Pinned(NamedTuple):
    """Pinned host memory.

    Attributes:
        bytes: the whole memory as an array of bytes.
        address: the first byte's address.
        copied: the event that is recorded after each copy from this memory.
    """

    bytes: np.ndarray
    address: int
    copied: Event

    @classmethod
    def of(cls, capacity: int) -> Pinned:
        """Allocate memory; if none can be pinned, ordinary memory, from which the driver copies more slowly."""
        try:
            memory = pinned_block(capacity)
        except PinnedMemoryError:
            memory = np.empty(capacity, np.uint8)
        return cls(memory, memory.ctypes.data, require_cupy().cuda.Event(disable_timing=True))


def staging() -> Staging:
    """Return the staging memory of the current device."""
    return _staging_for(require_cupy().cuda.Device().id)


@Once
def _staging_for(_device: int) -> Staging:
    return Staging()


def release_staging(device_id: int) -> None:
    """Release the unused part of a device's staging memory."""
    _staging_for(device_id).release()


def packed(arrays: Sequence[np.ndarray], dtype: DTypeLike) -> tuple[np.ndarray, list[int]]:
    """Return the arrays concatenated, and the offset of each; an array that occurs several times is included once."""
    offsets: list[int] = []
    known: dict[int, int] = {}
    parts: list[np.ndarray] = []
    total = 0
    for array in arrays:
        place = known.get(id(array))
        if place is None:
            place = known[id(array)] = total
            part = array.astype(dtype, copy=False).ravel()
            parts.append(part)
            total += part.size
        offsets.append(place)
    return (np.concatenate(parts) if parts else np.zeros(1, dtype)), offsets


# The types of kernel arguments after the descriptors.
Extra = np.ndarray | Records | np.generic | Located | RunValue | None


# -- recording ---------------------------------------------------------------------------------------------------------


class Recorder(Protocol):
    """Stands in for the GPU while launches are recorded (:mod:`penstock.kernels.cuda.recording`)."""

    def scratch(self, size: int) -> int: ...

    def kept(self, size: int) -> int: ...

    def table(self, array: np.ndarray) -> int: ...

    def launch(
        self,
        function: Kernel,
        starts: np.ndarray,
        descriptors: Records,
        extra: Sequence[Extra],
        shared: int,
        blocks: int,
        once: bool = False,
    ) -> None: ...


_active = threading.local()


def _recording() -> Recorder | None:
    """Return the recorder that is active on this thread, or None."""
    return getattr(_active, "recorder", None)


def is_recorded() -> bool:
    """Return whether launches of this thread are recorded rather than made."""
    return _recording() is not None


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Redirect this thread's uploads, allocations and launches to ``recorder``."""
    _active.recorder = recorder
    try:
        yield
    finally:
        _active.recorder = None


# -- launches ----------------------------------------------------------------------------------------------------------


def blocks_for(count: int, threads: int = THREADS) -> int:
    """Return the number of blocks that provide a thread for each of ``count`` elements."""
    return -(-count // threads)


class KernelLaunch(NamedTuple):
    """The launch of a kernel for all samples.

    Attributes:
        function: the kernel. Its arguments are each sample's first block, the descriptors, the number of descriptors, and ``extra``.
        descriptors: one for each sample.
        counts: number of blocks for each sample.
        extra: further arguments: arrays and structs, which are uploaded; scalars; memory on the GPU (None for a null pointer); and
            :class:`RunValue`. An array that differs from batch to batch must be a :class:`RunValue`.
        shared: bytes of dynamic shared memory.
        blocks: number of blocks to launch, for kernels whose blocks loop over the work; None: the sum of ``counts``.
        once: whether the launch fills ``kept`` scratch memory and depends only on descriptors and tables; then it runs once, not each time
            that recorded launches are repeated.
    """

    function: Kernel
    descriptors: Records
    counts: Sequence[int] | np.ndarray
    extra: Sequence[Extra] = ()
    shared: int = 0
    blocks: int | None = None
    once: bool = False


def launch(
    function: Kernel,
    descriptors: Records,
    counts: Sequence[int] | np.ndarray,
    *extra: Extra,
    shared: int = 0,
    blocks: int | None = None,
    once: bool = False,
) -> None:
    """Launch a kernel over all samples; the arguments are the attributes of :class:`KernelLaunch`."""
    launch_all([KernelLaunch(function, descriptors, counts, extra, shared, blocks, once)])


def launch_all(launches: Sequence[KernelLaunch]) -> None:
    """Launch kernels in order; the host data of all of them go in one upload."""
    recorder = _recording()
    if recorder:
        for one, starts, grid in _with_blocks(launches):
            recorder.launch(one.function, starts, one.descriptors, one.extra, one.shared, grid, one.once)
        return
    uploads, prepared = prepare(launches)
    if not prepared:
        return
    buffer, addresses = staging().upload(uploads)
    pointers = list(map(np.uint64, addresses))
    for own in prepared:
        arguments = tuple(pointers[value] if isinstance(value, int) else value for value in own.arguments)
        own.function((own.grid,), (THREADS,), arguments, shared_mem=own.shared)
    # Returns the memory to CuPy's pool, which reuses it only on the same stream, and thus after the kernels.
    del buffer


class PreparedLaunch(NamedTuple):
    """A launch whose host data are uploaded together with those of other launches.

    Attributes:
        function, shared: as for :class:`KernelLaunch`.
        grid: the number of blocks.
        arguments: the arguments in order: scalars as they are, and for each array its index among the uploaded arrays.
    """

    function: Kernel
    grid: int
    arguments: Sequence[np.generic | int]
    shared: int


def prepare(launches: Sequence[KernelLaunch]) -> tuple[list[np.ndarray], list[PreparedLaunch]]:
    """Return the arrays to upload for all launches, and those launches that have at least one block."""
    uploads: list[np.ndarray] = []
    prepared: list[PreparedLaunch] = []
    for one, starts, grid in _with_blocks(launches):
        given = list(map(plain_value, one.extra))
        place = len(uploads)
        uploads += [starts, one.descriptors.rows, *(value for value in given if isinstance(value, np.ndarray))]
        numbers = itertools.count(place)
        arguments: list[np.generic | int] = [next(numbers), next(numbers), np.int32(len(one.descriptors))]
        arguments += [next(numbers) if isinstance(value, np.ndarray) else _argument(value) for value in given]
        prepared.append(PreparedLaunch(one.function, grid, arguments, one.shared))
    return uploads, prepared


def _with_blocks(launches: Sequence[KernelLaunch]) -> Iterator[tuple[KernelLaunch, np.ndarray, int]]:
    """Yield the launches that have at least one block, each with its samples' first blocks and its number of blocks."""
    for one in launches:
        counts = np.asarray(one.counts, np.int64)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if not total:
            continue
        allow_shared(one.function, one.shared)
        yield one, ends - counts, total if one.blocks is None else one.blocks


def allow_shared(kernel: Kernel, shared: int) -> None:
    """Set how much shared memory a kernel may use, in bytes, if that exceeds the default limit."""
    if shared > 48 * 1024:
        # Never lowered, as recorded launches of the same kernel may need more.
        kernel.max_dynamic_shared_size_bytes = max(shared, kernel.max_dynamic_shared_size_bytes)


def plain_value(value: Extra) -> np.ndarray | np.generic | Located | None:
    """Return a kernel argument, with a :class:`RunValue` replaced by its value for this batch; arrays are uploaded."""
    if isinstance(value, RunValue):
        value = value.value
    return value.rows if isinstance(value, Records) else value


def _argument(value: np.generic | Located | None) -> np.generic:
    """Return a kernel argument in the form that CuPy expects."""
    if isinstance(value, np.generic):
        return value
    return np.uint64(0 if value is None else value.address)
