"""Compile kernels with numba in this process if no library contains them."""

from __future__ import annotations

from typing import Any, Literal, cast

import numba
from numba import types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

from penstock.kernels.cpu.deferred import declare_all
from penstock.kernels.cpu.kernel_cache import KernelCache
from penstock.kernels.cpu.signatures import Array, Number, Pointer, Tuple, class_of, dtype_of, parsed
from penstock.kernels.cpu.signatures import Type as Described
from penstock.kernels.cpu.source_digests import Compilable, Function

_for_libraries = False


def compile_for_libraries() -> None:
    """From now on, compile kernels only to put them in libraries: not callable from Python, not cached, not called in this process."""
    global _for_libraries
    _for_libraries = True


def dispatcher_of(kernel: Compilable) -> Dispatcher[Function]:
    """Return numba's dispatcher of a kernel, which caches compiled code in our :class:`KernelCache`."""
    declare_all()
    options = cast(dict[str, Any], kernel.targetoptions)
    if _for_libraries:
        options = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**options)(kernel.py_func)
    if not _for_libraries and isinstance(dispatcher, Dispatcher):  # with NUMBA_DISABLE_JIT, it is the function
        vars(dispatcher)["_cache"] = KernelCache(kernel)  # private: numba's `enable_caching` sets it, too
    return dispatcher


def address_of(dispatcher: Dispatcher[Function], text: str) -> int:
    """Return the address of a kernel's code for some types of arguments, which has to be called by numba's convention.

    Args:
        dispatcher: the kernel's dispatcher.
        text: the types of the arguments, written as in :mod:`penstock.kernels.cpu.signatures`.
    """
    signature = numba_types(text)
    if signature not in dispatcher.overloads:
        dispatcher.compile(signature)
    compiled: Any = dispatcher.overloads[signature]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


class _CachedCallback(CFunc):
    """A callback that is cached on disk."""

    def __init__(self, function: Compilable, arguments: str, result: str) -> None:
        (returned,) = numba_types(result)
        signature = numba_types(arguments), returned
        super().__init__(function.py_func, signature, locals={}, options=function.targetoptions)
        self._cache = KernelCache(function)


_callbacks: list[_CachedCallback] = []


def callback_address(function: Compilable, arguments: str, result: str) -> int:
    """Compile a callback; return the address of its C function.

    Args:
        function: the callback.
        arguments, result: the types of the arguments and the result, written as in :mod:`penstock.kernels.cpu.signatures`.
    """
    declare_all()
    compiled = _CachedCallback(function, arguments, result)
    compiled.compile()
    _callbacks.append(compiled)
    return compiled.address or 0


def numba_types(text: str) -> tuple[types.Type, ...]:
    """Return numba's types for types that are written as in :mod:`penstock.kernels.cpu.signatures`."""
    return tuple(map(numba_type, parsed(text)))


def numba_type(kind: Described) -> types.Type:
    """Return numba's type for one of ours."""
    if isinstance(kind, Number):
        return types.none if kind.name == "none" else numba.from_dtype(dtype_of(kind))
    if isinstance(kind, Array):
        element: types.Type = numba.from_dtype(dtype_of(kind.element))
        order = cast(Literal["C", "F", "A"], kind.order)
        return types.Array(element, kind.rank, order, readonly=kind.read_only)
    if isinstance(kind, Pointer):
        return types.CPointer(numba.from_dtype(dtype_of(kind.target)))
    items = [numba_type(item) for item in kind.items]
    return types.BaseTuple.from_types(items, class_of(kind.kind) if kind.kind else None)


def described_type(kind: types.Type) -> Described:
    """Return our type for one of numba's result types. An optional result has the type that it has if it is not None: a kernel's
    status says whether it is None.

    Raises:
        ValueError: we have no such type.
    """
    if isinstance(kind, types.Optional):
        return described_type(kind.type)
    if isinstance(kind, types.NoneType):
        return Number("none")
    if isinstance(kind, (types.Number, types.Boolean)):
        return Number(kind.name)
    if isinstance(kind, types.Array) and isinstance(kind.dtype, (types.Number, types.Boolean)) and kind.layout == "C":
        return Array(Number(kind.dtype.name), kind.ndim, kind.layout, False)
    if isinstance(kind, types.BaseTuple):
        named = getattr(kind, "instance_class", None)
        name = f"{named.__module__}:{named.__qualname__}" if named else ""
        return Tuple(name, tuple(map(described_type, cast(types.Tuple, kind).types)))
    raise ValueError(f"kernels cannot return {kind} to Python")
