"""Helpers for comparing Penstock's transforms with torchvision's: samples, outcomes, and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision import transforms, tv_tensors
from torchvision.transforms import v2 as theirs
from transform_cases import AUTOMATIC, COLOURS, COMPOSED, GEOMETRY, WITH_TORCH, picture

theirs.AutoAugmentPolicy = transforms.AutoAugmentPolicy
GROUPS = {
    "geometry": GEOMETRY,
    "colours": COLOURS,
    "automatic augmentation": AUTOMATIC,
    "composed": COMPOSED,
    "blur, noise, erasing, mixing": WITH_TORCH,
}
CASES = {name: make for group in GROUPS.values() for name, make in group.items()}


def tensor(number: int, channels: int = 3) -> torch.Tensor:
    return torch.from_numpy(picture(number, channels)).permute(2, 0, 1).contiguous()


def image(number: int, channels: int = 3) -> Image.Image:
    array = picture(number, channels)
    return Image.fromarray(array[:, :, 0] if channels == 1 else array)


def detection(number: int) -> dict[str, Any]:
    """Return the sample of an object detector: image, boxes, masks, points, labels and a name."""
    pixels, rng = tensor(number), np.random.default_rng(number)
    height, width = pixels.shape[-2:]
    x, y = (np.sort(rng.uniform(0, extent, (4, 2)), axis=1) for extent in (width, height))
    corners = torch.tensor(np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1), dtype=torch.float32)
    kind = ("XYXY", "XYWH", "CXCYWH")[number % 3]
    boxes = theirs.functional.convert_bounding_box_format(corners, tv_tensors.BoundingBoxFormat.XYXY, kind)
    canvas = (height, width)
    points = torch.tensor(rng.uniform(0, 1, (3, 2)) * [width, height]).float()
    return {
        "image": tv_tensors.Image(pixels) if number % 2 else image(number),
        "boxes": tv_tensors.BoundingBoxes(boxes.long() if number % 4 == 3 else boxes, format=kind, canvas_size=canvas),
        "masks": tv_tensors.Mask(torch.from_numpy(rng.integers(0, 2, (4, *canvas), np.uint8))),
        "points": tv_tensors.KeyPoints(points, canvas_size=canvas),
        "labels": torch.arange(4),
        "name": "a picture",
    }


MAKE = {
    "pil": image,
    "pil-L": lambda number: image(number, 1),
    "pil-RGBA": lambda number: image(number, 4),
    "uint8": tensor,
    "uint8-L": lambda number: tensor(number, 1),
    "channels-last": lambda number: torch.from_numpy(picture(number)).permute(2, 0, 1),
    "float": lambda number: tensor(number).float() / 255,
    "double": lambda number: tensor(number).double() / 255,
    "int32": lambda number: tensor(number).int() << 22,
    "batch": lambda number: torch.stack([tensor(number), tensor(number).flip(-1)]),
    "video": lambda number: tv_tensors.Video(torch.stack([tensor(number), tensor(number).flip(-1)])),
    "detection": detection,
}


def difference(first: Any, second: Any) -> str:
    """Return a description of the first difference between two results; empty if they are equal."""
    if type(first) is not type(second):
        return f"{type(second)}, and not {type(first)}"
    if isinstance(first, dict):
        return next((f"{key}: {told}" for key in first if (told := difference(first[key], second[key]))), "")
    if isinstance(first, (list, tuple)):
        return next((told for pair in zip(first, second, strict=True) if (told := difference(*pair))), "")
    if isinstance(first, Image.Image):
        same = first.mode == second.mode and np.array_equal(np.asarray(first), np.asarray(second))
        return "" if same else "other pixels"
    if isinstance(first, torch.Tensor):
        said = ("dtype", "shape", "canvas_size", "format", "clamping_mode")
        if any(getattr(first, name, None) != getattr(second, name, None) for name in said):
            return f"{second}, and not {first}"
        return "" if torch.equal(*(each.as_subclass(torch.Tensor) for each in (first, second))) else "other values"
    return "" if first == second else f"{second!r}, and not {first!r}"


def outcome(module: Any, make: Any, sample: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    try:
        return make(module)(sample)
    except Exception as error:
        # Penstock's error may be another one than torchvision's, so only the fact is compared.
        return f"refused, {isinstance(error, (TypeError, ValueError, RuntimeError, NotImplementedError, OSError))}"


def comparable(name: str, kind: str) -> bool:
    """Return whether torchvision can run a transform here on this kind of sample.

    To compress tensors, it needs its compiled part, which requires a matching build of PyTorch.
    """
    return name != "jpeg" or kind.startswith("pil")


def size_of(result: Any) -> int:
    """Return the number of values in a result."""
    if isinstance(result, dict):
        return sum(map(size_of, result.values()))
    if isinstance(result, (list, tuple)):
        return sum(map(size_of, result))
    if isinstance(result, torch.Tensor):
        return result.numel()
    return np.asarray(result).size if isinstance(result, Image.Image) else 0
