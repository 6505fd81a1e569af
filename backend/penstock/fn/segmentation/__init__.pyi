# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `segmentation`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType

@_overload
def random_mask_pixel(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    foreground: int | DataNode | _ndarray | None = 0,
    preserve: bool | None = False,
    seed: int | None = -1,
    threshold: float | DataNode | _ndarray | None = 0.0,
    value: int | DataNode | _ndarray | None = None,
) -> DataNode:
    """Gives the indices of an element that is drawn from the whole mask or from its foreground.

    Where there is no foreground, an element of the whole mask is drawn.

    >>> centre = fn.segmentation.random_mask_pixel(masks, foreground=1)

    Runs on: cpu.

    Args:
        input: Masks of integers, booleans or FLOAT, of any shape.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        foreground (int | DataNode, default 0): 1: draw from the foreground; 0: from the whole mask.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        threshold (float | DataNode, default 0.0): Elements above it are foreground.
        value (int | DataNode): Elements equal to it are foreground.
    """
    ...
@_overload
def random_mask_pixel(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    foreground: int | DataNode | _ndarray | None = 0,
    preserve: bool | None = False,
    seed: int | None = -1,
    threshold: float | DataNode | _ndarray | None = 0.0,
    value: int | DataNode | _ndarray | None = None,
) -> list[DataNode]: ...

def random_object_bbox(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    background: int | DataNode | _ndarray | None = 0,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    cache_objects: bool | None = False,
    class_weights: float | _Sequence[float] | DataNode | _ndarray | None = None,
    classes: int | _Sequence[int] | DataNode | _ndarray | None = None,
    foreground_prob: float | DataNode | _ndarray | None = 1.0,
    format: str | None = "anchor_shape",
    ignore_class: bool | None = False,
    k_largest: int | None = None,
    output_class: bool | None = False,
    preserve: bool | None = False,
    seed: int | None = -1,
    threshold: int | _Sequence[int] | DataNode | _ndarray | None = None,
) -> Any:
    """Draws a class, then one of its objects, and gives the object's bounding box.

    An object is a set of elements of one label that are connected through faces. Where there is none that fits, and
    with probability ``1 - foreground_prob``, the box is the whole map.

    >>> anchor, shape = fn.segmentation.random_object_bbox(labels, k_largest=3)

    Runs on: cpu.

    Args:
        input: Maps of labels: integers of up to 32 bits, of 1 to 6 dimensions.

    Keyword args:
        background (int | DataNode, default 0): The label of the background; by default 0, or one less than the lowest class where 0 is a class.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        cache_objects (bool, default False): Accepted for compatibility.
        class_weights (float | Sequence[float] | DataNode): Relative probabilities of the classes; without `classes`, those of the labels from 0 on but the background.
        classes (int | Sequence[int] | DataNode): The labels to draw from; by default all but the background.
        foreground_prob (float | DataNode, default 1.0): The probability that an object is drawn at all.
        format (str, default 'anchor_shape'): `anchor_shape` and `start_end`: two outputs; `box`: one, starts followed by ends.
        ignore_class (bool, default False): All labels but the background count as one class.
        k_largest (int): Draw only from so many objects of the largest boxes.
        output_class (bool, default False): Give the class of the object as one more output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        threshold (int | Sequence[int] | DataNode): The least extents of an object: one, or one for each dimension.
    """
    ...

@_overload
def select_masks(
    mask_ids: DataNode | _TensorLike,
    polygons: DataNode | _TensorLike,
    vertices: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    preserve: bool | None = False,
    reindex_masks: bool | None = False,
) -> list[DataNode]:
    """Keeps the polygons whose masks are listed, in the order of the list; of several polygons of one mask, the last.

    >>> polygons, vertices = fn.segmentation.select_masks(mask_ids, polygons, vertices)

    Runs on: cpu.

    Args:
        mask_ids: INT32, of shape (n,): the masks to keep, none twice.
        polygons: INT32, of shape (polygons, 3): the mask, and the first vertex and the one past the last.
        vertices: Of shape (vertices, coordinates).

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reindex_masks (bool, default False): Number the masks anew, in the order of ``mask_ids``, from 0.
    """
    ...
@_overload
def select_masks(
    mask_ids: list[DataNode],
    polygons: list[DataNode] | DataNode | _TensorLike,
    vertices: list[DataNode] | DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    preserve: bool | None = False,
    reindex_masks: bool | None = False,
) -> list[list[DataNode]]: ...
