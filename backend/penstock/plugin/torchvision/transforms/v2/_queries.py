"""Queries about the values in a sample, for user-defined transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.plugin.torchvision._kinds import kind_of
from penstock.plugin.torchvision._typing import Leaf, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import common_dimensions, common_size

Check = type | Callable[..., bool]


def check_type(obj: object, types_or_checks: Sequence[Check]) -> bool:
    """Return whether an object is of one of the types, or passes one of the checks."""
    return any(isinstance(obj, check) if isinstance(check, type) else check(obj) for check in types_or_checks)


def has_any(flat_inputs: Sequence[object], *types_or_checks: Check) -> bool:
    """Return whether any value is of one of the types, or passes one of the checks."""
    return any(check_type(value, types_or_checks) for value in flat_inputs)


def has_all(flat_inputs: Sequence[object], *types_or_checks: Check) -> bool:
    """Return whether, for each type and check, there is a value that is of the type or passes the check."""
    return all(has_any(flat_inputs, check) for check in types_or_checks)


def get_bounding_boxes(flat_inputs: Sequence[object]) -> Tensor:
    """Return the first bounding boxes among the values.

    Raises:
        ValueError: there are no bounding boxes.
    """
    return _first(flat_inputs, "boxes")


def get_keypoints(flat_inputs: Sequence[object]) -> Tensor:
    """Return the first points among the values.

    Raises:
        ValueError: there are no points.
    """
    return _first(flat_inputs, "points")


def _first(values: Sequence[Leaf], kind: str) -> Tensor:
    for value in values:
        if kind_of(value) == kind:
            return value
    raise ValueError(f"The sample holds no {kind}")


def query_chw(flat_inputs: Sequence[object]) -> tuple[int, int, int]:
    """Return the number of channels, the height and the width, which all images must share.

    Raises:
        TypeError: there are no images.
        ValueError: the images differ in one of them.
    """
    return common_dimensions(list(flat_inputs))


def query_size(flat_inputs: Sequence[object]) -> tuple[int, int]:
    """Return the height and width, which all images, masks, boxes and points must share.

    Raises:
        TypeError: there are no such values.
        ValueError: the values differ in size.
    """
    return common_size(list(flat_inputs))
