"""Transforms to compare. Each case makes one from a module, which is torchvision's or Penstock's `transforms.v2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Make = Callable[[Any], Any]
# Transforms for PIL images and tensors of any type, which also work without PyTorch.
GEOMETRY: Mapping[str, Make] = {
    "resize": lambda v: v.Resize(24),
    "resize-both": lambda v: v.Resize((17, 40), interpolation="bicubic"),
    "resize-max": lambda v: v.Resize(30, max_size=37),
    "resize-longer": lambda v: v.Resize(None, max_size=37),
    "resize-nearest": lambda v: v.Resize((50, 31), interpolation=v.InterpolationMode.NEAREST),
    "resize-exact": lambda v: v.Resize((50, 31), interpolation="nearest-exact"),
    "center-crop": lambda v: v.CenterCrop(21),
    "center-crop-larger": lambda v: v.CenterCrop((90, 33)),
    "resized-crop": lambda v: v.RandomResizedCrop(28),
    "resized-crop-tall": lambda v: v.RandomResizedCrop((40, 20), scale=(0.5, 1.0), ratio=(3.0, 4.0)),
    "crop": lambda v: v.RandomCrop((20, 19)),
    "crop-padded": lambda v: v.RandomCrop((30, 29), padding=(3, 4, 5, 6), fill=7, padding_mode="constant"),
    "crop-needed": lambda v: v.RandomCrop((80, 90), pad_if_needed=True, padding_mode="reflect"),
    "horizontal-flip": lambda v: v.RandomHorizontalFlip(),
    "vertical-flip": lambda v: v.RandomVerticalFlip(0.7),
    "pad": lambda v: v.Pad([3, 5], fill=9),
    "pad-edge": lambda v: v.Pad((1, 2, 3, 4), padding_mode="edge"),
    "pad-reflect": lambda v: v.Pad(6, padding_mode="reflect"),
    "pad-symmetric": lambda v: v.Pad((2, 9), padding_mode="symmetric"),
    "zoom-out": lambda v: v.RandomZoomOut(fill=3, side_range=(1.0, 2.0)),
    "rotation": lambda v: v.RandomRotation(40),
    "rotation-expanded": lambda v: v.RandomRotation((20, 160), interpolation="bilinear", expand=True, fill=50),
    "rotation-centre": lambda v: v.RandomRotation(90, center=(4, 30), interpolation="bilinear"),
    "quarter": lambda v: v.RandomRotation((90, 90), expand=True),
    "affine": lambda v: v.RandomAffine(20, translate=(0.2, 0.1), scale=(0.6, 1.3), shear=10),
    "affine-bilinear": lambda v: v.RandomAffine(
        180, shear=(-9, 9, -5, 5), interpolation="bilinear", fill=100, center=(9, 9)
    ),
    "perspective": lambda v: v.RandomPerspective(0.6, p=0.9),
    "perspective-nearest": lambda v: v.RandomPerspective(0.3, p=1.0, interpolation="nearest", fill=12),
    "scale-jitter": lambda v: v.ScaleJitter((40, 50), scale_range=(0.5, 1.5)),
    "shortest": lambda v: v.RandomShortestSize([20, 25, 30], max_size=50),
    "random-resize": lambda v: v.RandomResize(15, 40),
    "five-crop": lambda v: v.FiveCrop((16, 17)),
    "ten-crop": lambda v: v.TenCrop(15, vertical_flip=True),
}
COLOURS: Mapping[str, Make] = {
    "grayscale": lambda v: v.Grayscale(),
    "grayscale-3": lambda v: v.Grayscale(3),
    "random-grayscale": lambda v: v.RandomGrayscale(0.5),
    "rgb": lambda v: v.RGB(),
    "jitter": lambda v: v.ColorJitter(0.4, 0.5, 0.6, 0.3),
    "jitter-ranges": lambda v: v.ColorJitter(brightness=(0.2, 2.5), hue=(-0.5, 0.5)),
    "jitter-contrast": lambda v: v.ColorJitter(contrast=(0, 3), saturation=(0, 3)),
    "permutation": lambda v: v.RandomChannelPermutation(),
    "photometric": lambda v: v.RandomPhotometricDistort(p=0.7),
    "equalize": lambda v: v.RandomEqualize(0.8),
    "invert": lambda v: v.RandomInvert(0.6),
    "posterize": lambda v: v.RandomPosterize(3, p=0.8),
    "solarize": lambda v: v.RandomSolarize(0.6, p=0.8),
    "sharpness": lambda v: v.RandomAdjustSharpness(2.5, p=0.8),
    "sharpness-less": lambda v: v.RandomAdjustSharpness(0.3, p=0.9),
    "autocontrast": lambda v: v.RandomAutocontrast(0.8),
}
AUTOMATIC: Mapping[str, Make] = {
    "randaugment": lambda v: v.RandAugment(),
    "randaugment-more": lambda v: v.RandAugment(4, 17, interpolation="bilinear", fill=[1, 2, 3]),
    "autoaugment": lambda v: v.AutoAugment(),
    "autoaugment-cifar": lambda v: v.AutoAugment(v.AutoAugmentPolicy.CIFAR10, interpolation="bilinear"),
    "autoaugment-svhn": lambda v: v.AutoAugment(v.AutoAugmentPolicy.SVHN, fill=77),
    "trivial": lambda v: v.TrivialAugmentWide(),
}
COMPOSED: Mapping[str, Make] = {
    "composed": lambda v: v.Compose(
        [v.RandomResizedCrop(30), v.RandomHorizontalFlip(), v.ColorJitter(0.3, 0.3, 0.3, 0.1), v.RandAugment()]
    ),
    "composed-crop": lambda v: v.Compose([v.Resize(32), v.CenterCrop((28, 20)), v.RandomVerticalFlip(0.5)]),
    "random-order": lambda v: v.RandomOrder([v.RandomCrop(18), v.RandomInvert(), v.RandomHorizontalFlip()]),
    "random-apply": lambda v: v.RandomApply([v.RandomCrop(18), v.Grayscale(3)], p=0.5),
}
# Transforms that need PyTorch, for their parameters or for the values.
WITH_TORCH: Mapping[str, Make] = {
    "random-choice": lambda v: v.RandomChoice([v.RandomCrop(18), v.Resize(9), v.Pad(3)], p=[0.2, 0.5, 0.3]),
    "blur": lambda v: v.GaussianBlur(5),
    "blur-both": lambda v: v.GaussianBlur((9, 3), sigma=(0.5, 1.5)),
    "elastic": lambda v: v.ElasticTransform(alpha=60.0, sigma=3.0),
    "elastic-fill": lambda v: v.ElasticTransform(alpha=(90.0, 30.0), sigma=(2.0, 4.0), fill=4, interpolation="nearest"),
    "erasing": lambda v: v.RandomErasing(0.8),
    "erasing-random": lambda v: v.RandomErasing(0.9, value="random"),
    "augmix": lambda v: v.AugMix(),
    "augmix-few": lambda v: v.AugMix(severity=7, mixture_width=2, chain_depth=2, all_ops=False),
    "jpeg": lambda v: v.JPEG((30, 90)),
    "noise": lambda v: v.GaussianNoise(0.1, 0.2),
}


def picture(number: int, channels: int = 3) -> np.ndarray:
    """Return an image of shape (H, W, C), uint8: noise, patches, or a slope."""
    rng = np.random.default_rng(number)
    height, width = (int(extent) for extent in rng.integers(22, 70, 2))
    noise = rng.integers(0, 256, (height, width, channels), np.uint8)
    if number % 3 == 1:
        return (noise // 64 * 85).repeat(2, axis=0)[:height]
    if number % 3 == 2:
        slope = np.add.outer(np.linspace(0, 150, height), np.linspace(0, 60, width))[:, :, None]
        return (slope + noise // 8).astype(np.uint8)
    return noise
