"""Results of calls for which DALI reads memory outside of its data, so that its own results are undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

IMAGE = np.random.default_rng(0).integers(0, 256, (10, 12, 3), np.uint8)


def _result(call: Callable[[Any], Any]) -> np.ndarray:
    source = lambda: fn.external_source(lambda: [IMAGE], layout="HWC")  # noqa: E731
    pipeline = pipeline_def(lambda: call(source()), batch_size=1, num_threads=1, device_id=None)()
    return np.array(pipeline.run()[0][0])


@pytest.mark.parametrize("axes", [[0], [0, 1], [-1]])
def test_one_mean_is_that_of_every_output(axes: list[int]) -> None:
    expected = np.square(IMAGE - 90.0).mean(tuple(axes))
    np.testing.assert_allclose(_result(lambda x: fn.reductions.variance(x, 90.0, axes=axes)), expected, rtol=1e-6)
    np.testing.assert_allclose(
        _result(lambda x: fn.reductions.std_dev(x, 90.0, axes=axes)), np.sqrt(expected), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["min_filter", "mag_filter"])
@pytest.mark.parametrize("size", [(10, 5), (20, 5), (5, 30)])
def test_a_window_resized_by_two_filters_is_a_part_of_the_whole(name: str, size: tuple[int, int]) -> None:
    given = {"size": size, name: types.INTERP_NN}
    whole = _result(lambda x: fn.resize(x, **given))
    y, x = (size[0] - 3) // 2, (size[1] - 3) // 2
    window = _result(
        lambda image: fn.resize_crop_mirror(
            image, crop=[3, 3], crop_pos_x=x / (size[1] - 3), crop_pos_y=y / (size[0] - 3), **given
        )
    )
    np.testing.assert_array_equal(window, whole[y : y + 3, x : x + 3])


@pytest.mark.parametrize("axes", [[-3, -2], [0, -2], [-3, 1]])
def test_boxes_along_negative_axes_are_erased(axes: list[int]) -> None:
    expected = IMAGE.copy()
    expected[2:5, 4:9] = 0
    erased = _result(lambda x: fn.erase(x, axes=axes, anchor=[2.0, 4.0], shape=[3.0, 5.0]))
    np.testing.assert_array_equal(erased, expected)


@pytest.mark.parametrize("axes", [[3], [-4]])
def test_boxes_along_axes_that_images_lack_are_refused(axes: list[int]) -> None:
    with pytest.raises(RuntimeError, match="out of range"):
        _result(lambda x: fn.erase(x, axes=axes, anchor=[1.0], shape=[2.0]))


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_one_value_fills_all_channels_of_a_canvas(channels: int) -> None:
    pasted = _result(lambda x: fn.paste(x, ratio=2.0, fill_value=7, n_channels=channels))
    expected = np.full((20, 24, 3), 7, np.uint8)
    expected[5:15, 6:18] = IMAGE
    np.testing.assert_array_equal(pasted, expected)
