"""Kernels that Python calls: compiled ahead of time if a library has them, otherwise compiled by numba at the first call."""

from __future__ import annotations

import functools
import importlib.util
import logging
import threading
from typing import Any, cast

import numpy as np

from penstock.errors import PenstockError
from penstock.kernels import recording
from penstock.kernels.cpu import libraries
from penstock.kernels.cpu.calls import Caller, NativeCode
from penstock.kernels.cpu.signatures import UnknownTypeError, described
from penstock.kernels.cpu.source_digests import Function, digest_of

logger = logging.getLogger(__name__)

_resolving = threading.RLock()


class MissingCompilerError(PenstockError, ImportError):
    """A kernel has to be compiled, and numba is not installed."""


class Compiled:
    """A function that numba compiles.

    Args:
        function: the Python function.
        options: numba's options.

    Attributes:
        py_func: the function in Python.
        targetoptions: the options; numba reads both attributes, under these names, when it inlines the function.
    """

    def __init__(self, function: Function, options: dict[str, object]) -> None:
        functools.update_wrapper(cast(Function, self), function)
        self.py_func, self.targetoptions = function, options

    @property
    def name(self) -> str:
        """The name by which libraries identify the function."""
        return f"{self.__module__}:{self.py_func.__qualname__}"

    @functools.cached_property
    def digest(self) -> str:
        """The digest of everything on which the compiled code depends."""
        return digest_of(self.py_func, self.targetoptions)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The dispatcher of numba that compiles the function.

        Raises:
            MissingCompilerError: numba is not installed.
        """
        if importlib.util.find_spec("numba") is None:
            raise MissingCompilerError(
                f"{self.name} was not compiled for these types when this penstock was built, and numba, which compiles it, is "
                "not installed: pip install numba"
            )
        from penstock.kernels.cpu.compiling import dispatcher_of

        return dispatcher_of(self)

    @property
    def _numba_type_(self) -> object:
        return self.dispatcher._numba_type_

    def found(self, kind: libraries.Kind, types: str) -> libraries.Entry | None:
        """Return a library's code for these types of arguments; None if numba has to compile it."""
        recording.record(kind, self.name, types)
        library = libraries.library()
        entry = None if library is None else library.find(kind, self, types)
        if library is not None and entry is None:
            # In a source checkout, libraries contain only the most common types; in an installed package, they should contain all.
            level = logging.INFO if library.checks_sources else logging.WARNING
            logger.log(level, "%s is compiled now, as no library has it for (%s)", self.name, types)
        return entry


class Kernel(Compiled):
    """A function that is compiled for the types of the arguments it is called with."""

    def __init__(self, function: Function, options: dict[str, object]) -> None:
        super().__init__(function, options)
        self._call: Function = self._begin
        self._codes = dict[str, NativeCode | Function]()

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    @property
    def signatures(self) -> list[object]:
        """The types of arguments for which the kernel's code has been found or compiled so far."""
        return list(self._codes) or list(vars(self)["dispatcher"].signatures if "dispatcher" in vars(self) else [])

    def address(self, types: str) -> int:
        """Return the address of the kernel's code for these types of arguments, which has to be called by numba's convention. The kernel
        must neither raise errors nor allocate memory.

        Args:
            types: the types, written as in :mod:`penstock.kernels.cpu.signatures`.
        """
        with _resolving:
            entry = self.found(libraries.Kind.ADDRESS, types)
            if entry is not None:
                return entry.address
            from penstock.kernels.cpu.compiling import address_of

            return address_of(self.dispatcher, types)

    def _begin(self, *arguments: object) -> object:
        with _resolving:
            if self._call == self._begin:
                if libraries.library() is None and not recording.is_on():
                    self._call = self.dispatcher
                else:
                    self._caller = Caller(self.name, self._resolve)
                    self._call = self._caller.call
        return self._call(*arguments)

    def _resolve(self, *arguments: object) -> object:
        """Find or compile the code for arguments of new types, and call it."""
        given = [_plain(argument) for argument in arguments]
        if any(one is not other for one, other in zip(given, arguments)):
            return self._call(*given)
        try:
            types, program = described(given)
        except UnknownTypeError:
            return self.dispatcher(*given)
        with _resolving:
            if types not in self._codes:
                entry = self.found(libraries.Kind.CALL, types)
                self._codes[types] = self.dispatcher if entry is None else entry.native_code()
            self._caller.add(len(given), program, self._codes[types], not self.targetoptions.get("nogil"))
        return self._call(*given)


class Callback(Compiled):
    """A function that C code calls.

    Args:
        arguments, result: the types of the arguments and the result, written as in :mod:`penstock.kernels.cpu.signatures`.
    """

    def __init__(self, function: Function, arguments: str, result: str, options: dict[str, object]) -> None:
        super().__init__(function, options)
        self.arguments, self.result = arguments, result

    @functools.cached_property
    def address(self) -> int:
        """The address of the function."""
        with _resolving:
            entry = self.found(libraries.Kind.CALLBACK, f"{self.arguments} -> {self.result}")
            if entry is not None:
                return entry.address
            from penstock.kernels.cpu.compiling import callback_address

            return callback_address(self, self.arguments, self.result)


def _plain(value: object) -> object:
    """Return an array of a subclass, such as a mapped file, as a plain array, because kernels accept no other; other values unchanged."""
    return value.view(np.ndarray) if isinstance(value, np.ndarray) and type(value) is not np.ndarray else value
