"""Calls operators with random arguments in real DALI and in Penstock: ``make random-calls ARGS="--calls 5000 --only water"``.

A call begins as one of the operator's examples; the samples, types and arguments are then changed at random. The seed and a number
identify a call: ``--call 4711`` runs only call 4711, and shows it. Calls run in separate processes, as DALI ends the process at some.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

import numpy as np
from nvidia.dali.backend import GetSchema, RegisteredCPUOps
from rich.console import Console
from rich.progress import track
from side_by_side import dali, difference, run

import penstock
from penstock import fn, types  # noqa: F401  (fn loads the operators)
from penstock.schema import Argument, Schema
from penstock.schema.catalogue import public_operators
from penstock.schema.examples import examples, settable_arguments, why_unswept

T = TypeVar("T")
_BATCH_SIZE = 3
_CALLS_OF_PROCESS = 50
# Numbers at which operators often behave differently: zero, negative, fractional, large.
_NUMBERS = (0, 1, 2, 3, -1, 7, 16, 0.5, 0.3, 1.5, -0.7, 33.3)
_DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "float16", "float32", "float64", "int64", "bool")
_ENUMERATIONS = {
    "DALIDataType": ("UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "FLOAT16", "FLOAT", "FLOAT64", "BOOL"),
    "DALIInterpType": (
        "INTERP_NN",
        "INTERP_LINEAR",
        "INTERP_CUBIC",
        "INTERP_LANCZOS3",
        "INTERP_TRIANGULAR",
        "INTERP_GAUSSIAN",
    ),
    "DALIImageType": ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"),
}
# Values that an argument accepts in Penstock but not in DALI.
OURS_ALONE = frozenset({"floor", "torchvision"})
_OF_TENSORS = {"bool": np.bool_, "int32": np.int32, "float": np.float32}


@dataclass(frozen=True)
class Member:
    """A member of one of DALI's enumerations."""

    name: str


@dataclass(frozen=True)
class Computed:
    """An argument with a separate value for each sample, which the pipeline computes."""

    values: Sequence[np.ndarray]


@dataclass(frozen=True)
class RandomCall:
    """A call of the operator ``fn.<path>`` with constant samples, each input with a layout."""

    path: str
    inputs: Sequence[tuple[Sequence[np.ndarray], str]]
    arguments: Mapping[str, object]

    def __str__(self) -> str:
        given = [f"{samples[0].dtype}{[list(s.shape) for s in samples]} '{layout}'" for samples, layout in self.inputs]
        return f"fn.{self.path}({', '.join([*given, *(f'{name}={value}' for name, value in self.arguments.items())])})"

    def define(self, module: Any) -> Any:
        """Return the call's outputs in a pipeline of ``module``, which is ``nvidia.dali`` or ``penstock``."""
        sources = [module.fn.external_source(_giving(samples), layout=layout) for samples, layout in self.inputs]
        given = {name: in_module(module, value) for name, value in self.arguments.items()}
        outputs = attrgetter(self.path)(module.fn)(*sources, **given)
        return tuple(outputs) if isinstance(outputs, list) else outputs


def _giving(samples: Sequence[np.ndarray]) -> Callable[[], list[np.ndarray]]:
    return lambda: list(samples)


def in_module(module: Any, value: object) -> Any:
    if isinstance(value, Member):
        return getattr(module.types, value.name)
    if isinstance(value, Computed):
        return module.fn.external_source(_giving(value.values))
    return [in_module(module, each) for each in value] if isinstance(value, list) else value


def compared_operators(only: str) -> list[Schema]:
    """Return the operators whose path contains ``only``, that have examples, and that both libraries run on the CPU."""
    shared = set(RegisteredCPUOps())
    return [
        schema
        for _, schema in public_operators()
        if only in schema.fn_path and schema.name in shared and "cpu" in schema.devices and not why_unswept(schema)
    ]


def random_call(operators: Sequence[Schema], seed: int, number: int) -> RandomCall:
    """Return the random call that the seed and a number identify."""
    draw = random.Random(f"{seed} {number}")
    schema = draw.choice(operators)
    call = draw.choice(list(examples(schema)))
    dtype = draw.choice([None, None, *_DTYPES])
    inputs = []
    for given in call.inputs:
        samples = [_cut(draw, given.make(index), given.layout) for index in range(_BATCH_SIZE)]
        inputs.append(([s.astype(dtype) if dtype and s.dtype.kind in "uif" else s for s in samples], given.layout))
    arguments: dict[str, object] = {name: without_module(value) for name, value in call.arguments.items()}
    known = GetSchema(schema.name)
    possible = [a for a in settable_arguments(schema) if known.HasArgument(a.name) and not (a.path or a.apart)]
    for argument in draw.sample(possible, min(len(possible), draw.randrange(4))):
        arguments[argument.name] = random_value(draw, argument)
    return RandomCall(schema.fn_path, inputs, arguments)


def _cut(draw: random.Random, sample: np.ndarray, layout: str) -> np.ndarray:
    """Return a sample or, half of the time, a random part of it, which begins at index 0 and contains all channels."""
    if not sample.ndim or draw.random() < 0.5:
        return sample
    kept = [
        slice(None) if letter == "C" or not extent else slice(draw.randint(1, extent))
        for letter, extent in zip(layout.ljust(sample.ndim), sample.shape)
    ]
    return sample[tuple(kept)].copy()


def without_module(value: object) -> object:
    if isinstance(value, (types.DALIDataType, types.DALIInterpType, types.DALIImageType)):
        return Member(value.name)
    return value


def random_value(draw: random.Random, argument: Argument) -> object:
    kind, is_list = argument.type.removesuffix("[]"), argument.type.endswith("[]")
    count = draw.choice([1, 2, 2, 3]) if is_list else 0

    def constant() -> object:
        one = partial(_random_element, draw, argument, kind)
        return [one() for _ in range(count)] if is_list else one()

    if argument.tensor and kind in _OF_TENSORS and draw.random() < 0.3:
        return Computed([np.array(constant(), _OF_TENSORS[kind]) for _ in range(_BATCH_SIZE)])
    return constant()


def _random_element(draw: random.Random, argument: Argument, kind: str) -> object:
    if kind in _ENUMERATIONS:
        return Member(draw.choice(_ENUMERATIONS[kind]))
    if kind == "bool":
        return draw.random() < 0.5
    if kind in ("int32", "int64", "uint32", "float"):
        near = argument.default if isinstance(argument.default, (int, float)) else draw.randint(1, 40)
        value = draw.choice([near, 2 * near, near + 1, draw.choice(_NUMBERS), draw.randint(1, 40)])
        return float(value) if kind == "float" else int(value)
    choices = [choice for choice in argument.choices if choice not in OURS_ALONE]
    return draw.choice([*choices, argument.default or "", "HWC", "HW"])


def run_alone(calls: Sequence[T], compare: Callable[[T], str], run_in_penstock: Callable[[T], object]) -> Iterator[str]:
    """Yield the result of ``compare`` for each call; run the calls in separate processes.

    If DALI ends the process during a call, the call's result is empty. Assert that the same call does not end a process in
    Penstock.
    """
    told = 0
    while told < len(calls):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _answer(writing, calls[told:], compare)
        os.close(writing)
        with os.fdopen(reading) as answers:
            for answer in answers:
                told += 1
                yield answer.strip()
        if os.waitpid(child, 0)[1] and told < len(calls):
            yield "" if _survives(partial(run_in_penstock, calls[told])) else "Penstock ends the process"
            told += 1


def _survives(action: Callable[[], object]) -> bool:
    child = os.fork()
    if not child:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _answer(writing: int, calls: Sequence[T], compare: Callable[[T], str]) -> NoReturn:
    """Write the result of each call as a line, and end the process."""
    status = 1
    try:
        with os.fdopen(writing, "w", buffering=1) as answers:
            for call in calls:
                print(" ".join(compare(call).split()), file=answers)
        status = 0
    finally:
        os._exit(status)


def main() -> int:
    """Print the calls that differ, and return whether there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operators whose path in fn contains this")
    parser.add_argument("--call", type=int, help="only the call with this number")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    operators, console = compared_operators(options.only), Console(highlight=False)
    numbers = range(options.calls) if options.call is None else range(options.call, options.call + 1)
    different = 0
    for start in track(numbers[::_CALLS_OF_PROCESS], "calling", console=Console(stderr=True)):
        chosen = range(start, min(start + _CALLS_OF_PROCESS, numbers.stop))
        calls = [random_call(operators, options.seed, number) for number in chosen]
        answers = run_alone(
            calls,
            lambda call: difference(call.define, _BATCH_SIZE),
            lambda call: run(penstock, call.define, _BATCH_SIZE, 1),
        )
        for number, call, told in zip(chosen, calls, answers):
            if told or options.call is not None:
                console.print(f"{number} {call}\n    {told or 'equal'}", markup=False, soft_wrap=True)
            different += bool(told)
    console.print(f"{len(numbers)} calls of {len(operators)} operators, DALI {dali.__version__}: {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
