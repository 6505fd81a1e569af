"""Mathematical functions of nodes: ``math.sqrt(node)``, ``math.clamp(node, 0, 255)``.

Integers become FLOAT, except in ``abs``, ``min``, ``max``, ``pow`` and ``clamp``, which keep or promote integer types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.errors import no_such_attribute
from penstock.graph import apply

_UNARY = {
    "sqrt": "Square root.",
    "rsqrt": "1 over the square root.",
    "cbrt": "Cube root.",
    "exp": "e to the power of the input.",
    "log": "Natural logarithm.",
    "log2": "Logarithm to base 2.",
    "log10": "Logarithm to base 10.",
    "abs": "Absolute value, in the input's own type.",
    "fabs": "Absolute value, as floating point.",
    "floor": "The greatest integer that is not greater.",
    "ceil": "The least integer that is not less.",
    "sin": "Sine of radians.",
    "cos": "Cosine of radians.",
    "tan": "Tangent of radians.",
    "asin": "Arc sine, in radians.",
    "acos": "Arc cosine, in radians.",
    "atan": "Arc tangent, in radians.",
    "sinh": "Hyperbolic sine.",
    "cosh": "Hyperbolic cosine.",
    "tanh": "Hyperbolic tangent.",
    "asinh": "Inverse hyperbolic sine.",
    "acosh": "Inverse hyperbolic cosine.",
    "atanh": "Inverse hyperbolic tangent.",
}
_BINARY = {
    "min": "The lesser of two values.",
    "max": "The greater of two values.",
}


def _unary(name: str, doc: str) -> Callable[[object], object]:
    def function(input: object) -> Any:
        return apply(name, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _binary(name: str, doc: str) -> Callable[[object, object], object]:
    def function(left: object, right: object) -> Any:
        return apply(name, left, right)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def pow(base: object, exponent: object) -> Any:
    """Return ``base`` to the power of ``exponent``; integers remain integers."""
    return apply("pow", base, exponent)


def fpow(base: object, exponent: object) -> Any:
    """Return ``base`` to the power of ``exponent``, as floating point."""
    return apply("fpow", base, exponent)


def atan2(x: object, y: object) -> Any:
    """Return the angle of the point (second operand, first operand) with the positive x axis, in radians."""
    return apply("atan2", x, y)


def clamp(value: object, lo: object, hi: object) -> Any:
    """Return the value limited to the range from ``lo`` to ``hi``."""
    return apply("clamp", value, lo, hi)


globals().update({name: _unary(name, doc) for name, doc in _UNARY.items()})
globals().update({name: _binary(name, doc) for name, doc in _BINARY.items()})

if TYPE_CHECKING:
    max: Callable[[object, object], Any]
    min: Callable[[object, object], Any]
    abs: Callable[[object], Any]
    acos: Callable[[object], Any]
    acosh: Callable[[object], Any]
    asin: Callable[[object], Any]
    asinh: Callable[[object], Any]
    atan: Callable[[object], Any]
    atanh: Callable[[object], Any]
    cbrt: Callable[[object], Any]
    ceil: Callable[[object], Any]
    cos: Callable[[object], Any]
    cosh: Callable[[object], Any]
    exp: Callable[[object], Any]
    fabs: Callable[[object], Any]
    floor: Callable[[object], Any]
    log: Callable[[object], Any]
    log10: Callable[[object], Any]
    log2: Callable[[object], Any]
    rsqrt: Callable[[object], Any]
    sin: Callable[[object], Any]
    sinh: Callable[[object], Any]
    sqrt: Callable[[object], Any]
    tan: Callable[[object], Any]
    tanh: Callable[[object], Any]
else:  # Type checkers see the definitions.

    def __getattr__(name: str) -> NoReturn:
        raise no_such_attribute(__name__, name, globals())


__all__ = ["atan2", "clamp", "fpow", "pow", *_UNARY, *_BINARY]
