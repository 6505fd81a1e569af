"""Automatic augmentation: AutoAugment, RandAugment and TrivialAugment, and the classes for defining new policies.

Augmentations are drawn at random for each sample of a batch, so the pipeline needs `enable_conditionals=True`.
"""

from penstock.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]
