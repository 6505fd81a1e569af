# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `random`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from penstock.ops import OperatorFace

class Beta(OperatorFace):
    """Numbers between 0 and 1 of the beta distribution, as mixing samples needs them.

    The numbers are those of DALI where `alpha` or `beta` is at least 1; where both are less, they are of the same
    distribution but not the same.

    >>> weight = fn.random.beta(alpha=0.2, beta=0.2)

    Runs on: cpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        alpha (float | DataNode, default 1.0): The first shape parameter, more than 0.
        beta (float | DataNode, default 1.0): The second shape parameter, more than 0.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        alpha: float | DataNode | _ndarray | None = 1.0,
        beta: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        alpha: float | DataNode | _ndarray | None = 1.0,
        beta: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        alpha: float | DataNode | _ndarray | None = 1.0,
        beta: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Choice(OperatorFace):
    """Elements picked at random, with repetition, from the first dimension of an array, or from 0 ... a-1.

    Like ``numpy.random.choice``. What is picked from an n-dimensional array are its (n-1)-dimensional slices.

    >>> interpolation = fn.random.choice([types.INTERP_LINEAR, types.INTERP_CUBIC])

    Runs on: cpu.

    Args:
        a: What is picked from: an integer, standing for 0 ... a-1, or an array.
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        p (float | Sequence[float] | DataNode): Probability of each element; they sum up to 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        p: float | _Sequence[float] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        a: DataNode | _TensorLike,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        p: float | _Sequence[float] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        a: list[DataNode],
        shape_like: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        p: float | _Sequence[float] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class CoinFlip(OperatorFace):
    """1 with the given probability, else 0.

    >>> flipped = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        probability (float | DataNode, default 0.5): Probability of a 1, from 0 to 1.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Normal(OperatorFace):
    """Normally distributed numbers. For integer types they are rounded and saturate.

    >>> jitter = fn.random.normal(mean=1.0, stddev=0.1)

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        mean (float | DataNode, default 0.0): Mean of the distribution.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
        stddev (float | DataNode, default 1.0): Standard deviation of the distribution.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class Uniform(OperatorFace):
    """Numbers evenly distributed over a range, or picked with equal chances from a list of values.

    For integer types the bounds are cut to integers first and the drawn number is rounded, so that both ends of the
    range occur, half as often as the numbers between them.

    >>> angle = fn.random.uniform(range=[-10.0, 10.0])

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        range (float | Sequence[float] | DataNode, default [-1.0, 1.0]): [lowest, highest): where the numbers are from.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
        values (float | Sequence[float] | DataNode): The values to pick from; `range` is ignored then.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...
