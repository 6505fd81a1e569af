"""Rotated boxes: XYXYXYXY (four corners), XYWHR and CXCYWHR (degrees, counter-clockwise)."""

from __future__ import annotations

import math

from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Canvas, Tensor

WIDTHS = {"XYXY": 4, "XYWH": 4, "CXCYWH": 4, "XYWHR": 5, "CXCYWHR": 5, "XYXYXYXY": 8}
"""The number of coordinates of a box in each format."""

ROTATED = frozenset({"XYWHR", "CXCYWHR", "XYXYXYXY"})
_SIDES = 4


def converted_rotated(boxes: Tensor, old: str, new: str) -> Tensor:
    """Convert rotated boxes (..., 5) or (..., 8) to another format for rotated boxes; the formats must differ."""
    if old == "CXCYWHR":
        boxes = _anchored(boxes, -1)
    elif old == "XYXYXYXY":
        boxes = _measured(boxes)
    if new == "CXCYWHR":
        return _anchored(boxes, 1)
    return _cornered(boxes) if new == "XYXYXYXY" else boxes


def _turn(degrees: Tensor) -> tuple[Tensor, Tensor]:
    radians = degrees.mul(math.pi).div(180.0)
    return radians.cos(), radians.sin()


def _anchored(boxes: Tensor, sign: int) -> Tensor:
    """Move the anchor from the first corner to the centre, or back if ``sign`` is negative."""
    library = torch()
    rounding = None if boxes.is_floating_point() else "floor"
    half = boxes[..., 2:4].div(-2, rounding_mode=rounding).abs()
    cos, sin = _turn(boxes[..., 4])
    x, y, wide, high = boxes[..., 0], boxes[..., 1], half[..., 0], half[..., 1]
    if sign > 0:
        x = (x + wide * cos) + high * sin
        y = (y - wide * sin) + high * cos
    else:
        x = (x - wide * cos) - high * sin
        y = (y + wide * sin) - high * cos
    return library.cat([library.stack([x, y], dim=-1).to(boxes.dtype), boxes[..., 2:]], dim=-1)


def _cornered(boxes: Tensor) -> Tensor:
    """Convert XYWHR to four corners."""
    x, y, wide, high = (boxes[..., column] for column in range(4))
    cos, sin = _turn(boxes[..., 4])
    corners = [x, y, x + wide * cos, y - wide * sin]
    corners += [x + (wide * cos + high * sin), y - (wide * sin - high * cos), x + high * sin, y + high * cos]
    return torch().stack(corners, dim=-1).to(boxes.dtype)


def _measured(boxes: Tensor) -> Tensor:
    """Convert four corners to XYWHR."""
    library, floats = torch(), _precise(boxes)
    x1, y1, x2, y2, x3, y3 = (floats[..., column] for column in range(6))
    angle = library.atan2(y1 - y2, x2 - x1)
    wide = ((x2 - x1).pow(2) + (y2 - y1).pow(2)).sqrt()
    high = ((x3 - x2).pow(2) + (y3 - y2).pow(2)).sqrt()
    return library.stack([x1, y1, wide, high, angle / math.pi * 180.0], dim=-1).to(boxes.dtype)


def _precise(boxes: Tensor) -> Tensor:
    """Return the boxes as floats of at least single precision."""
    return boxes if boxes.dtype in (torch().float32, torch().float64) else boxes.float()


def rectangles(corners: Tensor) -> Tensor:
    """Return the rectangles with the longer diagonals of parallelograms (..., 8)."""
    library, floats = torch(), _precise(corners)
    x1, y1, x2, y2, x3, y3, x4, y4 = floats.unbind(-1)
    middle_x, middle_y = (x1 + x3) / 2, (y1 + y3) / 2
    wide = library.sqrt((x2 - x1).pow(2) + (y2 - y1).pow(2))
    high = library.sqrt((x4 - x1).pow(2) + (y4 - y1).pow(2))
    along, beside = library.atan2(y1 - y2, x2 - x1), library.atan2(y1 - y4, x4 - x1)
    between = along - beside
    sign = library.where(between > math.pi / 2, -1, 1)
    cos, sin = between.cos(), between.sin()
    width = library.where(wide < high, wide * sin, wide + high * cos * sign)
    height = library.where(wide > high, high * sin, high + wide * cos * sign)
    angle = library.where(high > wide, beside + math.pi / 2, along)
    cos, sin = angle.cos(), angle.sin()
    half_w, half_h = width / 2, height / 2
    results = [middle_x - half_w * cos - half_h * sin, middle_y - half_h * cos + half_w * sin]
    results += [middle_x + half_w * cos - half_h * sin, middle_y - half_h * cos - half_w * sin]
    results += [middle_x + half_w * cos + half_h * sin, middle_y + half_h * cos - half_w * sin]
    results += [middle_x - half_w * cos + half_h * sin, middle_y + half_h * cos + half_w * sin]
    return library.stack(results, dim=-1).reshape(corners.shape).to(corners.dtype)


def flipped_rotated(boxes: Tensor, kind: str, canvas: Canvas, axis: int) -> Tensor:
    """Mirror boxes; ``axis``: 0: left to right; 1: top to bottom."""
    extent, result = canvas[1 - axis], boxes.clone()
    if kind == "XYXYXYXY":
        result[..., axis::2] = -(boxes[..., axis::2] - extent)
        return result[..., [2, 3, 0, 1, 6, 7, 4, 5]]
    if kind == "XYWHR":
        # After mirroring, the second corner is the anchor.
        cos, sin = _turn(boxes[..., 4])
        result[..., 0] += boxes[..., 2] * cos
        result[..., 1] -= boxes[..., 2] * sin
    result[..., axis] = -(result[..., axis] - extent)
    result[..., 4] = -boxes[..., 4] if axis == 0 else -boxes[..., 4] + 180
    return result


def clamped_rotated(corners: Tensor, canvas: Canvas, mode: str) -> Tensor:
    """Return rotated boxes (N, 8) that are shrunk, without turning, to lie inside the image.

    Args:
        corners: x and y of the four corners of each box.
        canvas: the height and width of the image.
        mode: `hard`: all corners come to lie inside; `soft`: the box still covers the part of the image that it covered.
    """
    original = corners.clone()
    for _ in range(_SIDES):  # clamp at the left border, then turn by 90 degrees
        order = _order(corners)
        corners, original = _ordered(corners, order), _ordered(original, order)
        corners = _cut_left(corners, original, canvas, mode)
        corners, original = _ordered(corners, order), _ordered(original, order)
        corners, original = _turned(corners, canvas), _turned(original, canvas)
        canvas = canvas[1], canvas[0]
    return corners


def _order(corners: Tensor) -> Tensor:
    """Return the order of columns (N, 8) that starts at the leftmost corner, or at the upper one of two leftmost corners."""
    x, y = corners[..., 0::2], corners[..., 1::2]
    tallest, widest = (values.abs().max(dim=1, keepdim=True)[0] for values in (y, x))
    first = (y / tallest + (x / widest) * 100).min(dim=1)[1]
    steps = torch().ones_like(corners)
    steps[..., 0] = first.mul(2)
    return steps.cumsum(1).remainder(8).long()


def _ordered(corners: Tensor, order: Tensor) -> Tensor:
    return corners.gather(1, order)


def _turned(corners: Tensor, canvas: Canvas) -> Tensor:
    result = corners.clone()
    result[:, 0::2], result[:, 1::2] = corners[:, 1::2], canvas[1] - corners[:, 0::2]
    return result


def _lines(corners: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slopes and intercepts of the lines through the four sides."""
    x, y = corners[..., 0::2], corners[..., 1::2]
    slopes = y.diff(append=y[..., :1]) / x.diff(append=x[..., :1])
    return slopes, y - slopes * x


def _crossings(slopes: Tensor, intercepts: Tensor) -> Tensor:
    """Return the corners (N, 8), at which the line of each side crosses that of the previous side."""
    x = -intercepts.diff(prepend=intercepts[..., 3:4]) / slopes.diff(prepend=slopes[..., 3:4])
    return torch().stack((x, slopes * x + intercepts), dim=-1).reshape(len(slopes), 8)


def _moved_lines(corners: Tensor, original: Tensor, canvas: Canvas, mode: str) -> Tensor:
    """Return the intercepts of the sides, moved so that the box does not extend beyond the left border."""
    library, (height, width) = torch(), canvas
    slopes, intercepts = _lines(corners)
    a1, a2, a3, a4 = slopes.unbind(-1)
    b1, b2, b3, b4 = intercepts.unbind(-1)
    first, second, third, fourth = _lines(original)[1].unbind(-1)
    b1 = b2.clamp(b1, b3).clamp(0, height)
    b4 = b3.clamp(b2, b4).clamp(0, height)
    if mode == "hard":
        b1 = b4 = (b1 + b4) / 2
        lows = [b1 * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + b1, (a3 - a2) * width + b3]
        b2 = library.stack(lows, dim=1).max(dim=1)[0].clamp(max=b2)
        highs = [height * (1 - a3 / a4) + b4 * a3 / a4, height * (1 - a3 / a2) + b2 * a3 / a2]
        highs += [(a2 - a3) * width + b2, (a4 - a3) * width + b4]
        b3 = library.stack(highs, dim=1).min(dim=1)[0].clamp(min=b3)
    if b1 is b4:
        # `hard`: sides 1 and 4 have the same intercept here, so it is clamped by the bounds of both.
        b1 = b4 = b1.clamp(first, third).clamp(second, fourth)
        b3, b2 = b3.clamp(first, third), b2.clamp(second, fourth)
    else:
        b1, b3, b2, b4 = (
            b1.clamp(first, third),
            b3.clamp(first, third),
            b2.clamp(second, fourth),
            b4.clamp(second, fourth),
        )
    return library.stack([b1, b2, b3, b4], dim=-1)


def _cut_left(corners: Tensor, original: Tensor, canvas: Canvas, mode: str) -> Tensor:
    library = torch()
    slopes = _lines(corners)[0]
    x1, y1, x2, y2, x3, y3, x4, y4 = corners.unbind(-1)
    cut = _crossings(slopes, _moved_lines(corners, original, canvas, mode))
    straight = corners.clone()
    straight[..., 0] = straight[..., 0].clamp(0)
    straight[..., 6] = straight[..., 6].clamp(0)
    is_cut = (x1 < 0) & ~cut.isnan().any(-1)
    is_upright = y1.isclose(y2) | y3.isclose(y4)
    is_gone = (x1 <= 0) & (x2 <= 0) & (x3 <= 0) & (x4 <= 0)
    is_gone = is_gone | y1.isclose(y4) | y2.isclose(y3) | (is_upright & x1.isclose(x2))
    for wanted, values in ((is_cut, cut), (is_upright, straight), (is_gone, library.zeros_like(corners))):
        corners = library.where(wanted.unsqueeze(1), values, corners)
    return corners
