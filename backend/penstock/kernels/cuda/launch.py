"""Launching a kernel for a whole batch with one upload."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from penstock.data_types import numpy_dtype
from penstock.kernels.cuda.sources import THREADS, Kernel
from penstock.kernels.cuda.structs import Records
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import DeviceArray, require_cupy

Shape = tuple[int, ...]

_ALIGNMENT = 16
_MIN_PINNED = 64 * 1024


@dataclass(frozen=True)
class RunValue:
    """An argument of a kernel that differs from batch to batch of one kind.

    Attributes:
        name: by which the operator gives it for a later batch (``Operator.run_values``).
        value: for this batch.
    """

    name: str
    value: np.generic


# -- arrays ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Located:
    """What a kernel needs to know of a contiguous array on the GPU; much cheaper to make and to reshape than the array.

    Attributes:
        address: of the first element.
        shape: in elements.
        dtype: of the elements.
        owner: what keeps the memory.
    """

    address: int
    shape: Shape
    dtype: np.dtype
    owner: object = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def reshape(self, *shape: int) -> Located:
        """The same elements in another shape."""
        return Located(self.address, shape, self.dtype, self.owner)

    def array(self) -> Any:
        """The same memory as an array of CuPy."""
        cuda = require_cupy().cuda
        memory = cuda.UnownedMemory(self.address, self.size * self.dtype.itemsize, self.owner)
        return require_cupy().ndarray(self.shape, self.dtype, cuda.MemoryPointer(memory, 0))

    def flat(self) -> Located:
        """The same elements in one dimension."""
        return self.reshape(self.size)


# What kernels take.
OnGpu = DeviceArray | Located


class Indexed(Protocol):
    """A sample, by its place in a batch."""

    @property
    def index(self) -> int: ...


def locate(array: OnGpu) -> Located:
    """Where an array (of CuPy) is; one that is not contiguous is copied."""
    if isinstance(array, Located):
        return array
    own: DeviceArray = array if array.flags.c_contiguous else require_cupy().ascontiguousarray(array)
    return Located(own.data.ptr, own.shape, own.dtype, own)


def locate_all(batch: TensorListGPU, samples: Sequence[Indexed]) -> list[Located]:
    """Where the arrays of a batch are that belong to ``samples``, which have an ``index``."""
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
    """Finds the samples that differ in their addresses alone: those of one plan (the same object) and of equal shapes.

    Returns:
        For each kind the index of one sample, and for each sample the number of its kind.
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
    """The addresses of the first elements, uint64."""
    return np.array([array.address for array in arrays], np.uint64)


def places_of(batch: TensorListGPU) -> tuple[np.ndarray, object]:
    """The addresses of a batch's samples, uint64, and what keeps the memory; samples that are not contiguous are copied."""
    if batch.elements is not None:
        return batch.pointers(), batch.elements
    located = batch.located or [locate(sample) for sample in batch.samples]
    return addresses_of(located), located


def scratch(shapes: Sequence[Shape], dtype: DTypeLike, kept: bool = False) -> list[Located]:
    """Arrays of undefined contents, in one allocation.

    Args:
        kept: what they hold is worked out by launches that are made ``once``.
    """
    kind = np.dtype(dtype)
    size = sum(math.prod(shape) for shape in shapes)
    recorder = _recording()
    elements: Any = None if recorder else require_cupy().empty(size, kind)
    if recorder:
        address = (recorder.kept if kept else recorder.scratch)(size * kind.itemsize)
    else:
        address = elements.data.ptr
    located = []
    for shape in shapes:
        located.append(Located(address, shape, kind, elements))
        address += math.prod(shape) * kind.itemsize
    return located


def upload(arrays: Sequence[np.ndarray]) -> list[Located]:
    """Copies of small host arrays on the GPU, in one transfer."""
    parts = [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]
    recorder = _recording()
    buffer, addresses = (None, list(map(recorder.table, parts))) if recorder else staging().upload(parts)
    return [Located(address, part.shape, part.dtype, buffer) for address, part in zip(addresses, parts)]


def strides_of(shape: Sequence[int]) -> list[int]:
    """The steps, in elements, from one position of each dimension to the next in a contiguous array."""
    strides, step = [0] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return strides


@functools.lru_cache(4096)
def division_by(extent: int) -> int:
    """The factor and, in the upper 32 bits, the shift with which kernels divide numbers below 2^31 by an extent."""
    if not 0 < extent < 1 << 31:
        return 0
    shift = (extent - 1).bit_length()
    return -(-(1 << 31 + shift) // extent) | shift << 32


# -- uploads -----------------------------------------------------------------------------------------------------------


class Staging:
    """Pinned host memory through which small arrays go to one device.

    A copy from pinned memory is only begun by the call that asks for it, so the memory may be written again only after
    it: an event, recorded behind each copy on its stream, tells when that is. Streams and threads may so share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[int, list[object]] = {}
        self._busy: deque[tuple[Any, int, Any]] = deque()

    def upload(self, parts: Sequence[np.ndarray]) -> tuple[object, list[int]]:
        """Copies arrays in one transfer, ordered by the current stream: the device buffer, and each one's address."""
        cupy = require_cupy("a descriptor")
        offsets, size = [], 0
        for part in parts:
            offsets.append(size)
            size += -(-part.nbytes // _ALIGNMENT) * _ALIGNMENT
        capacity = max(_MIN_PINNED, 1 << (size - 1).bit_length())
        pinned = self._take(capacity)
        staged = np.frombuffer(pinned, np.uint8, size)
        for part, offset in zip(parts, offsets):
            staged[offset : offset + part.nbytes] = part.reshape(-1).view(np.uint8)
        stream = cupy.cuda.get_current_stream()
        buffer = cupy.empty(size, np.uint8)
        buffer.data.copy_from_host_async(staged.ctypes.data, size, stream)
        copied = cupy.cuda.Event(disable_timing=True)
        copied.record(stream)
        with self._lock:
            self._busy.append((copied, capacity, pinned))
        base = buffer.data.ptr
        return buffer, [base + offset for offset in offsets]

    def _take(self, capacity: int) -> Any:
        with self._lock:
            while self._busy and self._busy[0][0].done:
                _, size, pinned = self._busy.popleft()
                self._free.setdefault(size, []).append(pinned)
            free = self._free.get(capacity)
            if free:
                return free.pop()
        return require_cupy().cuda.alloc_pinned_memory(capacity)


def staging() -> Staging:
    """That of the current device."""
    return _staging_for(require_cupy().cuda.Device().id)


@functools.cache
def _staging_for(_device: int) -> Staging:
    return Staging()


def packed(arrays: Sequence[np.ndarray], dtype: DTypeLike) -> tuple[np.ndarray, list[int]]:
    """Arrays one behind the other, and where each begins; the same array is packed once."""
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


# What a kernel takes beside its descriptors.
Extra = np.ndarray | Records | np.generic | Located | RunValue | None


# -- recording ---------------------------------------------------------------------------------------------------------


class Recorder(Protocol):
    """What takes the place of the GPU while launches are only worked out (:mod:`penstock.kernels.cuda.recording`)."""

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
    """What takes the place of the GPU on this thread."""
    return getattr(_active, "recorder", None)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Lets ``recorder`` take the place of the GPU for what this thread uploads, allocates and launches."""
    _active.recorder = recorder
    try:
        yield
    finally:
        _active.recorder = None


# -- launches ----------------------------------------------------------------------------------------------------------


def blocks_for(count: int, threads: int = THREADS) -> int:
    """How many blocks of threads it takes to have one thread for each of ``count`` elements."""
    return -(-count // threads)


def launch(
    function: Kernel,
    descriptors: Records,
    counts: Sequence[int] | np.ndarray,
    *extra: Extra,
    shared: int = 0,
    blocks: int | None = None,
    once: bool = False,
) -> None:
    """Launches a kernel over all samples; whatever comes from the host goes up in one transfer.

    Args:
        function: takes the samples' first blocks, the descriptors, their number, and ``extra``.
        descriptors: one for each sample.
        counts: blocks of each sample.
        extra: further arguments: arrays and structs, which are uploaded; scalars; memory on the GPU (None: a null
            pointer); or what differs from run to run.
        shared: bytes of dynamic shared memory.
        blocks: how many are launched, for a kernel whose blocks take turns; None: as many as there are counts for.
        once: it fills scratch memory that is kept, from descriptors and tables alone: batches for which the launches are
            repeated find it there.
    """
    ends = np.cumsum(np.asarray(counts, np.int64))
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return
    starts = ends - np.asarray(counts, np.int64)
    if shared > 48 * 1024:
        # Never less than before: recorded launches of the same kernel may need it.
        function.max_dynamic_shared_size_bytes = max(shared, function.max_dynamic_shared_size_bytes)
    recorder = _recording()
    if recorder:
        recorder.launch(function, starts, descriptors, extra, shared, total if blocks is None else blocks, once)
        return
    uploads = [
        starts,
        descriptors.rows,
        *(_rows(value) for value in extra if isinstance(value, np.ndarray | Records)),
    ]
    buffer, addresses = staging().upload(uploads)
    pointers = [np.uint64(address) for address in addresses]
    tables = iter(pointers[2:])
    rest = [next(tables) if isinstance(value, np.ndarray | Records) else _argument(value) for value in extra]
    grid = (total if blocks is None else blocks,)
    function(grid, (THREADS,), (*pointers[:2], np.int32(len(descriptors)), *rest), shared_mem=shared)
    # Freed to the pool, whose memory the same stream takes again only behind the kernel.
    del buffer


def _rows(table: np.ndarray | Records) -> np.ndarray:
    """What is uploaded of a table."""
    return table.rows if isinstance(table, Records) else table


def _argument(value: np.generic | Located | RunValue | None) -> np.generic:
    """A kernel's argument as CuPy takes it."""
    if isinstance(value, RunValue):
        return value.value
    if isinstance(value, np.generic):
        return value
    return np.uint64(0 if value is None else value.address)
