"""Kernel descriptors and launches of planned resampling; one compiled call writes them into the upload buffer.

Images of new sizes need new tables and descriptors in every batch. For a batch of one image, preparing these in Python would take longer
than all work on the GPU.
"""

from __future__ import annotations

import numpy as np

from penstock.core.gpu_launches import GPU_ARGUMENT
from penstock.core.threads import CALL_WORDS, make_calls
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cuda.launch import allow_shared, staging
from penstock.kernels.cuda.resample import OTHERS, RESAMPLING, RESAMPLING_KERNELS, Normalized, columns_after
from penstock.kernels.cuda.sources import THREADS, Kernel
from penstock.kernels.cuda.taps import TAPS, FilterTables
from penstock.tensors.cuda import require_cupy
from penstock.tensors.driver import context_of, driver, driver_error

PAGE_ALIGNMENT = 16
"""The alignment of arrays in uploaded memory, in bytes."""
COUNT_BYTES, FLAG_BYTES = np.dtype(np.int64).itemsize, np.dtype(np.int32).itemsize
"""The bytes of a sample's number of blocks, and of a flag."""
_TABLE_BYTES, _RESAMPLING_BYTES = TAPS.itemsize, RESAMPLING.itemsize
RESAMPLING_BYTES_PER_IMAGE = COUNT_BYTES + _RESAMPLING_BYTES + FLAG_BYTES
"""Bytes of descriptors for each image that is resampled."""
_FILL_COUNT, _RESAMPLE_COUNT = 5, 3 + OTHERS
RESAMPLING_ARGUMENTS = np.dtype(
    [
        ("filling", [(name, GPU_ARGUMENT) for name in ("filters", "copied", "copied_count", "starts", "weights")]),
        (
            "resample",
            [
                *((name, GPU_ARGUMENT) for name in ("starts", "weights", "mirrored")),
                ("others", GPU_ARGUMENT, (OTHERS,)),
            ],
        ),
    ]
)
"""The arguments, after the descriptors, of the kernels that fill tables and that resample."""
_FILL_BYTES = _FILL_COUNT * GPU_ARGUMENT.itemsize
_ARRAYS = "table_blocks", "tables", "filters", "copied", "resampling_blocks", "resampling", "mirrored"
RESAMPLING_PAGE = np.dtype([(name, np.int64) for name in _ARRAYS])
"""Where each array begins in the uploaded memory: for each of both kernels, the samples' numbers of blocks, and the descriptors; then
the values of filters, the data that are copied, and flags.
"""
_FILL_TABLES, _RESAMPLE, _KERNELS = range(3)
# The number of calls: one sets the context, one copies, and one launches each kernel.
_CALLS = 2 + _KERNELS
_WORD_BYTES, _STARTS_ALIGNMENT = 8, 256
# The largest number of arguments of a kernel; its blocks, its descriptors and their number come first.
_MOST_ARGUMENTS = 3 + max(_FILL_COUNT, _RESAMPLE_COUNT)
_RUN = np.dtype(
    [
        ("resampling", RESAMPLING_KERNELS),
        *((name, np.int64) for name in ("set_context", "context", "copy", "launch", "stream", "device")),
    ]
)
"""The kernels; the driver's functions, the context and the stream; and the addresses of the page and of the tables in GPU memory."""
_ROOM = np.dtype(
    [
        ("page", RESAMPLING_PAGE),
        ("calls", np.int64, (_CALLS, CALL_WORDS)),
        ("arguments", np.int64, (_KERNELS, _MOST_ARGUMENTS)),
        ("pointers", np.int64, (_KERNELS, _MOST_ARGUMENTS)),
    ]
)
"""Where arrays begin in the page; the calls; and for each kernel its arguments, and the addresses of these arguments."""
assert _ROOM.fields is not None
_CALLS_OFFSET, _ARGUMENTS_OFFSET, _POINTERS_OFFSET = (
    _ROOM.fields[name][1] for name in ("calls", "arguments", "pointers")
)


def page_bytes(tables: np.ndarray, values: np.ndarray, copied: np.ndarray) -> int:
    """Return an upper bound of the size of the uploaded data without the images' descriptors, in bytes."""
    rows = len(tables) * (COUNT_BYTES + _TABLE_BYTES)
    return rows + values.nbytes + copied.nbytes + len(_ARRAYS) * PAGE_ALIGNMENT


def launch_resampling(
    tables: FilterTables,
    after: Normalized,
    way: tuple[Kernel, int, tuple[int, ...]],
    descriptors: np.ndarray,
    blocks: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
) -> None:
    """Compute tables of filters and resample images, which must be whole in memory, on CuPy's current stream.

    Args:
        tables: the descriptors of the tables to compute.
        after: the steps after the resampling.
        way: the kernel, its bytes of shared memory, and its arguments after tables and flags.
        descriptors: one :data:`RESAMPLING` for each image; this function fills in their addresses.
        blocks: the number of thread blocks of each image.
        sources, targets: the addresses of the images and of the results, uint64.
    """
    kernel, shared, others = way
    allow_shared(kernel, shared)
    cuda, memory, functions = require_cupy().cuda, staging(), driver()
    stream, values, copied, flags = cuda.get_current_stream(), tables.values(), *columns_after(after)
    size = page_bytes(tables.rows, values, copied) + len(descriptors) * RESAMPLING_BYTES_PER_IMAGE
    page, starts = -(-size // _STARTS_ALIGNMENT) * _STARTS_ALIGNMENT, tables.starts_bytes
    # The buffer returns to CuPy's pool at the end; the pool reuses it only on the same stream, and thus after the kernels.
    buffer, pinned = cuda.alloc(page + starts + tables.weights_bytes), memory.take(size)
    device = buffer.ptr
    kernels = tables.kernel().kernel.ptr, kernel.kernel.ptr, shared, device + page, device + page + starts
    called = functions.set_context, context_of(cuda.Device().id), functions.copy_to_device, functions.launch
    words = *kernels, *others, *(0,) * (OTHERS - len(others)), *called, stream.ptr, device
    given = tables.rows, values, copied, descriptors, blocks, flags, sources, targets
    room = np.empty(1, _ROOM)
    first, count = _list_calls(np.array(words, np.int64).view(_RUN), *given, pinned.bytes, room)
    status = make_calls(first, count)
    memory.give_back(pinned, stream)
    if status:
        raise driver_error(status)


@brief
def _list_calls(
    run: np.ndarray,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    stacks: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    pinned: np.ndarray,
    room: np.ndarray,
) -> tuple[int, int]:
    """Write descriptors and numbers of blocks, and the calls that copy them and launch both kernels; return the address of the calls, and
    their number.

    Args:
        run: one :data:`_RUN`.
        tables, values, copied, stacks, blocks, mirrored: as in :class:`ResamplingColumns`.
        sources, targets: the addresses of the images and of the results, uint64.
        pinned: memory on the host, uint8.
        room: one :data:`_ROOM`, which this function fills. The caller owns it, as a record does not keep an array that this function
            creates alive.
    """
    count, own, held = len(stacks), run[0], room[0]
    at, calls, arguments, pointers = held.page, held.calls, held.arguments, held.pointers
    lay_out_stacks(at, lay_out_tables(at, 0, tables, values, copied), count)
    write_tables(pinned, at, tables, values, copied)
    for index in range(count):
        stacks[index].source, stacks[index].target = sources[index], targets[index]
    write_stacks(pinned, at, np.zeros(count, np.int64), np.arange(count), stacks, blocks, mirrored)
    device, kernels = own.device, own.resampling
    fill, resample = arguments[_FILL_TABLES], arguments[_RESAMPLE]
    fill[:3] = device + at.table_blocks, device + at.tables, len(tables)
    fill[3:6] = device + at.filters, device + at.copied if len(copied) > 0 else 0, len(copied)
    fill[6:8] = kernels.starts, kernels.weights
    resample[:3] = device + at.resampling_blocks, device + at.resampling, count
    resample[3:6] = kernels.starts, kernels.weights, device + at.mirrored if len(mirrored) > 0 else 0
    for other in range(OTHERS):
        resample[6 + other] = kernels.others[other]
    calls[0, :2] = own.set_context, own.context
    size = after_bytes(at.mirrored, FLAG_BYTES * len(mirrored))
    calls[1, :5] = own.copy, device, np.int64(pinned.ctypes.data), size, own.stream
    blocks_of = counts(pinned, at.table_blocks, len(tables)), counts(pinned, at.resampling_blocks, count)
    functions, shared, made = (kernels.fill_tables, kernels.resample), (0, kernels.shared_bytes), 2
    begin = np.int64(room.ctypes.data)
    for kernel in range(_KERNELS):
        first = kernel * _MOST_ARGUMENTS
        for argument in range(_MOST_ARGUMENTS):
            pointers[kernel, argument] = begin + _ARGUMENTS_OFFSET + _WORD_BYTES * (first + argument)
        grid = _add_up(blocks_of[kernel])
        if grid > 0:
            call = calls[made]
            call[:3] = own.launch, functions[kernel], grid
            call[3:8] = 1, 1, THREADS, 1, 1
            call[8:] = shared[kernel], own.stream, begin + _POINTERS_OFFSET + _WORD_BYTES * first, 0
            made += 1
    return int(begin + _CALLS_OFFSET), made


@inner
def _add_up(numbers: np.ndarray) -> int:
    """Replace each sample's number of blocks by its first block; return the total number of blocks."""
    total = 0
    for index in range(len(numbers)):
        own = numbers[index]
        numbers[index] = total
        total += own
    return total


@inner
def lay_out_tables(at: np.record, begin: int, tables: np.ndarray, values: np.ndarray, copied: np.ndarray) -> int:
    """Fill in the offsets, in a page, of the data that tables need; return the next free offset."""
    at.table_blocks = begin
    at.tables = after_bytes(at.table_blocks, COUNT_BYTES * len(tables))
    at.filters = after_bytes(at.tables, tables.nbytes)
    at.copied = after_bytes(at.filters, values.nbytes)
    return after_bytes(at.copied, copied.nbytes)


@inner
def lay_out_stacks(at: np.record, begin: int, count: int) -> None:
    """Fill in the offsets, in a page, of the data that ``count`` stacks need."""
    at.resampling_blocks = begin
    at.resampling = after_bytes(at.resampling_blocks, COUNT_BYTES * count)
    at.mirrored = after_bytes(at.resampling, _RESAMPLING_BYTES * count)


@inner
def counts(pinned: np.ndarray, begin: int, count: int) -> np.ndarray:
    """Return the array of the samples' numbers of blocks that begins at an offset in memory, int64."""
    return pinned[begin : begin + COUNT_BYTES * count].view(np.int64)


@inner
def after_bytes(position: int, size: int) -> int:
    """Return the first aligned offset after ``size`` bytes at ``position``."""
    return position + -(-size // PAGE_ALIGNMENT) * PAGE_ALIGNMENT


@inner
def write_tables(pinned: np.ndarray, at: np.record, tables: np.ndarray, values: np.ndarray, copied: np.ndarray) -> None:
    """Write the descriptors of tables, the filters' values, and the data that kernels copy."""
    filled, rows = (
        counts(pinned, at.table_blocks, len(tables)),
        pinned[at.tables : at.tables + tables.nbytes].view(TAPS),
    )
    for index in range(len(tables)):
        filled[index] = -(-np.int64(tables[index].outputs) // THREADS)
        rows[index] = tables[index]
    pinned[at.filters : at.filters + values.nbytes].view(np.float64)[:] = values
    pinned[at.copied : at.copied + copied.nbytes].view(np.float32)[:] = copied


@inner
def write_stacks(
    pinned: np.ndarray,
    at: np.record,
    sources: np.ndarray,
    rows: np.ndarray,
    stacks: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Write the descriptors of the resampling kernels."""
    count, has_flags = len(rows), len(mirrored) > 0
    resampled = counts(pinned, at.resampling_blocks, count)
    written = pinned[at.resampling : at.resampling + _RESAMPLING_BYTES * count].view(RESAMPLING)
    flags = pinned[at.mirrored : at.mirrored + FLAG_BYTES * (count if has_flags else 0)].view(np.int32)
    for index in range(count):
        row = rows[index]
        resampled[index] = blocks[row]
        written[index] = stacks[row]
        written[index].source += np.uint64(sources[index])
        if has_flags:
            flags[index] = mirrored[row]


@inner
def fill_kernel(
    kernel: np.record, function: int, shared: int, host: int, device: int, blocks: int, descriptors: int, step: int
) -> None:
    """Fill in a :data:`GPU_KERNEL`, except for its arguments.

    Args:
        function: the driver's handle.
        shared: bytes of shared memory.
        host, device: the address of the pinned memory, and of the GPU memory to which it is copied.
        blocks, descriptors: the offsets, in either memory, of the samples' numbers of blocks and of their descriptors.
        step: the size of a descriptor, in bytes.
    """
    kernel.function, kernel.shared_bytes = function, shared
    kernel.blocks, kernel.device_blocks = host + blocks, device + blocks
    kernel.descriptors, kernel.descriptor_bytes = device + descriptors, step


@inner
def fill_resampling(
    filling: np.record,
    resample: np.record,
    arguments: np.record,
    first: int,
    pinned: np.ndarray,
    device: int,
    at: np.record,
    resampling: np.record,
    tables: np.ndarray,
    copied: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Fill in the launches of two kernels, of which one fills tables, and one resamples; their arguments begin at the address ``first``."""
    host, fill = pinned.ctypes.data, arguments.filling
    fill.filters.value, fill.copied_count.value = device + at.filters, len(copied)
    fill.copied.value = device + at.copied if len(copied) > 0 else 0
    fill.starts.value, fill.weights.value = resampling.starts, resampling.weights
    fill_kernel(filling, resampling.fill_tables, 0, host, device, at.table_blocks, at.tables, _TABLE_BYTES)
    filling.arguments, filling.argument_count = first, _FILL_COUNT
    given = arguments.resample
    given.starts.value, given.weights.value = resampling.starts, resampling.weights
    if len(mirrored) > 0:
        given.mirrored.value, given.mirrored.sample_bytes = device + at.mirrored, FLAG_BYTES
    for other in range(OTHERS):
        given.others[other].value = resampling.others[other]
    shared = resampling.shared_bytes
    fill_kernel(
        resample, resampling.resample, shared, host, device, at.resampling_blocks, at.resampling, _RESAMPLING_BYTES
    )
    resample.arguments, resample.argument_count = first + _FILL_BYTES, _RESAMPLE_COUNT
