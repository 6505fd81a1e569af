"""Huffman decoding of baseline JPEGs on the GPU; coefficients equal those of :mod:`penstock.kernels.cpu.jpeg`.

A scan is one string of bits, in which each code determines where the next begins. Nevertheless, threads begin at many points of it: Huffman
codes are self-synchronizing, so a decoder that began at a wrong bit soon reads the right codes (S. T. Klein and Y. Wiseman, "Parallel
Huffman decoding with applications to JPEG files", 2003; A. Weissenberger and B. Schmidt, "Massively parallel Huffman decoding on GPUs",
2018, and "Accelerating JPEG decompression on GPUs", 2021). Each thread decodes the blocks that begin in its subsequence of the bits: first
from a guessed start, then from where the thread before it ended, until no thread's start changes. The result then equals that of a single
decoder, as the first thread begins at the right bit, and each other thread where the one before it ends. Sums of blocks and of differences
of DC coefficients give the position of each thread's coefficients, and the DC values that the thread's first differences are added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cpu.jpeg import batches
from penstock.kernels.cpu.jpeg.batches import columns_of
from penstock.kernels.cpu.jpeg.entropy import FULL, MAX_CODES
from penstock.kernels.cpu.options import brief
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Pointer, Repeated, layout_of


class _JpegScan(NamedTuple):
    """The descriptor of one image; see :mod:`penstock.kernels.cpu.jpeg.batches`.

    Attributes:
        codes, quantizers, chain, intervals, data: the addresses of the parts of the data that the host gathered.
        target: the address of the coefficients to write.
        interval_count, interval_blocks, blocks, unit_blocks, parts, choices: as in :class:`~penstock.kernels.cpu.jpeg.batches.ScanColumns`.
    """

    codes: Pointer
    quantizers: Pointer
    chain: Pointer
    intervals: Pointer
    data: Pointer
    target: Pointer
    interval_count: Int32
    interval_blocks: Int32
    blocks: Int32
    unit_blocks: Int32
    parts: Int32
    choices: Int32


# The number of bits by which tables are indexed: for single codes, and for several codes at once.
_LOOKUP, _SEVERAL = 9, 10
# The number of table entries for longer codes.
_LONGER = 256


class _CodeTable(NamedTuple):
    """A code table.

    Attributes:
        entries: for each value of the next ``_LOOKUP`` bits, the entry of the code that they begin with; 0 if they contain no whole code.
        longer: the entries for longer codes, by the next 16 bits without the lowest ``shift`` bits; 0 if those bits are needed to tell
            codes apart.
        limits: for each length, the first value of 16 bits that is not a code of that length.
        offsets: for each length, the position of a code's symbol minus the code's value.
        symbols: the codes' symbols, in the order of the codes.
        shift: the number of bits that ``longer`` leaves out.
    """

    entries: Annotated[Sequence[int], Repeated(np.uint16, 1 << _LOOKUP)]
    longer: Annotated[Sequence[int], Repeated(np.uint16, _LONGER)]
    limits: Annotated[Sequence[int], Repeated(np.int32, 18)]
    offsets: Annotated[Sequence[int], Repeated(np.int32, 18)]
    symbols: Annotated[Sequence[int], Repeated(np.uint8, MAX_CODES)]
    shift: Int32


class _Shared(NamedTuple):
    """Shared memory of a thread block. Together with the kernel's other declarations, at most 64 KiB: the lowest limit of any GPU.

    Attributes:
        rows: where each thread collects a block of coefficients, 128 bytes; before that, the state of the subsequences.
        tables: two code tables for DC coefficients, two for AC.
        factors: for each coefficient of each component, its position among ``rows`` and, in the upper half, the
            quantizer.
        kinds: the kind of each block of a unit (MCU).
        counts: the number of subsequences to decode again, in this round and in the next.
        words: the coded data.
    """

    rows: Annotated[Sequence[int], Repeated(np.uint64, THREADS * FULL * 2 // 8)]
    tables: Annotated[Sequence[object], Repeated(_CodeTable, batches.CODE_TABLES)]
    factors: Annotated[Sequence[int], Repeated(np.uint32, batches.MAX_COMPONENTS * FULL)]
    kinds: Annotated[Sequence[int], Repeated(np.int32, batches.MAX_BLOCKS)]
    counts: Annotated[Sequence[int], Repeated(np.int32, 2)]
    words: Annotated[Sequence[int], Repeated(np.uint32, (THREADS * batches.SUBSEQUENCE + 8 * batches.BEYOND) // 32 + 2)]


DAMAGED, UNSAFE, LATE, NOT_TAKEN = (1 << bit for bit in range(27, 31))
"""Flags for problems of an image: damage that decoders notice; pixels on which decoders differ; threads that took too long to synchronize;
or a file of an unsupported kind. Lower bits count restart intervals that did not end correctly.
"""
# With more rounds than this after waiting for other blocks, a thread block is as slow as a single thread.
_MAX_LATE_ROUNDS = 500

# The largest sum of the magnitudes in a column of coefficients for which the result of the first pass of the transform, which multiplies by
# up to 1.39 and adds 2 fractional bits, fits into the 15 bits within which all decoders agree.
SAFE_SUM = 2900

SOURCE = KernelSource(
    __file__,
    _JpegScan,
    _Shared,
    SUBSEQUENCE=batches.SUBSEQUENCE,
    OVERLAP=THREADS - batches.OWN_SUBSEQUENCES,
    OWN_SUBSEQUENCES=batches.OWN_SUBSEQUENCES,
    MAX_COMPONENTS=batches.MAX_COMPONENTS,
    CODE_TABLES=batches.CODE_TABLES,
    CODES=batches.CODES,
    LINK=batches.LINK,
    BEYOND=batches.BEYOND,
    LOOKUP=_LOOKUP,
    SEVERAL=_SEVERAL,
    LONGER=_LONGER,
    SAFE_SUM=SAFE_SUM,
    MOST_LATE=_MAX_LATE_ROUNDS,
    DAMAGED=DAMAGED,
    UNSAFE=UNSAFE,
    LATE=LATE,
)


SCAN, SHARED_BYTES = layout_of(_JpegScan).dtype, layout_of(_Shared).dtype.itemsize
"""The type of an image's descriptor, and the bytes of shared memory of a thread block.

The kernel, ``read_codes``, has three arguments after its descriptors: :data:`NATURAL_ORDER`; the state of each image, int32; and the turns,
int32. A state holds the number of restart intervals, or NOT_TAKEN if the image is damaged. The kernel changes it to 0, or to the flags of
the image's problems, and then the coefficients are undefined. Thread blocks take their numbers from the turn of the launch's first image
when they start to run, and wait only for blocks with lower numbers, so none waits forever. For each launch, that turn must be zero, and so
must the chains that :func:`~penstock.kernels.cpu.jpeg.batches.gather_share` fills with zeros.
"""


@brief
def describe_scans(
    memory: np.ndarray, data: int, targets: np.ndarray, descriptors: np.ndarray, counts: np.ndarray
) -> None:
    """Fill in the descriptor and the number of thread blocks of each image.

    Args:
        memory: the memory that holds the parsed scans.
        data: the address of the gathered data.
        targets: the addresses of the images' coefficients, multiples of 16. The kernel writes ``blocks`` times 64 int16 values there: unit
            by unit, blocks in the order of the scan, the values of a block row by row.
        descriptors: a :data:`SCAN` for each image.
        counts: receives each image's number of thread blocks; 0 for images that are not decoded.
    """
    scans = columns_of(memory, len(counts))
    for index in range(len(counts)):
        image, start = descriptors[index], data + scans.begins[index]
        image.codes, image.quantizers = start, start + batches.QUANTIZERS_PLACE
        image.chain = start + batches.CHAIN_PLACE
        image.intervals, image.data = start + scans.places[index, 0], start + scans.places[index, 1]
        image.target = targets[index]
        image.interval_count, image.interval_blocks = scans.intervals[index], scans.interval_blocks[index]
        image.blocks, image.unit_blocks = scans.blocks[index], scans.unit_blocks[index]
        image.parts, image.choices = scans.parts[index], scans.choices[index]
        counts[index] = -(-scans.subsequences[index] // batches.OWN_SUBSEQUENCES) if scans.taken[index] else 0
