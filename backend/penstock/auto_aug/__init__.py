"""Automatic augmentation: AutoAugment, RandAugment and TrivialAugment, and the parts for new policies.

Each sample of a batch draws which augmentations it gets, so the pipeline needs `enable_conditionals=True`.
"""

from penstock.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]
