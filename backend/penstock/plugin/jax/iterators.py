"""Iterators that return a pipeline's batches as JAX arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from penstock.pipeline import Pipeline, pipeline_def
from penstock.plugin.base_iterator import BaseIterator
from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.jax.integration import to_jax_array
from penstock.plugin.jax.shards import BatchShards, batch_shards, global_array
from penstock.tensors import cuda

_DEFAULT_NUM_THREADS = 4


class DALIGenericIterator(BaseIterator):
    """Returns batches as ``{name: jax.Array}``; samples of one output must have equal shapes.

    >>> for batch in DALIGenericIterator(pipe, ["images", "labels"], reader_name="files"):  # doctest: +SKIP
    ...     images, labels = batch["images"], batch["labels"]

    Args:
        pipelines: a pipeline, or a list with one for each device, with equal batch sizes.
        output_map: names for the pipeline's outputs, in order.
        size, reader_name, auto_reset, last_batch_padded, last_batch_policy, prepare_first_batch: see
            :class:`~penstock.plugin.base_iterator.BaseIterator`. ``LastBatchPolicy.PARTIAL`` is not supported.
        sharding: if set, the batches of all pipelines become one global array with this sharding.
        pmap_compatible: whether arrays get a leading dimension with one entry for each pipeline.

    Raises:
        AssertionError, ValueError, RuntimeError: as for :class:`~penstock.plugin.base_iterator.BaseIterator`.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: jax.sharding.Sharding | None = None,
        pmap_compatible: bool | None = None,
        *,
        _devices: Sequence[jax.Device] | None = None,
    ) -> None:
        if len(set(output_map)) != len(output_map):
            raise AssertionError("output_map names should be distinct")
        if sharding is not None and not isinstance(sharding, jax.sharding.Sharding):
            raise AssertionError("`sharding` should be an instance of `jax.sharding.Sharding`")
        if last_batch_policy == LastBatchPolicy.PARTIAL:
            raise AssertionError("JAX iterator does not support partial last batch policy.")
        self.output_map = list(output_map)
        # Programs for DALI read the names from this attribute.
        self._output_categories = set(self.output_map)
        self._sharding = sharding
        self._pmap_compatible = bool(pmap_compatible)
        self._devices = _devices
        super().__init__(
            pipelines, size, reader_name, auto_reset, None, last_batch_padded, last_batch_policy, prepare_first_batch
        )

    def _converted(self, outputs: list[tuple[Any, ...]]) -> dict[str, jax.Array]:
        if any(len(pipe_outputs) < len(self.output_map) for pipe_outputs in outputs):
            raise IndexError(f"`output_map` has {len(self.output_map)} names, but the pipeline has fewer outputs")
        return {
            name: self._joined([to_jax_array(pipe_outputs[number].as_tensor().array) for pipe_outputs in outputs])
            for number, name in enumerate(self.output_map)
        }

    def _joined(self, shards: list[jax.Array]) -> jax.Array:
        """Return one output of all pipelines as one array; ``shards``: the batch of each pipeline."""
        if len(shards) == 1 and self._sharding is None and not self._pmap_compatible:
            return shards[0]
        if any(shard.shape != shards[0].shape for shard in shards):
            raise AssertionError("Shards shapes have to be the same.")
        if self._sharding is not None:
            return global_array(shards, self._sharding)
        if self._devices is not None:
            if len(self._devices) != len(shards):
                raise ValueError(f"Expected {len(self._devices)} pipelines, one for each device, but got {len(shards)}")
            shards = [jax.device_put(shard, device) for shard, device in zip(shards, self._devices)]
        return _stacked(shards)


def _stacked(shards: list[jax.Array]) -> jax.Array:
    """Return shards as one array with a leading dimension: sharded over their devices, or on their common device."""
    devices = [next(iter(shard.devices())) for shard in shards]
    if len(set(devices)) == 1 and len(devices) > 1:
        return jnp.stack(shards)
    if len(set(devices)) != len(devices):
        raise AssertionError(
            "JAX iterator requires shards to be placed on different devices or all on the same device."
        )
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))
    shape = (len(shards), *shards[0].shape)
    return jax.make_array_from_single_device_arrays(shape, sharding, [shard[None] for shard in shards])


def default_num_threads_value() -> int:
    """Return the default number of threads in the pipelines of a decorated function."""
    return _DEFAULT_NUM_THREADS


def data_iterator(
    pipeline_fn: Callable[..., object] | None = None,
    output_map: Sequence[str] = (),
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: str | bool | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: jax.sharding.Sharding | None = None,
    devices: Sequence[jax.Device] | None = None,
    pmap_compatible: bool | None = None,
    *,
    _kind: type[DALIGenericIterator] = DALIGenericIterator,
) -> Callable[..., Any]:
    """Decorate the graph-defining function, so that its call returns a :class:`DALIGenericIterator`.

    The call takes the arguments of the function and of :class:`~penstock.Pipeline`, and ``checkpoints``, as returned by the
    iterator's method of that name. ``num_threads`` is 4 by default; ``device_id`` is the first GPU, or None if there is none.

    Args:
        pipeline_fn: a graph-defining function. With ``sharding`` or ``devices``, it must take ``shard_id`` and
            ``num_shards``; one pipeline is made for each device of this process, and the ``batch_size`` in the call is the
            number of samples for all devices together.
        output_map: names for the pipeline's outputs, in order.
        size, reader_name, auto_reset, last_batch_padded, last_batch_policy, prepare_first_batch: see
            :class:`~penstock.plugin.base_iterator.BaseIterator`. ``LastBatchPolicy.PARTIAL`` is not supported.
        sharding: if set, batches are global arrays with this sharding.
        devices: if set, batches have a leading dimension that is sharded over these devices.
        pmap_compatible: see :class:`DALIGenericIterator`.

    Raises:
        ValueError: both ``sharding`` and ``devices`` are set.

    >>> @data_iterator(output_map=["images"], reader_name="files", auto_reset=True)  # doctest: +SKIP
    ... def training(root):
    ...     encoded, _ = penstock.fn.readers.file(file_root=root, name="files")
    ...     return penstock.fn.resize(penstock.fn.decoders.image(encoded), size=(64, 64))
    >>> batches = training("data", batch_size=16)  # doctest: +SKIP
    """
    return _decorator_of(
        _kind,
        pipeline_fn,
        sharding,
        devices,
        output_map=output_map,
        size=size,
        reader_name=reader_name,
        auto_reset=auto_reset,
        last_batch_padded=last_batch_padded,
        last_batch_policy=last_batch_policy,
        prepare_first_batch=prepare_first_batch,
        pmap_compatible=pmap_compatible,
    )


def _decorator_of(
    kind: type[DALIGenericIterator],
    pipeline_fn: Callable[..., Any] | None,
    sharding: jax.sharding.Sharding | None,
    devices: Sequence[jax.Device] | None,
    **settings: Any,
) -> Callable[..., object]:
    """Return the decorator that makes iterators of class ``kind``; see :func:`data_iterator`."""
    if sharding is not None and devices is not None:
        raise ValueError("Only one of `sharding` and `devices` arguments can be provided.")
    if devices is not None and settings["pmap_compatible"] is None:
        settings["pmap_compatible"] = True

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def create_iterator(*args: Any, checkpoints: Sequence[bytes] | None = None, **keywords: Any) -> Any:
            factory = pipeline_def(function)
            keywords.setdefault("num_threads", _DEFAULT_NUM_THREADS)
            if sharding is None and devices is None:
                keywords.setdefault("device_id", _gpu(0))
                checkpoint = checkpoints[0] if checkpoints else None
                return kind(factory(*args, checkpoint=checkpoint, **keywords), **settings)
            shards = _shards_of(devices) if devices is not None else _shards_in(sharding, keywords.get("seed"))
            # As in DALI, all devices count, even if fewer are chosen.
            parts = jax.device_count() if devices is not None else shards.count
            keywords["batch_size"] //= parts
            pipelines = _one_for_each(factory, shards, checkpoints, args, keywords)
            return kind(pipelines, sharding=sharding, _devices=devices, **settings)

        return create_iterator

    return decorate if pipeline_fn is None else decorate(pipeline_fn)


def _shards_of(devices: Sequence[jax.Device]) -> BatchShards:
    """Return a shard of the batch for each of these devices."""
    if jax.local_device_count() != jax.device_count():
        raise RuntimeError("`devices` cannot be used with several processes: use `sharding` instead.")
    return BatchShards(len(devices), {number: [device] for number, device in enumerate(devices)}, False)


def _shards_in(sharding: jax.sharding.Sharding | None, seed: object) -> BatchShards:
    assert sharding is not None
    shards = batch_shards(sharding)
    if shards.replicated and seed is None:
        raise ValueError(
            "The sharding has copies of one shard in several processes, whose pipelines must draw the same random numbers: "
            "set `seed`"
        )
    return shards


def _one_for_each(
    factory: Callable[..., Pipeline],
    shards: BatchShards,
    checkpoints: Sequence[bytes] | None,
    args: Sequence[object],
    keywords: dict[str, object],
) -> list[Pipeline]:
    """Return a pipeline for each shard of this process, on the GPU of the shard's first device."""
    if checkpoints and len(checkpoints) != len(shards.local):
        raise RuntimeError(f"There are {len(checkpoints)} checkpoints for {len(shards.local)} devices.")
    pipelines = []
    for index, (shard, devices) in enumerate(shards.local.items()):
        options = dict(
            keywords,
            device_id=_gpu(devices[0].local_hardware_id),
            shard_id=shard,
            num_shards=shards.count,
        )
        pipelines.append(factory(*args, checkpoint=checkpoints[index] if checkpoints else None, **options))
    return pipelines


def _gpu(index: int) -> int | None:
    """Return the GPU with this number; None if there is none."""
    return index if cuda.device_count() else None
