"""Compares operators with `reference="opencv"` with OpenCV's functions, by random calls of both, on images of any layout.

`flip` has no such argument, as it only moves pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from penstock import fn, pipeline_def, types

Reference = Callable[[np.ndarray], np.ndarray]
FILTERS = {
    types.INTERP_NN: cv2.INTER_NEAREST,
    types.INTERP_LINEAR: cv2.INTER_LINEAR,
    types.INTERP_CUBIC: cv2.INTER_CUBIC,
}
BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect_101": cv2.BORDER_REFLECT_101,
    "wrap": cv2.BORDER_WRAP,
}
FILTER_BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}


@dataclass(frozen=True)
class Call:
    """A call of an operator and the same call of OpenCV's function.

    Attributes:
        ours: a function that calls the operator for a node of images.
        theirs: a function that calls OpenCV for an image, with the same arguments.
        image: the image, of shape (H, W, C).
        planar: whether the operator gets the image as planes, of shape (C, H, W).
    """

    ours: Callable[[Any], Any]
    theirs: Reference
    image: np.ndarray
    planar: bool = field(default=False)

    @property
    def data(self) -> np.ndarray:
        """The image, in the layout of the operator's input."""
        return np.ascontiguousarray(self.image.transpose(2, 0, 1)) if self.planar else self.image

    @property
    def layout(self) -> str:
        """The layout of the operator's input."""
        return "CHW" if self.planar else "HWC"

    @property
    def expected(self) -> np.ndarray:
        """OpenCV's result, of shape (H, W, C). If ``planar``, OpenCV processes the channels one by one."""
        parts = [self.image[:, :, c].copy() for c in range(self.image.shape[2])] if self.planar else [self.image]
        results = [self.theirs(part) for part in parts]
        return np.stack(results, axis=-1) if self.planar else _with_channels(results[0])


def _with_channels(image: np.ndarray) -> np.ndarray:
    return image[:, :, None] if image.ndim == 2 else image


def _image(rng: np.random.Generator, kinds: tuple[type, ...], most: int, channels: tuple[int, ...]) -> np.ndarray:
    """Return an image of noise, or of patches with extreme values; most images are small."""
    height, width = (int(np.exp(rng.uniform(0, np.log(most + 1)))) for _ in range(2))
    shape, kind = (height, width, int(rng.choice(channels))), np.dtype(kinds[rng.integers(len(kinds))])
    if kind.kind == "f":
        return rng.normal(0, 1, shape).astype(kind)
    limits = np.iinfo(kind)
    if rng.integers(2):
        return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
    patches = rng.integers(0, 2, (height // 3 + 1, width // 3 + 1, shape[2])).repeat(3, axis=0).repeat(3, axis=1)
    return np.ascontiguousarray(np.where(patches[:height, :width], limits.max, limits.min).astype(kind))


def _size(rng: np.random.Generator, image: np.ndarray, most: int) -> tuple[int, int]:
    return image.shape[:2] if rng.integers(2) else tuple(int(extent) for extent in rng.integers(1, most, 2))  # type: ignore[return-value]


def _affine(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    matrix = rng.normal(0, 1, (2, 3)) if rng.random() < 0.3 else np.eye(2, 3) + rng.normal(0, 0.2, (2, 3))
    matrix[:, 2] += rng.uniform(-0.5, 0.5, 2) * image.shape[1::-1]
    if rng.random() < 0.2:
        # Make the coefficients multiples of 0.5, so that positions are on pixels or halfway between pixels.
        matrix = np.rint(matrix * 2) / 2
    return matrix.astype(np.float32)


def _fill(rng: np.random.Generator, image: np.ndarray) -> float:
    return float(np.float32(rng.normal()) if image.dtype.kind == "f" else rng.integers(0, 256))


def _warp_affine(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.float32), most, (1, 2, 3, 3, 4))
    matrix, kind, inverse = _affine(rng, image), list(FILTERS)[rng.integers(3)], bool(rng.integers(2))
    (height, width), filled, fill = _size(rng, image, most), bool(rng.integers(2)), _fill(rng, image)
    asked: dict[str, Any] = {"fill_value": fill} if filled else {}
    return Call(
        lambda node: fn.warp_affine(
            node,
            matrix=matrix.ravel().tolist(),
            inverse_map=inverse,
            interp_type=kind,
            size=[height, width],
            reference="opencv",
            **asked,
        ),
        lambda picture: cv2.warpAffine(
            picture,
            matrix,
            (width, height),
            flags=FILTERS[kind] | (cv2.WARP_INVERSE_MAP if inverse else 0),
            borderMode=cv2.BORDER_CONSTANT if filled else cv2.BORDER_REPLICATE,
            borderValue=(fill,) * 4,
        ),
        image,
    )


def _rotate(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.float32), most, (1, 2, 3, 3, 4))
    (height, width), kind, fill = image.shape[:2], list(FILTERS)[rng.integers(3)], _fill(rng, image)
    angle = float(np.float32(rng.choice([rng.uniform(-400, 400), 0, 90, 180, 270])))
    (rows, columns), kept = _size(rng, image, most), bool(rng.integers(2))
    asked: dict[str, Any] = {"keep_size": True} if kept else {"size": [rows, columns]}
    size = (width, height) if kept else (columns, rows)
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1)
    matrix[:, 2] += ((size[0] - width) / 2, (size[1] - height) / 2)
    return Call(
        lambda node: fn.rotate(node, angle=angle, interp_type=kind, fill_value=fill, reference="opencv", **asked),
        lambda picture: cv2.warpAffine(picture, matrix, size, flags=FILTERS[kind], borderValue=(fill,) * 4),
        image,
    )


def _warp_perspective(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.uint16, np.float32), most, (1, 2, 3, 3, 4))
    matrix = np.vstack([_affine(rng, image), [0, 0, 1]]).astype(np.float32)
    kind, border, inverse = list(FILTERS)[rng.integers(3)], str(rng.choice(list(BORDERS))), bool(rng.integers(2))
    (height, width), planar = _size(rng, image, most), rng.random() < 0.2
    if border.startswith("reflect"):
        # Positions that are reflected must be near the image: use a map close to the identity, and for small images another border.
        border = border if min(image.shape[:2]) >= 8 else "wrap"
        matrix, inverse, (height, width) = (
            (np.eye(3) + rng.normal(0, 0.1, (3, 3))).astype(np.float32),
            True,
            image.shape[:2],
        )
    if border.startswith("reflect") or rng.integers(2):
        # Here, the horizon is far from the image; in the other case, it may cross the image.
        matrix[2] = [*rng.uniform(-0.3, 0.3, 2) / max(image.shape), 1]
    else:
        matrix[2] = [*rng.normal(0, 0.01, 2), 1]
    channels = 1 if planar or rng.integers(2) else image.shape[2]
    fill = [_fill(rng, image) for _ in range(channels)]
    return Call(
        lambda node: fn.experimental.warp_perspective(
            node,
            matrix=matrix.ravel().tolist(),
            inverse_map=inverse,
            interp_type=kind,
            border_mode=border,
            fill_value=fill,
            size=[height, width],
            reference="opencv",
        ),
        lambda picture: cv2.warpPerspective(
            picture,
            matrix,
            (width, height),
            flags=FILTERS[kind] | (cv2.WARP_INVERSE_MAP if inverse else 0),
            borderMode=BORDERS[border],
            borderValue=fill * 4 if channels == 1 else fill,
        ),
        image,
        planar,
    )


def _gaussian_blur(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.uint16, np.float32, np.float64), most, (1, 2, 3, 3, 4, 5))
    sizes, sigmas = (2 * rng.integers(0, 12, 2) + 1).tolist(), rng.uniform(0.3, 4, 2).astype(np.float32).tolist()
    what = int(rng.integers(3))
    asked = [{"window_size": sizes}, {"sigma": sigmas}, {"window_size": sizes, "sigma": sigmas}][what]
    height, width = sizes if what != 1 else (0, 0)
    rows, columns = sigmas if what else (0.0, 0.0)
    return Call(
        lambda node: fn.gaussian_blur(node, reference="opencv", **asked),
        lambda picture: cv2.GaussianBlur(picture, (width, height), columns, sigmaY=rows),
        image,
        rng.random() < 0.2,
    )


def _filter(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.uint16, np.float32), most, (1, 2, 3, 3, 4, 5))
    height, width = (int(extent) for extent in rng.integers(1, 16, 2))
    window = rng.normal(0.1, 0.3, (height, width)).astype(np.float32)
    if rng.integers(2):
        window = np.rint(window * 4).astype(np.float32)
    border, floats = str(rng.choice(list(FILTER_BORDERS))), bool(rng.integers(2))
    y, x = int(rng.integers(height)), int(rng.integers(width))
    valid = bool(rng.integers(2)) and height <= image.shape[0] and width <= image.shape[1]
    depth = cv2.CV_32F if floats else -1
    asked: dict[str, Any] = {"mode": "valid"} if valid else {"border": border, "anchor": [y, x]}
    if floats:
        asked["dtype"] = types.FLOAT

    def theirs(picture: np.ndarray) -> np.ndarray:
        if not valid:
            return cv2.filter2D(picture, depth, window, anchor=(x, y), borderType=FILTER_BORDERS[border])
        whole = cv2.filter2D(picture, depth, window, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
        return whole[: picture.shape[0] - height + 1, : picture.shape[1] - width + 1]

    return Call(lambda node: fn.filter(node, window, reference="opencv", **asked), theirs, image, rng.random() < 0.2)


def _flip(rng: np.random.Generator, most: int) -> Call:
    image = _image(rng, (np.uint8, np.uint8, np.int16, np.float32), most, (1, 2, 3, 3, 4))
    code = int(rng.integers(-1, 2))
    return Call(
        lambda node: fn.flip(node, horizontal=int(code != 0), vertical=int(code != 1)),
        lambda picture: cv2.flip(picture, code),
        image,
        rng.random() < 0.2,
    )


COMPARED: dict[str, Callable[[np.random.Generator, int], Call]] = {
    "filter": _filter,
    "flip": _flip,
    "gaussian_blur": _gaussian_blur,
    "rotate": _rotate,
    "warp_affine": _warp_affine,
    "warp_perspective": _warp_perspective,
}
MOST = 150
# The number of calls that run in one pipeline, each with another image.
_TOGETHER = 20


def random_calls(name: str, count: int, seed: int = 0, most: int = MOST) -> Iterator[Call]:
    """Yield random calls of an operator, with images whose sides have at most ``most`` pixels."""
    rng = np.random.default_rng([seed, list(COMPARED).index(name)])
    for _ in range(count):
        yield COMPARED[name](rng, most)


def _results(calls: list[Call], device: str) -> list[np.ndarray]:
    """Return the operator's result for each call, of shape (H, W, C)."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=0 if device == "gpu" else None, prefetch_queue_depth=1)
    def calling() -> Any:
        nodes = [fn.external_source(name=f"image_{number}", layout=call.layout) for number, call in enumerate(calls)]
        return tuple(call.ours(node.gpu() if device == "gpu" else node) for call, node in zip(calls, nodes))

    pipeline = calling()
    outputs = pipeline.run(**{f"image_{number}": [call.data] for number, call in enumerate(calls)})
    results = [np.array(output.as_cpu()[0]) for output in outputs]
    pipeline.close()
    return [result.transpose(1, 2, 0) if call.planar else result for call, result in zip(calls, results)]


def compared(
    name: str, count: int, seed: int = 0, device: str = "cpu", most: int = MOST
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield ``count`` pairs of Penstock's and OpenCV's results, for random images and arguments."""
    calls = list(random_calls(name, count, seed, most))
    for begin in range(0, count, _TOGETHER):
        some = calls[begin : begin + _TOGETHER]
        yield from zip(_results(some, device), [call.expected for call in some], strict=True)
