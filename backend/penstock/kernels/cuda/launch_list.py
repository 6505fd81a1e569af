"""What a stream is to be told, in a list: compiled code works it off when Python is busy with something else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.launches import ARGUMENT_WORDS, list_launches, room_for_launches
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

_WORD = 8


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
        self._calls: list[np.ndarray] = []
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
        uploads: list[np.ndarray] = []
        functions: list[int] = []
        arguments: list[int] = []
        for one in launches:
            allow_shared(one)
            first = len(arguments) // ARGUMENT_WORDS
            rows = one.descriptors.rows
            uploads += np.asarray(one.counts, np.int64), rows
            # Where blocks begin, the descriptors, and how many there are.
            arguments += 0, _WORD, len(uploads) - 1, 0, rows.itemsize, len(uploads), 0, 0, 0
            for value in one.extra:
                arguments += _argument(value, uploads)
            functions += one.function.kernel.ptr, one.shared, first, len(arguments) // ARGUMENT_WORDS - first
        pinned, offsets, size = staging().fill(uploads)
        self.pinned.append(pinned)
        with self._stream:
            memory = require_cupy().empty(size, np.uint8)
        self.kept.append(memory)
        address = memory.data.ptr
        self.copy_to_device(address, pinned.address, size)
        calls, words = room_for_launches(len(steps))
        count = list_launches(
            steps,
            np.array(functions, np.int64),
            np.array(arguments, np.int64),
            np.array(offsets, np.int64),
            pinned.address,
            address,
            (self._driver.launch, THREADS, self._stream.ptr),
            calls,
            words,
        )
        self._calls.append(calls[:count])
        self.kept.append(words)

    def _add(self, *words: int) -> None:
        """Adds a call of a function, with arguments."""
        call = np.zeros((1, CALL_WORDS), np.int64)
        call[0, : len(words)] = words
        self._calls.append(call)

    def calls(self) -> np.ndarray:
        """The calls, as :class:`~penstock.kernels.shared_work.SharedWork` makes them; they need this list."""
        return np.concatenate(self._calls)


def _argument(given: Extra, uploads: list[np.ndarray]) -> tuple[int, int, int]:
    """The words of a kernel argument, where what is to be uploaded is added to ``uploads``."""
    value = plain_value(given)
    if isinstance(value, np.generic):
        return int.from_bytes(value.tobytes(), "little"), 0, 0
    if value is None:
        return 0, 0, 0
    step = value.dtype.itemsize * math.prod(value.shape[1:]) if isinstance(given, PerSample) else 0
    if isinstance(value, Located):
        return value.address, step, 0
    uploads.append(value)
    return 0, step, len(uploads)
