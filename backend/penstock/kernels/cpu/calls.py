"""Calls of kernels from Python through `backend/calls`, which recognizes the types of the arguments and passes their contents to
the kernel.
"""

from __future__ import annotations

import ctypes
import functools
import pickle
from ctypes import POINTER, c_int32, c_int64, c_void_p, py_object

import numpy as np

from penstock.core.compiling import NativeLibrary
from penstock.kernels.cpu.signatures import Program
from penstock.kernels.cpu.source_digests import Function

CALLS = NativeLibrary("libpenstock_calls.so", "calls", ("-std=c++20",))


# The status in `calls.cc` for a result that is a view of an argument.
_IS_VIEW = 1 << 30


class KernelError(RuntimeError):
    """A compiled kernel failed without an error message."""


class NativeCode:
    """A kernel that was compiled ahead of time.

    Attributes:
        function: the address of the function to call with the arguments as 64-bit words.
        release: the address of the function that releases the memory of a result.
        results: the program for `backend/calls` that makes Python objects of the results.
    """

    def __init__(self, function: int, release: int, results: Program) -> None:
        self.function, self.release, self.results = function, release, results


class Caller:
    """A function that calls the compiled code for the types of its arguments.

    Args:
        name: the kernel's name, for errors.
        miss: a function that is called with the arguments if there is no code for their types; it may add that code.

    Attributes:
        call: the function to call with the arguments.
    """

    def __init__(self, name: str, miss: Function) -> None:
        self._kept = list[object]()
        self.call: Function = _functions().penstock_calls_create(miss, functools.partial(_fail, name))

    def add(self, count: int, arguments: Program, code: NativeCode | Function, keeps_gil: bool) -> None:
        """Add compiled code for some types of arguments.

        Args:
            count: the number of arguments.
            arguments: the program for `backend/calls` that recognizes the arguments.
            code: the compiled code to call, or a Python function that is called with the same arguments.
            keeps_gil: whether to hold the GIL while the kernel runs.

        Raises:
            ValueError: there are too many arguments.
        """
        native = code if isinstance(code, NativeCode) else NativeCode(0, 0, Program([], 0, []))
        self._kept += arguments.kept, native.results.kept
        status = _functions().penstock_calls_add(
            self.call.__self__,  # type: ignore[attr-defined]
            count,
            *(_words(arguments), len(arguments.words), _words(native.results), len(native.results.words)),
            *(arguments.size, native.results.size, native.function, native.release, keeps_gil),
            None if isinstance(code, NativeCode) else code,
        )
        if status:
            raise ValueError(f"{count} arguments of {arguments.size} words are too many for a kernel")


def _words(program: Program) -> ctypes.Array[c_int64]:
    return (c_int64 * len(program.words))(*program.words)


def _fail(name: str, status: int, error: int) -> None:
    """Raise the error of a kernel; ``error``: the address of numba's record of the pickled error, ``{pickled, size, ...}``, or 0."""
    if status == 1 and error:
        text = ctypes.string_at(c_void_p.from_address(error).value or 0, c_int32.from_address(error + 8).value)
        kind, arguments, _ = pickle.loads(text)
        raise kind(*(arguments or ()))
    if status == _IS_VIEW:
        raise KernelError(f"{name} returned a view of an argument, and kernels may only return new arrays")
    raise KernelError(f"{name} failed with status {status}")


@functools.cache
def _functions() -> ctypes.PyDLL:
    library = ctypes.PyDLL(str(CALLS.path()))
    create, add, begin = library.penstock_calls_create, library.penstock_calls_add, library.penstock_calls_begin
    create.restype, create.argtypes = py_object, (py_object, py_object)
    add.restype = c_int32
    add.argtypes = (
        *(py_object, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64), c_int64),
        *(c_int64, c_int64, c_void_p, c_void_p, c_int32, py_object),
    )
    begin.restype, begin.argtypes = None, (c_int64, POINTER(c_void_p))
    facts = (int, float, bool, None, True, False, np.ndarray, tuple)
    # In CPython, ``id`` is the address of an object.
    begin(object.__basicsize__, (c_void_p * len(facts))(*map(id, facts)))
    return library
