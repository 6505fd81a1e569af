"""Conversion to PyTorch tensors, and nodes for TorchData."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from penstock import dynamic
from penstock.dynamic.pytorch import nodes


def test_tensors_share_memory() -> None:
    own = dynamic.tensor([1, 2, 3])
    shared, copied = own.torch(), own.torch(copy=True)
    shared[0], copied[1] = 42, 0
    assert np.asarray(own).tolist() == [42, 2, 3]
    assert dynamic.as_tensor(torch.ones(2, 3)).shape == (2, 3)


def test_batches() -> None:
    batch = dynamic.batch(np.ones((2, 2), np.float32))
    assert batch.torch().shape == (2, 2)
    assert dynamic.as_batch(torch.ones(4, 3)).shape == [(3,)] * 4
    ragged = dynamic.batch([[1, 2], [3]])
    assert ragged.torch(pad=True).tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match="dense"):
        ragged.torch()
    with pytest.raises(ValueError, match="copy"):
        dynamic.as_batch([dynamic.tensor([1]), dynamic.tensor([2])]).torch(copy=False)


def test_nodes(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number % 2)).mkdir(exist_ok=True)
        Image.new("RGB", (8, 6), (number, 0, 0)).save(tmp_path / str(number % 2) / f"{number}.png")
    reader = nodes.Reader(dynamic.readers.File, batch_size=2, file_root=str(tmp_path))
    loaded = nodes.ToTorch(nodes.DictMapper(reader, dynamic.decoders.image))
    for _ in range(2):
        loaded.reset()
        steps = list(loaded)
        assert [tuple(images.shape) for images, _ in steps] == [(2, 6, 8, 3)] * 3
        assert len({int(red) for images, _ in steps for red in images[:, 0, 0, 0]}) == 5
    assert reader.get_metadata()["epoch_size"] == 5
    with pytest.raises(ValueError, match="2 outputs"):
        nodes.Reader(dynamic.readers.File, batch_size=2, output_names=["one"], file_root=str(tmp_path))
