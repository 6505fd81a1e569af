"""What a stream is to be told, in a list: compiled code works it off when Python is busy with something else."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.launches import ARGUMENT_WORDS, list_launches, room_for_arguments
from penstock.kernels.cpu.shares import CALL_WORDS
from penstock.kernels.cuda.driver import context_of, driver
from penstock.kernels.cuda.launch import (
    Extra,
    KernelLaunch,
    Located,
    PerSample,
    Pinned,
    allow_shared,
    plain_value,
    staging,
)
from penstock.kernels.cuda.sources import THREADS
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import Event, Stream

# Calls that most lists have at most.
_FEW = 32


class LaunchList:
    """Copies, launches and events, in the order of a stream. GPU memory is taken from CuPy's pool for this stream.

    Args:
        stream: of the current device.

    Attributes:
        pinned: memory that is to be given back when all is done.
        kept: objects to keep alive until all was told, among them GPU memory.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._driver = stream, driver()
        self._calls, self._count = np.zeros((_FEW, CALL_WORDS), np.int64), 0
        self._add(self._driver.set_context, context_of(stream.device_id))
        self.pinned: list[Pinned] = []
        self.kept: list[object] = []

    def copy_to_device(self, target: int, source: int, size: int) -> None:
        """Copies bytes from pinned memory."""
        self._add(self._driver.copy_to_device, target, source, size, self._stream.ptr)

    def copy_beforehand(self, target: int, source: int, size: int, stream: Stream, event: Event) -> None:
        """Copies bytes from pinned memory in the order of another stream, for which this one then waits.

        Args:
            event: marks the end of the copy; it may be one of earlier copies in the order of that stream.
        """
        self._add(self._driver.copy_to_device, target, source, size, stream.ptr)
        self.record(event, stream)
        self._add(self._driver.wait, self._stream.ptr, event.ptr)

    def copy_to_host(self, target: int, source: int, size: int) -> None:
        """Copies bytes to pinned memory."""
        self._add(self._driver.copy_to_host, target, source, size, self._stream.ptr)

    def record(self, event: Event, stream: Stream | None = None) -> None:
        """Records an event, in the order of another stream if one is given."""
        self._add(self._driver.record, event.ptr, (stream or self._stream).ptr)

    def launch_all(self, launches: Sequence[KernelLaunch], steps: np.ndarray | None = None) -> None:
        """Launches kernels, with the host data of all of them in one upload.

        Args:
            launches: without ``blocks``.
            steps: what to launch in order, in rows: which one, and for which samples, from one number to another; for each
                launch, they ascend. None: each for all its samples.
        """
        if steps is None:
            steps = np.array([(number, 0, len(one.descriptors)) for number, one in enumerate(launches)], np.int64)
        uploads, functions, arguments = _described(launches)
        pinned, offsets, size = staging().fill(uploads)
        self.pinned.append(pinned)
        with self._stream:
            memory = require_cupy().empty(size, np.uint8)
        self.kept.append(memory)
        address = memory.data.ptr
        self.copy_to_device(address, pinned.address, size)
        words = np.frombuffer(array("q", functions + arguments + offsets), np.int64)
        begin, end = len(functions), len(functions) + len(arguments)
        room = room_for_arguments(len(steps))
        self.kept.append(room)
        self._count += list_launches(
            steps,
            words[:begin],
            words[begin:end],
            words[end:],
            pinned.address,
            address,
            (self._driver.launch, THREADS, self._stream.ptr),
            self._room(len(steps)),
            room,
        )

    def _add(self, *words: int) -> None:
        """Adds a call of a function, with arguments."""
        self._room(1)[0, : len(words)] = words
        self._count += 1

    def _room(self, count: int) -> np.ndarray:
        """Zeros where the next calls go."""
        end = self._count + count
        if end > len(self._calls):
            larger = np.zeros((2 * end, CALL_WORDS), np.int64)
            larger[: self._count] = self._calls[: self._count]
            self._calls = larger
        return self._calls[self._count : end]

    def calls(self) -> np.ndarray:
        """The calls, as :class:`~penstock.kernels.shared_work.SharedWork` makes them; they need this list."""
        return self._calls[: self._count]


def _described(launches: Sequence[KernelLaunch]) -> tuple[list[np.ndarray], list[int], list[int]]:
    """What is to be uploaded for launches, and the words of their functions and arguments, as :func:`list_launches` takes them."""
    uploads: list[np.ndarray] = []
    known: dict[int, int] = {}
    functions: list[int] = []
    arguments: list[int] = []
    for one in launches:
        allow_shared(one)
        starts = len(uploads)
        uploads.append(np.asarray(one.counts, np.int64))
        rows, extra = one.descriptors.rows, one.extra
        # Kernels may share their descriptors.
        place = known.setdefault(id(rows), len(uploads))
        if place == len(uploads):
            uploads.append(rows)
        first = len(arguments) // ARGUMENT_WORDS
        functions += one.function.kernel.ptr, one.shared, first, len(extra), starts, place, rows.itemsize
        for value in extra:
            arguments += _argument(value, uploads)
    return uploads, functions, arguments


def _argument(given: Extra, uploads: list[np.ndarray]) -> tuple[int, int, int]:
    """The words of a kernel argument, where what is to be uploaded is added to ``uploads``."""
    if given is None:
        return 0, 0, 0
    value = plain_value(given)
    if isinstance(value, Located):
        address, upload = value.address, 0
    elif isinstance(value, np.ndarray):
        uploads.append(value)
        address, upload = 0, len(uploads)
    else:
        return (0 if value is None else int.from_bytes(value.tobytes(), "little")), 0, 0
    step = value.dtype.itemsize * math.prod(value.shape[1:]) if isinstance(given, PerSample) else 0
    return address, step, upload
