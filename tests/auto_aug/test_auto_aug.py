"""Augmentations and policies: their structure, and errors for invalid ones. Golden cases test their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.auto_aug import augmentations as a
from penstock.auto_aug import auto_augment, rand_augment, trivial_augment
from penstock.auto_aug.core import Policy, augmentation, select, signed_bin
from penstock.auto_aug.core._args import MissingArgException, UnusedArgException

IMAGES = [np.full((4, 5, 3), value, np.uint8) for value in (10, 100, 200)]


def run(function: Any, conditionals: bool = True) -> list[np.ndarray]:
    def define() -> Any:
        return function(fn.external_source(lambda: IMAGES, layout="HWC"))

    pipe = pipeline_def(define, enable_conditionals=conditionals, batch_size=3, num_threads=1, device_id=None, seed=1)()
    return [np.asarray(sample) for sample in pipe.run()[0]]


@augmentation(mag_range=(0, 10), mag_to_param=lambda magnitude: np.uint8(magnitude))
def added(data: Any, amount: Any, extra: int = 0) -> Any:
    return data + amount


def number_of_sample() -> Any:
    return fn.external_source(lambda info: np.int32(info.idx_in_batch), batch=False)


@augmentation(mag_range=np.array([1, 2, 3, 5, 8], np.uint8))
def fibonacci(data: Any, amount: Any) -> Any:
    return data + amount


of_nodes = added.augmentation(mag_to_param=lambda magnitude: fn.transforms.scale(scale=[magnitude] * 2))
unlike = added.augmentation(mag_to_param=lambda magnitude: np.zeros(int(magnitude)))


def test_magnitudes_may_be_listed() -> None:
    assert [int(x[0, 0, 0]) for x in run(lambda x: fibonacci(x, magnitude_bin=number_of_sample()))] == [11, 102, 203]
    assert [int(x[0, 0, 0]) for x in run(lambda x: fibonacci(x, magnitude_bin=4))] == [18, 108, 208]


def test_signs_are_drawn_with_a_warning_where_the_bin_has_none() -> None:
    signed = augmentation(lambda data, amount: data + amount, mag_range=(5, 5), randomly_negate=True, name="signed")
    with pytest.warns(UserWarning, match="unsigned `magnitude_bin`"):
        images = run(lambda x: signed(x, magnitude_bin=0, num_magnitude_bins=1))
    assert {abs(int(image[0, 0, 0]) - int(IMAGES[i][0, 0, 0])) for i, image in enumerate(images)} == {5}


def test_what_has_no_effect_warns() -> None:
    with pytest.warns(UserWarning, match="probability 0"):
        Policy("never", 11, [[(a.rotate, 0, 1)]])
    with pytest.warns(UserWarning, match="does not accept magnitudes"):
        Policy("none", 11, [[(a.invert, 0.5, 1)]])
    with pytest.warns(UserWarning, match="n=0"):
        run(lambda x: rand_augment.rand_augment(x, 0, 1))


def test_magnitudes_divide_the_range() -> None:
    np.testing.assert_array_equal(run(lambda x: added(x, magnitude_bin=1, num_magnitude_bins=3))[0], IMAGES[0] + 5)


def test_settings_are_changed_on_copies() -> None:
    changed = added.augmentation(mag_range=(0, 20), name="more")
    assert (changed.mag_range, changed.name) == ((0, 20), "more")
    assert (added.mag_range, added.name) == ((0, 10), "added")
    assert changed.mag_to_param is added.mag_to_param
    assert a.shear_x.augmentation(mag_to_param=None).mag_to_param is np.asarray
    assert "mag_range=(0, 20)" in repr(changed)
    assert a.rotate.randomly_negate
    assert a.solarize.param_device == "auto"


def test_user_functions_may_have_conditionals() -> None:
    @augmentation
    def bright(data: Any, _: Any) -> Any:
        if fn.reductions.mean(data) > 50:
            data = data + np.uint8(1)
        return data

    received = [int(image[0, 0, 0]) for image in run(lambda x: bright(x))]
    assert received == [10, 101, 201]


def test_keywords_of_augmentations() -> None:
    @augmentation(mag_range=(0, 1))
    def needs(data: Any, amount: Any, extra: int) -> Any:
        return data

    with pytest.raises(MissingArgException, match="extra"):
        run(lambda x: needs(x, magnitude_bin=0, num_magnitude_bins=2))
    run(lambda x: added(x, magnitude_bin=0, num_magnitude_bins=2, unknown=1))
    with pytest.raises(UnusedArgException, match="unknown"):
        run(lambda x: rand_augment.apply_rand_augment([added], x, 1, 1, unknown=1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: added(x), ValueError, "magnitude_bin"),
        (lambda x: added(x, magnitude_bin=3, num_magnitude_bins=3), IndexError, "0, 2"),
        (lambda x: added(x, magnitude_bin=1), ValueError, "`num_magnitude_bins` argument is missing"),
        (lambda x: fibonacci(x, magnitude_bin=1, num_magnitude_bins=4), ValueError, "array of length 5"),
        (lambda x: of_nodes(x, magnitude_bin=1, num_magnitude_bins=4), TypeError, "must return parameter"),
        (
            lambda x: unlike(x, magnitude_bin=number_of_sample(), num_magnitude_bins=4),
            ValueError,
            "same type and shape",
        ),
        (lambda x: rand_augment.apply_rand_augment([a.translate_x], x, 1, 1), MissingArgException, "requires `shape`"),
        (lambda x: signed_bin([1, 2]), TypeError, "magnitude bin"),
        (lambda x: select([], 0, x), ValueError, "at least one"),
        (lambda x: rand_augment.apply_rand_augment([], x, 1, 1), ValueError, "empty"),
        (lambda x: trivial_augment.apply_trivial_augment([], x), ValueError, "empty"),
        (lambda x: rand_augment.rand_augment(x, -1, 1), ValueError, "`n`"),
        (lambda x: rand_augment.rand_augment(x, 1, 31), ValueError, "`m`"),
        (lambda x: auto_augment.auto_augment(x, "nothing"), ValueError, "image_net"),
        (lambda x: auto_augment.auto_augment(x, "reduced_image_net", max_translate_abs=1), ValueError, "translates"),
        (lambda x: auto_augment.apply_auto_augment(Policy("empty", 3, []), x), ValueError, "empty"),
    ],
)
def test_mistakes_in_calls(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run(call)


def test_policies_need_conditionals() -> None:
    with pytest.raises(TypeError, match="enable_conditionals"):
        run(lambda x: trivial_augment.trivial_augment_wide(x), conditionals=False)


@pytest.mark.parametrize(
    "sub_policies",
    [
        3,
        [3],
        [[(a.rotate, 0.5)]],
        [[("rotate", 0.5, 1)]],
        [[(a.rotate, 1.5, 1)]],
        [[(a.rotate, "often", 1)]],
        [[(a.rotate, 0.5, 11)]],
        [[(a.rotate, 0.5, 1.5)]],
        [[(a.rotate, 0.5, None)]],
    ],
)
def test_mistakes_in_policies(sub_policies: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Policy("wrong", 11, sub_policies)
    with pytest.raises(ValueError, match="positive"):
        Policy("wrong", 0, [])


def test_different_augmentations_of_one_name_are_numbered() -> None:
    other = a.rotate.augmentation(mag_range=(0, 3))
    policy = Policy("turns", 11, [[(a.rotate, 0.5, 1), (other, 0.5, 1)], [(a.invert, 0.1, None)]])
    assert list(policy.augmentations) == ["0__rotate", "1__rotate", "2__invert"]
    assert "num_magnitude_bins=11" in repr(policy)


def test_mistakes_in_decorating() -> None:
    with pytest.raises(ValueError, match="accepts 1 positional argument"):
        augmentation(lambda data: data)
    with pytest.raises(TypeError, match="already"):
        augmentation(a.rotate)
    with pytest.raises(TypeError, match="not callable"):
        augmentation(3)


def test_translations_of_suites() -> None:
    x, y = rand_augment.get_rand_augment_suite(max_translate_abs=(7, 9))[:2]
    assert (x.mag_range, y.mag_range) == ((0, 9), (0, 7))
    assert trivial_augment.get_trivial_augment_wide_suite(use_shape=True)[0].mag_range == (0, 1.0)
    with pytest.raises(ValueError, match="max_translate_rel"):
        rand_augment.get_rand_augment_suite(use_shape=True, max_translate_abs=1)


def test_parameters_of_augmentations() -> None:
    assert [int(a.poster_mask_uint8(bits)) for bits in (0, 1, 4, 8)] == [128, 128, 240, 255]
    np.testing.assert_allclose(a.sharpness_kernel(0), [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(a.sharpness_kernel(0.5).sum(), 1, rtol=1e-6)
    np.testing.assert_array_equal(a.sharpness_kernel_shifted(1.5), a.sharpness_kernel(0.5))
    with pytest.raises(ValueError, match="128"):
        a.solarize_add_shift(128)
