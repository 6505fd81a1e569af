"""The functions for bounding boxes and points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.kernels import pillow
from penstock.plugin.torchvision._kinds import Boxes, function_for
from penstock.plugin.torchvision._on_pixels import perspective_terms, shears_of
from penstock.plugin.torchvision._on_rotated_boxes import (
    ROTATED,
    WIDTHS,
    clamped_rotated,
    converted_rotated,
    flipped_rotated,
    rectangles,
)
from penstock.plugin.torchvision._on_tensors.warps import check_displacement, expanded_extents, relative_positions
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import borders_of, crop_anchor, pair_of, resized_extents
from penstock.plugin.torchvision._typing import Canvas, Corners, Fill, Floats, Size, Tensor

Moved = tuple[Tensor, Canvas]
# The columns of XYXY that are x and y of each corner of a box.
_CORNERS = [[0, 1], [2, 1], [2, 3], [0, 3]]


def converted(boxes: Tensor, old: str, new: str) -> Tensor:
    """Convert boxes (..., 4), or rotated boxes, to another format; integers are rounded as by torchvision.

    Raises:
        ValueError: only one of the two formats is for rotated boxes.
    """
    if old == new:
        return boxes
    if (old in ROTATED) != (new in ROTATED):
        raise ValueError(f"Cannot convert between rotated and unrotated bounding boxes: from {old} to {new}")
    if old in ROTATED:
        return converted_rotated(boxes, old, new)
    first, second, whole = boxes[..., :2], boxes[..., 2:], not boxes.is_floating_point()
    rounding = "floor" if whole else None
    if (old, new) == ("XYWH", "CXCYWH"):
        return _joined(first + second.div(2, rounding_mode=rounding), second)
    if old == "CXCYWH":
        corner = first - second / 2
        opposite = (second + corner).to(boxes.dtype)
        corner = corner.to(boxes.dtype)
        if new == "XYWH":
            return _joined(corner, opposite - corner if whole else second)
    else:
        corner, opposite = first, second if old == "XYXY" else second + first
    if new == "XYXY":
        return _joined(corner, opposite)
    extents = opposite - corner
    if new == "XYWH":
        return _joined(corner, extents)
    return _joined((corner * 2 + extents).div(2, rounding_mode=rounding), extents)


def _joined(first: Tensor, second: Tensor) -> Tensor:
    return torch().cat([first, second], dim=-1)


def clamped(boxes: Tensor, kind: str, canvas: Canvas, mode: str | None) -> Tensor:
    """Return boxes clamped to the image, unless the mode is None."""
    if mode is None:
        return boxes.clone()
    if kind in ROTATED:
        corners = converted(boxes, kind, "XYXYXYXY").reshape(-1, 8)
        return converted(clamped_rotated(corners, canvas, mode), "XYXYXYXY", kind).reshape(boxes.shape)
    floats = boxes if boxes.is_floating_point() else boxes.float()
    corners = converted(floats, kind, "XYXY").clone()
    corners[..., 0::2].clamp_(min=0, max=canvas[1])
    corners[..., 1::2].clamp_(min=0, max=canvas[0])
    return converted(corners, "XYXY", kind).to(boxes.dtype)


def clamped_points(points: Tensor, canvas: Canvas) -> Tensor:
    """Return points; those outside the image are moved to the nearest pixel."""
    result = points.clone() if points.is_floating_point() else points.float()
    result[..., 0].clamp_(min=0, max=canvas[1] - 1)
    result[..., 1].clamp_(min=0, max=canvas[0] - 1)
    return result.to(points.dtype)


@function_for("horizontal_flip", "boxes")
def _mirrored(boxes: Tensor, info: Boxes) -> Moved:
    return _flipped(boxes, info, 0), info.canvas


@function_for("vertical_flip", "boxes")
def _upside_down(boxes: Tensor, info: Boxes) -> Moved:
    return _flipped(boxes, info, 1), info.canvas


def _flipped(boxes: Tensor, info: Boxes, axis: int) -> Tensor:
    if info.format in ROTATED:
        return flipped_rotated(boxes, info.format, info.canvas, axis)
    extent, result = info.canvas[1 - axis], boxes.clone()
    if info.format == "XYXY":
        result[..., axis] = extent - boxes[..., axis + 2]
        result[..., axis + 2] = extent - boxes[..., axis]
    else:
        end = boxes[..., axis] + boxes[..., axis + 2] if info.format == "XYWH" else boxes[..., axis]
        result[..., axis] = -(end - extent)
    return result


@function_for("horizontal_flip", "points")
def _mirrored_points(points: Tensor, canvas: Canvas) -> Moved:
    result = points.clone()
    result[..., 0] = -(points[..., 0] - (canvas[1] - 1))
    return result, canvas


@function_for("vertical_flip", "points")
def _upside_down_points(points: Tensor, canvas: Canvas) -> Moved:
    result = points.clone()
    result[..., 1] = -(points[..., 1] - (canvas[0] - 1))
    return result, canvas


def _scaled(values: Tensor, canvas: Canvas, size: Size | None, max_size: int | None) -> Moved:
    extents = resized_extents(canvas, size, max_size)
    if extents == tuple(canvas):
        return values, canvas
    ratios = [extents[1] / canvas[1], extents[0] / canvas[0]]
    scales = torch().tensor(ratios * (values.shape[-1] // 2), device=values.device)
    return values.mul(scales).to(values.dtype), extents


@function_for("resize", "boxes")
def _resize(boxes: Tensor, info: Boxes, size: Size | None, max_size: int | None = None, **_unused: object) -> Moved:
    return _scaled_boxes(boxes, info, info.canvas, size, max_size)


def _scaled_boxes(boxes: Tensor, info: Boxes, canvas: Canvas, size: Size | None, max_size: int | None) -> Moved:
    if info.format not in ROTATED:
        return _scaled(boxes, canvas, size, max_size)
    corners, extents = _scaled(converted(boxes, info.format, "XYXYXYXY").reshape(-1, 8), canvas, size, max_size)
    if extents == tuple(canvas):
        return boxes, canvas
    return _in_input_format(clamped(rectangles(corners), "XYXYXYXY", extents, info.clamping), info, boxes), extents


def _in_input_format(corners: Tensor, info: Boxes, boxes: Tensor) -> Tensor:
    """Convert rotated boxes from four corners to the format, type and shape of the input ``boxes``."""
    return converted(corners, "XYXYXYXY", info.format).to(boxes.dtype).reshape(boxes.shape)


@function_for("resize", "points")
def _resize_points(
    points: Tensor, canvas: Canvas, size: Size | None, max_size: int | None = None, **_unused: object
) -> Moved:
    return _scaled(points, canvas, size, max_size)


def _offset(values: Tensor, across: int, down: int, width: int) -> Tensor:
    """Return the shift of each column of boxes or points: of the first ``width`` columns, x and y; 0 for extents and angles."""
    columns = [across, down] * (width // 2) + [0] * (values.shape[-1] - width)
    return torch().tensor(columns, dtype=values.dtype, device=values.device)


def _shifted(boxes: Tensor, info: Boxes, across: int, down: int) -> Tensor:
    corners = info.format in ("XYXY", "XYXYXYXY")
    return boxes + _offset(boxes, across, down, WIDTHS[info.format] if corners else 2)


@function_for("crop", "boxes")
def cropped(boxes: Tensor, info: Boxes, top: int, left: int, height: int, width: int) -> Moved:
    """Return boxes relative to a region of their image, clamped to it, and the region's height and width."""
    canvas, moved = (height, width), _shifted(boxes, info, -left, -top)
    moved = rectangles(moved) if info.format == "XYXYXYXY" else moved
    return clamped(moved, info.format, canvas, info.clamping), canvas


@function_for("crop", "points")
def _crop_points(points: Tensor, canvas: Canvas, top: int, left: int, height: int, width: int) -> Moved:
    return points + _offset(points, -left, -top, 2), (height, width)


@function_for("center_crop", "boxes")
def _middle(boxes: Tensor, info: Boxes, output_size: Size) -> Moved:
    size = pair_of(output_size, "output_size")
    return cropped(boxes, info, *crop_anchor(info.canvas, size), *size)


@function_for("center_crop", "points")
def _middle_points(points: Tensor, canvas: Canvas, output_size: Size) -> Moved:
    size = pair_of(output_size, "output_size")
    return _crop_points(points, canvas, *crop_anchor(canvas, size), *size)


@function_for("resized_crop", "boxes")
def _resized_crop(
    boxes: Tensor, info: Boxes, top: int, left: int, height: int, width: int, size: Size, **_unused: object
) -> Moved:
    part, canvas = cropped(boxes, info, top, left, height, width)
    return _scaled_boxes(part, info, canvas, size, None)


@function_for("resized_crop", "points")
def _resized_crop_points(
    points: Tensor, canvas: Canvas, top: int, left: int, height: int, width: int, size: Size, **_unused: object
) -> Moved:
    part, region = _crop_points(points, canvas, top, left, height, width)
    return _scaled(part, region, size, None)


def _padded_canvas(canvas: Canvas, padding: Size, padding_mode: str) -> tuple[int, int, Canvas]:
    if padding_mode != "constant":
        raise ValueError(f"Boxes and points can only be padded with `padding_mode='constant'`. Got: {padding_mode!r}")
    left, top, right, bottom = borders_of(padding)
    return left, top, (canvas[0] + top + bottom, canvas[1] + left + right)


@function_for("pad", "boxes")
def _pad(boxes: Tensor, info: Boxes, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Moved:
    left, top, canvas = _padded_canvas(info.canvas, padding, padding_mode)
    return clamped(_shifted(boxes, info, left, top), info.format, canvas, info.clamping), canvas


@function_for("pad", "points")
def _pad_points(
    points: Tensor, canvas: Canvas, padding: Size, fill: Fill = None, padding_mode: str = "constant"
) -> Moved:
    left, top, larger = _padded_canvas(canvas, padding, padding_mode)
    return points + _offset(points, left, top, 2), larger


def _around(points: Tensor) -> Tensor:
    """Return the smallest boxes that contain the corners (N, 4, 2)."""
    return torch().cat(torch().aminmax(points, dim=1), dim=1)


def _through_corners(
    boxes: Tensor,
    info: Boxes,
    canvas: Canvas,
    move: Callable[[Tensor], Tensor],
    floats: bool,
    origin: Tensor | None = None,
) -> Tensor:
    """Move the corners of boxes; return the boxes around them, relative to ``origin``. Rotated boxes turn instead of growing."""
    values = boxes.float() if floats and not boxes.is_floating_point() else boxes
    if info.format in ROTATED:
        corners = converted(values, info.format, "XYXYXYXY").reshape(-1, 2)
        result = rectangles(move(corners).reshape(-1, 8))
        result = result if origin is None else result - origin.repeat(1, 4)
        return _in_input_format(clamped(result, "XYXYXYXY", canvas, info.clamping), info, boxes)
    corners = converted(values, info.format, "XYXY").reshape(-1, 4)[:, _CORNERS].reshape(-1, 2)
    result = _around(move(corners).reshape(-1, 4, 2))
    result = result if origin is None else result - origin.repeat(1, 2)
    result = clamped(result, "XYXY", canvas, info.clamping)
    return converted(result, "XYXY", info.format).reshape(boxes.shape).to(boxes.dtype)


def _with_one(points: Tensor) -> Tensor:
    return torch().cat([points, torch().ones(len(points), 1, dtype=points.dtype, device=points.device)], dim=-1)


class _Affine:
    """An affine transform of points.

    Args:
        canvas: the height and width of the image.
        angle, translate, scale, shear: see `affine`.
        center: x and y of the centre of rotation; None: the middle of the image.
        expand: whether the image grows, so that all of it remains visible.
    """

    def __init__(
        self,
        canvas: Canvas,
        angle: float,
        translate: Sequence[float],
        scale: float,
        shear: Floats,
        center: Sequence[float] | None,
        expand: bool = False,
    ) -> None:
        middle = [canvas[1] * 0.5, canvas[0] * 0.5] if center is None else [float(coordinate) for coordinate in center]
        parameters = middle, float(angle), list(translate), scale, shears_of(shear)
        self._terms, self._expand, self._before = pillow.forward_affine(*parameters), expand, canvas
        self.canvas = canvas
        if expand:
            self.canvas = expanded_extents(pillow.inverse_affine(*parameters), canvas[1], canvas[0])

    def __call__(self, points: Tensor) -> Tensor:
        """Return the moved points, floats (N, 2), relative to the origin of the old image."""
        matrix = torch().tensor(self._terms, dtype=points.dtype, device=points.device).reshape(2, 3).T
        return _with_one(points).matmul(matrix)

    def origin(self, like: Tensor) -> Tensor | None:
        """Return the origin of the new image, relative to the old one, as a tensor (1, 2) of the type of ``like``; None
        if it does not grow.
        """
        if not self._expand:
            return None
        height, width = map(float, self._before)
        corners = [[0.0, 0.0], [0.0, height], [width, height], [width, 0.0]]
        return self(torch().tensor(corners, dtype=like.dtype, device=like.device)).amin(dim=0, keepdim=True)


def _moved_boxes(boxes: Tensor, info: Boxes, move: _Affine) -> Moved:
    if boxes.numel() == 0:
        return boxes, info.canvas
    origin = move.origin(boxes if boxes.is_floating_point() else boxes.float())
    return _through_corners(boxes, info, move.canvas, move, floats=True, origin=origin), move.canvas


def _moved_points(points: Tensor, canvas: Canvas, move: _Affine) -> Moved:
    if points.numel() == 0:
        return points, canvas
    floats = points if points.is_floating_point() else points.float()
    moved, origin = move(floats.reshape(-1, 2)), move.origin(floats)
    moved = moved if origin is None else moved - origin
    return moved.reshape(points.shape).to(points.dtype), move.canvas


@function_for("affine", "boxes")
def _affine(
    boxes: Tensor,
    info: Boxes,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    center: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    return _moved_boxes(boxes, info, _Affine(info.canvas, angle, translate, scale, shear, center))


@function_for("affine", "points")
def _affine_points(
    points: Tensor,
    canvas: Canvas,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    center: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    return _moved_points(points, canvas, _Affine(canvas, angle, translate, scale, shear, center))


@function_for("rotate", "boxes")
def _rotate(
    boxes: Tensor,
    info: Boxes,
    angle: float,
    expand: bool = False,
    center: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    return _moved_boxes(boxes, info, _Affine(info.canvas, -angle, (0.0, 0.0), 1.0, (0.0, 0.0), center, expand))


@function_for("rotate", "points")
def _rotate_points(
    points: Tensor,
    canvas: Canvas,
    angle: float,
    expand: bool = False,
    center: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    return _moved_points(points, canvas, _Affine(canvas, -angle, (0.0, 0.0), 1.0, (0.0, 0.0), center, expand))


def _inverse_perspective(terms: Sequence[float], points: Tensor) -> Tensor:
    """Return moved points. ``terms`` map output pixels to input pixels, so points move by the inverse mapping."""
    a, b, c, d, e, f, g, h = terms
    scale = a * e - b * d
    if scale == 0:
        raise RuntimeError(f"The perspective {list(terms)} cannot be inverted, which boxes and points need")
    above = [(e - f * h) / scale, (-b + c * h) / scale, (b * f - c * e) / scale]
    above += [(-d + f * g) / scale, (a - c * g) / scale, (-a * f + c * d) / scale]
    below = [(-e * g + d * h) / scale, (-a * h + b * g) / scale, 1.0]
    library = torch()
    dtype = points.dtype if points.is_floating_point() else library.float32
    numerators = library.tensor([above[:3], above[3:]], dtype=dtype, device=points.device)
    denominators = library.tensor([below, below], dtype=dtype, device=points.device)
    homogeneous = library.cat([points, library.ones(len(points), 1, device=points.device)], dim=-1)
    return homogeneous.matmul(numerators.T) / homogeneous.matmul(denominators.T)


@function_for("perspective", "boxes")
def _perspective(
    boxes: Tensor,
    info: Boxes,
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    if boxes.numel() == 0:
        return boxes, info.canvas
    terms = perspective_terms(startpoints, endpoints, coefficients)
    moved = _through_corners(boxes, info, info.canvas, lambda points: _inverse_perspective(terms, points), floats=False)
    return moved, info.canvas


@function_for("perspective", "points")
def _perspective_points(
    points: Tensor,
    canvas: Canvas,
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: Sequence[float] | None = None,
    **_unused: object,
) -> Moved:
    if points.numel() == 0:
        return points, canvas
    terms = perspective_terms(startpoints, endpoints, coefficients)
    moved = _inverse_perspective(terms, points.reshape(-1, 2))
    return moved.to(points.dtype).reshape(points.shape), canvas


def _displaced(points: Tensor, canvas: Canvas, displacement: Tensor) -> Tensor:
    """Return points (N, 2), each moved by the displacement of its pixel."""
    library = torch()
    homogeneous = relative_positions(*canvas, points)
    towards = homogeneous - displacement.to(homogeneous)
    column, row = points.long().unbind(dim=-1)
    column, row = column.clamp(0, canvas[1] - 1), row.clamp(0, canvas[0] - 1)
    extents = library.tensor(canvas[::-1], dtype=homogeneous.dtype, device=homogeneous.device)
    return (towards[0, row, column] + 1) * (0.5 * extents) - 0.5


@function_for("elastic", "boxes")
def _elastic(boxes: Tensor, info: Boxes, displacement: Tensor, **_unused: object) -> Moved:
    check_displacement(displacement, *info.canvas)
    if boxes.numel() == 0:
        return boxes, info.canvas

    def move(points: Tensor) -> Tensor:
        whole = points.ceil() if points.is_floating_point() else points
        return _displaced(whole, info.canvas, displacement).to(boxes.dtype)

    if info.format in ROTATED:
        # The centre moves; extents and angle remain.
        turned = converted(boxes, info.format, "CXCYWHR").reshape(-1, 5)
        turned = _joined(move(turned[:, :2]), turned[:, 2:])
        turned = clamped(turned, "CXCYWHR", info.canvas, info.clamping)
        return converted(turned, "CXCYWHR", info.format).reshape(boxes.shape), info.canvas
    return _through_corners(boxes, info, info.canvas, move, floats=False), info.canvas


@function_for("elastic", "points")
def _elastic_points(points: Tensor, canvas: Canvas, displacement: Tensor, **_unused: object) -> Moved:
    check_displacement(displacement, *canvas)
    if points.numel() == 0:
        return points, canvas
    moved = _displaced(points.reshape(-1, 2), canvas, displacement)
    return moved.to(points.dtype).reshape(points.shape), canvas


def valid_boxes(boxes: Tensor, kind: str, canvas: Canvas, min_size: float, area: float) -> Tensor:
    """Return a mask of the boxes that lie inside the image and are large enough."""
    if kind in ROTATED:
        corners = converted(boxes, kind, "XYXYXYXY")
        _, y1, x2, y2, x3, y3, x4, _ = corners.unbind(-1)
        width = ((corners[:, 0] - x2).pow(2) + (y1 - y2).pow(2)).sqrt()
        # As in torchvision, a side's length is computed from y of its second corner and x of its third.
        height = ((y2 - y3).pow(2) + (x3 - x4).pow(2)).sqrt()
    else:
        corners = converted(boxes, kind, "XYXY")
        width, height = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    inside = (
        (corners >= 0).all(dim=-1) & (corners[:, 0::2] <= canvas[1]).all(-1) & (corners[:, 1::2] <= canvas[0]).all(-1)
    )
    return inside & (width >= min_size) & (height >= min_size) & (width * height >= area)


def valid_points(points: Tensor, canvas: Canvas) -> Tensor:
    """Return a mask of the points, or groups of points, that lie inside the image."""
    x, y = points[..., 0], points[..., 1]
    inside = (x >= 0) & (x < canvas[1]) & (y >= 0) & (y < canvas[0])
    return inside.flatten(start_dim=1).all(dim=1) if inside.ndim > 1 else inside
