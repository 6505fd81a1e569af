"""`perspective_crops` equals OpenCV for each quadrilateral, and `crop_boxes` for boxes."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from emulation import can_emulate
from one_batch import isolated, outputs

from penstock import fn, types
from penstock.errors import OperatorError
from penstock.tensors.cuda import device_count

RNG = np.random.default_rng(31)
IMAGES = [
    cv2.GaussianBlur(RNG.integers(0, 256, shape, np.uint8), (5, 5), 0)
    for shape in ((60, 90, 3), (45, 70, 3), (80, 50, 3))
]
QUADRILATERALS = [
    np.array([[[10, 12], [60, 8], [64, 30], [12, 33]], [[-8, -5], [20, 3], [22, 40], [-6, 38]]], np.float32),
    np.zeros((0, 4, 2), np.float32),
    np.array([[[20.5, 5], [30.25, 6.5], [28, 70], [19, 72.75]]], np.float32),
]
FLAGS = {types.INTERP_NN: cv2.INTER_NEAREST, types.INTERP_LINEAR: cv2.INTER_LINEAR, types.INTERP_CUBIC: cv2.INTER_CUBIC}


def crops(images: list[np.ndarray], quadrilaterals: list[np.ndarray], device: str = "cpu", **arguments: Any) -> Any:
    def define() -> Any:
        pictures = fn.external_source(name="images", layout="HWC")
        corners = fn.external_source(name="quadrilaterals", ndim=3)
        return fn.perspective_crops(pictures.gpu() if device == "gpu" else pictures, corners, **arguments)

    device_id = 0 if device == "gpu" else None
    return outputs(define, device_id, images=images, quadrilaterals=quadrilaterals)


def of_opencv(image: np.ndarray, corners: np.ndarray, flags: int, tall: float = np.inf) -> np.ndarray:
    """Return the crop that OCR systems make with OpenCV; crops are rotated if height / width is at least ``tall``."""
    wide = int(max(np.linalg.norm(corners[0] - corners[1]), np.linalg.norm(corners[2] - corners[3])))
    high = int(max(np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2])))
    edges = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, edges)
    crop = cv2.warpPerspective(image, matrix, (wide, high), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.rot90(crop) if high / wide >= tall else crop


@pytest.mark.parametrize("interpolation", list(FLAGS), ids=str)
def test_crops_are_opencvs(interpolation: Any) -> None:
    arguments = {"pixel_origin": "center", "interp_type": interpolation, "rotate_tall": 1.5}
    received, counts = crops(IMAGES, QUADRILATERALS, **arguments)
    expected = [
        of_opencv(image, corners, FLAGS[interpolation], 1.5)
        for image, own in zip(IMAGES, QUADRILATERALS)
        for corners in own
    ]
    assert [int(count) for count in counts] == [2, 0, 1]
    assert received[2].shape[1] > received[2].shape[0]
    for crop, own in zip(received, expected, strict=True):
        np.testing.assert_array_equal(crop, own)


def test_boxes_are_cut_as_crop_boxes_does() -> None:
    boxes = [np.array([[3, 5, 40, 21], [0, 0, 90, 60]], np.float32)]
    corners = [np.ascontiguousarray(boxes[0][:, [0, 1, 2, 1, 2, 3, 0, 3]]).reshape(-1, 4, 2)]

    def define() -> Any:
        pictures = fn.external_source(name="images", layout="HWC")
        return fn.crop_boxes(pictures, fn.external_source(name="boxes", ndim=2))

    expected, _ = outputs(define, images=IMAGES[:1], boxes=boxes)
    received, _ = crops(IMAGES[:1], corners)
    for crop, own in zip(received, expected, strict=True):
        np.testing.assert_array_equal(crop, own)


def test_a_size_for_all() -> None:
    received, _ = crops(IMAGES, QUADRILATERALS, size=[16, 48], rotate_tall=1.0)
    assert [crop.shape for crop in received] == [(16, 48, 3)] * 3


@pytest.mark.parametrize(("dtype", "channels"), [(np.float32, 1), (np.uint16, 4), (np.int16, 2)])
def test_other_types(dtype: Any, channels: int) -> None:
    image = RNG.integers(0, 1000, (30, 40, channels)).astype(dtype)
    corners = np.array([[5, 6], [30, 4], [31, 20], [4, 22]], np.float32)
    received, _ = crops([image], [corners[None]], pixel_origin="center")
    expected = of_opencv(image, corners, cv2.INTER_LINEAR)
    np.testing.assert_array_equal(received[0], expected.reshape(*expected.shape[:2], channels))


ON_A_GPU = pytest.mark.skipif(not (device_count() or can_emulate()), reason="needs a GPU, or a compiler to emulate one")
SHAKEN = [
    (np.array([[0, 0], [40, 0], [40, 20], [0, 20]]) + RNG.uniform(-4, 30, (1, 2)) + RNG.uniform(-5, 5, (count, 4, 2)))
    for count in (7, 0, 9)
]


def check_devices(images: list[np.ndarray], **arguments: Any) -> None:
    quadrilaterals = [own.astype(np.float32) for own in SHAKEN]
    # A third of the quadrilaterals are upright.
    quadrilaterals[2][:5] = quadrilaterals[2][:5, [0, 3, 2, 1], ::-1]
    on_gpu, on_cpu = (crops(images, quadrilaterals, device, rotate_tall=1.2, **arguments) for device in ("gpu", "cpu"))
    for own, other in zip(on_gpu, on_cpu, strict=True):
        for a, b in zip(own, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@ON_A_GPU
@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interpolation", list(FLAGS), ids=str)
def test_images_on_a_gpu(interpolation: Any, border: str) -> None:
    check_devices(IMAGES, interp_type=interpolation, border_mode=border)


@ON_A_GPU
@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("interpolation", [types.INTERP_NN, types.INTERP_LINEAR], ids=str)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
def test_types_and_channels_on_a_gpu(dtype: Any, channels: int, interpolation: Any) -> None:
    images = [(RNG.random((*image.shape[:2], channels)) * 1000).astype(dtype) for image in IMAGES]
    check_devices(images, interp_type=interpolation)
    check_devices(images, interp_type=interpolation, size=[16, 48], pixel_origin="center")


@ON_A_GPU
@pytest.mark.usefixtures("with_gpu")
def test_images_of_different_channels_on_a_gpu() -> None:
    check_devices([IMAGES[0], IMAGES[1], np.ascontiguousarray(IMAGES[2][..., :1])])


@ON_A_GPU
@pytest.mark.usefixtures("with_gpu")
def test_no_quadrilateral_on_a_gpu() -> None:
    received, counts = crops(IMAGES, [np.zeros((0, 4, 2), np.float32)] * 3, "gpu")
    assert received == []
    assert [int(count) for count in counts] == [0, 0, 0]


def test_no_quadrilateral_at_all() -> None:
    received, counts = crops(IMAGES, [np.zeros((0, 4, 2), np.float32)] * 3)
    assert received == []
    assert [int(count) for count in counts] == [0, 0, 0]


SQUARE = [[0, 0], [9, 0], [9, 9], [0, 9]]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([[0, 0], [9, 0], [9, 9]], r"shape \(quadrilaterals, 4, 2\)"),
        ([[0, 0], [9, 0], [float("nan"), 9], [0, 9]], "not a number"),
        ([[0, 0], [9, 9], [9, 0], [0, 9]], "is not convex"),
        ([[0, 0], [5, 0], [9, 0], [0, 9]], "is not convex"),
        ([[0, 0], [9, 0], [9, 0.4], [0, 0.4]], "holds no pixel"),
        ([[0, 0], [5e5, 0], [5e5, 5e5], [0, 5e5]], "more than 16 times as large"),
        ([[0, 0], [5e7, 0], [5e7, 5e7], [0, 5e7]], "far outside"),
    ],
)
def test_an_image_with_a_bad_quadrilateral_fails_alone(bad: list[list[float]], told: str) -> None:
    def define() -> Any:
        pictures = fn.external_source(name="images", layout="HWC")
        return fn.perspective_crops(pictures, fn.external_source(name="quadrilaterals", ndim=3))

    good = np.array([SQUARE], np.float32)
    received, failures = isolated(define, images=IMAGES, quadrilaterals=[good, np.array([bad], np.float32), good])
    assert list(failures) == [1]
    with pytest.raises(OperatorError, match=told):
        raise failures[1]
    assert [crop.shape for crop in received[0]] == [(9, 9, 3)] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": [0, 4]},
        {"size": [4]},
        {"rotate_tall": -1.0},
        {"pixel_origin": "edge"},
        {"interp_type": types.INTERP_LANCZOS3},
        {"border_mode": "mirror"},
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        crops(IMAGES, QUADRILATERALS, **arguments)
