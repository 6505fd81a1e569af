"""The on-disk cache of kernels that numba compiles in this process because no library has them.

numba's cache refuses to compile for a user who cannot write to any of its folders, ignores a filled folder that is
read-only, fails on damaged files, and may mix up the entries of two processes that compile at the same time. This cache reads from
all folders, saves to the first folder that can be written, and compiles without saving if there is none. Each compiled
signature is one file with a checksum, which is written under a temporary name first.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core import config
from numba.core.caching import _Cache  # private: the interface that numba's dispatchers expect of a cache
from numba.core.codegen import CPUCodegen
from numba.core.compiler import CompileResult
from numba.core.cpu import CPUContext
from numba.core.serialize import dumps

from penstock.kernels.cpu.source_digests import Compilable
from penstock.private_folders import existing_private_folder, private_folder, users_cache

logger = logging.getLogger(__name__)

_SUFFIX = ".nbc"
_DIGEST_BYTES = hashlib.sha256().digest_size
# The addresses in numba's names of functions; they differ between processes.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class _Folder(NamedTuple):
    """A folder for the kernels of one source file.

    Attributes:
        path: the folder's path.
        root: the folder that contains it. If one folder in a root cannot be written, no others in that root are tried.
    """

    path: Path
    root: Path


class _Key(NamedTuple):
    """Everything on which compiled code depends.

    Attributes:
        signature: the types of the arguments.
        machine: the processor and its features.
        numba: numba's version.
        cells: the pickled values that the function captures from enclosing functions.
        sources: the digest of the function's source code, and of all that the code refers to.
    """

    signature: object
    machine: object
    numba: str
    cells: bytes
    sources: str


# The error because of which kernels are no longer saved in a root, by root.
_unwritable: dict[Path, OSError] = {}
_consequences: set[str] = set()


class KernelCache(_Cache):
    """The cache of the compiled signatures of one function.

    Args:
        kernel: the kernel to be compiled.
    """

    def __init__(self, kernel: Compilable) -> None:
        self._function, self._digest = kernel.py_func, kernel.digest
        function, code = kernel.py_func, kernel.py_func.__code__
        self._source = Path(code.co_filename)
        self._base = f"{self._source.stem}.{function.__qualname__}-{code.co_firstlineno}.{sys.implementation.cache_tag}"
        self._base = re.sub("[<>]", "", self._base)
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The path of the preferred folder."""
        return str(next(self._folders()).path)

    def enable(self) -> None:
        """Use the cache; this is the default."""
        self._enabled = True

    def disable(self) -> None:
        """Stop using the cache: the function is compiled in each process."""
        self._enabled = False

    def flush(self) -> None:
        """Remove this function's files, as far as permissions allow."""
        for path in self._files():
            try:
                path.unlink(missing_ok=True)
            except OSError:
                logger.info("the compiled kernel '%s' could not be removed", path)

    def load_overload(self, sig: object, target_context: CPUContext) -> CompileResult | None:
        """Return the compiled code of a signature, or None if it is not in the cache."""
        target_context.refresh()
        if not self._enabled:
            return None
        key = self._key(sig, target_context.codegen())
        for folder in self._folders():
            path = folder.path / self._name(key)
            try:
                data = path.read_bytes()
            except OSError:
                continue
            try:
                saved_key, payload = _unpacked(data)
                if saved_key == key:
                    return CompileResult._rebuild(target_context, *payload)  # private: numba's own cache calls it, too
            except Exception as error:  # unpickling damaged data may raise any error
                logger.warning("the compiled kernel '%s' is damaged and is compiled again: %s", path, error)
        return None

    def save_overload(self, sig: object, data: Any) -> None:
        """Save the compiled code of a signature, if the code is valid in other processes and a folder can be written."""
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        packed = _packed((key, data._reduce()))  # private: as for loading
        refused = list[Path]()
        for folder in self._folders(private_folder):
            if folder.root not in _unwritable:
                try:
                    _write(folder.path / self._name(key), packed)
                except OSError as error:
                    _unwritable[folder.root] = error
                else:
                    if folder.root == existing_private_folder("kernels"):
                        _warn_once(refused, f"they are saved in '{folder.root}'")
                    return
            refused.append(folder.root)
        _warn_once(refused, "each process compiles them again")

    def _folders(self, find_private: Callable[[str], Path | None] = existing_private_folder) -> Iterator[_Folder]:
        """Yield the folders to read from, or to save to, in order of preference. By default, no private folder is created."""
        parent = self._source.parent
        # The digest of the path tells apart folders of the same name, such as those of two installed versions.
        name = f"{parent.name}_{hashlib.sha256(str(parent.absolute()).encode()).hexdigest()[:16]}"
        named = vars(config)["CACHE_DIR"]  # read from NUMBA_CACHE_DIR
        if named:
            shared = Path(named)
            yield _Folder(shared / name, shared)
        else:
            yield _Folder(parent / "__pycache__", parent)
            users = users_cache("kernels")
            if users is not None:
                yield _Folder(users / name, users)
        private = find_private("kernels")
        if private is not None:
            yield _Folder(private / name, private)

    def _files(self) -> Iterator[Path]:
        for folder in self._folders():
            if folder.path.is_dir():
                yield from folder.path.glob(f"{self._base}.*{_SUFFIX}")

    def _key(self, sig: object, codegen: CPUCodegen) -> _Key:
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        return _Key(sig, codegen.magic_tuple(), numba.__version__, dumps(cells), self._digest)

    def _name(self, key: _Key) -> str:
        """Return the name of a signature's file. It does not depend on the function's sources, so that a changed function replaces it."""
        text = _ADDRESS.sub("", repr((key.signature, key.machine, key.numba, key.cells)))
        return f"{self._base}.{hashlib.sha256(text.encode()).hexdigest()[:16]}{_SUFFIX}"


def _packed(content: object) -> bytes:
    data: bytes = dumps(content)
    return hashlib.sha256(data).digest() + data


def _unpacked(data: bytes) -> tuple[_Key, tuple[object, ...]]:
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("its checksum is wrong")
    key, payload = pickle.loads(content)
    return key, payload


def _write(path: Path, data: bytes) -> None:
    """Replace a file atomically, so that no process reads an incomplete one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _warn_once(refused: list[Path], consequence: str) -> None:
    """Warn that kernels cannot be saved in these folders, only once for each ``consequence``, which the warning names."""
    if consequence not in _consequences:
        _consequences.add(consequence)
        reasons = " or ".join(f"'{root}' ({_unwritable[root].strerror})" for root in refused)
        logger.warning(
            "compiled kernels cannot be saved in %s: %s. NUMBA_CACHE_DIR can name a folder for them",
            reasons,
            consequence,
        )
