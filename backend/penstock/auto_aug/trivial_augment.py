"""TrivialAugment: Müller, Hutter, "TrivialAugment: Tuning-free yet state-of-the-art data augmentation"."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import fn, types
from penstock.auto_aug import augmentations as a
from penstock.auto_aug.core import _args, select, signed_bin
from penstock.auto_aug.core._augmentation import Augmentation
from penstock.auto_aug.core.suites import accepted_arguments, translations, without_excluded
from penstock.graph import DataNode


def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[float] | None = None,
    fill_value: int | None = 128,
    interp_type: types.DALIInterpType | None = None,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply one augmentation, drawn at random, to each sample, with a random magnitude.

    Args:
        data: uint8 images, HWC.
        num_magnitude_bins: the number of magnitudes into which each range is divided.
        shape: height and width of the images (numbers or a node); if set, offsets are fractions of them.
        fill_value, interp_type: the fill value and interpolation of warped images.
        max_translate_abs, max_translate_rel: the largest offset, in pixels (by default 32) or, with ``shape``, as a
            fraction of the extent (by default 1).
        seed: the seed of the random draws.
        excluded: names of augmentations to leave out.

    >>> images = trivial_augment_wide(images)  # doctest: +SKIP
    """
    chosen = without_excluded(
        get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel), excluded
    )
    keywords = accepted_arguments(chosen, fill_value=fill_value, interp_type=interp_type, shape=shape)
    return apply_trivial_augment(chosen, data, num_magnitude_bins, seed=seed, **keywords)


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: object,
) -> DataNode:
    """Apply TrivialAugment with a custom list of augmentations; ``kwargs`` are passed to them.

    Raises:
        ValueError: there are no augmentations, or ``num_magnitude_bins`` is not positive.
        UnusedArgException: no augmentation takes a keyword argument.
    """
    if not augmentations:
        raise ValueError("The `augmentations` list cannot be empty.")
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ValueError(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}.")
    _args.forbid_unused_kwargs(augmentations, kwargs, "apply_trivial_augment")
    _args.require_kwargs(augmentations, kwargs, "apply_trivial_augment")
    drawn = fn.random.uniform(values=list(range(num_magnitude_bins)), dtype=types.INT32, seed=seed)
    is_signed = any(augmentation.randomly_negate for augmentation in augmentations)
    magnitude = signed_bin(drawn, seed=seed) if is_signed else drawn
    index = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, dtype=types.INT32)
    return select(augmentations, index, data, magnitude_bin=magnitude, num_magnitude_bins=num_magnitude_bins, **kwargs)


def get_trivial_augment_wide_suite(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations with the wide ranges of the paper."""
    enhance = {"mag_range": (0.01, 0.99)}
    return [
        *translations(use_shape, 32, 1.0, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation(mag_range=(0, 0.99)),
        a.shear_y.augmentation(mag_range=(0, 0.99)),
        a.rotate.augmentation(mag_range=(0, 135)),
        a.brightness.augmentation(**enhance),
        a.contrast.augmentation(**enhance),
        a.color.augmentation(**enhance),
        a.sharpness.augmentation(**enhance),
        a.posterize.augmentation(mag_range=(8, 2)),
        a.solarize,
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
