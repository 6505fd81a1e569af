"""Stand-ins for objects of numba and LLVM, so that modules of kernels can be imported without either.

numba takes half a second to import, and kernels that were compiled ahead of time work without it. So it is not imported
before a kernel is compiled. Modules of kernels refer to numba's objects through these stand-ins; if numba finds a stand-in in a
function that it compiles, it reads the attribute ``_numba_type_``, and so gets the type of the original object.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


class DeferredModule:
    """A module that is imported when one of its names is first used.

    Args:
        name: the module's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.module, name)
        setattr(self, name, value)
        return value

    @property
    def module(self) -> ModuleType:
        """The module itself."""
        return importlib.import_module(self._name)

    @property
    def _numba_type_(self) -> object:
        from numba.core import types

        return types.Module(self.module)

    def __repr__(self) -> str:
        return f"<deferred {self._name}>"


class DeferredFunction:
    """A function of another module, for use in kernels.

    Args:
        module: the name of its module.
        name: the name of the function.
    """

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__name__ = module, name

    @property
    def _numba_type_(self) -> object:
        return _type_of_value(getattr(importlib.import_module(self.__module__), self.__name__))

    def __call__(self, *_arguments: object) -> NoReturn:
        """Refuse to be called from Python."""
        raise TypeError(f"{self.__module__}.{self.__name__} can only be called in numba kernels")

    def __repr__(self) -> str:
        return f"<deferred {self.__module__}.{self.__name__}>"


class DeferredIntrinsic:
    """A function whose calls in kernels are replaced by generated machine code.

    Args:
        function: maps the types of arguments to a signature and a code generator.
        options: options for numba's ``intrinsic``.
    """

    def __init__(self, function: Callable[..., object], **options: bool) -> None:
        functools.update_wrapper(self, function)
        self.function, self.options = function, options
        _undeclared.append(self)

    def declare(self) -> None:
        """Declare the intrinsic to numba."""
        from numba.extending import intrinsic

        self._made = intrinsic(**self.options)(self.function) if self.options else intrinsic(self.function)

    @property
    def _numba_type_(self) -> object:
        return _type_of_value(self._made)

    def __call__(self, *_arguments: object) -> NoReturn:
        """Refuse to be called from Python."""
        raise TypeError(f"{self.function.__name__} can only be called in numba kernels")


class DeferredOverload:
    """A replacement, in kernels, for a function that numba cannot compile.

    Args:
        function: the function that kernels call.
        choose: maps the types of arguments to the Python function to compile.
        options: options for numba's ``overload``.
    """

    def __init__(
        self, function: Callable[..., object], choose: Callable[..., object], options: dict[str, object]
    ) -> None:
        self.function, self.choose, self._options = function, choose, options
        _undeclared.append(self)

    def declare(self) -> None:
        """Declare the overload to numba."""
        from numba.extending import overload

        overload(self.function, **cast(dict[str, Any], self._options))(self.choose)


_undeclared: list[DeferredIntrinsic | DeferredOverload] = []
overloads: dict[Callable[..., object], DeferredOverload] = {}
"""The overloads, by the function that kernels call."""
_declaring = threading.RLock()


def overload(function: Callable[..., object], **options: object) -> Callable[[F], F]:
    """Decorate a function that maps the types of arguments to a Python function, which is compiled into kernels that call
    ``function``.

    Args:
        function: the function that kernels call.
        options: numba's options.
    """

    def declared(choose: F) -> F:
        overloads[function] = DeferredOverload(function, choose, options)
        return choose

    return declared


def declare_all() -> None:
    """Declare to numba all imported intrinsics and overloads, before anything is compiled."""
    with _declaring:
        while _undeclared:
            _undeclared.pop().declare()


def _type_of_value(value: object) -> object:
    """Return numba's type for a function that numba supports already."""
    from numba.core.registry import cpu_target

    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(value)
