"""Compiling kernels ahead of time: those in the list of `kernels/signatures.txt`, as libraries that need neither numba nor LLVM.

numba translates a kernel for the types of its arguments, LLVM compiles the result for a processor (`objects.py`), and a
linker makes a library of all (`linking.py`), which `kernels/cpu/libraries.py` loads. An object file is stored under a
digest of all that it depends on: its kernel's code and what that refers to, the types, the processor, and the versions
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
from penstock.kernels.cuda import binaries
from penstock.kernels.recording import Signature

_SYMBOL = "penstock_kernel_"
_KERNELS_AT_ONCE = 24
"""The number of a module's kernels that a process compiles before another process may take the next ones, so that all
processes end at about the same time.
"""


@dataclass
class Built:
    """The outcome of compiling the listed kernels.

    Attributes:
        compiled: how many were compiled.
        kept: the number of kernels that had not changed.
        failures: for each kernel that could not be compiled, the reason.
        seconds: the time that it took.
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
        signature: the kernel, and the types it is compiled for.
        digest: its sources' digest.
        key: a digest of all that the object depends on.
        folder: the folder for object files.
        target: the processor.
    """

    signature: Signature
    digest: str
    key: str
    folder: Path
    target: Target

    @property
    def object(self) -> Path:
        """The object's file."""
        return self.folder / f"{self.key}.o"

    @property
    def results(self) -> Path:
        """The file with the type of its results, which is written last."""
        return self.folder / f"{self.key}.results"


def build_here(processes: int = 2, first: bool = False) -> Built:
    """Compile for this machine, into the checkout.

    Args:
        processes: the number of processes that compile at once.
        first: whether to compile only what the demonstration and the usual pipelines need; other compiled kernels stay.

    Raises:
        ValueError: the package is not in a checkout.
    """
    folder, root = libraries.folder_in_checkout(), checkout()
    if folder is None or root is None:
        raise ValueError("kernels are compiled in a checkout, and into wheels; this penstock was installed")
    wanted = frozenset(recording.read(recording.FIRST)) if first else None
    return build_library(recording.read(), this_machine(), folder / libraries.NAME, compiler(), processes, wanted)


def build_levels(architecture: str, processes: int = 2) -> Built:
    """Compile for all levels of an architecture's processors, into the checkout's folder for wheels.

    Args:
        architecture: the wheel's: ``x86_64`` or ``aarch64``.
        processes: the number of processes that compile at once.

    Raises:
        ValueError: the package is not in a checkout, or there are no levels for the architecture.
        CompilerError: the linker for wheels is not installed.
    """
    root, total = checkout(), Built()
    if root is None:
        raise ValueError("kernels for wheels are compiled in a checkout; this penstock was installed")
    linker = compiler_for_wheels(architecture)
    for target in levels(architecture):
        library = libraries.folder_of_levels(root, architecture) / target.name / libraries.NAME
        built = build_library(recording.read(), target, library, linker, processes)
        total.compiled, total.kept = total.compiled + built.compiled, total.kept + built.kept
        total.failures += built.failures
        total.seconds += built.seconds
    return total


def build_cuda_here(threads: int = 2) -> int:
    """Compile the CUDA kernels for all GPUs into the checkout's folder, which the build of wheels reads, too.

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
        raise ValueError("kernels for wheels are compiled in a checkout; this penstock was installed")
    return build_cuda(recording.read_cuda(), root / binaries.FOLDER / binaries.NAME, threads)


def build_library(
    signatures: Iterable[Signature],
    target: Target,
    library: Path,
    linker: Sequence[str],
    processes: int = 2,
    wanted: frozenset[Signature] | None = None,
) -> Built:
    """Compile kernels into a library; unchanged object files are taken from its folder.

    Args:
        signatures: the kernels' signatures.
        target: the processor.
        library: its file.
        linker: the command of a C++ compiler for the target.
        processes: the number of processes that compile at once.
        wanted: compile only these of them; by default, all.
    """
    begin, built, objects = time.perf_counter(), Built(), library.parent / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    jobs = list(_jobs(signatures, objects, target, built.failures))
    missing = [job for job in jobs if not job.results.is_file()]
    built.kept = len(jobs) - len(missing)
    missing = [job for job in missing if wanted is None or job.signature in wanted]
    built.compiled = len(missing)
    for failure in _compile_all(missing, processes):
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
    """Yield the kernels to compile; add those that do not exist to ``failures``."""
    from penstock.kernels.building.objects import find_kernel

    versions = libraries.FORMAT, version("numba"), version("llvmlite"), target
    for signature in signatures:
        try:
            digest = find_kernel(signature.name).digest
        except LookupError as error:
            failures.append(f"{signature}: {error}")
            continue
        key = hashlib.sha256(repr((versions, str(signature), digest)).encode()).hexdigest()[:24]
        yield _Job(signature, digest, key, folder, target)


def _compile_all(jobs: Sequence[_Job], processes: int) -> Iterable[str]:
    """Compile all kernels, and yield the failures. Kernels of a module share functions, so a process compiles several
    of these.
    """
    modules = defaultdict[str, list[_Job]](list)
    for job in jobs:
        modules[job.signature.name.partition(":")[0]].append(job)
    parts = [
        own[begin : begin + _KERNELS_AT_ONCE]
        for own in sorted(modules.values(), key=len, reverse=True)
        for begin in range(0, len(own), _KERNELS_AT_ONCE)
    ]
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
    """Return the index that `libraries.py` reads from a library: for each kernel, and each list of types, digest,
    symbol and results.
    """
    entries = defaultdict[str, dict[str, list[str]]](dict)
    for job in jobs:
        kind, name, types = job.signature
        entries[f"{kind.value} {name}"][types] = [job.digest, _SYMBOL + job.key, job.results.read_text()]
    sources = b"".join(path.read_bytes() for path in MEMORY.sources())
    contents = hashlib.sha256(repr(sorted(job.key for job in jobs)).encode() + sources).hexdigest()[:24]
    return {"target": target.name, "cpu": target.cpu, "contents": contents, "entries": entries}


def _contents(library: Path) -> str:
    """Return the digest of the files that a library was linked from; empty if there is no library. It may be for another
    architecture, so it is searched, not loaded.
    """
    found = re.search(rb'"contents":"([0-9a-f]+)"', library.read_bytes()) if library.is_file() else None
    return found[1].decode() if found else ""
