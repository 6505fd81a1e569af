# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `reductions`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType

@_overload
def max(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The largest element along some dimensions; NaN is passed over. Of no elements, the type's lowest finite value.

    >>> fn.reductions.max(images, axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def max(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def mean(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The mean of the elements along some dimensions.

    >>> fn.reductions.mean(images, axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): FLOAT (the default) or the input's type, which cuts fractions off.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def mean(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def mean_square(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The mean of the elements' squares along some dimensions.

    >>> fn.reductions.mean_square(signals, axes=[0])

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): FLOAT (the default), or INT64 or UINT64, which cut fractions off.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def mean_square(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def min(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The smallest element along some dimensions; NaN is passed over. Of no elements, the type's largest finite value.

    >>> fn.reductions.min(images, axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def min(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def rms(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The square root of the mean of the elements' squares along some dimensions.

    >>> fn.reductions.rms(signals, axes=[0])

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): FLOAT (the default) or the input's type, which cuts fractions off.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def rms(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def std_dev(
    data: DataNode | _TensorLike,
    mean: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The standard deviation along some dimensions, about a given mean.

    >>> fn.reductions.std_dev(images, fn.reductions.mean(images, axis_names="HW"), axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        data: Data of an integer type or FLOAT.
        mean: FLOAT: one mean for all, or one for each element of the output.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        ddof (int, default 0): Subtracted from the number of elements in the denominator.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def std_dev(
    data: list[DataNode],
    mean: list[DataNode] | DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def sum(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The sum of the elements along some dimensions. Integers are summed in 64 bits unless told otherwise; sums wrap.

    >>> fn.reductions.sum(images, axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        input: Data of an integer type or FLOAT.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): INT64 or UINT64 (the default), FLOAT, or the input's type.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def sum(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    dtype: DALIDataType | None = None,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...

@_overload
def variance(
    data: DataNode | _TensorLike,
    mean: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> DataNode:
    """The variance along some dimensions, about a given mean.

    >>> fn.reductions.variance(images, fn.reductions.mean(images, axis_names="HW"), axis_names="HW")

    Runs on: cpu, gpu.

    Args:
        data: Data of an integer type or FLOAT.
        mean: FLOAT: one mean for all, or one for each element of the output.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions to reduce; by default all.
        axis_names (str): Letters of the dimensions to reduce, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        ddof (int, default 0): Subtracted from the number of elements in the denominator.
        keep_dims (bool, default False): Keep the reduced dimensions with extent 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """
    ...
@_overload
def variance(
    data: list[DataNode],
    mean: list[DataNode] | DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    axes: int | _Sequence[int] | _ndarray | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    ddof: int | None = 0,
    keep_dims: bool | None = False,
    preserve: bool | None = False,
) -> list[DataNode]: ...
