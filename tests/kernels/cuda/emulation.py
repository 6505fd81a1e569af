"""A stand-in for CuPy on machines without a GPU: arrays in host memory, kernels compiled for the CPU by g++.

The sources of kernels are compiled unchanged, after a header (`emulation.hpp`) that runs blocks and threads one after the other. Thus all
GPU code of operators runs, including descriptors and kernels, and its results can be compared with the CPU's. Only the parts of CuPy that
Penstock uses are emulated; speed, streams and memory spaces are not.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

_HEADER = Path(__file__).with_name("emulation.hpp")
_FLAGS = ("-std=gnu++17", "-O1", "-fPIC", "-ffp-contract=off", "-march=native", "-w")


def can_emulate() -> bool:
    """Return whether a g++ that supports float16 is installed."""
    if not shutil.which("g++"):
        return False
    version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return int(version.split(".")[0]) >= 12


class _Device:
    compute_capability = "90"

    def __init__(self, device: int = 0) -> None:
        self.id = device

    def __enter__(self) -> _Device:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class _Memory:
    def __init__(self, array: np.ndarray) -> None:
        self.ptr, self._array = array.ctypes.data, array

    def copy_from_host_async(self, source: Any, size: int, stream: Any = None) -> None:
        ctypes.memmove(self.ptr, getattr(source, "value", source), size)


class _UnownedMemory:
    def __init__(self, address: int, size: int, owner: object, device_id: int = -1) -> None:
        self.address, self.size, self.owner = address, size, owner


def _memory_pointer(memory: _UnownedMemory, offset: int) -> Any:
    """Return the pointer object from which an array in this memory is made."""
    buffer = (ctypes.c_char * (memory.size - offset)).from_address(memory.address + offset)
    buffer.owner = memory.owner  # type: ignore[attr-defined]
    return buffer


class DeviceArray(np.ndarray):
    """An array with the attributes of CuPy's arrays that Penstock uses."""

    device = _Device()

    def __new__(cls, shape: Any, dtype: Any, buffer: Any) -> DeviceArray:
        memory = buffer._array if isinstance(buffer, _Memory) else buffer
        return super().__new__(cls, shape, dtype, memory)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return _Memory(self)

    def get(self) -> np.ndarray:
        return np.array(self).view(np.ndarray)

    def set(self, array: np.ndarray) -> None:
        self[...] = array


def _on_device(array: Any) -> DeviceArray:
    return np.asarray(array).view(DeviceArray)


def empty(shape: Any, dtype: Any = np.float64) -> DeviceArray:
    """Return an array with undefined contents: bytes that no computation expects."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 0xAB
    return _on_device(array)


def alloc(size: int) -> _Memory:
    """Allocate ``size`` bytes, with undefined contents."""
    return _Memory(empty(size, np.uint8))


class _Kernel:
    """A compiled kernel; called like CuPy's, or launched by the driver through its handle `ptr`."""

    known: ClassVar[dict[int, _Kernel]] = {}
    _numbers = itertools.count(1)  # no two threads get the same number

    def __init__(self, run: Any) -> None:
        self._run = run
        self.max_dynamic_shared_size_bytes = 48 * 1024
        self.ptr = next(self._numbers)
        self.known[self.ptr] = self

    @property
    def kernel(self) -> _Kernel:
        return self

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], shared_mem: int = 0
    ) -> None:
        values = [np.array(a.ctypes.data if isinstance(a, np.ndarray) and a.ndim else a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        self.launch(grid[0], block[0], pointers, shared_mem)

    def launch(self, grid: int, block: int, pointers: Any, shared_mem: int) -> None:
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise ValueError(f"{shared_mem} bytes of shared memory were not asked for")
        self._run(grid, block, pointers)


def _key(code: str) -> str:
    """Return the cache key of source code."""
    return hashlib.sha256((code + " ".join(_FLAGS)).encode()).hexdigest()[:24]


@functools.cache
def _precompiled_header(folder: Path) -> Path:
    """Return a copy of the header, precompiled: compiling the header takes longer than compiling most kernels."""
    text = _HEADER.read_text()
    header = folder / f"{_key(text)}.hpp"
    compiled = header.with_suffix(".hpp.gch")
    if not compiled.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            source, made = Path(place, header.name), Path(place, compiled.name)
            source.write_text(text)
            subprocess.run(["g++", *_FLAGS, "-x", "c++-header", str(source), "-o", str(made)], check=True)
            source.replace(header)
            made.replace(compiled)
    return header


class RawModule:
    """Source code with kernels; each kernel is compiled when it is first used."""

    folder: Path

    def __init__(self, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] = ()) -> None:
        self._code = re.sub(
            r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];",
            r"\1 *\2 = reinterpret_cast<\1 *>(emulation::shared_memory);",
            code,
        )
        self._synchronizes = "__syncthreads" in code

    def get_function(self, name: str) -> _Kernel:
        header = _precompiled_header(self.folder)
        code = (
            f'#include "{header.name}"\n{self._code}\n'
            f"static void entry(void **arguments) {{ emulation::call({name}, arguments); }}\n"
            'extern "C" void run(unsigned grid, unsigned block, void **arguments) {\n'
            f"    emulation::launch(entry, grid, block, {str(self._synchronizes).lower()}, arguments);\n}}\n"
        )
        library = self.folder / f"{_key(code)}.so"
        if not library.exists():
            # Compile in a temporary folder, and then move the complete library: another thread or process may look for the file, and
            # this one may be interrupted.
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                source, made = Path(place, f"{library.stem}.cpp"), Path(place, library.name)
                source.write_text(code)
                command = ["g++", *_FLAGS, "-shared", f"-I{self.folder}", str(source), "-o", str(made)]
                subprocess.run(command, check=True)
                source.replace(library.with_suffix(".cpp"))
                made.replace(library)
        # PyDLL holds the GIL, so that only one kernel runs at a time, as kernels share the emulated device.
        run = ctypes.PyDLL(str(library)).run
        run.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p]
        return _Kernel(run)


def _driver_function(function: Callable[..., None]) -> Any:
    """Return a driver function that C can call: it takes eleven 64-bit words, and passes the first of them to ``function``."""
    count = function.__code__.co_argcount

    def call(*words: int) -> int:
        try:
            function(*words[:count])
        except Exception:
            traceback.print_exc()
            return _INVALID
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 11)(call)


_INVALID = 1


def _launch(
    kernel: int, grid: int, _y: int, _z: int, block: int, _v: int, _w: int, shared: int, _stream: int, arguments: int
) -> None:
    _Kernel.known[kernel].launch(grid, block, ctypes.c_void_p(arguments), shared)


def _copy(target: int, source: int, size: int, _stream: int) -> None:
    ctypes.memmove(target, source, size)


def _nothing() -> None:
    pass


# The driver functions that Penstock's compiled code calls, which does not know about the emulation. They need the GIL, like
# kernels.
_DRIVER = types.SimpleNamespace(
    cuCtxSetCurrent=_driver_function(_nothing),
    cuDeviceGet=lambda _device, _number: 0,
    cuDevicePrimaryCtxRetain=lambda _context, _device: 0,
    cuEventRecord=_driver_function(_nothing),
    cuLaunchKernel=_driver_function(_launch),
    cuMemcpyAsync=_driver_function(_copy),
    cuMemcpyDtoHAsync_v2=_driver_function(_copy),
    cuMemcpyHtoDAsync_v2=_driver_function(_copy),
    cuStreamWaitEvent=_driver_function(_nothing),
    cuEventSynchronize=_driver_function(_nothing),
)


class _HostMemory:
    """Host memory that stands for pinned memory; `limit`: how many bytes can be allocated.

    The blocks are copied before they are iterated over, as other threads, and garbage collection of buffers, may change them.
    """

    def __init__(self) -> None:
        self.limit = 1 << 40
        self._blocks: dict[int, ctypes.Array[ctypes.c_char]] = {}

    def alloc(self, size: int, _flags: int) -> int:
        if sum(map(len, list(self._blocks.values()))) + size > self.limit:
            raise CUDARuntimeError(_OUT_OF_MEMORY)
        block = (ctypes.c_char * size)()
        address = ctypes.addressof(block)
        self._blocks[address] = block
        return address

    def free(self, address: int) -> None:
        del self._blocks[address]

    def attributes(self, address: int) -> Any:
        is_here = any(0 <= address - begin < len(block) for begin, block in list(self._blocks.items()))
        return types.SimpleNamespace(type=int(is_here))


_OUT_OF_MEMORY = 2


class CUDADriverError(RuntimeError):
    """The exception that CuPy raises for errors of the driver."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the driver's error {status}")
        self.status = status


class CUDARuntimeError(RuntimeError):
    """The exception that CuPy raises for errors of the runtime."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the runtime's error {status}")
        self.status = status


class _Stream:
    ptr = device_id = 0
    null: _Stream

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def record(self, event: Any = None) -> Any:
        return event or _Event()

    def wait_event(self, event: Any) -> None:
        pass


_Stream.null = _Stream()


class _Event:
    done = True
    ptr = 0

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


def _module() -> Any:
    cupy, host = types.ModuleType("cupy"), _HostMemory()
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        getDeviceCount=lambda: 1,
        memGetInfo=lambda: (1 << 30, 1 << 30),
        CUDARuntimeError=CUDARuntimeError,
        freeHost=host.free,
        host=host,
        hostAlloc=host.alloc,
        memcpyAsync=lambda target, source, size, _kind, _stream: ctypes.memmove(target, source, size),
        memcpyDefault=4,
        pointerGetAttributes=host.attributes,
        setDevice=lambda _number: None,
    )
    stream = _Stream()
    cuda = types.SimpleNamespace(
        Device=_Device,
        Event=_Event,
        ExternalStream=_Stream,
        MemoryPointer=_memory_pointer,
        Stream=_Stream,
        UnownedMemory=_UnownedMemory,
        alloc=alloc,
        driver=types.SimpleNamespace(CUDADriverError=CUDADriverError),
        get_current_stream=lambda: stream,
        runtime=runtime,
    )
    members = {
        "RawModule": RawModule,
        "asarray": lambda array, dtype=None: _on_device(np.array(array, dtype)),
        "ascontiguousarray": lambda array: _on_device(np.ascontiguousarray(array).reshape(np.shape(array))),
        "concatenate": lambda arrays: _on_device(np.concatenate(arrays)),
        "cuda": cuda,
        "empty": empty,
        "ndarray": DeviceArray,
        "zeros": lambda shape, dtype: _on_device(np.zeros(shape, dtype)),
    }
    cupy.__dict__.update(members)
    return cupy


@contextlib.contextmanager
def emulated_gpu(folder: Path) -> Iterator[None]:
    """Make Penstock find an emulated CuPy and GPU inside the context; compiled kernels are stored in ``folder``."""
    from penstock.kernels.cuda import binaries, launch, sources
    from penstock.runtime import prefetch_queue
    from penstock.tensors import cuda, driver, transfers

    def forget() -> None:
        cuda._device_count.cache_clear()
        sources._kernel_on.cache_clear()
        launch._staging_for.cache_clear()
        for known in (driver._library, driver.driver, driver.context_of, transfers._of_device, transfers._results):
            known.cache_clear()

    RawModule.folder = folder
    before, load_library, find = sys.modules.get("cupy"), driver.load_library, binaries.find
    sys.modules["cupy"], driver.load_library = _module(), lambda: _DRIVER
    # The emulation compiles sources, so no cubins must be found.
    binaries.find = lambda _digest, _capability: None
    forget()
    try:
        yield
    finally:
        # A pipeline in a reference cycle may still be preparing a batch; if that went on, the next emulation would find no GPU.
        prefetch_queue.finish_batches()
        if before is None:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = before
        driver.load_library, binaries.find = load_library, find
        forget()
