"""Random cases of `fn.resize` with a reference, and the libraries' results for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from penstock import fn, pipeline_def

INTERPOLATIONS = {
    "pil": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
    "torchvision": ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos"),
    "opencv": ("nearest", "nearest-exact", "linear", "linear-exact", "area", "cubic", "lanczos4"),
}
# Interpolations with which torchvision resizes images of PIL, and their names in PIL.
ON_PIL = {"nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "lanczos": "lanczos"}
_MAX_PIXELS = 1 << 22


@dataclass(frozen=True)
class Case:
    """A call of `fn.resize` and the same call of a library's function.

    Attributes:
        library: the library whose function is called.
        reference, interpolation: the arguments of `fn.resize`. Torchvision resizes images of PIL if the reference is "pil".
        shape: the image's shape, (H, W, C).
        planar: whether `fn.resize` gets the image as planes, of shape (C, H, W).
        floats: whether the image is of float32, from 0 to 1, rather than of uint8.
        asked: the other arguments of `fn.resize`, from which the arguments of the library's function follow.
    """

    library: str
    reference: str
    interpolation: str
    shape: tuple[int, int, int]
    planar: bool
    floats: bool
    asked: dict[str, Any] = field(default_factory=dict)

    def image(self) -> np.ndarray:
        """Return an image of the case's shape and type, the same in each call."""
        image = self._image()
        return image.astype(np.float32) / np.float32(255) if self.floats else image

    def _image(self) -> np.ndarray:
        """Return an image of noise, or of black and white patches, at whose edges filters overshoot."""
        rng = np.random.default_rng(math.prod(self.shape))
        if self.shape[0] % 2:
            return rng.integers(0, 256, self.shape, np.uint8)
        patches = rng.integers(0, 2, (self.shape[0] // 3 + 1, self.shape[1] // 3 + 1, self.shape[2])) * 255
        enlarged = patches.repeat(3, axis=0).repeat(3, axis=1)[: self.shape[0], : self.shape[1]]
        return np.ascontiguousarray(enlarged.astype(np.uint8))


def _extent(rng: np.random.Generator, most: int) -> int:
    return int(np.exp(rng.uniform(0, np.log(most + 1))))


def cases(library: str, count: int, most: int, seed: int = 0) -> Iterator[Case]:
    """Yield ``count`` cases of images whose sides have at most ``most`` pixels."""
    rng = np.random.default_rng(seed)
    while count:
        case = _case(library, rng, most)
        if case is not None:
            count -= 1
            yield case


def _case(library: str, rng: np.random.Generator, most: int) -> Case | None:
    height, width, h, w = (_extent(rng, most) for _ in range(4))
    if max(height, h) * max(width, w) > _MAX_PIXELS:
        return None
    reference = "pil" if library == "torchvision" and rng.random() < 0.25 else library
    names = tuple(ON_PIL) if reference != library else INTERPOLATIONS[library]
    interpolation = str(rng.choice(names))
    # Pillow gets planes as separate images of one channel; other libraries get them as one image with several channels.
    planar = bool(rng.random() < 0.2)
    channels = int(rng.choice((1, 2, 3, 3, 4)))
    asked: dict[str, Any] = {"size": [h, w]}
    if library == "torchvision":
        if reference == library:
            channels = int(rng.choice((1, 2, 3, 3, 4) if "nearest" in interpolation else (1, 2, 3, 3, 4, 5)))
            if interpolation in ("bilinear", "bicubic"):
                asked["antialias"] = bool(rng.random() < 0.5)
        else:
            channels, planar = int(rng.choice((1, 3))), False
        if rng.random() < 0.5:
            asked |= _one_side(rng, height, width, h)
    if library == "pil":
        planar = planar and channels in (1, 3)
        if rng.random() < 0.3:
            asked["reducing_gap"] = float(rng.choice((1.0, 1.4, 2.0, 3.0)))
        if rng.random() < 0.3:
            top, left = rng.uniform(0, (height / 2, width / 2))
            asked["roi_start"] = [float(np.float32(top)), float(np.float32(left))]
            asked["roi_end"] = [float(np.float32(v)) for v in rng.uniform((top + 0.4, left + 0.4), (height, width))]
        if not _is_the_same_in_old_releases(height, width, h, w):
            return None
    asked = {name: value for name, value in asked.items() if value is not None}
    # No images of floats with a side of one pixel: PyTorch misinterprets the layout of such planes, and rounds differently or returns
    # wrong values.
    sides = (height, width, *asked.get("size", [1]))
    floats = (
        library == reference == "torchvision" and rng.random() < 0.5 and min(sides) > 1 and interpolation != "lanczos"
    )
    return Case(library, reference, interpolation, (height, width, channels), planar, floats, asked)


def _is_the_same_in_old_releases(height: int, width: int, h: int, w: int) -> bool:
    """Return whether the installed Pillow has the same result as release 13.

    For images that lose more than twice as many rows as columns, release 13 reduces the rows first; older releases never do.
    """
    return int(version("pillow").split(".")[0]) >= 13 or height - h <= max(0, 2 * (width - w))


def _one_side(rng: np.random.Generator, height: int, width: int, extent: int) -> dict[str, Any]:
    short, long = sorted((height, width))
    if rng.random() < 0.3:
        usable = int(extent * short / long) > 0
        return {"size": None, "resize_longer": extent} if usable else {}
    if extent * long / short > 4000:
        return {}
    limit = {"max_size": [extent + int(rng.integers(1, 50))]} if rng.random() < 0.5 else {}
    if limit and int(limit["max_size"][0] * short / long) < 1:
        return {}
    return {"size": None, "resize_shorter": extent, **limit}


def resized(case: Case, image: np.ndarray) -> np.ndarray:
    """Return Penstock's result, of shape (H, W, C)."""
    given = np.ascontiguousarray(image.transpose(2, 0, 1)) if case.planar else image
    layout = "CHW" if case.planar else "HWC"

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def resizing() -> Any:
        node = fn.external_source(lambda: [given], layout=layout)
        return fn.resize(node, reference=case.reference, interpolation=case.interpolation, **case.asked)

    pipeline = resizing()
    result = np.array(pipeline.run()[0][0])
    pipeline.close()
    return result.transpose(1, 2, 0) if case.planar else result


def expected(case: Case, image: np.ndarray) -> np.ndarray:
    """Return the library's result, of shape (H, W, C)."""
    result = _LIBRARIES[case.library](case, image)
    return result.reshape(*result.shape[:2], image.shape[2])


def _pil_image(image: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)


def _by_pil(case: Case, image: np.ndarray) -> np.ndarray:
    from PIL import Image

    height, width = case.asked["size"]
    options: dict[str, Any] = {"reducing_gap": case.asked.get("reducing_gap")}
    if "roi_start" in case.asked:
        options["box"] = (*case.asked["roi_start"][::-1], *case.asked["roi_end"][::-1])
    resample = Image.Resampling[case.interpolation.upper()]
    images = [image[:, :, c : c + 1] for c in range(image.shape[2])] if case.planar else [image]
    results = [np.asarray(_pil_image(one).resize((width, height), resample, **options)) for one in images]
    return np.stack(results, axis=-1) if case.planar else results[0]


def _by_opencv(case: Case, image: np.ndarray) -> np.ndarray:
    import cv2

    flag = getattr(cv2, f"INTER_{case.interpolation.upper().replace('-', '_')}")
    height, width = case.asked["size"]
    images = [image[:, :, c] for c in range(image.shape[2])] if case.planar else [image]
    results = [cv2.resize(one, (width, height), interpolation=flag) for one in images]
    return np.stack(results, axis=-1) if case.planar else results[0]


def _by_torchvision(case: Case, image: np.ndarray) -> np.ndarray:
    import torch
    from libraries import torchvision_functional

    functional = torchvision_functional()
    from torchvision.transforms import InterpolationMode

    asked, options = case.asked, {}
    size = asked.get("size")
    if "resize_shorter" in asked:
        size = [asked["resize_shorter"]]
        options = {"max_size": int(asked["max_size"][0])} if "max_size" in asked else {}
    elif "resize_longer" in asked:
        size, options = None, {"max_size": asked["resize_longer"]}
    mode = InterpolationMode(case.interpolation)
    if case.reference == "pil":
        return np.asarray(functional.resize(_pil_image(image), size, mode, **options))
    tensor = torch.from_numpy(image).permute(2, 0, 1)
    # Leave images of uint8 interleaved, as torchvision gets them from PIL: contiguous planes would cause the defect described in `_case`.
    tensor = tensor.contiguous() if case.floats or "nearest" in case.interpolation else tensor
    result = functional.resize(tensor, size, mode, antialias=asked.get("antialias", True), **options)
    return result.permute(1, 2, 0).numpy()


_LIBRARIES = {"pil": _by_pil, "opencv": _by_opencv, "torchvision": _by_torchvision}


def different(case: Case, expected_result: np.ndarray | None = None) -> tuple[int, int]:
    """Return the number of values, and how many of them differ; if the shapes differ, all values count as different."""
    image = case.image()
    wanted = expected(case, image) if expected_result is None else expected_result
    got = resized(case, image)
    if got.shape != wanted.shape:
        return wanted.size, wanted.size
    return wanted.size, int(np.count_nonzero(got != wanted))
