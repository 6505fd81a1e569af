"""Transforms that only change boxes and points."""

from __future__ import annotations

from penstock.plugin.torchvision._typing import BoxFormat, Leaf, Params
from penstock.plugin.torchvision.transforms.v2 import functional
from penstock.plugin.torchvision.transforms.v2._transform import BuiltinTransform


class ConvertBoundingBoxFormat(BuiltinTransform):
    """Converts boxes to another format.

    Args:
        format: `XYXY`, `XYWH` or `CXCYWH`, or a `BoundingBoxFormat`.
    """

    kinds = frozenset({"boxes"})

    def __init__(self, format: BoxFormat) -> None:
        self.format = format

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return functional.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(BuiltinTransform):
    """Clamps boxes to the image.

    Args:
        clamping_mode: `soft` or `hard`, which only differ for rotated boxes; `auto`: the mode that is set for the boxes; None:
            boxes are not clamped.
    """

    kinds = frozenset({"boxes"})

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return functional.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(BuiltinTransform):
    """Moves points that lie outside the image to its nearest pixel."""

    kinds = frozenset({"points"})

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return functional.clamp_keypoints(inpt)


class SetClampingMode(BuiltinTransform):
    """Sets how later transforms clamp boxes.

    Args:
        clamping_mode: `soft`, `hard` or None.
    """

    kinds = frozenset({"boxes"})

    def __init__(self, clamping_mode: str | None) -> None:
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"`clamping_mode` must be soft, hard or None. Got: {clamping_mode!r}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        result = inpt.clone()
        result.clamping_mode = self.clamping_mode
        return result
