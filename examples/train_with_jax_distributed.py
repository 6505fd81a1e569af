"""Trains a small network with JAX in several processes: each reads its shards, and batches are global arrays.

    python examples/train_with_jax_distributed.py FOLDER --coordinator HOST:PORT --processes 2 --process 0
    python examples/train_with_jax_distributed.py FOLDER --coordinator HOST:PORT --processes 2 --process 1

FOLDER has a folder of images for each class. On clusters that JAX knows (Slurm, Kubernetes, cloud TPUs), leave out the
options that identify the process. On a machine with several GPUs, give each process its own (CUDA_VISIBLE_DEVICES=0, 1, ...),
which then decodes its images, too.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from penstock import fn, types
from penstock.plugin.jax import data_iterator


def images(folder: str, shard_id: int, num_shards: int) -> Any:
    """Return the pipeline of one shard's images, (64, 64, 3), and their classes, shuffled in each epoch."""
    encoded, label = fn.readers.file(
        file_root=folder, shard_id=shard_id, num_shards=num_shards, random_shuffle=True, name="images"
    )
    device = "mixed" if jax.default_backend() == "gpu" else "cpu"
    pixels = fn.resize(fn.decoders.image(encoded, device=device, output_type=types.RGB), size=(64, 64))
    mirrored = fn.random.coin_flip(probability=0.5)
    return fn.crop_mirror_normalize(pixels, mirror=mirrored, mean=127.5, std=63.75, output_layout="HWC"), label


def loss_of(weights: dict[str, jax.Array], image: jax.Array, label: jax.Array) -> jax.Array:
    """Return the cross entropy of a batch: of means over the quarters of each image, through one layer."""
    quarters = image.reshape(len(image), 2, 32, 2, 32, 3).mean(axis=(2, 4)).reshape(len(image), -1)
    logits = quarters @ weights["slope"] + weights["offset"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), label, axis=1).mean()


@jax.jit
def step(weights: dict[str, jax.Array], image: jax.Array, label: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    """Do one step of gradient descent. Batches are split among all devices, so XLA adds up the gradients of all
    processes.
    """
    loss, gradients = jax.value_and_grad(loss_of)(weights, image, label)
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients), loss


def main() -> None:
    """Train, and print what this process read and the network's weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--coordinator", help="address of process 0")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--process", type=int)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8, help="over all processes")
    arguments = parser.parse_args()
    jax.distributed.initialize(arguments.coordinator, arguments.processes, arguments.process)

    mesh = Mesh(np.array(jax.devices()), ("data",))
    batches = data_iterator(
        lambda shard_id, num_shards: images(arguments.folder, shard_id, num_shards),
        output_map=["image", "label"],
        reader_name="images",
        sharding=NamedSharding(mesh, PartitionSpec("data")),
        auto_reset=True,
    )(batch_size=arguments.batch_size, num_threads=2)
    weights = {"slope": jnp.zeros((12, 2)), "offset": jnp.zeros(2)}
    for epoch in range(arguments.epochs):
        seen = 0
        for batch in batches:
            weights, loss = step(weights, batch["image"], batch["label"])
            seen += sum(len(shard.data) for shard in batch["label"].addressable_shards)
        print(f"process {jax.process_index()}: epoch {epoch}, {seen} images, loss {float(loss):.3f}", flush=True)
    print(f"process {jax.process_index()}: weights {np.asarray(weights['slope']).sum():.6f}", flush=True)


if __name__ == "__main__":
    main()
