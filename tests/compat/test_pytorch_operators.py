"""The operators of `nvidia.dali.experimental.torchvision` take PyTorch tensors with any strides."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from penstock import compat


@pytest.fixture
def installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def test_tensors_of_permuted_pixels(installed: None) -> None:
    """`pil_to_tensor` and `permute` return tensors in which the channels of a pixel are adjacent in memory."""
    operator = importlib.import_module("nvidia.dali.experimental.torchvision.v2.operator")
    torchvision = importlib.import_module("nvidia.dali.experimental.torchvision")
    dynamic = importlib.import_module("nvidia.dali.experimental.dynamic")
    fn = importlib.import_module("nvidia.dali.fn")

    class UpsideDown(operator.Operator):
        def _kernel(self, data_input: object) -> object:
            return fn.flip(data_input, horizontal=0, vertical=1, device=self.device)

    @operator.adjust_input
    def mirrored(inpt: object, device: str = "cpu") -> object:
        return dynamic.flip(inpt)

    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 20, 30, 3), np.uint8))
    images = pixels.permute(0, 3, 1, 2)
    assert not images[0].is_contiguous()
    compose = torchvision.Compose([UpsideDown()])
    assert torch.equal(compose(images[0]), images[0].flip(1))
    assert torch.equal(compose(images), images.flip(2))
    assert torch.equal(mirrored(images[0]), images[0].flip(2))
    assert torch.equal(mirrored(images[:, :, ::2]), images[:, :, ::2].flip(3))
