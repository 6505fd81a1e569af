"""Sums of spectra, erased boxes, rotated boxes, and empty regions equal DALI's bit for bit, with random arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from side_by_side import difference, source

SEEDS = range(8)


def _spectra(draw: np.random.Generator, layout: str) -> list[np.ndarray]:
    bins = int(draw.choice([33, 129, 201, 513]))
    shapes = [(bins, int(draw.choice([1, 2, 31, 32, 70]))) for _ in range(3)]
    return [
        np.exp(draw.uniform(-8, 5, shape if layout == "ft" else shape[::-1])).astype(np.float32) for shape in shapes
    ]


@pytest.mark.parametrize("layout", ["ft", "tf"])
@pytest.mark.parametrize("seed", SEEDS)
def test_mel_bands(seed: int, layout: str) -> None:
    draw = np.random.default_rng(seed)
    rate = float(draw.choice([8000, 16000, 22050, 44100, 48000]))
    arguments = {
        "sample_rate": rate,
        "nfilter": int(draw.choice([1, 10, 40, 80, 128])),
        "freq_low": float(draw.choice([0, 20, 33.3, 700])),
        "freq_high": float(draw.choice([0, rate / 2, rate / 2 - 137.7, 3333])),
        "mel_formula": str(draw.choice(["slaney", "htk"])),
        "normalize": bool(draw.integers(2)),
    }
    data = source(_spectra(draw, layout), layout)
    assert difference(lambda module: module.fn.mel_filter_bank(data(module), **arguments), exact=True) == ""


@pytest.mark.parametrize("seed", SEEDS)
def test_cepstra(seed: int) -> None:
    draw = np.random.default_rng(seed)
    kind = int(draw.integers(2, 5))
    arguments = {
        "dct_type": kind,
        "normalize": bool(draw.integers(2)),
        "n_mfcc": int(draw.integers(1, 30)),
        "lifter": float(draw.choice([0, 22, 4, 0.5])),
        "axis": int(draw.integers(2)),
    }
    data = source(_spectra(draw, "ft"), "ft")
    assert difference(lambda module: module.fn.mfcc(data(module), **arguments), exact=True) == ""


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_to_erase(seed: int) -> None:
    draw = np.random.default_rng(seed)
    anchors, extents = draw.uniform(-0.1, 1, (3, 2)).round(2), draw.uniform(0, 1, (3, 2)).round(1)
    data = source([np.full((*draw.integers(1, 60, 2), 3), 200, np.uint8) for _ in range(3)], "HWC")

    def define(module: Any) -> Any:
        anchor, shape = (module.fn.external_source(lambda v=v: list(np.float32(v))) for v in (anchors, extents))
        return module.fn.erase(data(module), anchor=anchor, shape=shape, normalized=True, centered_anchor=seed % 2 > 0)

    assert difference(define, exact=True) == ""


@pytest.mark.parametrize("operator", ["resize", "tensor_resize"])
@pytest.mark.parametrize("seed", SEEDS)
def test_regions_without_an_extent(seed: int, operator: str) -> None:
    draw = np.random.default_rng(seed)
    kind = str(draw.choice(["LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN"]))
    # The regions lie within the image, as DALI sometimes reads outside of it for regions at or beyond an edge.
    start = draw.uniform(0.1, 0.9, 2)
    end = start + np.array([0, 0.05 * draw.integers(2)])
    size = [int(extent) for extent in draw.integers(1, 20, 2)]
    data = source([draw.random((*draw.integers(1, 20, 2), 3), np.float32) for _ in range(3)], "HWC")

    def define(module: Any) -> Any:
        filters = {"interp_type": getattr(module.types, f"INTERP_{kind}"), "antialias": seed % 2 > 0}
        region = {"roi_start": start.tolist(), "roi_end": end.tolist(), "roi_relative": True}
        sizes = {"size": size} if operator == "resize" else {"sizes": size, "axes": [0, 1]}
        return getattr(module.fn, operator)(data(module), **sizes, **region, **filters)

    assert difference(define, exact=True) == ""


@pytest.mark.parametrize("seed", SEEDS)
def test_rotated_boxes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    boxes = draw.random((3, 5, 4)).round(int(draw.integers(1, 5)))
    boxes[..., 2:] *= 1 - boxes[..., :2]  # left, top, width, height, within the unit square
    angles = draw.uniform(-400, 400, 3) if seed % 2 else draw.choice([0, 30, 45, 60, 90, 135, 180, 270, -90], 3)
    arguments = {
        "bbox_layout": "xyWH",
        "mode": str(draw.choice(["expand", "fixed", "halfway"])),
        "remove_threshold": float(draw.choice([0, 0.1, 0.5])),
        "input_shape": [int(extent) for extent in draw.integers(1, 600, 2)],
        "keep_size": bool(draw.integers(2)),
    }
    data = source(list(boxes.astype(np.float32)))

    def define(module: Any) -> Any:
        angle = module.fn.external_source(lambda: list(np.float32(angles)))
        return module.fn.bbox_rotate(data(module), angle=angle, **arguments)

    assert difference(define, exact=True) == ""
