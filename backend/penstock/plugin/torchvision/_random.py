"""Random numbers of PyTorch's global generator: from it where PyTorch is installed, or else from an equal one."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType
from typing import Any, Protocol

import numpy as np

_MANTISSA_BITS = 24


class Numbers(Protocol):
    """The draws that transforms make."""

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
        """Return the same as a tensor, or an array."""
        ...

    def choice(self, weights: list[float]) -> int:
        """Draw an index with probabilities proportional to the weights: `torch.multinomial`."""
        ...

    def exponential(self, low: float, high: float) -> float:
        """Return a number between two others with uniform logarithm, in single precision."""
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
    """The same numbers from numpy's Mersenne Twister. `choice` draws by other means, and `exponential` may differ in its last
    digit."""

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
        # Rounded once, as in a fused multiply-add.
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
    """Seed random transforms, with PyTorch or without: they draw the same parameters as after `torch.manual_seed`."""
    numbers().seed(seed)


def occurs(probability: float) -> bool:
    """Return True with this probability."""
    return bool(numbers().fractions(1)[0] < np.float32(probability))


def happens(probability: float) -> bool:
    """Return True with this probability, as automatic augmentations draw it: the bound counts, too."""
    return bool(numbers().fractions(1)[0] <= np.float32(probability))


def torch() -> ModuleType:
    """Return the module `torch`, which tensors need.

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
