"""Image operators give the same results on CPU and GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import BORDERS, KINDS, Define, check_close, check_equal, everywhere, frames, given, images, planes, typed

from penstock import fn, types

# Only with --exhaustive: in the default run, `tests/sweeps` compares CPU and GPU.
pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("with_gpu")]

_SIX_CHANNELS = [
    np.random.default_rng(1).integers(0, 256, shape, np.uint8) for shape in ((20, 30, 6), (33, 29, 6), (16, 64, 6))
]


def prepared(node: Any, **arguments: Any) -> Any:
    settings = {"mean": [120.0], "std": [60.0], "output_layout": "CHW"} | arguments
    mirror = fn.random.coin_flip(seed=4)
    return fn.crop_mirror_normalize(fn.resize(node, resize_shorter=24.0), crop=(15, 22), mirror=mirror, **settings)


def _window(device: str, *shape: int) -> Any:
    return fn.random.uniform(device=device, range=[-0.3, 0.4], shape=shape, seed=9)


def _mosaic(device: str, kind: str) -> Any:
    """Return images with one channel and even extents."""
    return fn.crop(fn.slice(typed(device, kind), 0, 1, axes=[2]), crop=[28, 26])


EXACT: dict[str, Define] = {
    "erase": lambda device: fn.erase(images(device), anchor=[5, 3, 8, 7], shape=[9, 12, 40, 5], axis_names="HW"),
    "erase, channels": lambda device: fn.erase(
        images(device), anchor=[5, 1], shape=[9, 2], axis_names="HC", fill_value=[300.5, -7, 3]
    ),
    **{
        f"erase, {kind}": lambda device, kind=kind: fn.erase(
            fn.cast(images(device), dtype=kind), anchor=[5.6, 3], shape=[9, 12], axis_names="HW", fill_value=-700.4
        )
        for kind in (types.INT16, types.UINT32, types.UINT64, types.INT64, types.FLOAT16, types.FLOAT)
    },
    "multi_paste, overlapping": lambda device: fn.multi_paste(
        images(device),
        in_ids=np.array([0, 2, 1, 0], np.int32),
        shapes=np.array([[20, 30], [25, 20], [9, 9], [7, 5]], np.int32),
        out_anchors=np.array([[3, 5], [10, 1], [12, 7], [39, 40]], np.int32),
        output_size=[50, 47],
    ),
    "grid": lambda device: fn.grid_mask(
        fn.cast(images(device), dtype=types.INT16), tile=7, angle=fn.random.uniform(range=[0, 1]), shift_x=3.5
    ),
    **{
        f"debayer {kind}, {blue}": lambda device, k=kind, b=blue: fn.debayer(_mosaic(device, k), blue_position=b)
        for kind in ("uint8", "uint16")
        for blue in ([0, 0], [0, 1], [1, 0], [1, 1])
    },
    "jpeg": lambda device: fn.jpeg_compression_distortion(
        images(device), quality=fn.random.uniform(range=[1, 100], dtype=types.INT32)
    ),
    "jpeg of frames": lambda device: fn.jpeg_compression_distortion(frames(device), quality=90),
    **{
        f"jpeg of {height} x {width}": lambda device, h=height, w=width: fn.jpeg_compression_distortion(
            fn.crop(images(device), crop=[h, w])
        )
        for height, width in ((1, 1), (2, 5), (17, 4), (16, 16), (9, 6), (32, 27))
    },
    "slice at numbers on the device": lambda device: fn.slice(
        images(device), everywhere(device, np.float32([0.1, 0.3])), everywhere(device, np.float32([0.5, 0.6]))
    ),
    "equalize": lambda device: fn.equalize(images(device)),
    "equalize many channels": lambda device: fn.equalize(fn.cat(*[images(device)] * 3, axis_name="C")),
    "equalize planes of frames": lambda device: fn.equalize(fn.transpose(frames(device), perm=[0, 3, 1, 2])),
    "equalize a constant": lambda device: fn.equalize(everywhere(device, np.full((70, 90), 9, np.uint8))),
    "clahe": lambda device: fn.clahe(images(device), tiles_x=3, tiles_y=4, clip_limit=2.5),
    "clahe of channels": lambda device: fn.clahe(images(device), tiles_x=4, tiles_y=4, clip_limit=0.0, luma_only=False),
    "clahe of many tiles": lambda device: fn.clahe(
        fn.slice(images(device), 0, 1, axes=[2]), tiles_x=70, tiles_y=2, clip_limit=40.0
    ),
    "median of planes": lambda device: fn.experimental.median_blur(planes(images(device)), window_size=5),
    "median of int32": lambda device: fn.experimental.median_blur(
        fn.cast(images(device), dtype=types.INT32) * -50000, window_size=[7, 3]
    ),
    "median of frames": lambda device: fn.experimental.median_blur(frames(device), window_size=[1, 9]),
    **{
        f"dilate, {border}": lambda d, b=border: fn.experimental.dilate(
            images(d), border_mode=b, mask_size=[4, 7], anchor=[0, 5], iterations=2
        )
        for border in BORDERS
    },
    **{
        f"erode {kind}": lambda d, k=kind: fn.experimental.erode(planes(typed(d, k)), mask_size=[1, 5])
        for kind in KINDS
    },
    **{f"median {kind}": lambda d, k=kind: fn.experimental.median_blur(typed(d, k)) for kind in KINDS},
}
"""Cases whose results are equal to the last bit."""

CLOSE: dict[str, Define] = {
    **{
        f"filter {kind}": lambda device, k=kind: fn.filter(typed(device, k), _window(device, 3, 4), border="clamp")
        for kind in KINDS
    },
    "filter to floats": lambda device: fn.filter(
        planes(images(device)), _window(device, 15, 14) * 0.005, dtype=types.FLOAT
    ),
    "filter of frames": lambda device: fn.filter(frames(device), _window("cpu", 2, 5), border="wrap", anchor=[0, 4]),
    "filter, valid": lambda device: fn.filter(images(device), _window(device, 2, 5), mode="valid"),
    "filter in a constant": lambda device: fn.filter(
        images(device), _window(device, 5, 1), everywhere(device, np.uint8(200)), border="constant"
    ),
    "resized frames": lambda device: fn.resize(frames(device), size=(9, 7), dtype=types.FLOAT),
    "frames without a kernel": lambda device: fn.laplacian(frames(device), window_size=5, dtype=types.FLOAT),
}
"""Cases whose results may differ between devices: integers by at most 1, real numbers by at most 1e-5."""

NORMALIZED: dict[str, Define] = {
    "three channels": lambda device: prepared(images(device)),
    "six channels": lambda device: prepared(given(_SIX_CHANNELS, device)),
    "padded bytes": lambda device: prepared(
        images(device), dtype=types.INT8, std=[1.0], pad_output=True, output_layout="HWC"
    ),
    "halves": lambda device: prepared(images(device), dtype=types.FLOAT16),
}
"""Images that are resized, rounded to bytes and divided by at least 60.

Results may differ by 1/60 between devices, as rounded bytes may differ by 1.
"""


@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str) -> None:
    check_equal(EXACT[name])


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])


@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized(name: str) -> None:
    check_close(NORMALIZED[name], tolerance=1 / 60 + 1e-3)
