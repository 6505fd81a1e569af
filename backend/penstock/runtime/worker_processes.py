"""Worker processes that call callbacks, and the channel between them and their parent.

A worker writes its callback's results to anonymous memory (``memfd``), whose descriptor it sends to the parent once;
for each batch, it sends only shapes and offsets. The parent uses the data in place, and lets the worker reuse the memory when
nothing refers to the data any longer.
"""

from __future__ import annotations

import itertools
import os
import pickle
import socket
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from penstock.runtime.shared_arrays import Arrays, SharedMemory, fetched, mapped
from penstock.tensors.memory import LentMemory


class WorkerError(RuntimeError):
    """A worker process failed or died."""


@dataclass(frozen=True)
class _Task:
    """Calls to make, one for each set of arguments, in round ``number`` of the source; the results go to buffer ``slot``."""

    calls: Sequence[tuple[object, ...]]
    slot: int
    number: int


@dataclass(frozen=True)
class _Reply:
    """The answer to a task: the positions of each call's data, or an error. If ``size`` is set, the buffer is new memory of this
    size, and its descriptor follows."""

    results: object = None
    error: Any = None
    size: int | None = None


def _serve(channel: Any, load: Callable[[], Callable[..., Any]], inherited: Sequence[Any]) -> None:
    """Run the worker's main loop; end when the parent closes its end."""
    for end in inherited:
        # Close the inherited parent's ends of other channels: while they are open here, other workers do not see the parent close them.
        end.close()
    call: Callable[..., Any] | None = None
    memories: dict[int, SharedMemory] = {}
    over = -1
    while True:
        try:
            task = channel.recv()
        except (EOFError, OSError):
            return
        memory, renewed = memories.setdefault(task.slot, SharedMemory()), False
        try:
            if task.number == over:
                # This call was prefetched before the end was known. The source restarts only in the next round, so do not call it.
                raise StopIteration
            if call is None:
                call = load()
            results, renewed = _work(call, task, memory)
            reply = _Reply(results, None, memory.size if renewed else None)
        except BaseException as error:
            if isinstance(error, StopIteration):
                over = task.number
            reply = _Reply(None, _portable(error))
        try:
            channel.send(reply)
            if renewed:
                _send_descriptor(channel, memory.descriptor)
        except OSError:
            # The parent has closed its end of the channel, so nobody needs the answer.
            return


# From Python 3.14 on, multiprocessing's functions for this wait for an acknowledgement, and would read the parent's next task as one.
def _send_descriptor(channel: Any, descriptor: int) -> None:
    with socket.fromfd(channel.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        socket.send_fds(stream, [b"d"], [descriptor])


def _received_descriptor(channel: Any) -> int:
    with socket.fromfd(channel.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        _, descriptors, _, _ = socket.recv_fds(stream, 1, 1)
    if not descriptors:
        raise EOFError
    return descriptors[0]


def _work(call: Callable[..., object], task: _Task, memory: SharedMemory) -> tuple[object, bool]:
    """Run the calls, and write their arrays to memory; return the arrays' positions, and whether the memory is new."""
    arrays = Arrays()
    results = [arrays.place(call(*arguments)) for arguments in task.calls]
    return results, arrays.write(memory)


def _portable(error: BaseException) -> tuple[object, str]:
    """Return the error, or None if it cannot be pickled, and in both cases its traceback as text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return None, "".join(traceback.format_exception(error))
    return error, "".join(traceback.format_exception(error))


# The parent's ends of the channels of all workers, of all pipelines: forked workers inherit them.
_channels: weakref.WeakSet[object] = weakref.WeakSet()


_starting = threading.Lock()


class Worker:
    """A worker process, as seen by its parent."""

    def __init__(self, context: Any, load: Callable[[], Callable[..., Any]]) -> None:
        with _starting:
            self.channel, theirs = connection.Pipe(duplex=True)
            _channels.add(self.channel)
            inherited = list(_channels) if context.get_start_method() == "fork" else []
            self.process = context.Process(target=_serve, args=(theirs, load, inherited), daemon=True)
            self.process.start()
            theirs.close()
        # The memory of each slot, in use while arrays of the slot's last task exist.
        self.memories: dict[int, LentMemory] = {}
        self._pending_tasks: set[int] = set()

    def send(self, calls: Sequence[tuple[object, ...]], number: int) -> int:
        """Send a task with these calls; return the slot for the results, which is a slot whose previous results are not in use."""
        slot = next(slot for slot in itertools.count() if slot not in self._pending_tasks and not self._in_use(slot))
        try:
            self.channel.send(_Task(calls, slot, number))
        except (BrokenPipeError, OSError):
            raise self._death() from None
        self._pending_tasks.add(slot)
        return slot

    def _in_use(self, slot: int) -> bool:
        return slot in self.memories and not self.memories[slot].is_free()

    def receive(self, slot: int) -> Any:
        """Return the results of the oldest task, whose slot is ``slot``; raise its callback's error, or WorkerError if the worker died."""
        self._pending_tasks.discard(slot)
        ready = connection.wait([self.channel, self.process.sentinel])
        if self.channel not in ready and not self.channel.poll():
            raise self._death()
        try:
            reply = self.channel.recv()
            if reply.size is not None:
                descriptor = _received_descriptor(self.channel)
                self.memories[slot] = LentMemory(mapped(descriptor, reply.size))
                os.close(descriptor)
        except (EOFError, OSError):
            raise self._death() from None
        if reply.error is not None:
            error, text = reply.error
            if isinstance(error, StopIteration):
                raise StopIteration
            # A plain Exception, as in DALI: the callback's error happened in another process, and its class may not
            # exist here.
            raise Exception(f"\n\nException traceback received from worker thread:\n\n{text}") from error
        memory = self.memories.get(slot)
        lent = None if memory is None else memory.lend(memory.size)
        return [fetched(data, lent) for data in reply.results]

    def _death(self) -> WorkerError:
        self.process.join(1)
        return WorkerError(
            "Worker data receiving interrupted: a worker process of an external source died "
            f"(exit code {self.process.exitcode})"
        )

    def close(self) -> None:
        self.channel.close()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
