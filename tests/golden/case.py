"""Cases: pipeline definitions for both DALI and Penstock, and how to compare the results."""

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
    """A pipeline definition, whose results in DALI and Penstock are compared.

    Attributes:
        name: the case's name, unique in its family.
        define: the definition, a function that gets the module ``nvidia.dali`` or ``penstock`` and returns the outputs.
        exact: whether all values must be equal, except that float16 may differ by 0.1%. Without it, integers may differ by 1.
        exact_on_gpu: ``exact`` for runs with the inputs on the GPU; None: the same as ``exact``.
        tolerance: the tolerance for real numbers if they need not be equal, as a fraction of the output's range.
        iterations: the number of batches to compare.
        options: the pipeline's options.
        gpu: whether the case also runs with its inputs on the GPU.
        phrase: a phrase of DALI's error message by which programs recognize the error; both messages must contain it.
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
        """Add a case of the operator for each pair of an input and arguments.

        Arguments that differ between the modules are ``"types.NAME"`` for enumeration values, and functions of the module.
        """
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
    """Return a definition that returns several outputs as a tuple, as pipelines must, and not as an operator's list."""

    def outputs(module: Any) -> Any:
        made = define(module)
        return tuple(made) if isinstance(made, list) else made

    return outputs


def placed(module: Any, node: Any) -> Any:
    """Return the node, moved to the GPU if the case runs on the GPU."""
    return node.gpu() if getattr(module, "on_gpu", False) else node


def resolved(module: Any, value: Any) -> Any:
    """Return the value of an argument for the module.

    ``"types.NAME"`` becomes the module's enumeration value; a function is called with the module; other values stay.
    """
    if isinstance(value, str) and value.startswith("types."):
        return getattr(module.types, value.removeprefix("types."))
    return value(module) if callable(value) else value


def feed(samples: Sequence[np.ndarray], layout: str | None = None) -> Define:
    """Return a definition of a source that returns these samples in each iteration."""
    return lambda module: module.fn.external_source(lambda: list(samples), layout=layout)


def feed_here(samples: Sequence[np.ndarray], layout: str | None = None) -> Define:
    """Return a definition of the source of :func:`feed`, moved to the GPU if the case runs on the GPU."""
    source = feed(samples, layout)
    return lambda module: placed(module, source(module))


def images(shapes: Sequence[Sequence[int]], dtype: Any = np.uint8, seed: int = 0) -> list[np.ndarray]:
    """Return smooth images with some noise; calls with the same arguments return the same images."""
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
