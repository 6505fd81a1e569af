"""Keyword arguments of augmentations, and the errors for missing and unused ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

_DATA_AND_PARAMETER = 2


class _Augmentation(Protocol):
    """The part of an augmentation that concerns its keyword arguments."""

    @property
    def name(self) -> str:
        """The augmentation's name in messages."""

    @property
    def op(self) -> Callable[..., object]:
        """The function that takes the keyword arguments."""


class MissingArgException(Exception):
    """Raised if an augmentation needs keyword arguments that the call lacks.

    Attributes:
        augmentation: the augmentation that needs them.
        missing_args: the names of the missing keyword arguments.
    """

    def __init__(self, message: str, augmentation: _Augmentation, missing_args: list[str]) -> None:
        super().__init__(message)
        self.augmentation = augmentation
        self.missing_args = missing_args


class UnusedArgException(Exception):
    """Raised if a call has keyword arguments that no augmentation takes.

    Attributes:
        unused_args: the names of these keyword arguments.
    """

    def __init__(self, message: str, unused_args: list[str]) -> None:
        super().__init__(message)
        self.unused_args = unused_args


def positional_count(function: Callable[..., object]) -> int:
    """Return how many positional arguments a function takes."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _keywords(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the keyword parameters: those after the data and the augmentation's parameter."""
    parameters = list(inspect.signature(function).parameters.values())[_DATA_AND_PARAMETER:]
    return {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def accepted(function: Callable[..., object], keywords: Mapping[str, object]) -> dict[str, object]:
    """Return the keyword arguments that the function takes."""
    names = _keywords(function)
    return {name: value for name, value in keywords.items() if name in names}


def missing(function: Callable[..., object], keywords: Mapping[str, object]) -> list[str]:
    """Return the names of keyword arguments that the function needs and that are missing."""
    return [name for name, p in _keywords(function).items() if p.default is p.empty and name not in keywords]


def forbid_unused_kwargs(augmentations: Iterable[_Augmentation], keywords: Mapping[str, object], caller: str) -> None:
    """Raise UnusedArgException for keyword arguments that none of the augmentations takes."""
    taken = {name for augmentation in augmentations for name in _keywords(augmentation.op)}
    unused = [name for name in keywords if name not in taken]
    if unused:
        subject, verb = ("kwarg", "is") if len(unused) == 1 else ("kwargs", "are")
        raise UnusedArgException(
            f"The {caller} got unexpected {subject}. The {subject} `{', '.join(unused)}` {verb} not used by any of the augmentations.",
            unused,
        )


def require_kwargs(augmentations: Iterable[_Augmentation], keywords: Mapping[str, object], caller: str) -> None:
    """Raise MissingArgException if an augmentation needs a keyword argument that is missing."""
    for augmentation in augmentations:
        names = missing(augmentation.op, keywords)
        if names:
            raise MissingArgException(
                f"The augmentation `{augmentation.name}` requires `{names[0]}` argument. Please provide it as `{names[0]}` argument to "
                f"`{caller}` call.",
                augmentation,
                names,
            )
