"""The base class of readers: the order of samples, reading on the pipeline's threads, checkpoints.

A concrete reader lists its items once; it reads one item at a time, and may be able to read a whole batch of items.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, overload

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.operators.readers._reading_order import DEFAULT_SHUFFLE_SEED, OrderSettings, ReadingOrder
from penstock.schema import Argument, Operator, OutputSpec, Sample, Workspace
from penstock.schema.tolerance import ON_ERROR
from penstock.storage import is_remote
from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.tensors.memory import BatchMemory

READER_ARGUMENTS = (
    Argument("dont_use_mmap", "bool", False, "Accepted for compatibility."),
    Argument("initial_fill", "int32", 1024, "Size of the buffer from which `random_shuffle` picks."),
    Argument("lazy_init", "bool", False, "List the samples in the first run, not when the pipeline is built."),
    Argument("num_shards", "int32", 1, "Number of shards."),
    ON_ERROR,
    Argument(
        "pad_last_batch",
        "bool",
        False,
        "Fill a shard's last batch with its last sample; without it, batches continue in the next epoch.",
    ),
    Argument("prefetch_queue_depth", "int32", 1, "Accepted for compatibility; the pipeline prefetches."),
    Argument("random_shuffle", "bool", False, "Return the samples in random order."),
    Argument("read_ahead", "bool", False, "Accepted for compatibility."),
    Argument("shard_id", "int32", 0, "The shard to read, from 0 to `num_shards` - 1."),
    Argument("skip_cached_images", "bool", False, "Accepted for compatibility; files of cached images are read, too."),
    Argument("stick_to_shard", "bool", False, "Read the same shard in each epoch, instead of the next one."),
    Argument("tensor_init_bytes", "int32", 1048576, "Accepted for compatibility; buffers have the files' sizes."),
)

EPOCH_SHUFFLE_ARGUMENTS = (
    Argument(
        "shuffle_after_epoch",
        "bool",
        False,
        "Shuffle all samples before each epoch; excludes `stick_to_shard` and, in some readers, `random_shuffle`.",
    ),
    Argument("shuffle_after_epoch_seed", "int64", None, "Seed of that shuffle; the same for all shards."),
)


class Reader(Operator):
    """Base class of readers.

    Attributes:
        items: all items of the data set, in order; listed when they are first needed.
        shuffles_list: whether `random_shuffle` also shuffles the whole list of items once, before the first epoch.
        shuffles_both_ways: whether `random_shuffle` and `shuffle_after_epoch` may be combined.
        nothing_to_read: the error message for a data set without samples.
        memory: the memory for the samples of the batch that is being read.
        decodes: whether reading a sample takes so much CPU time that threads should share the work.
    """

    decodes: ClassVar[bool] = False

    nothing_to_read: ClassVar[str] = "No files found."

    shuffles_list: ClassVar[bool] = True
    shuffles_both_ways: ClassVar[bool] = False

    def setup(self) -> None:
        args = self.args
        shards, shard = args["num_shards"], args["shard_id"]
        if not 0 <= shard < shards:
            raise ValueError(
                f"num_shards needs to be greater than shard_id, which counts from 0: got shard_id={shard} "
                f"with num_shards={shards}"
            )
        depth = args["prefetch_queue_depth"]
        if depth < 0:
            raise ValueError(f"prefetch_queue_depth cannot be negative, got {depth}")
        if depth == 0:
            raise RuntimeError("Batch size needs to be greater than 0, as prefetch_queue_depth batches are: got 0")
        if args.get("shuffle_after_epoch"):
            excluded = ("stick_to_shard",) if self.shuffles_both_ways else ("random_shuffle", "stick_to_shard")
            for other in excluded:
                if args[other]:
                    raise ValueError(f"shuffle_after_epoch and {other} cannot be both true")
        if args["prefetch_queue_depth"] < 1:
            raise ValueError(f"prefetch_queue_depth needs to be greater than 0, got {args['prefetch_queue_depth']}")
        if args.get("use_o_direct") and not args["dont_use_mmap"]:
            raise ValueError("Cannot use use_o_direct with `dont_use_mmap=False`")
        self._is_remote = any(is_remote(path) for path in self._given_paths())
        self._items: Sequence[object] | None = None
        self._order: ReadingOrder | None = None
        self._keeps_checkpoints = False
        self.memory = BatchMemory()
        if not args["lazy_init"]:
            self._open()

    def _given_paths(self) -> Iterator[str]:
        """Yield the values of the arguments that are paths."""
        for name in self.schema.path_arguments:
            value = self.args[name]
            yield from [value] if isinstance(value, str) else value or ()

    # -- implemented by concrete readers -----------------------------------------------------------------------

    @abstractmethod
    def list_items(self) -> Sequence[Any]:
        """Return all items of the data set, in order; raise an exception if the data set is malformed."""

    @abstractmethod
    def output_specs(self) -> list[OutputSpec]:
        """Return the type, layout and rank of each output; NO_TYPE: the type is that of the samples."""

    @abstractmethod
    def read(self, item: Any) -> Sequence[np.ndarray]:
        """Read one item; return an array for each output."""

    def read_sample(self, item: Any, sample: Sample) -> Sequence[np.ndarray]:
        """Read one item like :meth:`read`. Readers with per-sample arguments override this method."""
        return self.read(item)

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> Sequence[TensorListCPU] | None:
        """Read a whole batch; return its outputs. ``indices``: the positions of the batch's items in the data set, int64.

        Returns None if the reader can't read whole batches or this one. The batch is then read sample by sample, which also finds
        samples at fault.
        """
        return None

    def grouped(self, items: Sequence[Any]) -> Sequence[Sequence[int]]:
        """Return the positions in a batch in groups, each of which one thread reads in order."""
        return [(position,) for position in range(len(items))]

    def groups(self) -> tuple[int, ...] | None:
        """Return the sizes of the groups of items that the shuffle between epochs moves as a whole; None: it moves single items."""
        return None

    def source_info(self, item: Any, output: int) -> str:
        """Return the source, such as the file, of one output of an item; "" if it has none."""
        return ""

    def aligned(self, column: list[np.ndarray | None], output: int) -> list[np.ndarray | None]:
        """Return one output of a batch's samples (None: the sample failed). Readers whose samples may differ in rank can override this
        method to make the ranks equal.
        """
        return column

    # -- order ------------------------------------------------------------------------------------------------

    def _open(self) -> ReadingOrder:
        if self._order is None:
            self._items = self.list_items()
            self._order = ReadingOrder(self._settings(len(self._items)), self._keeps_checkpoints)
        return self._order

    def keep_checkpoints(self) -> None:
        """Switch to the order in which readers return samples in pipelines with checkpoints. Must be called before a batch is read."""
        self._keeps_checkpoints = True
        if self._order is not None:
            self._order = ReadingOrder(self._order.settings, from_list=True)

    def _settings(self, size: int) -> OrderSettings:
        args = self.args
        if size == 0:
            raise ValueError(self.nothing_to_read)
        if args["num_shards"] > size:
            raise ValueError(
                f'Assert on "num_shards_ <= Size()" failed: The number of input samples: {size}, needs to be at least equal to the '
                f"requested number of shards: {args['num_shards']}."
            )
        epoch_seed = args.get("shuffle_after_epoch_seed")
        return OrderSettings(
            size=size,
            shard_id=args["shard_id"],
            num_shards=args["num_shards"],
            stick_to_shard=args["stick_to_shard"],
            pad_last_batch=args["pad_last_batch"],
            shuffle=args["random_shuffle"],
            shuffle_list=self.shuffles_list,
            groups=self.groups(),
            buffer_size=args["initial_fill"],
            seed=self.seed,
            epoch_shuffle_seed=(DEFAULT_SHUFFLE_SEED if epoch_seed is None else epoch_seed)
            if args.get("shuffle_after_epoch")
            else None,
        )

    @property
    def items(self) -> Sequence[Any]:
        self._open()
        return self._items or ()

    def reader_meta(self) -> dict[str, int]:
        """Return the size of the data set and its shards, in the form of DALI's ``Pipeline.reader_meta``."""
        settings = self._open().settings
        return {
            "epoch_size": settings.size,
            "epoch_size_padded": self.epoch_size,
            "number_of_shards": settings.num_shards,
            "shard_id": settings.shard_id,
            "pad_last_batch": int(settings.pad_last_batch),
            "stick_to_shard": int(settings.keeps_shard),
        }

    @property
    def epoch_size(self) -> int:
        """The number of samples in an epoch, in all shards together and with padding."""
        settings = self._open().settings
        return settings.padded_shard_size * settings.num_shards if settings.pad_last_batch else settings.size

    def end_epoch(self) -> None:
        """Skip the rest of the epoch: the next sample is the first one of the next epoch."""
        self._open().end_epoch()

    def state(self) -> Any:
        return self._open().state()

    def restore(self, state: Any) -> None:
        self._open().restore(state)

    # -- running ----------------------------------------------------------------------------------------------

    def run(self, workspace: Workspace) -> None:
        indices = self._open().take(workspace.batch_size)
        read = None if self._is_remote else self.read_batch(indices, workspace)
        for batch in self._read_one_by_one(indices.tolist(), workspace) if read is None else read:
            workspace.outputs.append(batch if workspace.device == "cpu" else TensorListGPU.upload(batch))

    def _read_one_by_one(self, indices: Sequence[int], workspace: Workspace) -> Iterator[TensorListCPU]:
        items = [self.items[index] for index in indices]
        samples: list[Any] = [None] * len(items)
        self.memory.begin(workspace.pool)

        groups = self.grouped(items)

        def task(number: int) -> None:
            for index in groups[number]:
                try:
                    samples[index] = self.read_sample(items[index], Sample(self, workspace, index))
                except Exception as error:
                    workspace.fail(index, error)

        # Several threads wait for remote files at the same time. Reading local files takes less time than waking threads.
        shared = self.decodes or self._is_remote
        workspace.parallel(task, len(groups), None if shared else [1] * len(groups))
        self.memory.end()
        for number, spec in enumerate(self.output_specs()):
            column = self.aligned([None if sample is None else sample[number] for sample in samples], number)
            yield sample_batch(column, spec, [self.source_info(item, number) for item in items])


class Sources(Sequence[str]):
    """The sources of a batch's samples: a list whose strings are made only when they are read.

    Args:
        items: the data set's items.
        indices: the positions of the batch's items in the data set: int64.
        name: returns the source of an item; by default ``str``.
    """

    def __init__(self, items: Sequence[object], indices: np.ndarray, name: Callable[..., str] = str) -> None:
        self._items = items
        self._indices = indices
        self._name = name

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._name(self._items[number]) for number in self._indices[index].tolist()]
        return self._name(self._items[int(self._indices[index])])


def sample_batch(column: Sequence[np.ndarray | None], spec: OutputSpec, infos: list[str]) -> TensorListCPU:
    """Return the samples of one output as a batch.

    Args:
        column: the samples' arrays; None: the sample failed, and is empty in the batch.
        spec: the output's layout, and its type and rank if all samples failed.
        infos: the samples' sources.

    Raises:
        ValueError: samples differ in type or rank.
    """
    first = next((array for array in column if array is not None), None)
    if first is None:
        first = np.empty((0,) * (spec.ndim or 1), numpy_dtype(spec.dtype) if spec.dtype.value >= 0 else np.uint8)
    empty = np.empty((0,) * first.ndim, first.dtype)
    arrays = [empty if array is None else array for array in column]
    for array, info in zip(arrays, infos):
        if array.ndim != first.ndim:
            raise _disagreement("number of dimensions", (infos[0], f"{first.ndim}"), (info, f"{array.ndim}"))
        if array.dtype != first.dtype:
            raise _disagreement("data type", (infos[0], f"{first.dtype}"), (info, f"{array.dtype}"))
    return TensorListCPU.of_samples(arrays, spec.layout, source_infos=infos)


def _disagreement(what: str, *samples: tuple[str, str]) -> ValueError:
    """Return the error for two samples that differ in a property that must be the same in the whole batch.

    Args:
        what: the property.
        samples: for each sample, the property's value and the sample's source.
    """
    found = " and ".join(f"{value} ('{source}')" if source else value for source, value in samples)
    return ValueError(f"Inconsistent data: all samples in the batch must have the same {what}, got {found}")
