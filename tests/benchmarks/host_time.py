"""The host's time for a batch on a GPU, measured without a GPU: GPU memory is addresses without contents, and calls of the driver do
nothing.

    PYTHONPATH=backend .venv-conformance/bin/python tests/benchmarks/host_time.py [--filter A] [--json FILE]

One thread does all work on the host, so the time of compiled code is counted, too, except for copying files and their coded data. If
several pipelines share a process, or a consumer computes in Python, this time limits the throughput of all of them.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from numba import cfunc
from numba import types as numbers
from pipelines import PHOTOGRAPHS, Pipeline, a, c, e, e_mirrored, photographs, random_crop
from rich.console import Console
from rich.table import Table
from turns import headline, keep

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels" / "cuda"))

import emulation

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs import jpeg_gpu
from penstock.kernels.cpu import blocks

BATCH, IMAGE = 64, (1080, 1920, 3)
WARM_UP, AT_A_TIME = 30, 10
_FIRST, _ALIGNMENT = 1 << 40, 512


class Memory:
    """GPU memory that consists of an address only. Addresses are reused, as in a memory pool."""

    _free: ClassVar[defaultdict[int, list[int]]] = defaultdict(list)
    _end = _FIRST

    def __init__(self, size: int) -> None:
        self._size = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        if self._free[self._size]:
            self.ptr = self._free[self._size].pop()
        else:
            self.ptr, Memory._end = Memory._end, Memory._end + self._size

    def __del__(self) -> None:
        self._free[self._size].append(self.ptr)

    def copy_from_host_async(self, *_: object) -> None:
        """Do nothing."""


class Array:
    """An array without elements, with the attributes of CuPy's arrays that Penstock uses."""

    device = SimpleNamespace(id=0)
    flags = SimpleNamespace(c_contiguous=True)

    def __init__(self, shape: Any, dtype: Any = np.float64, memory: Any = None) -> None:
        self.shape = shape if isinstance(shape, tuple) else (int(shape),)
        self.dtype, self.size, self.ndim = np.dtype(dtype), math.prod(self.shape), len(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.data = Memory(self.nbytes) if memory is None else memory
        self.strides = tuple(math.prod(self.shape[axis + 1 :]) * self.dtype.itemsize for axis in range(self.ndim))

    def __len__(self) -> int:
        return self.shape[0]


@cfunc(numbers.int32(*[numbers.uint64] * 11))
def _told(_a: int, _b: int, _c: int, _d: int, _e: int, _f: int, _g: int, _h: int, _i: int, _j: int, _k: int) -> int:
    """Stand in for a function of the driver: do nothing, and return success."""
    return 0


@cfunc(numbers.int32(numbers.int64, numbers.int64))
def _gathered(_gathering: int, _share: int) -> int:
    """Stand in for `gather_share`: copy nothing, and return success."""
    return 0


class Kernel:
    """A kernel that does nothing."""

    kernel, max_dynamic_shared_size_bytes = SimpleNamespace(ptr=1), 1 << 20

    def __call__(self, *_: object, **_named: object) -> None:
        pass


def _module(made: ModuleType) -> Any:
    """Return an emulated CuPy whose memory and kernels do nothing."""
    held: Any = made
    held.RawModule = lambda **_: SimpleNamespace(get_function=lambda _name: Kernel())
    held.ndarray, held.empty, held.zeros, held.cuda.alloc = Array, Array, Array, Memory
    return held


@contextmanager
def without_gpu() -> Iterator[None]:
    """Within the context, pipelines run on a stand-in for a GPU that does nothing and pretends to decode all images."""
    wait, make = jpeg_gpu.JpegBatch.wait, emulation._module

    def decoded(self: jpeg_gpu.JpegBatch) -> list[bool]:
        self.work.wait()
        self._states[:] = 0
        return wait(self)

    told = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 11)(_told.address)
    driver = {name: told for name in vars(emulation._DRIVER) if not name.startswith("cuDevice")}
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(emulation._DRIVER, **driver),
        patch.object(emulation, "_module", lambda: _module(make())),
        patch.object(jpeg_gpu.JpegBatch, "wait", decoded),
        patch.object(jpeg_gpu, "gather_share", _gathered),
        emulation.emulated_gpu(Path(folder)),
    ):
        yield


def rows(folder: Path) -> list[Pipeline]:
    """Return the pipelines that spend the most time in Python."""
    big = photographs(folder, BATCH)
    pixels: list[Any] = [Array(IMAGE, np.uint8) for _ in range(BATCH)]
    return [
        Pipeline("A: decode, resize shorter 256, crop 224, normalize", a(True), big),
        Pipeline("C: decode a random crop, resize, flip, normalize", c(True), big),
        Pipeline("E: 1080p pixels, resize 224, normalize", e, pixels, "HWC", on_gpu=True),
        Pipeline("E with a random mirror", e_mirrored, pixels, "HWC", on_gpu=True),
        Pipeline("random_resized_crop", random_crop, pixels, "HWC", on_gpu=True),
    ]


def running(row: Pipeline) -> Callable[[], None]:
    """Return a function that runs a batch."""

    @pipeline_def(batch_size=len(row.batch), num_threads=1, device_id=0, prefetch_queue_depth=2)
    def pipeline() -> Any:
        data = fn.external_source(name="data", device="gpu" if row.on_gpu else "cpu", layout=row.layout)
        return row.work(SimpleNamespace(fn=fn, types=types), data)

    built = pipeline()

    def run() -> None:
        built.feed_input("data", row.batch)
        built.run()

    return run


def best_of(run: Callable[[], None], seconds: float) -> float:
    """Return the shortest time, among many runs, that this thread takes for a batch, in microseconds."""
    for _ in range(WARM_UP):
        run()
    best, end = math.inf, time.monotonic() + seconds
    # Copies are skipped: the target already contains the files of an earlier batch.
    with patch.object(blocks, "_copy", lambda *_: None):
        while time.monotonic() < end:
            began = time.thread_time()
            for _ in range(AT_A_TIME):
                run()
            best = min(best, (time.thread_time() - began) / AT_A_TIME)
    return best * 1e6


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    console, kept = Console(width=130), []
    console.print(headline(), highlight=False)
    table = Table("pipeline", "microseconds", title=f"one thread's time for a batch of {BATCH}, without a GPU")
    with without_gpu():
        for row in rows(options.images):
            if options.filter in row.name:
                found = best_of(running(row), options.seconds)
                kept.append({"work": row.name, "us": found})
                table.add_row(row.name, f"{found:.0f}")
    console.print(table)
    keep("host_time", kept, options.json)


if __name__ == "__main__":
    main()
