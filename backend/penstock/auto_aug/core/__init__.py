"""The parts that augmentation policies are made of."""

from penstock.auto_aug.core._augmentation import Augmentation, augmentation, signed_bin
from penstock.auto_aug.core._select import select
from penstock.auto_aug.core.policy import Policy

# The class under the name that DALI gives it.
_Augmentation = Augmentation

__all__ = ["Augmentation", "Policy", "_Augmentation", "augmentation", "select", "signed_bin"]
