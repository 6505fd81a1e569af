"""Strips of output rows, for which each source row is read once, compared with output rows that are computed one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.kernels.cuda import alike_images, resample

NEVER = 1 << 40
NORMAL = {"mean": [120.0, 110.0, 100.0], "std": [60.0, 50.0, 40.0]}
SIZES = [(90, 160), (300, 2000), (133, 64), (480, 640)]


def images(sizes: list[tuple[int, int]], channels: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(len(sizes))
    return [rng.integers(0, 256, (height, width, channels), np.uint8) for height, width in sizes]


class Strips:
    """Runs pipelines with and without strips, and records which batches were computed in strips."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._chosen = patch, resample.chosen
        self._limits = resample.STRIP_LIMITS
        self.used: list[bool] = []

    def run(
        self, batch: list[np.ndarray], fewest: int, resize: dict[str, Any], normalize: dict[str, Any] | None
    ) -> Any:
        self.used.clear()

        def noted(planned: tuple[int, ...], *how: Any) -> Any:
            self.used.append(planned[1] > 0)
            return self._chosen(planned, *how)

        @pipeline_def(batch_size=len(batch), num_threads=1, device_id=0, prefetch_queue_depth=1)
        def pipeline() -> Any:
            data = fn.resize(fn.external_source(lambda: batch, layout="HWC", batch=True).gpu(), **resize)
            if normalize is None:
                return data
            drawn = {"mirror": fn.random.coin_flip(seed=5)} if "mirror" not in normalize else {}
            return fn.crop_mirror_normalize(data, **normalize, **drawn)

        with self._patch.context() as patch:
            for module in (alike_images, resample):
                patch.setattr(module, "chosen", noted)
            least = 1 if fewest == 1 else self._limits.least_rows
            limits = self._limits._replace(least_blocks=fewest, least_rows=least)
            patch.setattr(resample, "STRIP_LIMITS", limits)
            return [np.array(sample) for sample in pipeline().run()[0].as_cpu()]

    def compare(
        self, batch: list[np.ndarray], resize: dict[str, Any], normalize: dict[str, Any] | None, fewest: int = 1
    ) -> bool:
        """Return whether the batch was computed in strips; assert that the result is the same without strips."""
        expected = self.run(batch, NEVER, resize, normalize)
        assert not any(self.used)
        found = self.run(batch, fewest, resize, normalize)
        for sample, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(sample, other)
        return any(self.used)


@pytest.fixture
def strips(monkeypatch: pytest.MonkeyPatch) -> Strips:
    return Strips(monkeypatch)


@pytest.mark.parametrize(
    ("resize", "normalize"),
    [
        ({"resize_shorter": 64.0}, {"crop": (50, 60), **NORMAL}),
        ({"resize_shorter": 64.0}, {"mirror": 1, "output_layout": "HWC", "dtype": types.FLOAT16, **NORMAL}),
        ({"size": (21, 300)}, {"pad_output": True, "fill_values": 7, "output_layout": "HWC", **NORMAL}),
        ({"size": (21, 300)}, {"pad_output": True, "fill_values": 7, **NORMAL}),
        ({"size": (7, 50), "dtype": types.FLOAT}, {"dtype": types.UINT8}),
        ({"size": (90, 40)}, NORMAL),
        ({"size": (40, 40), "antialias": False}, NORMAL),
        ({"size": (40, 40), "interp_type": types.INTERP_NN}, NORMAL),
        # Four output rows use the same source row.
        ({"size": (80, 40), "interp_type": types.INTERP_CUBIC, "antialias": False}, NORMAL),
        ({"size": (12, 40), "roi_start": (0.1, 0.9), "roi_end": (0.9, 0.2), "roi_relative": True}, NORMAL),
        ({"resize_shorter": 33.0}, None),
    ],
)
def test_strips_give_what_rows_give(strips: Strips, resize: dict[str, Any], normalize: dict[str, Any] | None) -> None:
    assert strips.compare(images(SIZES), resize, normalize)


def test_strips_of_grey_images(strips: Strips) -> None:
    assert strips.compare(images([(90, 160), (300, 2000)], 1), {"size": (31, 44)}, {"mean": [9.0], "std": [3.0]})


def test_a_whole_image(strips: Strips) -> None:
    """The rows are longer than a block is wide, and there are more rows than fit into a block's strip."""
    assert strips.compare(images([(1080, 1920)]), {"size": (224, 224)}, NORMAL)


def test_strips_that_are_as_short_as_there_are_blocks_to_make(strips: Strips) -> None:
    assert strips.compare(images(SIZES), {"resize_shorter": 64.0}, NORMAL, fewest=30)


@pytest.mark.parametrize(
    ("batch", "resize"),
    [
        (images([(90, 160), (90, 161)]), {"size": (40, 40)}),  # rows whose length is not aligned
        (images([(40, 160)]), {"size": (41, 40)}),
        (images([(90, 160)]), {"size": (40, 40), "interp_type": types.INTERP_LANCZOS3}),
        (images([(9, 40000)]), {"size": (4, 40)}),  # a few columns fill a block
        (images([(90, 160)]), {"size": (40, 40), "roi_start": (0.9, 0), "roi_end": (0.1, 1), "roi_relative": True}),
        (images([(90, 160)], 4), {"size": (40, 40)}),
    ],
)
def test_other_images_are_made_row_by_row(strips: Strips, batch: list[np.ndarray], resize: dict[str, Any]) -> None:
    assert not strips.compare(batch, resize, None)


def test_few_images_are_made_row_by_row(strips: Strips) -> None:
    assert not strips.compare(images(SIZES), {"resize_shorter": 64.0}, NORMAL, resample.STRIP_LIMITS.least_blocks)
