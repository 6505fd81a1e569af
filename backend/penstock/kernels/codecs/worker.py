"""The code that worker processes of :class:`~penstock.kernels.codecs.worker_pool.DecoderPool` run."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import json
import mmap
import os
import resource
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from penstock.kernels.codecs.worker_pool import LENGTH, WorkerStartError

# The function that runs each task: `function(data, output, **arguments)` returns the answer.
_TASKS = {
    "read_image_header": "penstock.kernels.codecs.image_worker:read_header_in_worker",
    "decode_image": "penstock.kernels.codecs.image_worker:decode_in_worker",
    "decode_as_pillow": "penstock.kernels.codecs.transparency:decode_as_pillow_in_process",
    "read_recording_header": "penstock.kernels.codecs.audio:read_header_in_worker",
    "decode_recording": "penstock.kernels.codecs.audio:decode_in_worker",
    "open_video": "penstock.kernels.codecs.video:open_in_worker",
    "decode_frames": "penstock.kernels.codecs.video:decode_in_worker",
    "open_sound": "penstock.kernels.codecs.video:open_sound_in_worker",
    "decode_sound": "penstock.kernels.codecs.video:decode_sound_in_worker",
}
_NO_NEW_PRIVILEGES = 38
# The memory that a decoder may use by default: a base, and more for each byte of encoded data.
_MEMORY, _MEMORY_PER_BYTE = 1 << 30, 16
# Added to that limit, or to the estimate in the request, for code and threads.
_CODE_AND_THREAD_BYTES = 256 << 20
_MAX_FILES = 4


def main(channel: int, lifeline: int) -> None:
    """Run tasks until the parent closes its end of the socket.

    Args:
        channel: file descriptor of the socket.
        lifeline: file descriptor of a pipe whose other end is closed when the parent ends.
    """
    _end_with_parent(lifeline)
    _give_up_privileges()
    connection = socket.socket(fileno=channel)
    memory = np.empty(0, np.uint8)
    # A process that fails once it is ready would be taken for one that a file has ended.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _send(connection, {"ready": os.getpid()})
    os.dup2(nowhere, 2)
    while True:
        request, files = _receive(connection)
        try:
            for file in files:
                memory = np.frombuffer(mmap.mmap(file, 0), np.uint8)
                os.close(file)
        except OSError as error:
            _send(connection, _failure(f"The process to decode in has no memory to share: {error}"))
            return  # the parent has closed the socket
        _send(connection, _answer(request, memory))


def _end_with_parent(lifeline: int) -> None:
    """Make the kernel end this process when its parent ends, whatever this process is doing."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)  # private: documented, and without a public name


def _give_up_privileges() -> None:
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # If the machine runs out of memory, the kernel should kill the worker rather than its parent.
    Path("/proc/self/oom_score_adj").write_text("1000")


def _failure(message: str) -> dict[str, object]:
    """Return the answer of a process that cannot work, whatever the data are."""
    return {"error": WorkerStartError.__name__, "message": message}


def _answer(request: dict[str, Any], memory: np.ndarray) -> dict[str, object]:
    size, place = request["data"], request["output"]
    data = memory[:size]
    data.flags.writeable = False
    output = None
    if place is not None:
        start, shape, dtype = place
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        output = memory[start : start + count].view(dtype).reshape(shape)
    allowed = request["memory"]
    if allowed is None:
        allowed = _MEMORY + _MEMORY_PER_BYTE * (size + (0 if output is None else output.nbytes))
    try:
        _limit_memory(allowed + _CODE_AND_THREAD_BYTES)
    except OSError as error:
        return _failure(f"The memory of the process to decode in cannot be limited: {error}")
    try:
        return {"result": _function(request["task"])(data, output, **request["arguments"])}
    except MemoryError:
        return {
            "error": "LimitError",
            "message": f"Decoding takes more than the {allowed} bytes that its header suggests",
        }
    except Exception as error:
        # The data are in memory, so an error with an error number comes from the system; a library's complaint about the data has none.
        if isinstance(error, OSError) and error.errno is not None:
            return _failure(str(error))
        return {"error": type(error).__name__, "message": str(error)[:10_000]}


def _function(task: str) -> Callable[..., object]:
    module, _, name = _TASKS[task].partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _limit_memory(size: int) -> None:
    """Limit this process to ``size`` bytes more than it uses now, so that a decoder cannot exhaust the machine's memory."""
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = used + size
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


def _receive(connection: socket.socket) -> tuple[dict[str, object], list[int]]:
    message, files, _, _ = socket.recv_fds(connection, LENGTH.size, _MAX_FILES)
    message += _read(connection, LENGTH.size - len(message))
    (length,) = LENGTH.unpack(message)
    return json.loads(_read(connection, length)), files


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            os._exit(0)  # private: documented, and without a public name
        parts += part
    return bytes(parts)


def _send(connection: socket.socket, message: dict[str, object]) -> None:
    packed = json.dumps(message).encode()
    connection.sendall(LENGTH.pack(len(packed)) + packed)
