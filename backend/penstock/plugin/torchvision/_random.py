"""Random numbers of PyTorch's global generator, or, if PyTorch is not installed, of a generator that draws the same numbers."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType
from typing import Any, Protocol

import numpy as np

_MANTISSA_BITS = 24


class Numbers(Protocol):
    """The kinds of random draws that transforms make."""

    def seed(self, seed: int) -> None:
        """Restart from a seed."""
        ...

    def fractions(self, count: int) -> np.ndarray:
        """Draw from [0, 1), float32 of shape (count,): `torch.rand`."""
        ...

    def between(self, low: float, high: float) -> float:
        """Draw from [low, high) in single precision: `torch.Tensor.uniform_`."""
        ...

    def below(self, low: int, high: int) -> int:
        """Draw from low, ..., high - 1: `torch.randint`."""
        ...

    def shuffled(self, count: int) -> list[int]:
        """Draw 0, ..., count - 1 in random order: `torch.randperm`."""
        ...

    def permutation(self, count: int) -> Any:
        """Draw like :meth:`shuffled`; return a tensor, or an array without PyTorch."""
        ...

    def choice(self, weights: list[float]) -> int:
        """Draw an index with probabilities proportional to the weights: `torch.multinomial`."""
        ...

    def exponential(self, low: float, high: float) -> float:
        """Draw from [low, high], in single precision, so that the logarithm is uniformly distributed."""
        ...


class _Torch:
    """PyTorch's random numbers."""

    def __init__(self) -> None:
        import torch

        self._torch = torch

    def seed(self, seed: int) -> None:
        self._torch.manual_seed(seed)

    def fractions(self, count: int) -> np.ndarray:
        return self._torch.rand(count).numpy()

    def between(self, low: float, high: float) -> float:
        return float(self._torch.empty(1).uniform_(low, high).item())

    def below(self, low: int, high: int) -> int:
        return int(self._torch.randint(low, high, (1,)).item())

    def shuffled(self, count: int) -> list[int]:
        return [int(number) for number in self.permutation(count)]

    def permutation(self, count: int) -> Any:
        return self._torch.randperm(count)

    def choice(self, weights: list[float]) -> int:
        return int(self._torch.multinomial(self._torch.tensor(weights), 1))

    def exponential(self, low: float, high: float) -> float:
        logarithms = self._torch.log(self._torch.tensor([low, high]))
        drawn = self._torch.empty(1).uniform_(float(logarithms[0]), float(logarithms[1]))
        return float(self._torch.exp(drawn).item())


class _Twister:
    """A generator without PyTorch, which draws the same numbers with numpy's Mersenne Twister.

    There are two exceptions: `choice` draws different numbers, and `exponential` may differ in the last digit.
    """

    def __init__(self) -> None:
        self._state = np.random.RandomState()

    def seed(self, seed: int) -> None:
        self._state = np.random.RandomState(seed & 0xFFFFFFFF)

    def _word(self) -> int:
        return int(self._state.randint(0, 1 << 32, dtype=np.uint32))

    def fractions(self, count: int) -> np.ndarray:
        words = [self._word() & ((1 << _MANTISSA_BITS) - 1) for _ in range(count)]
        return np.array(words, np.float32) * np.float32(2.0**-_MANTISSA_BITS)

    def between(self, low: float, high: float) -> float:
        first, span = np.float32(low), np.float32(high) - np.float32(low)
        # Rounded once, like the fused multiply-add in PyTorch.
        return float(np.float32(np.float64(self.fractions(1)[0]) * np.float64(span) + np.float64(first)))

    def below(self, low: int, high: int) -> int:
        return low + self._word() % (high - low)

    def shuffled(self, count: int) -> list[int]:
        numbers = list(range(count))
        for index in range(count - 1):
            other = index + self._word() % (count - index)
            numbers[index], numbers[other] = numbers[other], numbers[index]
        return numbers

    def permutation(self, count: int) -> Any:
        return np.array(self.shuffled(count))

    def choice(self, weights: list[float]) -> int:
        shares = np.cumsum(weights) / np.sum(weights)
        return min(int(np.searchsorted(shares, self.fractions(1)[0], side="right")), len(weights) - 1)

    def exponential(self, low: float, high: float) -> float:
        first, last = np.log(np.array([low, high], np.float32).astype(np.float64)).astype(np.float32)
        return float(np.float32(np.exp(self.between(float(first), float(last)))))


@cache
def numbers() -> Numbers:
    """Return the source of all random numbers."""
    return _Torch() if importlib.util.find_spec("torch") else _Twister()


def manual_seed(seed: int) -> None:
    """Seed random transforms; with or without PyTorch, they draw the same parameters as after `torch.manual_seed`."""
    numbers().seed(seed)


def occurs(probability: float) -> bool:
    """Return True with this probability."""
    return bool(numbers().fractions(1)[0] < np.float32(probability))


def happens(probability: float) -> bool:
    """Return True with this probability; unlike in :func:`occurs`, also if the number drawn equals it, as torchvision's
    AutoAugment does.
    """
    return bool(numbers().fractions(1)[0] <= np.float32(probability))


def torch() -> ModuleType:
    """Return the module `torch`.

    Raises:
        ImportError: PyTorch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "Tensors need PyTorch, which is not installed: `pip install 'penstock-triton[pytorch]'`. Transforms of PIL's images "
            "and of arrays do without it"
        ) from error
    return torch
