"""The module ``nvidia.dali._typing``: types of operators' arguments, for annotations."""

from __future__ import annotations

from collections.abc import Iterable

# Operators check their arguments when they are called.
TensorLike = TensorLikeIn = TensorLikeArg = object
BatchLike = Iterable[object] | object
