"""What a stream is to be told, in a list: compiled code works it off when Python is busy with something else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.cuda.driver import context_of, driver
from penstock.kernels.cuda.launch import KernelLaunch, Pinned, prepare, staging
from penstock.kernels.cuda.sources import THREADS
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import Event, Stream

_WORD = 8
# Where a launch has the address of its arguments' addresses: after the grid, the block, the shared memory and the stream.
_ARGUMENTS = 9


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
        self._calls: list[tuple[int, ...]] = [(self._driver.set_context, context_of(stream.device_id))]
        self._words: list[int] = []
        self.pinned: list[Pinned] = []
        self.kept: list[object] = []

    def copy_to_device(self, target: int, source: int, size: int) -> None:
        """Copies bytes from pinned memory."""
        self._calls.append((self._driver.copy_to_device, target, source, size, self._stream.ptr))

    def copy_to_host(self, target: int, source: int, size: int) -> None:
        """Copies bytes to pinned memory."""
        self._calls.append((self._driver.copy_to_host, target, source, size, self._stream.ptr))

    def record(self, event: Event) -> None:
        """Records an event."""
        self._calls.append((self._driver.record, event.ptr, self._stream.ptr))

    def launch_all(self, launches: Sequence[KernelLaunch]) -> None:
        """Launches kernels in order, with the host data of all of them in one upload."""
        uploads, prepared = prepare(launches)
        if not prepared:
            return
        pinned, offsets, size = staging().fill(uploads)
        self.pinned.append(pinned)
        with self._stream:
            memory = require_cupy().empty(size, np.uint8)
        self.kept.append(memory)
        address = memory.data.ptr
        self.copy_to_device(address, pinned.address, size)
        stream, launch, words = self._stream.ptr, self._driver.launch, self._words
        for own in prepared:
            place = len(words)
            words += (
                address + offsets[value] if isinstance(value, int) else int.from_bytes(value.tobytes(), "little")
                for value in own.arguments
            )
            function = own.function.kernel.ptr
            self._calls.append((launch, function, own.grid, 1, 1, THREADS, 1, 1, own.shared, stream, place, 0))

    def calls(self) -> np.ndarray:
        """The calls, as :class:`~penstock.kernels.shared_work.SharedWork` makes them; they need this list."""
        from penstock.kernels.cpu.shares import CALL_WORDS

        values = np.array(self._words, np.uint64)
        addresses = values.ctypes.data + _WORD * np.arange(len(values))
        first = addresses.ctypes.data
        words: list[int] = []
        for own in self._calls:
            words += own
            if own[0] == self._driver.launch:
                words[1 + _ARGUMENTS - CALL_WORDS] = first + _WORD * own[1 + _ARGUMENTS]
            else:
                words += [0] * (CALL_WORDS - len(own))
        self.kept += values, addresses
        return np.array(words, np.int64).reshape(-1, CALL_WORDS)


def no_calls() -> np.ndarray:
    """A list of nothing."""
    from penstock.kernels.cpu.shares import CALL_WORDS

    return np.zeros((0, CALL_WORDS), np.int64)
