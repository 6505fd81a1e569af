"""Exported pipelines return the same values as the transforms of torchvision, its weights and timm from which they were made."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from beside import image
from torchvision import models, transforms
from torchvision.transforms import v2 as theirs
from transform_cases import picture

from penstock.plugin.torchvision import ExportError, pipeline
from penstock.plugin.torchvision.transforms import v2 as ours

pytestmark = pytest.mark.filterwarnings("ignore:The transform `ToTensor")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
NEAREST = transforms.InterpolationMode.NEAREST
MADE: dict[str, Callable[[], Any]] = {
    "v1": lambda: transforms.Compose(
        [transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    ),
    "v1-in-two-steps": lambda: transforms.Compose(
        [transforms.Resize((30, 20), NEAREST), transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32)]
    ),
    "v1-sequential": lambda: torch.nn.Sequential(transforms.Pad([1, 2], fill=7), transforms.Grayscale(3)),
    "v2": lambda: theirs.Compose(
        [
            theirs.Resize(40, max_size=50),
            theirs.CenterCrop((24, 30)),
            theirs.RandomVerticalFlip(1.0),
            theirs.ToImage(),
            theirs.ToDtype(torch.float32, scale=True),
            theirs.Normalize(MEAN, STD),
            theirs.ToPureTensor(),
        ]
    ),
    "v2-of-bytes": lambda: theirs.Compose(
        [
            theirs.RGB(),
            theirs.ToImage(),
            theirs.ToDtype(torch.uint8, scale=True),
            theirs.Resize((30, 20)),
            theirs.ToPILImage(),
            theirs.Grayscale(1),
            theirs.RGB(),
            theirs.ToImage(),
            theirs.RGB(),
            theirs.ToDtype(torch.float32, scale=True),
            theirs.Normalize(MEAN, STD),
        ]
    ),
    "v2-blurred": lambda: theirs.Compose([theirs.GaussianBlur(3, 1.5), theirs.RandomSolarize(100, 1.0)]),
    "v2-within-ours": lambda: ours.Compose([theirs.Compose([theirs.Resize(20)]), theirs.RandomInvert(1.0)]),
    "classification": lambda: models.ResNet50_Weights.IMAGENET1K_V2.transforms(resize_size=40, crop_size=33),
    "bicubic": lambda: models.ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1.transforms(resize_size=40, crop_size=40),
    "segmentation": lambda: models.segmentation.FCN_ResNet50_Weights.DEFAULT.transforms(resize_size=37),
    "detection": lambda: models.detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT.transforms(),
}


def _as_array(result: Any) -> np.ndarray:
    return result.numpy() if isinstance(result, torch.Tensor) else np.asarray(result)


def _check(transform: Any) -> None:
    made = pipeline(transform, batch_size=1, encoded=False)
    made.build()
    for number in range(3):
        made.feed_input("images", [picture(number)])
        (outputs,) = made.run()
        np.testing.assert_array_equal(np.array(outputs[0]), _as_array(transform(image(number))))


@pytest.mark.parametrize("name", MADE)
def test_pipelines_of_torchvisions_transforms_give_their_values(name: str) -> None:
    _check(MADE[name]())


@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
@pytest.mark.parametrize("mode", ["center", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_pipelines_of_timms_transforms_give_their_values(mode: str, interpolation: str) -> None:
    from timm.data import create_transform

    _check(create_transform((3, 33, 33), crop_mode=mode, interpolation=interpolation, crop_pct=0.9))


@pytest.mark.parametrize(
    ("transform", "named"),
    [
        (transforms.RandomResizedCrop(8), "RandomResizedCrop"),
        (theirs.Compose([theirs.RandomCrop(8)]), "RandomCrop"),
        (transforms.GaussianBlur(3, 1.0), "GaussianBlur"),
        (models.video.R3D_18_Weights.DEFAULT.transforms(), "VideoClassification"),
        (transforms.RandomHorizontalFlip(0.5), "probability of 0.5"),
        (transforms.Lambda(lambda picture: picture), "Lambda"),
    ],
)
def test_what_is_not_exported_is_named(transform: Any, named: str) -> None:
    with pytest.raises(ExportError, match=named):
        pipeline(transform)


@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
def test_what_is_not_exported_of_timm_is_named() -> None:
    from timm.data import create_transform

    with pytest.raises(ExportError, match="`ResizeKeepRatio` of timm"):
        pipeline(create_transform((3, 32, 32), crop_mode="border"))
