"""Worker processes for decoding data that may crash the decoder.

A worker runs one task at a time. Requests and answers are lines of JSON over a socket; encoded and decoded bytes are in shared memory. If a
worker dies or takes too long, only one sample fails, and the next task gets a fresh worker. Answers are used only as numbers and pixels, as
workers are not trusted.

The memory is anonymous (``memfd_create``), so it is released when both processes have ended, whichever dies first. The kernel ends a worker
whose parent dies (``O_ASYNC``), even inside a library. Workers are started with a fresh interpreter, not with ``fork``, which is not safe
while other threads run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DecoderDiedError, DecoderTimeoutError, PenstockError

LENGTH = struct.Struct("<I")
_STARTING_SECONDS = 60.0
# The shortest time limit of a task, in seconds, and the rate by which the limit grows for large data.
_SECONDS, _BYTES_PER_SECOND = 30.0, 4 << 20
_MAX_ANSWER_BYTES = 1 << 20
# Memory is reserved in powers of two, and released when a task needs less than a quarter of it.
_MIN_MEMORY, _LARGE_MEMORY = 1 << 20, 64 << 20
# A worker that has shared more memory than this is ended after its task, as starting another one takes less time than decoding that
# much.
_MAX_KEPT_MEMORY = 256 << 20
_ALIGNMENT = 64
# Workers see no GPU. They retain the last image's memory for the next one, as page faults took longer than decoding some images.
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main({numbers})"
_WORKER = "penstock.kernels.codecs.worker"


class WorkerStartError(PenstockError):
    """Raised if no worker process could be started."""


class DecoderPool:
    """A few decoding processes, each of which is started when it is first needed.

    Args:
        most: the largest number of concurrent tasks.
        seconds: the time limit of a task, which is longer for large data.

    Attributes:
        decodes: the number of finished tasks, successful or not.
        deaths: the number of workers that died, including timeouts.
        timeouts: the number of workers that took too long.
    """

    def __init__(self, most: int, seconds: float = _SECONDS) -> None:
        self.decodes = self.deaths = self.timeouts = 0
        self._seconds = seconds
        self._free: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._places = threading.Semaphore(max(most, 1))
        self._lock = threading.Lock()
        self._closed = False
        self._owner = os.getpid()

    def run(
        self,
        task: str,
        kind: str,
        data: np.ndarray,
        arguments: dict[str, object] | None = None,
        output: np.ndarray | None = None,
        memory: int | None = None,
    ) -> Any:
        """Run a task in a worker, and wait for it.

        Args:
            task: the task's name in the worker.
            kind: the name of the format in error messages.
            data: the encoded bytes, uint8 of shape (n,).
            arguments: further arguments, which must be serializable as JSON.
            output: the array that the task fills; None: it fills none.
            memory: the number of bytes that the task may allocate, besides data and output; None: the default limit.

        Returns:
            The task's answer, as JSON.

        Raises:
            DecoderDiedError: the worker died.
            DecoderTimeoutError: the task took too long.
            PenstockError: the task itself raised it.
        """
        with self._places:
            worker = self._take()
            try:
                answer = worker.run(task, data, arguments or {}, output, memory, self._allowed(data, output))
            except BaseException as error:
                self._drop(worker)
                if isinstance(error, TimeoutError):
                    self._count(died=True, late=True)
                    raise DecoderTimeoutError(
                        f"The decoder of {kind} took more than {self._allowed(data, output):.0f} s for this file "
                        f"({data.size} bytes) and was ended"
                    ) from None
                if isinstance(error, _WorkerGone):
                    self._count(died=True)
                    raise DecoderDiedError(
                        f"The decoder of {kind} died on this file ({data.size} bytes): {error}"
                    ) from None
                raise
            is_broken = answer.get("error") == WorkerStartError.__name__
            if is_broken or worker.memory_size > _MAX_KEPT_MEMORY:
                self._drop(worker)
            else:
                self._give_back(worker)
        self._count()
        if "error" in answer:
            raise _raised(str(answer["error"]), str(answer.get("message", "")))
        return answer.get("result")

    def close(self) -> None:
        """End the workers; tasks that are running fail."""
        if os.getpid() != self._owner:
            return  # A forked copy of the owner must not end the owner's workers.
        with self._lock:
            self._closed = True
            idle, self._free = self._free, []
            busy = self._all.difference(idle)
            self._all.difference_update(idle)
        for worker in idle:
            worker.close()
        for worker in busy:
            # The thread that waits for this worker closes the connection.
            worker.kill()

    def pids(self) -> list[int]:
        """Return the process IDs of the running workers."""
        with self._lock:
            return [worker.pid for worker in self._all]

    def _allowed(self, data: np.ndarray, output: np.ndarray | None) -> float:
        return self._seconds + (data.size + (0 if output is None else output.nbytes)) / _BYTES_PER_SECOND

    def _take(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise RuntimeError("The pipeline that owns the decoding processes was closed")
            if self._free:
                return self._free.pop()
        worker = _Worker()
        with self._lock:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(worker)
                return
        self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def _count(self, died: bool = False, late: bool = False) -> None:
        with self._lock:
            self.decodes += not died
            self.deaths += died
            self.timeouts += late


class _WorkerGone(Exception):
    """The worker has closed its end of the socket, or sent an invalid answer."""


class _Worker:
    """A worker process, as its parent sees it."""

    def __init__(self) -> None:
        self._memory: _SharedMemory | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            try:
                self._socket, their_socket = socket.socketpair()
                ours.callback(self._socket.close)
                theirs.callback(their_socket.close)
                lifeline, self._lifeline = os.pipe()
                ours.callback(os.close, self._lifeline)
                theirs.callback(os.close, lifeline)
                log = os.memfd_create("penstock-worker-log")
                theirs.callback(os.close, log)
                numbers = [their_socket.fileno(), lifeline]
                boot = _BOOT.format(module=_WORKER, numbers=", ".join(map(str, numbers)))
                self._process = subprocess.Popen(
                    [_interpreter(), "-I", "-c", boot, json.dumps(_search_path())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=numbers,
                    env={**os.environ, **_ENVIRONMENT},
                )
            except OSError as error:
                raise WorkerStartError(f"No process for decoding could be started: {error}") from error
            # From here on, `close` releases the process and its memory.
            ours.pop_all()
            their_socket.close()
            try:
                self._receive(time.monotonic() + _STARTING_SECONDS)
            except (_WorkerGone, TimeoutError) as error:
                said = os.pread(log, 2000, max(os.fstat(log).st_size - 2000, 0)).decode(errors="replace")
                self.close()
                raise WorkerStartError(f"The process for decoding did not start: {error}\n{said}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def memory_size(self) -> int:
        """The size of the memory shared with the worker, in bytes."""
        return 0 if self._memory is None else self._memory.size

    def run(
        self,
        task: str,
        data: np.ndarray,
        arguments: dict[str, object],
        output: np.ndarray | None,
        memory: int | None,
        seconds: float,
    ) -> dict[str, Any]:
        """Send a task to the worker and return the answer; fill ``output`` if the task succeeded."""
        deadline = time.monotonic() + seconds
        start = -(-data.size // _ALIGNMENT) * _ALIGNMENT
        size = start + (0 if output is None else output.nbytes)
        new = self._provide(size)
        assert self._memory is not None
        self._memory.view[: data.size] = data
        request = {
            "task": task,
            "arguments": arguments,
            "data": int(data.size),
            "output": None if output is None else [start, list(output.shape), output.dtype.str],
            "memory": memory,
        }
        self._send(json.dumps(request).encode(), [self._memory.file] if new else [], deadline)
        answer = self._receive(deadline)
        if output is not None and "error" not in answer:
            decoded = self._memory.view[start : start + output.nbytes].view(output.dtype).reshape(output.shape)
            np.copyto(output, decoded)
        return answer

    def _provide(self, size: int) -> bool:
        """Ensure that there are at least ``size`` bytes of shared memory; return whether they are new."""
        held = self._memory
        if held is not None and size <= held.size and not (held.size > _LARGE_MEMORY and 4 * size < held.size):
            return False
        if held is not None:
            self._memory = None
            held.close()
        self._memory = _SharedMemory(1 << (max(size, _MIN_MEMORY) - 1).bit_length())
        return True

    def _send(self, message: bytes, files: list[int], deadline: float) -> None:
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            packed = memoryview(LENGTH.pack(len(message)) + message)
            sent = socket.send_fds(self._socket, [packed], files)
            # Send only if there is data left: sending fails if the worker has already answered and ended.
            if sent < len(packed):
                self._socket.sendall(packed[sent:])
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise _WorkerGone(self._how_it_ended()) from error

    def _receive(self, deadline: float) -> dict[str, object]:
        (length,) = LENGTH.unpack(self._read(LENGTH.size, deadline))
        if length > _MAX_ANSWER_BYTES:
            raise _WorkerGone(f"it answered with {length} bytes")
        try:
            answer = json.loads(self._read(length, deadline))
        except (ValueError, RecursionError) as error:
            raise _WorkerGone("its answer is not valid") from error
        if not isinstance(answer, dict):
            raise _WorkerGone("its answer is not valid")
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                part = self._socket.recv(size - len(parts))
            except ConnectionError as error:
                raise _WorkerGone(self._how_it_ended()) from error
            if not part:
                raise _WorkerGone(self._how_it_ended())
            parts += part
        return bytes(parts)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        if code >= 0:
            return f"its process ended with the exit code {code}"
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process was ended by the signal {-code}"

    def kill(self) -> None:
        """End the process, so that the thread that waits for an answer wakes up."""
        self._process.kill()

    def close(self) -> None:
        """End the process, and release its resources."""
        self.kill()
        self._socket.close()
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        self._process.wait()
        if self._memory is not None:
            self._memory.close()
            self._memory = None


class _SharedMemory:
    """Anonymous memory that is shared with another process by its file descriptor.

    It is sealed, so that the other process cannot shrink it: reading beyond the end of a file would kill this process.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.file = os.memfd_create("penstock-decoding", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.file, size)
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self.view = np.frombuffer(mmap.mmap(self.file, size), np.uint8)
        except BaseException:
            os.close(self.file)
            raise

    def close(self) -> None:
        """Release the memory; the mapping ends with the last view of it."""
        del self.view
        os.close(self.file)


def _raised(kind: str, message: str) -> Exception:
    """Return the exception that a worker reported."""
    from penstock.errors import LimitError
    from penstock.kernels.codecs.headers.audio import CorruptRecordingError
    from penstock.kernels.codecs.headers.video import CorruptVideoError
    from penstock.kernels.codecs.image_errors import CorruptImageError, NotAnImageError

    known = (
        *(CorruptImageError, NotAnImageError, CorruptRecordingError, CorruptVideoError),
        *(LimitError, ValueError, MemoryError, WorkerStartError),
    )
    found = next((error for error in known if error.__name__ == kind), PenstockError)
    return found(message)


def _search_path() -> list[str]:
    """Return the module search path of this process, with the folder that this package is in.

    Folders that are packages themselves are left out: while another thread imports OpenCV, OpenCV's folder is in the path, and a process
    would find `cv2/typing` instead of Python's `typing`.
    """
    found = [path for path in map(os.path.abspath, sys.path) if not os.path.isfile(os.path.join(path, "__init__.py"))]
    own = str(Path(__file__).parents[3])
    return found if own in found else [own, *found]


def _interpreter() -> str:
    """Return an interpreter of this Python's version; if Python is embedded, the running program is not an interpreter."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    folders = [Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), Path(sysconfig.get_config_var("BINDIR") or "/")]
    for folder in folders:
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise WorkerStartError(
            f"No interpreter '{name}' was found to start a decoding process; looked in {', '.join(map(str, folders))} and on PATH"
        )
    return found
