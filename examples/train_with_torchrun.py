"""Trains a small network with PyTorch's DistributedDataParallel: each process reads its shard of the images.

    torchrun --nproc-per-node 2 examples/train_with_torchrun.py FOLDER

FOLDER has a folder of images for each class. On machines with GPUs, each process uses the one of its local rank, which also
decodes its images. Without GPUs, processes communicate through Gloo.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch

# Before there is a process group: functions of this module keep the one that they are defined with. Gloo's threads
# would then live on until Python ends, and one that still held a tensor would abort the process.
import torch.distributed.nn
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from penstock import fn, pipeline_def, types
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


@pipeline_def
def images(folder: str, shard: int, shards: int, device: str) -> Any:
    """Return the pipeline of one shard's images, (3, 64, 64), and their classes, shuffled in each epoch."""
    encoded, label = fn.readers.file(
        file_root=folder, shard_id=shard, num_shards=shards, random_shuffle=True, pad_last_batch=True, name="images"
    )
    pixels = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    pixels = fn.resize(pixels, size=(64, 64))
    mirrored = fn.random.coin_flip(probability=0.5)
    return fn.crop_mirror_normalize(pixels, mirror=mirrored, mean=127.5, std=63.75, output_layout="CHW"), label


def train(folder: str, epochs: int, batch_size: int) -> None:
    """Train, and print what this process read and that all have the same network."""
    with_gpu = torch.cuda.is_available()
    local = int(os.environ["LOCAL_RANK"])
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    place = torch.device("cuda", local) if with_gpu else torch.device("cpu")
    if with_gpu:
        torch.cuda.set_device(place)

    # With one seed all processes would mirror alike. Which images are in a shard does not depend on it.
    pipeline = images(
        folder,
        rank,
        world,
        "gpu" if with_gpu else "cpu",
        batch_size=batch_size,
        num_threads=2,
        device_id=local if with_gpu else None,
        seed=rank,
    )
    # The last batch is padded, so that all processes take as many steps: one that took fewer would leave the others waiting.
    batches = DALIGenericIterator(
        [pipeline], ["image", "label"], reader_name="images", last_batch_policy=LastBatchPolicy.FILL, auto_reset=True
    )
    network = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)
    )
    model = DistributedDataParallel(network.to(place), device_ids=[local] if with_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        seen = 0
        for (batch,) in batches:
            loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"][:, 0].long().to(place))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(batch["image"])
        print(f"rank {rank} of {world}: epoch {epoch}, {seen} images, loss {loss.item():.3f}", flush=True)

    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    first = weights.clone()
    torch.distributed.broadcast(first, 0)
    print(f"rank {rank}: the network {'is' if torch.equal(weights, first) else 'differs from'} rank 0's", flush=True)


def main() -> None:
    """Train in the process group that torchrun started the processes for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8, help="of each process")
    arguments = parser.parse_args()

    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    train(arguments.folder, arguments.epochs, arguments.batch_size)
    # The model is gone by now: it refers to the group, whose threads end when nothing does.
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
