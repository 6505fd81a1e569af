"""Geometric operators give the same results on CPU and GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import BORDERS, KINDS, Define, check_close, check_equal, everywhere, frames, images, planes, typed

from penstock import fn, types

# Only with --exhaustive: in the default run, `tests/sweeps` compares CPU and GPU.
pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("with_gpu")]

_TURN = [0.9, 0.2, 3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0]
_GRID = np.stack(np.meshgrid(*[np.arange(0, 1, 0.125)] * 2), axis=-1).reshape(-1, 2)
_ANCHORS = np.concatenate([np.concatenate([_GRID, _GRID + size], axis=1) for size in (0.125, 0.25, 0.125) * 2])


def _remapped(device: str, **arguments: Any) -> Any:
    """Return images remapped by two maps of another size, with some positions outside of the images."""
    maps = [fn.random.uniform(device=device, shape=[31, 47], range=[-5.0, 45.0], seed=seed) for seed in (3, 4)]
    return fn.experimental.remap(images(device), *maps, **arguments)


def _waved(node: Any, **arguments: Any) -> Any:
    return fn.water(node, ampl_x=3.0, freq_y=0.2, mask=fn.random.coin_flip(seed=2), **arguments)


def _perspective(node: Any, **arguments: Any) -> Any:
    return fn.experimental.warp_perspective(node, **({"matrix": _TURN} | arguments))


def _perspective_by_input(device: str, **arguments: Any) -> Any:
    matrix = everywhere(device, np.float32(_TURN).reshape(3, 3))
    return fn.experimental.warp_perspective(images(device), matrix, **arguments)


def _boxes(device: str, **arguments: Any) -> Any:
    """Return encoded boxes and labels, joined; many boxes overlap several anchors equally; the last sample has no boxes."""
    rng = np.random.default_rng(8)
    starts = [rng.integers(0, 7, (count, 2)) / 8 for count in (40, 3, 0)]
    boxes = [np.float32(np.concatenate([s, s + rng.integers(1, 4, s.shape) / 8], axis=1)) for s in starts]
    labels = [np.arange(1, len(own) + 1, dtype=np.int32) for own in boxes]
    inputs = fn.external_source(lambda: (boxes, labels), num_outputs=2)
    inputs = [node.gpu() for node in inputs] if device == "gpu" else inputs
    encoded = fn.box_encoder(*inputs, anchors=_ANCHORS.reshape(-1).tolist(), **arguments)
    # Join both outputs, with the labels as the fifth column.
    return fn.cat(encoded[0], fn.cast(fn.reshape(encoded[1], shape=[-1, 1]), dtype=types.FLOAT), axis=1)


def _affine_by_input(node: Any, device: str, **arguments: Any) -> Any:
    matrix = np.float32([[0.9, 0.2, 3.0], [-0.1, 1.1, 2.0]])
    return fn.warp_affine(node, everywhere(device, matrix), fill_value=5.0, **arguments)


EXACT: dict[str, Define] = {
    "coord_transform of 4": lambda device: fn.coord_transform(
        fn.random.uniform(device=device, shape=[30, 4], seed=5),
        M=[0.5 * n for n in range(16)],
        T=[1.0, 2.0, 3.0, 4.0],
    ),
    "ball": lambda device: fn.sphere(images(device), interp_type=types.INTERP_LINEAR, fill_value=7.0),
    "waves": lambda device: _waved(images(device)),
    "waves of floats": lambda device: _waved(
        fn.cast(images(device), dtype=types.FLOAT), interp_type=types.INTERP_LINEAR, fill_value=-2.5
    ),
    "remap": _remapped,
    "remap to the nearest": lambda device: _remapped(device, interp=types.INTERP_NN, pixel_origin="center"),
    "affine by an input": lambda device: _affine_by_input(images(device), device),
    "affine by an input, inverted": lambda device: _affine_by_input(frames(device), device, inverse_map=False),
    "affine of volumes by an input": lambda device: fn.warp_affine(
        fn.reinterpret(frames(device), layout="DHWC"),
        everywhere(device, np.float32([[0.9, 0.1, 0.0, 2.0], [-0.1, 0.8, 0.1, 1.0], [0.0, 0.01, 1.1, -0.1]])),
        inverse_map=False,
    ),
    "boxes": lambda device: _boxes(device, criteria=0.3),
    "perspective to the nearest": lambda device: _perspective(planes(images(device)), interp_type=types.INTERP_NN),
    "perspective inverted": lambda device: _perspective(images(device), inverse_map=False, pixel_origin="center"),
    "perspective by an input": _perspective_by_input,
    "perspective by an input, inverted": lambda device: _perspective_by_input(device, inverse_map=False),
    **{
        f"perspective, {border}": lambda d, b=border: _perspective(images(d), border_mode=b, size=[70, 90])
        for border in BORDERS
    },
    **{
        f"perspective {kind}": lambda d, k=kind: _perspective(
            typed(d, k), interp_type=types.INTERP_CUBIC, fill_value=[3.0, 4.0, 5.0]
        )
        for kind in KINDS
    },
}
"""Cases whose results are equal to the last bit."""

CLOSE: dict[str, Define] = {
    "boxes, offset": lambda device: _boxes(
        device, offset=True, scale=300.0, means=[0.1] * 4, stds=[0.1, 0.1, 0.2, 0.2]
    ),
}
"""Cases whose results may differ between devices: integers by at most 1, real numbers by at most 1e-5."""


@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str) -> None:
    check_equal(EXACT[name])


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])
