"""JPEGs that are decoded in compiled code and processed by the core have the same values as those processed one by one."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def
from penstock.operators.decoders._images import ImageDecoder

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def jpeg(height: int, width: int, mode: str = "RGB", orientation: int = 0, **options: Any) -> np.ndarray:
    rng, exif = np.random.default_rng(height * width), Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    small = Image.fromarray(rng.integers(0, 256, (8, 9, 3), np.uint8)).resize((width, height), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    small.convert(mode).save(buffer, "JPEG", exif=exif, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def files() -> list[np.ndarray]:
    """Return ordinary files and, at the end, rotated and narrow ones, which compiled code leaves to other decoders."""
    return [
        jpeg(90, 120),
        jpeg(97, 131, subsampling=0),
        jpeg(150, 70, progressive=True),
        jpeg(61, 83, "L"),
        jpeg(200, 300, restart_marker_blocks=3),
        jpeg(64, 80, orientation=6),
        jpeg(40, 5),
    ]


ORDINARY = 5


def computed(work: Any, encoded: list[np.ndarray]) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(encoded), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return work(fn.decoders.image(fn.external_source(name="x")))

    outputs = pipeline().run(x=encoded)[0]
    return [outputs.at(index) for index in range(len(outputs))]


def normalized(images: Any) -> Any:
    return fn.crop_mirror_normalize(fn.resize(images, resize_shorter=40.0), crop=(32, 32), mean=MEAN, std=STD)


CHAINS = {
    "resize, normalize": normalized,
    "resize a region": lambda images: fn.resize(
        images, size=(20, 24), roi_start=(0.1, 0.2), roi_end=(0.6, 0.9), roi_relative=True
    ),
    "resize, brightness": lambda images: fn.brightness(fn.resize(images, size=(30, 40)), brightness=1.2),
    "resize, colours": lambda images: fn.color_twist(fn.resize(images, resize_longer=50), hue=20.0, contrast=0.9),
}


@pytest.mark.parametrize("name", CHAINS)
def test_values_are_those_of_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chain, others = ImageDecoder.run_chain, list[Any]()

    def noting(*arguments: Any) -> Any:
        others.append(list(run_chain(*arguments)))
        return others[-1]

    monkeypatch.setattr(ImageDecoder, "run_chain", noting)
    found = computed(CHAINS[name], files())
    assert others == [[*range(ORDINARY, len(files()))]]
    monkeypatch.setattr(
        ImageDecoder, "run_chain", lambda _decoder, workspace, _chain, _regions: range(workspace.batch_size)
    )
    for one, other in zip(found, computed(CHAINS[name], files()), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kept", [200, 1500])
def test_a_truncated_file_is_named(kept: int) -> None:
    encoded = files()[:ORDINARY]
    encoded[1] = encoded[1][:kept]
    with pytest.raises(RuntimeError, match=r"sample #1 of the batch") as caught:
        computed(normalized, encoded)
    assert "test_chains_of_jpegs.py" in str(caught.value)
