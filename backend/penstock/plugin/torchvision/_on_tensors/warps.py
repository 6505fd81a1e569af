"""Rotation, shear, perspective and elastic deformation: images are sampled at the positions of a grid, which may lie between pixels."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels import pillow
from penstock.plugin.torchvision._kinds import function_for
from penstock.plugin.torchvision._on_pixels import perspective_terms, shears_of, through_tensor
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import filter_name
from penstock.plugin.torchvision._typing import Corners, DType, Fill, Floats, Interpolation, Tensor


def _sampled(image: Tensor, grid: Tensor, name: str, fill: Fill) -> Tensor:
    """Return the values at the positions of a grid (1, h, w, 2)."""
    library = torch()
    channels, extents = image.shape[-3], tuple(grid.shape[1:3])
    shape = (*image.shape[:-2], *extents)
    if image.numel() == 0:
        return image.reshape(shape)
    batch = image.reshape(-1, *image.shape[-3:])
    floats = batch.to(grid.dtype)
    if fill is not None:
        floats = library.cat((floats, library.ones_like(floats[:, :1])), dim=1)
    positions = grid.expand(len(floats), -1, -1, -1)
    values = library.nn.functional.grid_sample(floats, positions, mode=name, padding_mode="zeros", align_corners=False)
    if fill is not None:
        values, inside = values[:, :channels], values[:, channels:].expand(-1, channels, -1, -1)
        filled = [float(fill)] if isinstance(fill, (int, float)) else list(fill)
        colours = library.tensor(filled, dtype=values.dtype, device=values.device).reshape(1, -1, 1, 1)
        if name == "nearest":
            values = library.where(inside < 0.5, colours.expand_as(values), values)
        else:
            values = (values - colours) * inside + colours
    return (values if batch.dtype == grid.dtype else values.round().to(image.dtype)).reshape(shape)


def _check_warp(image: Tensor, interpolation: Interpolation, fill: Fill) -> str:
    name = filter_name(interpolation)
    if name not in ("nearest", "bilinear"):
        raise ValueError(f"The interpolation of a warped tensor must be nearest or bilinear. Got: {name}")
    if isinstance(fill, (tuple, list)) and len(fill) not in (1, image.shape[-3]):
        raise ValueError(f"`fill` has {len(fill)} values for {image.shape[-3]} channels")
    return name


def _type_of(image: Tensor) -> DType:
    return image.dtype if image.is_floating_point() else torch().float32


def _centred_grid(terms: Sequence[float], image: Tensor, extents: tuple[int, int]) -> Tensor:
    """Return the source positions, relative to the middle, for the pixels of an output of (height, width) ``extents``."""
    library, dtype = torch(), _type_of(image)
    positions = library.empty(1, *extents, 3, dtype=dtype, device=image.device)
    height, width = extents
    positions[..., 0] = library.linspace((1.0 - width) * 0.5, (width - 1.0) * 0.5, steps=width, device=image.device)
    down = library.linspace((1.0 - height) * 0.5, (height - 1.0) * 0.5, steps=height, device=image.device)
    positions[..., 1] = down.unsqueeze(-1)
    positions[..., 2] = 1
    matrix = library.tensor(list(terms), dtype=dtype, device=image.device).reshape(1, 2, 3).transpose(1, 2)
    halves = library.tensor([0.5 * image.shape[-1], 0.5 * image.shape[-2]], dtype=dtype, device=image.device)
    return positions.reshape(1, -1, 3).bmm(matrix / halves).reshape(1, height, width, 2)


def _from_middle(center: Sequence[float] | None, image: Tensor) -> list[float]:
    if center is None:
        return [0.0, 0.0]
    return [coordinate - extent * 0.5 for coordinate, extent in zip(center, (image.shape[-1], image.shape[-2]))]


@function_for("affine", "tensor", "video")
def _affine(
    image: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    if scale <= 0:
        raise ValueError(f"`scale` must be positive. Got: {scale}")
    name = _check_warp(image, interpolation, fill)
    moved = [float(distance) for distance in translate]
    terms = pillow.inverse_affine(_from_middle(center, image), float(angle), moved, scale, shears_of(shear))
    return _sampled(image, _centred_grid(terms, image, (image.shape[-2], image.shape[-1])), name, fill)


@function_for("affine", "mask")
def _affine_mask(
    mask: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation | None = None,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    return _affine(mask, angle, translate, scale, shear, "nearest", fill, center)


def expanded_extents(terms: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """Return the height and width of the smallest image that contains a whole rotated image."""
    library = torch()
    half_width, half_height = 0.5 * width, 0.5 * height
    corners = [[x, y, 1.0] for x, y in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
    corners = [[x * half_width, y * half_height, one] for x, y, one in corners]
    points = library.tensor(corners).matmul(library.tensor(list(terms)).reshape(2, 3).T)
    middle = library.tensor((half_width, half_height))
    # Differences below a ten-thousandth are rounding errors.
    low, high = (((edge(dim=0) + middle) * (1.0 / 1e-4)).trunc() * 1e-4 for edge in (points.amin, points.amax))
    size = high.ceil() - low.floor()
    return int(size[1]), int(size[0])


@function_for("rotate", "tensor", "video")
def _rotate(
    image: Tensor,
    angle: float,
    interpolation: Interpolation = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    angle = angle % 360
    if center is None:
        if angle == 0:
            return image.clone()
        square = expand or image.shape[-1] == image.shape[-2]
        if angle == 180 or (angle in (90, 270) and square):
            return torch().rot90(image, k=int(angle // 90), dims=(-2, -1))
    name = _check_warp(image, interpolation, fill)
    terms = pillow.inverse_affine(_from_middle(center, image), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    extents = (int(image.shape[-2]), int(image.shape[-1]))
    if expand:
        extents = expanded_extents(terms, extents[1], extents[0])
    return _sampled(image, _centred_grid(terms, image, extents), name, fill)


@function_for("rotate", "mask")
def _rotate_mask(
    mask: Tensor,
    angle: float,
    interpolation: Interpolation | None = None,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    return _rotate(mask, angle, "nearest", expand, center, fill)


@function_for("perspective", "tensor", "video")
def _perspective(
    image: Tensor,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation = "bilinear",
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    terms = perspective_terms(startpoints, endpoints, coefficients)
    name = _check_warp(image, interpolation, fill)
    library, dtype, device = torch(), _type_of(image), image.device
    height, width = image.shape[-2:]
    positions = library.empty(1, height, width, 3, dtype=dtype, device=device)
    positions[..., 0] = library.linspace(0.5, width - 0.5, steps=width, dtype=dtype, device=device)
    positions[..., 1] = library.linspace(0.5, height - 0.5, steps=height, dtype=dtype, device=device).unsqueeze(-1)
    positions[..., 2] = 1
    positions = positions.reshape(1, -1, 3)
    above = library.tensor([terms[:3], terms[3:6]], dtype=dtype, device=device).T
    above = above / library.tensor([0.5 * width, 0.5 * height], dtype=dtype, device=device)
    below = library.tensor([[terms[6], terms[7], 1.0]] * 2, dtype=dtype, device=device).T
    grid = positions.bmm(above[None]) / positions.bmm(below[None]) - 1.0
    return _sampled(image, grid.reshape(1, height, width, 2), name, fill)


@function_for("perspective", "mask")
def _perspective_mask(
    mask: Tensor,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation | None = None,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    return _perspective(mask, startpoints, endpoints, "nearest", fill, coefficients)


def relative_positions(height: int, width: int, like: Tensor) -> Tensor:
    """Return x and y of all pixel centres, scaled to the range from -1 to 1, as a tensor (1, H, W, 2)."""
    library, dtype = torch(), _type_of(like)
    positions = library.empty(1, height, width, 2, dtype=dtype, device=like.device)
    for axis, extent in enumerate((width, height)):
        edge = (extent - 1) / extent
        line = library.linspace(-edge, edge, extent, dtype=dtype, device=like.device)
        positions[..., axis] = line if axis == 0 else line.unsqueeze(-1)
    return positions


def check_displacement(displacement: Tensor, height: int, width: int) -> None:
    """Raise an error unless a displacement has a vector for each pixel of an image of this size.

    Raises:
        TypeError, ValueError: the value is not a tensor, or has another shape.
    """
    if not isinstance(displacement, torch().Tensor):
        raise TypeError(f"`displacement` must be a tensor. Got: {type(displacement).__name__}")
    if tuple(displacement.shape) != (1, height, width, 2):
        raise ValueError(
            f"`displacement` must have the shape {(1, height, width, 2)}. Got: {tuple(displacement.shape)}"
        )


@function_for("elastic", "tensor", "video")
def _elastic(
    image: Tensor, displacement: Tensor, interpolation: Interpolation = "bilinear", fill: Fill = None
) -> Tensor:
    height, width = image.shape[-2:]
    check_displacement(displacement, height, width)
    name = _check_warp(image, interpolation, fill)
    positions = relative_positions(height, width, image)
    return _sampled(image, positions + displacement.to(positions), name, fill)


@function_for("elastic", "mask")
def _elastic_mask(
    mask: Tensor, displacement: Tensor, interpolation: Interpolation | None = None, fill: Fill = None
) -> Tensor:
    return _elastic(mask, displacement, "nearest", fill)


through_tensor("elastic", _elastic)
