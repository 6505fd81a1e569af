"""Display of samples and batches in notebooks."""

from __future__ import annotations

import base64
import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

from penstock.tensors import TensorCPU, TensorListCPU
from penstock.tensors.pictures import sample_html

RED = np.zeros((40, 60, 3), np.uint8)
RED[:, :30] = (255, 0, 0)


def images(html: str) -> list[np.ndarray]:
    data = re.findall(r"data:image/png;base64,([^\"]+)", html)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text)))) for text in data]


def test_images_of_different_sizes_are_thumbnails() -> None:
    html = TensorListCPU([RED, np.tile(RED, (20, 20, 1))], layout="HWC")._repr_html_()
    small, large = images(html)
    assert np.array_equal(small, RED)
    assert large.shape == (107, 160, 3)
    assert "#0 40×60×3 uint8" in html
    assert "#1 800×1200×3 uint8" in html
    assert "TensorListCPU: 2 samples, DALIDataType.UINT8, layout &#x27;HWC&#x27;" in html


@pytest.mark.parametrize(
    ("sample", "layout"),
    [
        (RED.transpose(2, 0, 1), "CHW"),
        (RED.transpose(2, 0, 1), ""),
        (RED, ""),
        (RED.transpose(1, 0, 2), "WHC"),
        (RED.astype(np.float32), "HWC"),
        (RED.astype(np.float32) / 255, "HWC"),
        (RED.astype(np.float32) / 255 * 4 - 2, "HWC"),
        (RED > 0, "HWC"),
        (RED.astype(np.int32) * 1000, "HWC"),
    ],
    ids=["CHW", "CHW unsaid", "HWC unsaid", "WHC", "floats", "floats to 1", "normalized", "booleans", "integers"],
)
def test_images_look_the_same_however_they_are_held(sample: np.ndarray, layout: str) -> None:
    (image,) = images(sample_html(np.ascontiguousarray(sample), layout))
    assert np.array_equal(image, RED)


def test_frames_are_side_by_side() -> None:
    clip = np.stack([RED, RED[:, ::-1], *[RED] * 8])
    shown = images(sample_html(clip, "FHWC"))
    assert len(shown) == 6
    assert np.array_equal(shown[1], RED[:, ::-1])


@pytest.mark.parametrize("channels", [1, 2, 4, 7])
def test_other_numbers_of_channels(channels: int) -> None:
    (image,) = images(sample_html(np.full((8, 8, channels), 9, np.uint8), "HWC"))
    assert image.shape == ((8, 8) if channels == 1 else (8, 8, 3))


def test_spectrograms_show_low_frequencies_at_the_bottom() -> None:
    spectrum = np.zeros((16, 20), np.float32)
    spectrum[0] = 5
    for sample, layout in ((spectrum, "ft"), (np.ascontiguousarray(spectrum.T), "tf")):
        (image,) = images(sample_html(sample, layout))
        assert image[-1].min() > 100 > image[:-1].max()


def test_quiet_frequencies_are_seen_beside_loud_ones() -> None:
    power = np.full((16, 20), 1e-12, np.float32)
    power[3], power[8] = 1.0, 1e-4
    (image,) = images(sample_html(power, "ft"))
    silent, loud, quiet = (image[row].astype(int).sum() for row in (0, -4, -9))
    assert silent < quiet < loud
    (decibels,) = images(sample_html(10 * np.log10(power), "ft"))
    assert decibels[-9].astype(int).sum() > silent


def test_recordings_are_curves() -> None:
    html = sample_html(np.sin(np.arange(8000, dtype=np.float32) / 50))
    assert html.count("<polygon") == 1
    assert "8000 float32 -1 … 1" in html


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        (np.arange(3), "[0 1 2]"),
        (np.float32(1.5), "1.5"),
        (np.frombuffer(b"encoded" * 100, np.uint8), "[101 110  99 ... 100 101 100]"),
        (np.zeros((0, 4)), "empty"),
        (np.full((9, 4), 0.25, np.float32), "[0.25 0.25 0.25 0.25]"),
    ],
    ids=["integers", "a number", "bytes", "nothing", "boxes"],
)
def test_anything_else_is_numbers(sample: np.ndarray, text: str) -> None:
    html = sample_html(np.asarray(sample))
    assert text in html
    assert "<img" not in html
    assert "<svg" not in html


def test_what_is_no_number_is_no_error() -> None:
    broken = np.full((9, 9, 3), np.nan, np.float32)
    broken[0] = np.inf
    assert len(images(sample_html(broken, "HWC"))) == 1


def test_of_large_batches_the_first_are_shown() -> None:
    html = TensorListCPU(np.zeros((50, 2), np.float32))._repr_html_()
    assert html.count("<figure") == 16
    assert "… 34 more" in html


def test_an_empty_batch() -> None:
    assert "0 samples" in TensorListCPU([])._repr_html_()


def test_a_single_tensor() -> None:
    (image,) = images(TensorCPU(RED, "HWC")._repr_html_())
    assert np.array_equal(image, RED)


def test_without_pillow_images_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    html = sample_html(RED, "HWC")
    assert "<img" not in html
    assert "255" in html
