"""Mathematical functions of tensors and batches: ``math.sqrt(tensor)``, ``math.clamp(batch, 0, 255)``.

They are the functions of :mod:`penstock.math`, with the same result types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from penstock import math as of_nodes
from penstock.dynamic._syntax import apply
from penstock.dynamic._value import Value
from penstock.errors import no_such_attribute

__all__ = list(of_nodes.__all__)


def _function(name: str) -> Callable[..., Value]:
    node_function = getattr(of_nodes, name)

    signature = inspect.signature(node_function)

    def function(*operands: object, **named: object) -> Value:
        return apply(name, *signature.bind(*operands, **named).args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = node_function.__doc__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


globals().update({name: _function(name) for name in __all__})

if not TYPE_CHECKING:  # not for type checkers, which see the names above

    def __getattr__(name: str) -> NoReturn:
        raise no_such_attribute(__name__, name, globals())
