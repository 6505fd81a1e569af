"""Determines how a JAX sharding splits batches among devices and processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
from jax.sharding import NamedSharding, PartitionSpec, Sharding


@dataclass(frozen=True)
class BatchShards:
    """The shards of a batch.

    Attributes:
        count: the number of shards, over all processes.
        local: this process's shards in ascending order: the number of each, and the devices that hold a copy of the shard.
        replicated: whether another process holds a copy of one of this process's shards.
    """

    count: int
    local: dict[int, list[jax.Device]]
    replicated: bool

    @property
    def num_devices(self) -> int:
        """The number of this process's devices."""
        return sum(map(len, self.local.values()))


def batch_shards(sharding: Sharding) -> BatchShards:
    """Return the shards of a batch's first dimension, numbered by their position in the batch.

    Devices that differ only along mesh axes that do not split the first dimension hold copies of one shard.

    Raises:
        ValueError: the sharding splits other dimensions, too.

    >>> mesh = jax.make_mesh((4, 2), ("data", "model"))  # doctest: +SKIP
    >>> batch_shards(NamedSharding(mesh, PartitionSpec("data"))).count  # doctest: +SKIP
    4
    """
    size = len(sharding.device_set)
    starts = {
        device: index[0].indices(size)[0] for device, index in _of_batch(sharding).devices_indices_map((size,)).items()
    }
    numbers = {start: number for number, start in enumerate(sorted(set(starts.values())))}
    here = sharding.addressable_devices
    local: dict[int, list[jax.Device]] = {}
    for device, start in starts.items():
        if device in here:
            local.setdefault(numbers[start], []).append(device)
    elsewhere = {numbers[start] for device, start in starts.items() if device not in here}
    return BatchShards(len(numbers), dict(sorted(local.items())), not elsewhere.isdisjoint(local))


def _of_batch(sharding: Sharding) -> Sharding:
    """Return the sharding of an array that has only the first dimension."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    if any(axes is not None for axes in sharding.spec[1:]):
        raise ValueError(
            f"{sharding.spec} splits more than the first dimension: pipelines return whole samples. Use "
            f"PartitionSpec({sharding.spec[0]!r}), and reshard the batches with `jax.device_put`"
        )
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[:1]))


def global_array(shards: Sequence[object], sharding: Sharding) -> jax.Array:
    """Make a global array from this process's shards, in ascending order; copy each shard to the devices that hold it."""
    found = batch_shards(sharding)
    if len(shards) not in (len(found.local), found.num_devices):
        raise ValueError(
            f"Expected {len(found.local)} pipelines, one for each shard that the sharding has here, but got {len(shards)}"
        )
    devices = [(number, device) for number, copies in enumerate(found.local.values()) for device in copies]
    local = [
        jax.device_put(shards[number if len(shards) == len(found.local) else position], device)
        for position, (number, device) in enumerate(devices)
    ]
    first = local[0].shape
    return jax.make_array_from_single_device_arrays((found.count * first[0], *first[1:]), sharding, local)
