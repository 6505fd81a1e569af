# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `transforms`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType

@_overload
def combine(
    input_0: DataNode | _TensorLike,
    input_1: DataNode | _TensorLike,
    /,
    *inputs: DataNode | _TensorLike,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> DataNode:
    """The affine matrix that applies the inputs in the order in which they are given.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input_0: An affine matrix [M|t] of float, of shape (n, n + 1).
        input_1: Another of the same shape; more may follow.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
    """
    ...
@_overload
def combine(
    input_0: list[DataNode],
    input_1: list[DataNode] | DataNode | _TensorLike,
    /,
    *inputs: list[DataNode] | DataNode | _TensorLike,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> list[DataNode]: ...

@_overload
def crop(
    input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    absolute: bool | None = False,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    from_end: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    from_start: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    to_end: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    to_start: float | _Sequence[float] | DataNode | _ndarray | None = ...,
) -> DataNode:
    """The affine matrix that maps ``from_start`` to ``to_start`` and ``from_end`` to ``to_end``.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        absolute (bool, default False): Swap starts and ends where a start is greater than its end.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        from_end (float | Sequence[float] | DataNode, default [1.0]): Upper bound of the original coordinates.
        from_start (float | Sequence[float] | DataNode, default [0.0]): Their lower bound.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
        to_end (float | Sequence[float] | DataNode, default [1.0]): Upper bound of the new coordinates.
        to_start (float | Sequence[float] | DataNode, default [0.0]): Their lower bound.
    """
    ...
@_overload
def crop(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    absolute: bool | None = False,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    from_end: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    from_start: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    to_end: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    to_start: float | _Sequence[float] | DataNode | _ndarray | None = ...,
) -> list[DataNode]: ...

@_overload
def rotation(
    input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    angle: float | DataNode | _ndarray,
    axis: float | _Sequence[float] | DataNode | _ndarray | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> DataNode:
    """The affine matrix of a rotation; of three dimensions where an axis is given, else of two.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        angle (float | DataNode, required): In degrees.
        axis (float | Sequence[float] | DataNode): Direction (x, y, z) of the axis, of any length but 0; makes the rotation one of three dimensions.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        center (float | Sequence[float] | DataNode): What stays in place; default: the origin.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
    """
    ...
@_overload
def rotation(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    angle: float | DataNode | _ndarray,
    axis: float | _Sequence[float] | DataNode | _ndarray | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> list[DataNode]: ...

@_overload
def scale(
    input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ndim: int | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    scale: float | _Sequence[float] | DataNode | _ndarray,
) -> DataNode:
    """The affine matrix that scales each dimension.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        scale (float | Sequence[float] | DataNode, required): Factor of each dimension.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        center (float | Sequence[float] | DataNode): What stays in place; default: the origin.
        ndim (int): Number of dimensions, where `scale` is a single value and there is no input that tells it.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
    """
    ...
@_overload
def scale(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ndim: int | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    scale: float | _Sequence[float] | DataNode | _ndarray,
) -> list[DataNode]: ...

@_overload
def shear(
    input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    angles: float | _Sequence[float] | DataNode | _ndarray | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    shear: float | _Sequence[float] | DataNode | _ndarray | None = None,
) -> DataNode:
    """The affine matrix that shifts each dimension in proportion to the others.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        angles (float | Sequence[float] | DataNode): Angles of the shear in degrees, from -90 to 90, in the order of `shear`, of which they take the place.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        center (float | Sequence[float] | DataNode): What stays in place; default: the origin.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
        shear (float | Sequence[float] | DataNode): Factors (x, y), or (xy, xz, yx, yz, zx, zy): how far the first moves for each step in the second.
    """
    ...
@_overload
def shear(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    angles: float | _Sequence[float] | DataNode | _ndarray | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    center: float | _Sequence[float] | DataNode | _ndarray | None = None,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
    shear: float | _Sequence[float] | DataNode | _ndarray | None = None,
) -> list[DataNode]: ...

@_overload
def translation(
    input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    offset: float | _Sequence[float] | DataNode | _ndarray,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> DataNode:
    """The affine matrix of a shift.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        offset (float | Sequence[float] | DataNode, required): The shift of each dimension; its length is their number.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
    """
    ...
@_overload
def translation(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    offset: float | _Sequence[float] | DataNode | _ndarray,
    preserve: bool | None = False,
    reverse_order: bool | None = False,
) -> list[DataNode]: ...
