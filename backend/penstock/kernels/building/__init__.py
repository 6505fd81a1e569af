"""Compile the kernels listed in `kernels/signatures.txt` ahead of time, into libraries that need neither numba nor LLVM.

numba translates a kernel for the types of its arguments, LLVM compiles the result for a processor (`objects.py`), and a
linker makes a library of all object files (`linking.py`), which `kernels/cpu/libraries.py` loads. An object file is stored under a
digest of everything on which it depends: the kernel's code and all that this refers to, the types, the processor, and the versions
of numba and LLVM.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from penstock.core.compiling import checkout, compiler, compiler_for_wheels
from penstock.kernels import recording
from penstock.kernels.building.linking import MEMORY, link
from penstock.kernels.building.targets import Target, levels, this_machine
from penstock.kernels.cpu import libraries
from penstock.kernels.cpu.source_digests import count_functions
from penstock.kernels.cuda import binaries
from penstock.kernels.recording import Signature
from penstock.machine import processes_of

_SYMBOL = "penstock_kernel_"
_KERNELS_AT_ONCE = 24
"""The maximum number of kernels of a module that a process compiles in one go."""
_PARTS_OF_PROCESS = 4
"""The number of parts, each of some kernels of a module, that there should be for each process, so that all end at about the same time."""
_PROCESS_BYTES = 3 << 29
"""The memory for each process that compiles, in bytes. One of two that compiled 825 kernels took up to 1.1 GB."""


@dataclass
class Built:
    """The outcome of compiling the listed kernels.

    Attributes:
        compiled: the number of kernels that were compiled.
        kept: the number of kernels that had not changed.
        failures: for each kernel that could not be compiled, the reason.
        seconds: the time that compiling took.
    """

    compiled: int = 0
    kept: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = f"{self.compiled} compiled, {self.kept} kept, {len(self.failures)} failed"
        return f"kernels: {counts}, in {self.seconds:.0f} s"


class _Job(NamedTuple):
    """A kernel to compile.

    Attributes:
        signature: the kernel, and the types for which it is compiled.
        digest: the digest of the kernel's sources.
        key: the digest of everything on which the object file depends.
        folder: the folder for object files.
        target: the processor.
    """

    signature: Signature
    digest: str
    key: str
    folder: Path
    target: Target

    @property
    def functions(self) -> int:
        """The number of functions that are compiled with the kernel, to which the time is about proportional."""
        from penstock.kernels.building.objects import find_kernel

        return count_functions(find_kernel(self.signature.name).py_func)

    @property
    def object(self) -> Path:
        """The path of the object file."""
        return self.folder / f"{self.key}.o"

    @property
    def results(self) -> Path:
        """The path of the file with the type of the kernel's results; it is written after the object file."""
        return self.folder / f"{self.key}.results"


def default_processes() -> int:
    """Return how many processes compile at once by default: one for each core, if there is memory for them."""
    return processes_of(_PROCESS_BYTES)


def build_here(processes: int | None = None, first: bool = False) -> Built:
    """Compile kernels for this machine into the checkout's `build/kernels`.

    Args:
        processes: the number of processes that compile at the same time; None: :func:`default_processes`.
        first: whether to compile only the kernels that the demonstration and common pipelines need. Others that were compiled before
            stay in the library.

    Raises:
        ValueError: the package is not in a checkout.
    """
    folder, root = libraries.folder_in_checkout(), checkout()
    if folder is None or root is None:
        raise ValueError(
            "kernels can be compiled ahead of time only in a source checkout, and this penstock is installed"
        )
    wanted = frozenset(recording.read(recording.FIRST)) if first else None
    return build_library(recording.read(), this_machine(), folder / libraries.NAME, compiler(), processes, wanted)


def build_levels(architecture: str, processes: int | None = None) -> Built:
    """Compile kernels for all levels of an architecture's processors into the checkout's folder for wheels.

    Args:
        architecture: the wheel's architecture: ``x86_64`` or ``aarch64``.
        processes: the number of processes that compile at the same time; None: :func:`default_processes`.

    Raises:
        ValueError: the package is not in a checkout, or there are no levels for the architecture.
        CompilerError: the linker for wheels is not installed.
    """
    root, total = checkout(), Built()
    if root is None:
        raise ValueError("kernels for wheels can be compiled only in a source checkout, and this penstock is installed")
    linker = compiler_for_wheels(architecture)
    for target in levels(architecture):
        library = libraries.folder_of_levels(root, architecture) / target.name / libraries.NAME
        built = build_library(recording.read(), target, library, linker, processes)
        total.compiled, total.kept = total.compiled + built.compiled, total.kept + built.kept
        total.failures += built.failures
        total.seconds += built.seconds
    return total


def build_cuda_here(threads: int = 2) -> int:
    """Compile the CUDA kernels for all GPUs into a folder of the checkout, from which they are also packed into wheels.

    Args:
        threads: the number of threads that compile.

    Returns:
        The number of kernels compiled.

    Raises:
        ValueError: the package is not in a checkout.
        NvrtcError: NVRTC is not installed, or a kernel cannot be compiled.
    """
    from penstock.kernels.building.cuda import build_cuda

    root = checkout()
    if root is None:
        raise ValueError("kernels for wheels can be compiled only in a source checkout, and this penstock is installed")
    return build_cuda(recording.read_cuda(), root / binaries.FOLDER / binaries.NAME, threads)


def build_library(
    signatures: Iterable[Signature],
    target: Target,
    library: Path,
    linker: Sequence[str],
    processes: int | None = None,
    wanted: frozenset[Signature] | None = None,
) -> Built:
    """Compile kernels into a library; object files in its folder that are up to date are reused.

    Args:
        signatures: the signatures of the kernels in the library.
        target: the processor.
        library: the path of the library.
        linker: the command of a C++ compiler for the target.
        processes: the number of processes that compile at the same time; None: :func:`default_processes`.
        wanted: the signatures among ``signatures`` to compile if they are not up to date; by default, all.
    """
    begin, built, objects = time.perf_counter(), Built(), library.parent / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    jobs = list(_jobs(signatures, objects, target, built.failures))
    missing = [job for job in jobs if not job.results.is_file()]
    built.kept = len(jobs) - len(missing)
    missing = [job for job in missing if wanted is None or job.signature in wanted]
    built.compiled = len(missing)
    for failure in _compile_all(missing, processes or default_processes()):
        built.failures.append(failure)
        built.compiled -= 1
    done = [job for job in jobs if job.results.is_file()]
    index = _index(done, target)
    if _contents(library) != index["contents"]:
        link([job.object for job in done], index, target, library, linker)
    current = {path for job in done for path in (job.object, job.results)}
    for path in objects.iterdir():
        if path not in current:
            path.unlink(missing_ok=True)
    built.seconds = time.perf_counter() - begin
    return built


def _jobs(signatures: Iterable[Signature], folder: Path, target: Target, failures: list[str]) -> Iterable[_Job]:
    """Yield a job for each kernel; add kernels that do not exist to ``failures``."""
    from penstock.kernels.building.objects import find_kernel

    versions = libraries.FORMAT, version("numba"), version("llvmlite"), target
    for signature in signatures:
        try:
            kernel = find_kernel(signature.name)
        except LookupError as error:
            failures.append(f"{signature}: {error}")
            continue
        key = hashlib.sha256(repr((versions, str(signature), kernel.digest)).encode()).hexdigest()[:24]
        yield _Job(signature, kernel.digest, key, folder, target)


def _compile_all(jobs: Sequence[_Job], processes: int) -> Iterable[str]:
    """Compile all kernels, and yield the failures. The same process compiles several kernels of a module, because these share
    functions. What takes longest is begun first, so that all processes end at about the same time.
    """
    modules = defaultdict[str, list[_Job]](list)
    for job in jobs:
        modules[job.signature.name.partition(":")[0]].append(job)
    size = max(min(len(jobs) // (_PARTS_OF_PROCESS * processes), _KERNELS_AT_ONCE), 1)
    parts = [own[begin : begin + size] for own in modules.values() for begin in range(0, len(own), size)]
    parts.sort(key=lambda part: sum(job.functions for job in part), reverse=True)
    if processes <= 1 or len(parts) == 1:
        for part in parts:
            yield from _compile_part(part)
        return
    # Forked processes would inherit locks that the parent's threads hold.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_compile_part, part) for part in parts]):
            yield from future.result()


def _compile_part(jobs: Sequence[_Job]) -> list[str]:
    """Compile some kernels; return the failures."""
    from penstock.kernels.building.objects import compile_object

    failures = []
    for job in jobs:
        try:
            made = compile_object(job.signature, _SYMBOL + job.key, job.target)
        except Exception as error:  # numba's errors have no common base
            failures.append(f"{job.signature}: {type(error).__name__}: {str(error).strip()[-1000:]}")
            continue
        job.object.write_bytes(made.data)
        partial = job.results.with_suffix(".partial")
        partial.write_text(made.results)
        partial.replace(job.results)
    return failures


def _index(jobs: Sequence[_Job], target: Target) -> dict[str, object]:
    """Return the index that `libraries.py` reads from a library: for each kernel and each list of types of arguments, the digest of the
    sources, the symbol, and the type of the results.
    """
    entries = defaultdict[str, dict[str, list[str]]](dict)
    for job in jobs:
        kind, name, types = job.signature
        entries[f"{kind.value} {name}"][types] = [job.digest, _SYMBOL + job.key, job.results.read_text()]
    sources = b"".join(path.read_bytes() for path in MEMORY.sources())
    contents = hashlib.sha256(repr(sorted(job.key for job in jobs)).encode() + sources).hexdigest()[:24]
    return {"target": target.name, "cpu": target.cpu, "contents": contents, "entries": entries}


def _contents(library: Path) -> str:
    """Return the digest of the files from which a library was linked; empty if there is no library. The file is searched for the digest,
    not loaded, because it may be for another architecture.
    """
    found = re.search(rb'"contents":"([0-9a-f]+)"', library.read_bytes()) if library.is_file() else None
    return found[1].decode() if found else ""
