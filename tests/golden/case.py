"""A pipeline definition that is valid in both DALI and Penstock, and what to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Define = Callable[[Any], Any]

DALI_TYPES = (
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FLOAT16",
    "FLOAT",
    "FLOAT64",
    "BOOL",
)
NUMPY_TYPES = (
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
)


@dataclass(frozen=True)
class Case:
    """A definition whose results are compared.

    Attributes:
        name: the case's name, unique in its family.
        define: the definition; called with the module ``nvidia.dali`` or ``penstock``, returns the outputs.
        exact: whether integers must be equal, and floating point bit for bit.
        exact_on_gpu: whether results with the inputs on the GPU must be exact; by default, like ``exact``.
        tolerance: the tolerance for floating point, as a fraction of the output's range.
        iterations: how many batches are compared.
        options: the pipeline's options.
        gpu: whether it also runs with its inputs on the GPU.
        phrase: a phrase that the error messages of both must contain, as programs look for some of DALI's.
    """

    name: str
    define: Define
    exact: bool = False
    exact_on_gpu: bool | None = None
    tolerance: float = 1e-5
    iterations: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    gpu: bool = True
    phrase: str = ""


class Family:
    """The cases of one family of operators."""

    def __init__(self, name: str, gpu: bool = True, exact_on_cpu: bool = False) -> None:
        self.name = name
        self.gpu = gpu
        self.exact_on_cpu = exact_on_cpu
        self.cases: list[Case] = []

    def add(self, name: str, define: Define, **settings: Any) -> None:
        """Add one more case."""
        if self.exact_on_cpu:
            settings = {"exact": True, "exact_on_gpu": False} | settings
        self.cases.append(Case(name, define, **settings))

    def each(
        self, operator: str, inputs: dict[str, Define], arguments: Sequence[dict[str, Any]], **settings: Any
    ) -> None:
        """Add a case for each input with each set of arguments; enumeration values are written as ``"types.NAME"``."""
        for input_name, source in inputs.items():
            for given in arguments:
                text = ", ".join(
                    f"{key}={'computed' if callable(value) else repr(value)}" for key, value in given.items()
                )
                self.add(f"{operator}({input_name}, {text})", _call(operator, source, given), **settings)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)


def _call(operator: str, source: Define, given: dict[str, Any]) -> Define:
    def define(module: Any) -> Any:
        function = module.fn
        for part in operator.split("."):
            function = getattr(function, part)
        arguments = {key: resolved(module, value) for key, value in given.items()}
        outputs = function(placed(module, source(module)), **arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return define


def unpacked(define: Define) -> Define:
    """Return the definition with several outputs of an operator as a tuple, which a pipeline may return."""

    def outputs(module: Any) -> Any:
        made = define(module)
        return tuple(made) if isinstance(made, list) else made

    return outputs


def placed(module: Any, node: Any) -> Any:
    """Return the node on the device where the case is to run."""
    return node.gpu() if getattr(module, "on_gpu", False) else node


def resolved(module: Any, value: Any) -> Any:
    """Return the module's enumeration value for ``"types.NAME"``, and a function's result for the module."""
    if isinstance(value, str) and value.startswith("types."):
        return getattr(module.types, value.removeprefix("types."))
    return value(module) if callable(value) else value


def feed(samples: Sequence[np.ndarray], layout: str | None = None) -> Define:
    """Return a source of the same samples in each iteration."""
    return lambda module: module.fn.external_source(lambda: list(samples), layout=layout)


def feed_here(samples: Sequence[np.ndarray], layout: str | None = None) -> Define:
    """Return :func:`feed`'s source, on the device where the case is to run."""
    source = feed(samples, layout)
    return lambda module: placed(module, source(module))


def images(shapes: Sequence[Sequence[int]], dtype: Any = np.uint8, seed: int = 0) -> list[np.ndarray]:
    """Return smooth images with some noise, the same for each call."""
    rng = np.random.default_rng(seed)
    made = []
    for shape in shapes:
        waves = sum(np.sin(index / (3 + axis)) for axis, index in enumerate(np.indices(shape)))
        values = (waves / len(shape) + 1) / 2 * 0.7 + rng.random(shape) * 0.3
        if np.dtype(dtype).kind == "f":
            made.append(values.astype(dtype))
        else:
            most = min(np.iinfo(dtype).max, 30000)
            made.append((values * most).astype(dtype))
    return made
