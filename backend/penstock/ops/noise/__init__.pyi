# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `noise`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from penstock.ops import OperatorFace

class Gaussian(OperatorFace):
    """Adds to each element a number of a normal distribution. Integers are rounded and saturate.

    >>> noisy = fn.noise.gaussian(images, stddev=fn.random.uniform(range=[0, 20]))

    Runs on: cpu, gpu.

    Args:
        input: Data of any shape; integers or float32.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        mean (float | DataNode, default 0.0): Mean of the noise.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        stddev (float | DataNode, default 1.0): Standard deviation of the noise.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class SaltAndPepper(OperatorFace):
    """Replaces random pixels by one of two values.

    >>> noisy = fn.noise.salt_and_pepper(images, prob=0.1)

    Runs on: cpu, gpu.

    Args:
        input: Data of any shape; integers or float32.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        pepper_val (float | DataNode): Value of pepper; by default the type's lowest, or -1.
        per_channel (bool, default False): Each channel of a pixel is decided on its own.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        prob (float | DataNode, default 0.05): Probability of a pixel being replaced.
        salt_val (float | DataNode): Value of salt; by default the type's highest, or 1.
        salt_vs_pepper (float | DataNode, default 0.5): Probability of a replaced pixel being salt.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        pepper_val: float | DataNode | _ndarray | None = None,
        per_channel: bool | None = False,
        preserve: bool | None = False,
        prob: float | DataNode | _ndarray | None = 0.05,
        salt_val: float | DataNode | _ndarray | None = None,
        salt_vs_pepper: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        pepper_val: float | DataNode | _ndarray | None = None,
        per_channel: bool | None = False,
        preserve: bool | None = False,
        prob: float | DataNode | _ndarray | None = 0.05,
        salt_val: float | DataNode | _ndarray | None = None,
        salt_vs_pepper: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        pepper_val: float | DataNode | _ndarray | None = None,
        per_channel: bool | None = False,
        preserve: bool | None = False,
        prob: float | DataNode | _ndarray | None = 0.05,
        salt_val: float | DataNode | _ndarray | None = None,
        salt_vs_pepper: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
    ) -> list[DataNode]: ...

class Shot(OperatorFace):
    """Replaces each element by a scaled number of the Poisson distribution around it: ``poisson(x / factor) * factor``.

    >>> noisy = fn.noise.shot(images, factor=10.0)

    Runs on: cpu, gpu.

    Args:
        input: Data of any shape; integers or float32.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        factor (float | DataNode, default 20.0): How strong the noise is: as if so many units of the input were one photon. Where it is not given, 12 is used.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        factor: float | DataNode | _ndarray | None = 20.0,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        factor: float | DataNode | _ndarray | None = 20.0,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        factor: float | DataNode | _ndarray | None = 20.0,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> list[DataNode]: ...
