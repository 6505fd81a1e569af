"""Batches of images that are resized, cropped and normalized by one plan give the same results as with a plan for each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.kernels.cuda.alike_images import AlikeImages, AlikeRules
from penstock.kernels.cuda.launch import launch_all
from penstock.operators.image.resize_normalize import ResizeNormalize

SIZES = [(40, 60), (61, 33), (20, 20), (97, 15), (50, 64)]


def images(sizes: list[tuple[int, int]], channels: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(len(sizes))
    return [rng.integers(0, 255, (height, width, channels), np.uint8) for height, width in sizes]


def run(
    batches: list[list[np.ndarray]], resize: dict[str, Any], normalize: dict[str, Any], drawn: bool = False
) -> list[list[np.ndarray]]:
    waiting = iter(batches)

    @pipeline_def(batch_size=len(batches[0]), num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        data = fn.external_source(lambda: next(waiting), layout="HWC", batch=True)
        mirror = {"mirror": fn.random.coin_flip(seed=5)} if drawn else {}
        return fn.crop_mirror_normalize(fn.resize(data.gpu(), **resize), **normalize, **mirror)

    running = pipeline()
    return [[np.array(sample) for sample in running.run()[0].as_cpu()] for _ in batches]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which each batch appends whether it was planned in one call."""
    told: list[bool] = []
    original = ResizeNormalize.run_planned

    def noted(self: ResizeNormalize, workspace: Any) -> bool:
        told.append(original(self, workspace))
        return told[-1]

    monkeypatch.setattr(ResizeNormalize, "run_planned", noted)
    return told


def by_steps(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> list[list[np.ndarray]]:
    with monkeypatch.context() as patch:
        patch.setattr(ResizeNormalize, "run_planned", lambda *_: False)
        return run(*arguments)


def assert_equal(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]]) -> None:
    for batch, other in zip(ours, theirs, strict=True):
        for sample, expected in zip(batch, other, strict=True):
            np.testing.assert_array_equal(sample, expected)


NORMAL = {"mean": [120.0, 110.0, 100.0], "std": [60.0, 50.0, 40.0]}


@pytest.mark.parametrize(
    ("resize", "normalize", "drawn"),
    [
        ({"resize_shorter": 16.0}, {"crop": (12, 10), **NORMAL}, False),
        ({"resize_shorter": 16.0}, {"crop": (12, 10), **NORMAL}, True),
        ({"size": (9, 14)}, {"mirror": 1, "output_layout": "HWC", "dtype": types.FLOAT16, **NORMAL}, False),
        ({"size": (9, 14), "interp_type": types.INTERP_CUBIC}, {"pad_output": True, **NORMAL}, True),
        ({"resize_x": 11.0, "dtype": types.FLOAT, "antialias": False}, {"crop_pos_x": 0.1, "crop": (2, 5)}, False),
        ({"resize_longer": 30.0, "interp_type": types.INTERP_NN}, {"dtype": types.UINT8}, False),
        ({"size": (12, 8), "roi_start": (0.1, 0.2), "roi_end": (0.9, 0.7), "roi_relative": True}, NORMAL, False),
        ({"size": (200, 3), "mode": "not_larger", "max_size": 25.0}, {"crop": (1, 1), **NORMAL}, False),
    ],
)
def test_one_plan_gives_what_the_steps_give(
    planned: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    resize: dict[str, Any],
    normalize: dict[str, Any],
    drawn: bool,
) -> None:
    # The third batch has the same shapes as the first, so launches are recorded.
    batches = [images(SIZES), images(SIZES[::-1]), images(SIZES)]
    found = run(batches, resize, normalize, drawn)
    assert planned == [True] * len(batches)
    assert_equal(found, by_steps(monkeypatch, batches, resize, normalize, drawn))


@pytest.mark.parametrize(
    ("resize", "normalize", "batch"),
    [
        ({"size": (9, 14)}, {"crop": (20, 20), "out_of_bounds_policy": "pad"}, images(SIZES)),
        ({"size": (9, 14)}, {}, [*images(SIZES), *images([(10, 10)], 1)]),
    ],
)
def test_other_batches_are_left_to_the_steps(
    planned: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    resize: dict[str, Any],
    normalize: dict[str, Any],
    batch: list[np.ndarray],
) -> None:
    found = run([batch], resize, normalize)
    assert planned == [False]
    assert_equal(found, by_steps(monkeypatch, [batch], resize, normalize))


def test_arguments_that_are_out_of_range_are_told_of_by_the_steps() -> None:
    with pytest.raises(RuntimeError, match="out of bounds"):
        run([images(SIZES)], {"size": (9, 14)}, {"crop": (20, 20)})
    with pytest.raises(RuntimeError, match="out of range"):
        run([images(SIZES)], {"size": (9, 14)}, {"crop": (5, 5), "crop_pos_x": 1.5})
    with pytest.raises(RuntimeError, match="has 2 entries"):
        run([images(SIZES)], {"size": (9, 14)}, {"mean": [1.0, 2.0]})


def test_an_empty_image_is_left_to_the_steps(planned: list[bool]) -> None:
    batch = [*images(SIZES[:1]), np.zeros((0, 5, 3), np.uint8)]
    (found,) = run([batch], {"size": (9, 14)}, {})
    assert planned == [False]
    assert [sample.shape for sample in found] == [(3, 9, 14), (3, 0, 14)]


# -- windows -----------------------------------------------------------------------------------------------------------


def rules_of(resize: dict[str, Any], normalize: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AlikeRules:
    """Return the rules by which a pipeline plans its images."""
    seen: list[AlikeRules] = []
    original = AlikeImages.planned

    def noted(rules: AlikeRules, *given: Any) -> Any:
        seen.append(rules)
        return original(rules, *given)

    with monkeypatch.context() as patch:
        patch.setattr(AlikeImages, "planned", noted)
        run([images(SIZES)], resize, normalize)
    return seen[0]


FILTERS = ["NN", "LINEAR", "TRIANGULAR", "CUBIC", "LANCZOS3", "GAUSSIAN"]


@pytest.mark.parametrize("kind", [getattr(types, f"INTERP_{name}") for name in FILTERS])
@pytest.mark.parametrize(
    ("resize", "normalize"),
    [
        ({"resize_shorter": 16.0}, {"crop": (12, 10)}),
        ({"resize_shorter": 16.0, "antialias": False}, {"crop": (12, 10), "mirror": 1}),
        ({"size": (300, 257)}, {"crop": (20, 30), "crop_pos_x": 1.0, "crop_pos_y": 0.0}),
        ({"size": (20, 30), "roi_start": (0.9, 0.2), "roi_end": (0.1, 1.3), "roi_relative": True}, {"crop": (5, 7)}),
        ({"size": (1500, 9)}, {"crop": (3, 9), "crop_pos_y": 0.99}),
    ],
)
def test_windows_hold_all_that_is_read(
    kind: types.DALIInterpType, resize: dict[str, Any], normalize: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = rules_of(resize | {"interp_type": kind}, normalize, monkeypatch)
    rng = np.random.default_rng(3)
    sizes = np.concatenate([rng.integers(1, 90, (20, 2)), rng.integers(1, 3000, (20, 2)), [[1, 1], [1, 4000]]])
    shapes = np.concatenate([sizes, np.full((len(sizes), 1), 3)], 1)
    planned = AlikeImages.planned(rules, shapes, in_windows=True)
    assert planned is not None
    starts, weights = planned.tables.memory()
    launch_all([planned.tables.filling(starts, weights, rules.after.normalization)])
    first, tables = np.asarray(starts.array().get()), (planned.tables.down, planned.tables.across)
    for image, window in enumerate(planned.windows.tolist()):
        for axis, own in enumerate(tables):
            row, begin, extent = own[min(image, len(own) - 1)], window[axis], window[2 + axis]
            read = first[row["starts"] : row["starts"] + row["outputs"]]
            assert 0 <= begin <= read.min() <= read.max() + row["used"] <= begin + extent <= sizes[image, axis]
        # Bytes of a row are read in groups of eight.
        assert window[1] % 8 == 0
        assert window[3] % 8 == 0 or window[1] + window[3] == sizes[image, 1]
    assert (planned.stacks[:, 1:3] == planned.windows[:, 2:]).all()


def test_windows_are_not_much_larger_than_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rules_of({"resize_shorter": 256.0}, {"crop": (224, 224)}, monkeypatch)
    planned = AlikeImages.planned(rules, np.array([(853, 1280, 3), (1280, 853, 3)]), in_windows=True)
    assert planned is not None
    # The crop reads 224 of 256 pixels along one axis, and 224 of 384 along the other.
    read = 853 * 1280 * (224 / 256) * (224 / 384.15)
    assert (planned.windows[:, 2:].prod(1) < 1.06 * read).all()
