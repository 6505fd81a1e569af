"""Batches whose JPEGs are decoded, resized and stored by one compiled call per thread, compared with separate steps."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock.errors import OperatorError
from penstock.operators.image import _decode_and_resample_cpu
from penstock.presets import preset

RNG = np.random.default_rng(6)
WHOLE = {"image_processor_type": "ViTImageProcessor", "size": {"height": 48, "width": 64}}
MIDDLE = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 60},
    "crop_size": {"height": 48, "width": 48},
}


def saved(height: int, width: int, kind: str = "JPEG", mode: str = "RGB", **options: Any) -> np.ndarray:
    coarse = Image.fromarray(RNG.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8))
    file = io.BytesIO()
    coarse.resize((width, height)).convert(mode).save(file, kind, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def turned(height: int, width: int) -> np.ndarray:
    exif = Image.Exif()
    exif[274] = 6
    return saved(height, width, exif=exif)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return a list to which each call of the kernel appends a mask of the batch's files: True for those it decoded."""
    calls = []
    computed = _decode_and_resample_cpu.decode_and_resample

    def spied(files: Any, most: int, resizings: np.ndarray, taken: np.ndarray, decoded: np.ndarray, bench: Any) -> None:
        calls.append(decoded)
        computed(files, most, resizings, taken, decoded, bench)

    monkeypatch.setattr(_decode_and_resample_cpu, "decode_and_resample", spied)
    return calls


def values(configuration: dict[str, Any], files: list[np.ndarray], threads: int = 1) -> list[np.ndarray]:
    pipeline = preset(configuration, batch_size=len(files), num_threads=threads)
    (output,) = pipeline.run(images=files)
    return [np.array(sample) for sample in output]


def step_by_step(configuration: dict[str, Any], files: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of the configuration's other steps for images that Pillow has decoded."""
    pixels = [np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB")) for file in files]
    (output,) = preset(configuration, batch_size=len(files), encoded=False).run(images=pixels)
    return [np.array(sample) for sample in output]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("configuration", [WHOLE, MIDDLE])
def test_photographs_of_several_sizes(configuration: dict[str, Any], threads: int, together: list[np.ndarray]) -> None:
    sizes = [(120, 160), (333, 97), (64, 500), (201, 203), (120, 160), (49, 65)]
    files = [saved(*size, subsampling=number % 3) for number, size in enumerate(sizes)]
    for own, expected in zip(values(configuration, files, threads), step_by_step(configuration, files), strict=True):
        np.testing.assert_array_equal(own, expected)
    assert len(together) == threads
    assert together[0].all()


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_photographs_of_several_shares_of_rows(subsampling: int, together: list[np.ndarray]) -> None:
    """The rows of an image are resized in several shares; if few rows are left for the last one, the share before has them, too."""
    heights = [127, 128, 129, 143, 144, 145, 160, 161, 255, 272, 289, 290]
    files = [saved(height, 90, subsampling=subsampling) for height in heights]
    for own, expected in zip(values(WHOLE, files), step_by_step(WHOLE, files), strict=True):
        np.testing.assert_array_equal(own, expected)
    assert together[0].all()


def test_regions_and_restarts(together: list[np.ndarray]) -> None:
    """The middles of tall images are decoded into memory that still contains larger images."""
    sizes = [(700, 120), (400, 300), (1000, 64), (300, 90)]
    files = [saved(*size, restart_marker_blocks=1 + number, quality=98) for number, size in enumerate(sizes)]
    for own, expected in zip(values(MIDDLE, files), step_by_step(MIDDLE, files), strict=True):
        np.testing.assert_array_equal(own, expected)
    assert together[0].all()


def test_what_the_kernels_leave_is_computed_one_by_one(together: list[np.ndarray]) -> None:
    files = [
        saved(120, 160),
        saved(100, 90, progressive=True),
        saved(90, 100, mode="L"),
        saved(120, 30),
        saved(150, 140),
    ]
    for own, expected in zip(values(WHOLE, files), step_by_step(WHOLE, files), strict=True):
        np.testing.assert_array_equal(own, expected)
    assert np.flatnonzero(together[0]).tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize("other", [saved(90, 100, "PNG"), saved(90, 100, "PNG", "LA"), turned(90, 100)])
def test_batches_with_other_files(other: np.ndarray) -> None:
    """Transparent files, which are put on white, and rotated files have the same results in a batch as alone."""
    files = [saved(120, 160), other, saved(130, 60)]
    alone = [values(WHOLE, [file])[0] for file in files]
    for own, expected in zip(values(WHOLE, files), alone, strict=True):
        np.testing.assert_array_equal(own, expected)


def test_a_damaged_file_fails_as_it_does_alone(together: list[np.ndarray]) -> None:
    file = saved(300, 400)
    damaged = file[: len(file) // 2]
    messages = []
    for files in ([damaged], [file, damaged]):
        with pytest.raises(OperatorError, match="Failed to decode sample #") as error:
            values(WHOLE, files)
        messages.append(str(error.value).replace("#1", "#0"))
    assert messages[0] == messages[1]
    assert together[1].tolist() == [True, False]


def test_images_of_which_an_axis_is_only_cut_take_the_steps(together: list[np.ndarray]) -> None:
    files = [saved(48, 160), saved(48, 200)]
    for own, expected in zip(values(WHOLE, files), step_by_step(WHOLE, files), strict=True):
        np.testing.assert_array_equal(own, expected)
    assert not together
