"""What the published policies share: translations, and the selection of augmentations from a suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.auto_aug import augmentations
from penstock.auto_aug.core import _args
from penstock.auto_aug.core._augmentation import Augmentation


def of_both_axes(limit: object) -> tuple[Any, Any]:
    """Return the limits along height and width; ``limit`` is a pair of them, or one number for both."""
    height, width = limit if isinstance(limit, (list, tuple)) else (limit, limit)
    return height, width


def max_offsets(
    use_shape: bool,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    default_translate_abs: float = 250,
    default_translate_rel: float = 1.0,
) -> tuple[Any, Any]:
    """Return the largest offsets along height and width.

    Args:
        use_shape: whether offsets are fractions of the samples' extents rather than pixels.
        max_translate_abs, max_translate_rel: the largest offset: one number for both axes, or one each for height and width.
        default_translate_abs, default_translate_rel: the largest offset if no argument sets it.

    Raises:
        TypeError: ``use_shape`` is not a bool.
        ValueError: the limit in the unit that ``use_shape`` does not select is set.
    """
    if not isinstance(use_shape, bool):
        raise TypeError(f"The `use_shape` is a flag that should be set to either True or False, got {use_shape}.")
    wrong, right = ("abs", "rel") if use_shape else ("rel", "abs")
    limit, refused = (max_translate_rel, max_translate_abs) if use_shape else (max_translate_abs, max_translate_rel)
    if refused is not None:
        raise ValueError(
            f"The argument `max_translate_{wrong}` cannot be used {'with' if use_shape else 'without'} image shapes. You may use "
            f"`max_translate_{right}` instead."
        )
    return of_both_axes(limit if limit is not None else default_translate_rel if use_shape else default_translate_abs)


def translations(
    use_shape: bool,
    default_abs: float,
    default_rel: float,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations that translate along x and along y; see :func:`max_offsets`."""
    height, width = max_offsets(use_shape, max_translate_abs, max_translate_rel, default_abs, default_rel)
    along_x, along_y = (
        (augmentations.translate_x, augmentations.translate_y)
        if use_shape
        else (augmentations.translate_x_no_shape, augmentations.translate_y_no_shape)
    )
    return [along_x.augmentation(mag_range=(0, width)), along_y.augmentation(mag_range=(0, height))]


def without_excluded(suite: Sequence[Augmentation], excluded: Sequence[str] | None) -> list[Augmentation]:
    """Return the suite without the augmentations with these names; raise ValueError for an unknown name."""
    names = [augmentation.name for augmentation in suite]
    unknown = [name for name in excluded or () if name not in names]
    if unknown:
        raise ValueError(
            f"The `{unknown[0]}` was specified in `excluded`, but the suite does not contain augmentation with this name. The "
            f"augmentations in the suite are: {', '.join(names)}"
        )
    return [augmentation for augmentation in suite if augmentation.name not in (excluded or ())]


def accepted_arguments(chosen: Iterable[Augmentation], **keywords: object) -> dict[str, object]:
    """Return the keyword arguments that are not None and that any of the augmentations accepts."""
    specified = {name: value for name, value in keywords.items() if value is not None}
    return {name: value for one in chosen for name, value in _args.accepted(one.op, specified).items()}
