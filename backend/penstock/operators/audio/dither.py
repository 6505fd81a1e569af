"""`dither`: adds noise to a signal; signals of equal length get the same noise."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, signals, sounds

# PyTorch draws 16 normal numbers at a time, each pair from two uniform numbers of 24 bits. Fewer than 16 are drawn another way.
_AT_A_TIME, _HALF = 16, 8
_MANTISSA_BITS = 24


@register_operator
class Dither(Operator[np.ndarray]):
    """Adds normally distributed noise to a signal: the numbers of PyTorch's CPU generator, seeded with the signal's number of samples.

    Cohere's speech recognition prepares sounds in this way, so that the same sound always gets the same noise.

    >>> signal = fn.dither(audio, amount=1e-5)
    """

    schema = Schema(
        name="Dither",
        devices=("cpu",),
        inputs=(Input("input", doc="Signals: float32, with one dimension.", example=signals),),
        arguments=(Argument("amount", "float", 1e-5, "The standard deviation of the noise.", example=0.01),),
        examples=(Example({"amount": 0.1}),),
        shown=(Example({"amount": 0.05}, (sounds,)),),
    )

    def setup(self) -> None:
        if self.args["amount"] < 0:
            raise ValueError(f"`amount` must not be negative. Got: {self.args['amount']:g}")

    def describe(self, workspace: Workspace[np.ndarray]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != FLOAT:
            raise RuntimeError(f"The input must be float32, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample[np.ndarray]) -> tuple[int, ...]:
        shape = tuple(sample.shapes[0])
        if len(shape) != 1:
            raise ValueError(f"Expected a signal of one dimension. Got the shape {shape}")
        return shape

    def compute(self, sample: Sample[np.ndarray]) -> None:
        signal = sample.inputs[0]
        noise = _normal_numbers(len(signal), seed=len(signal))
        np.add(signal, np.float32(self.args["amount"]) * noise, out=sample.outputs[0])


def _normal_numbers(count: int, seed: int) -> np.ndarray:
    """Return the numbers of `torch.randn(count, generator=...)`; the last digits of logarithms and cosines may differ."""
    # NumPy and PyTorch seed the Mersenne Twister in the same way.
    state = np.random.RandomState(seed)
    if count < _AT_A_TIME:
        return _one_by_one(state, count)
    numbers = _uniform_numbers(state, count)
    whole = count // _AT_A_TIME * _AT_A_TIME
    numbers[:whole] = _by_sixteens(numbers[:whole])
    if whole < count:
        # As PyTorch does: draw 16 more uniform numbers, and replace the last 16 numbers.
        numbers[-_AT_A_TIME:] = _by_sixteens(_uniform_numbers(state, _AT_A_TIME))
    return numbers


def _uniform_numbers(state: np.random.RandomState, count: int) -> np.ndarray:
    """Return uniform numbers in [0, 1), float32."""
    words = state.randint(0, 1 << 32, count, dtype=np.uint32) & np.uint32((1 << _MANTISSA_BITS) - 1)
    scaled: np.ndarray = words.astype(np.float32) * np.float32(2.0**-_MANTISSA_BITS)
    return scaled


def _by_sixteens(uniform: np.ndarray) -> np.ndarray:
    """Convert uniform numbers to normal ones by Box and Muller's method: in each group of 16, the first 8 numbers give the radii
    of pairs, the last 8 their angles.
    """
    radii, angles = uniform.reshape(-1, 2, _HALF).transpose(1, 0, 2)
    lengths = np.sqrt(np.float32(-2) * np.log(np.float32(1) - radii))
    turns = np.float32(2 * math.pi) * angles
    return np.stack([lengths * np.cos(turns), lengths * np.sin(turns)], axis=1).reshape(-1)


def _one_by_one(state: np.random.RandomState, count: int) -> np.ndarray:
    """Return ``count`` normal numbers, computed in double precision, in pairs, by Box and Muller's method."""
    numbers = np.empty(count + count % 2, np.float32)
    for place in range(0, count, 2):
        turn, length = (_double(state) for _ in range(2))
        radius, angle = math.sqrt(-2.0 * math.log1p(-length)), 2.0 * math.pi * turn
        numbers[place : place + 2] = radius * math.cos(angle), radius * math.sin(angle)
    return numbers[:count]


def _double(state: np.random.RandomState) -> float:
    """Return a number in [0, 1) with 53 random bits, drawn as two 32-bit words."""
    high, low = (int(word) for word in state.randint(0, 1 << 32, 2, dtype=np.uint32))
    return ((high << 32 | low) & ((1 << 53) - 1)) * 2.0**-53
