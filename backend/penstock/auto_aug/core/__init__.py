"""The parts that augmentation policies are made of."""

from penstock.auto_aug.core._augmentation import Augmentation as _Augmentation
from penstock.auto_aug.core._augmentation import augmentation, signed_bin
from penstock.auto_aug.core._select import select
from penstock.auto_aug.core.policy import Policy

__all__ = ["Policy", "_Augmentation", "augmentation", "select", "signed_bin"]
