"""Queries about a sample's contents, for user-defined transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.plugin.torchvision._kinds import kind_of
from penstock.plugin.torchvision._typing import Leaf, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import common_dimensions, common_size

Check = type | Callable[..., bool]


def check_type(obj: object, types_or_checks: Sequence[Check]) -> bool:
    """Return whether it is of one of the types, or passes one of the checks."""
    return any(isinstance(obj, check) if isinstance(check, type) else check(obj) for check in types_or_checks)


def has_any(flat_inputs: Sequence[object], *types_or_checks: Check) -> bool:
    """Return whether a value is of one of the types, or passes one of the checks."""
    return any(check_type(value, types_or_checks) for value in flat_inputs)


def has_all(flat_inputs: Sequence[object], *types_or_checks: Check) -> bool:
    """Return whether there is a value for each type and check."""
    return all(has_any(flat_inputs, check) for check in types_or_checks)


def get_bounding_boxes(flat_inputs: Sequence[object]) -> Tensor:
    """Return the first bounding boxes.

    Raises:
        ValueError: there are none.
    """
    return _first(flat_inputs, "boxes")


def get_keypoints(flat_inputs: Sequence[object]) -> Tensor:
    """Return the first points.

    Raises:
        ValueError: there are none.
    """
    return _first(flat_inputs, "points")


def _first(values: Sequence[Leaf], kind: str) -> Tensor:
    for value in values:
        if kind_of(value) == kind:
            return value
    raise ValueError(f"The sample holds no {kind}")


def query_chw(flat_inputs: Sequence[object]) -> tuple[int, int, int]:
    """Return the channels, height and width of all images.

    Raises:
        TypeError: there are none.
        ValueError: the sizes differ.
    """
    return common_dimensions(list(flat_inputs))


def query_size(flat_inputs: Sequence[object]) -> tuple[int, int]:
    """Return the height and width of all images, masks, boxes and points.

    Raises:
        TypeError: there are none.
        ValueError: the sizes differ.
    """
    return common_size(list(flat_inputs))
