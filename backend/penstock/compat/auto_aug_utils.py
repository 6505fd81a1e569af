"""The module ``nvidia.dali.auto_aug.core._utils``, which programs that define policies import."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.auto_aug.core import Augmentation, select
from penstock.auto_aug.core.suites import max_offsets as parse_validate_offset
from penstock.auto_aug.core.suites import of_both_axes as max_translate_hw
from penstock.auto_aug.core.suites import translations

__all__ = ["get_translations", "max_translate_hw", "parse_validate_offset", "pretty_select"]


def get_translations(
    use_shape: bool,
    default_translate_abs: float,
    default_translate_rel: float,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[Augmentation]:
    """Return the augmentations that translate along x and along y."""
    return translations(use_shape, default_translate_abs, default_translate_rel, max_translate_abs, max_translate_rel)


def pretty_select(
    augmentations: Sequence[Augmentation],
    aug_ids: object,
    op_kwargs: dict[str, object],
    auto_aug_name: str,
    ref_suite_name: str,
) -> object:
    """Apply the augmentation that ``aug_ids`` selects to each sample."""
    return select(augmentations, aug_ids, **op_kwargs)
