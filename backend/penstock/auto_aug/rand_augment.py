"""RandAugment: Cubuk, Zoph, Shlens, Le, "RandAugment: Practical automated data augmentation with a reduced search space"."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from penstock import fn, types
from penstock.auto_aug import augmentations as a
from penstock.auto_aug.core import _args, select, signed_bin
from penstock.auto_aug.core._augmentation import Augmentation
from penstock.auto_aug.core.suites import accepted_arguments, translations, without_excluded
from penstock.graph import DataNode

# The largest translation, in pixels, and as a fraction of the width of images of 224 x 224.
_TRANSLATE_ABS, _TRANSLATE_REL = 100, 100 / 224
_ENHANCE = (0.1, 1.9)


def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[float] | None = None,
    fill_value: int | None = 128,
    interp_type: types.DALIInterpType | None = None,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply ``n`` augmentations with magnitude ``m`` to each sample, drawn at random from the whole suite.

    Args:
        data: uint8 images, HWC.
        n: the number of augmentations.
        m: the magnitude bin, from 0 to ``num_magnitude_bins - 1``.
        num_magnitude_bins: the number of magnitudes into which each range is divided.
        shape: height and width of the images (numbers or a node); if set, offsets are fractions of them.
        fill_value, interp_type: the fill value and interpolation of warped images.
        max_translate_abs, max_translate_rel: the largest offset, in pixels (by default 100) or, with ``shape``, as a
            fraction of the extent (by default 100 / 224).
        seed: the seed of the random draws.
        monotonic_mag: whether a larger bin always is a stronger augmentation; False: ranges as in the paper.
        excluded: names of augmentations to leave out.

    >>> images = rand_augment(images, n=3, m=17)  # doctest: +SKIP
    """
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    chosen = without_excluded(suite(shape is not None, max_translate_abs, max_translate_rel), excluded)
    keywords = accepted_arguments(chosen, fill_value=fill_value, interp_type=interp_type, shape=shape)
    return apply_rand_augment(chosen, data, n, m, num_magnitude_bins, seed=seed, **keywords)


def apply_rand_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: object,
) -> DataNode:
    """Apply RandAugment with a custom list of augmentations; ``kwargs`` are passed to them.

    Raises:
        ValueError: there are no augmentations, or ``n`` or ``m`` is out of range.
        UnusedArgException: no augmentation takes a keyword argument.
    """
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"The number of operations to apply `n` must be a non-negative integer, got {n}.")
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ValueError(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}.")
    if not isinstance(m, int) or not 0 <= m < num_magnitude_bins:
        raise ValueError(
            f"The magnitude bin `m` must be an integer from `[0, {num_magnitude_bins - 1}]` range. Got {m}."
        )
    if n == 0:
        warnings.warn(
            "The `apply_rand_augment` was called with `n=0`, no augmentation will be applied.",
            UserWarning,
            stacklevel=2,
        )
        return data
    if not augmentations:
        raise ValueError("The `augmentations` list cannot be empty, unless n=0.")
    _args.forbid_unused_kwargs(augmentations, kwargs, "apply_rand_augment")
    _args.require_kwargs(augmentations, kwargs, "apply_rand_augment")
    shape = [] if n == 1 else [n]
    indices = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, shape=shape, dtype=types.INT32)
    bins: Any = m
    if any(augmentation.randomly_negate for augmentation in augmentations):
        bins = signed_bin(m, seed=seed, shape=shape)
    for stage in range(n):
        data = select(
            augmentations,
            indices if n == 1 else indices[stage],
            data,
            magnitude_bin=bins if n == 1 or isinstance(bins, int) else bins[stage],
            num_magnitude_bins=num_magnitude_bins,
            **kwargs,
        )
    return data


def get_rand_augment_suite(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations, with ranges in which a larger bin is a stronger augmentation."""
    return [
        *translations(use_shape, _TRANSLATE_ABS, _TRANSLATE_REL, max_translate_abs, max_translate_rel),
        a.shear_x,
        a.shear_y,
        a.rotate,
        a.brightness,
        a.contrast,
        a.color,
        a.sharpness,
        a.posterize.augmentation(mag_range=(8, 4)),
        a.solarize,
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations with the ranges of the paper."""
    plain = {"mag_range": _ENHANCE, "randomly_negate": False, "mag_to_param": None}
    return [
        *translations(use_shape, _TRANSLATE_ABS, _TRANSLATE_REL, max_translate_abs, max_translate_rel),
        a.shear_x,
        a.shear_y,
        a.rotate,
        a.brightness.augmentation(**plain),
        a.contrast.augmentation(**plain),
        a.color.augmentation(**plain),
        a.sharpness.augmentation(**(plain | {"mag_to_param": a.sharpness_kernel_shifted})),
        a.posterize,
        a.solarize.augmentation(mag_range=(0, 256)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
