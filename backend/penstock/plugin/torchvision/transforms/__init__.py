"""Transforms of images and of data that belongs to images, such as boxes."""

from penstock.plugin.torchvision.transforms import v2
from penstock.plugin.torchvision.transforms.v2 import AutoAugmentPolicy, InterpolationMode

__all__ = ["AutoAugmentPolicy", "InterpolationMode", "v2"]
