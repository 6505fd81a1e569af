"""The settings with which a pipeline runs, and which are saved with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.data_types import DALIDataType
from penstock.errors import as_imported
from penstock.kernels.codecs.decoding import ISOLATION_MODES, Decoding
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.schema.tolerance import RAISE, check_policy
from penstock.storage import ANYWHERE, Files


class StreamPolicy(Enum):
    """How many CUDA streams the executor uses, as in DALI; without effect, as a pipeline has a single stream."""

    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48
    UNSPECIFIED = 0


class OperatorConcurrency(Enum):
    """Which operators may run concurrently, as in DALI; without effect, as samples run in parallel rather than operators."""

    NONE = 2
    BACKEND = 4
    FULL = 6
    UNSPECIFIED = 0


@dataclass
class PipelineSettings:
    """The settings of a pipeline; :class:`~penstock.pipeline.Pipeline` documents each.

    Attributes:
        limits: the limits on what one sample may decode to.
        files: the files that operators may access.

    Raises:
        TypeError, ValueError: a setting is invalid for any graph.
    """

    batch_size: int | None = None
    num_threads: int | None = None
    device_id: int | None = None
    seed: int | None = None
    exec_pipelined: bool = True
    prefetch_queue_depth: int | dict[str, int] = 2
    exec_async: bool = True
    bytes_per_sample: int = 0
    set_affinity: bool = False
    enable_memory_stats: bool = False
    enable_checkpointing: bool = False
    checkpoint: str | bytes | None = None
    py_num_workers: int = 1
    py_start_method: str = "fork"
    py_callback_pickler: object = None
    output_dtype: object = None
    output_ndim: object = None
    output_layout: object = None
    exec_dynamic: bool | None = None
    stream_policy: StreamPolicy | None = None
    concurrency: OperatorConcurrency | None = None
    passes: tuple[str, ...] | None = None
    limits: Limits = UNLIMITED
    isolate_decoders: str = "none"
    on_error: str = RAISE
    max_errors: int | None = None
    files: Files = ANYWHERE
    trace: bool = False

    def __post_init__(self) -> None:
        if self.py_callback_pickler is not None and self.py_start_method == "fork":
            raise ValueError("`py_callback_pickler` should not be set when the 'fork' start method is used.")
        self.depths = _queue_depths(self.prefetch_queue_depth)
        _check_outputs("output_dtype", self.output_dtype, DALIDataType)
        _check_outputs("output_ndim", self.output_ndim, int)
        _check_outputs("output_layout", self.output_layout, str)
        if self.exec_separated and not self.exec_async:
            raise ValueError(
                "`exec_async` must not be `False` when separated queues are used, with different depths for CPU and GPU."
            )
        if self.exec_separated and self.exec_dynamic:
            raise RuntimeError("No supported executor selected: `exec_dynamic` has no separate queues for CPU and GPU.")
        if self.exec_dynamic is None and self.exec_pipelined and self.exec_async and not self.exec_separated:
            self.exec_dynamic = True
        check_policy(self.on_error)
        if self.max_errors is not None and self.max_errors < 0:
            raise ValueError(f"`max_errors` must not be negative, got {self.max_errors}")
        if self.isolate_decoders not in ISOLATION_MODES:
            raise ValueError(
                f"`isolate_decoders` is {self.isolate_decoders!r}; use one of {', '.join(ISOLATION_MODES)}"
            )

    @property
    def exec_separated(self) -> bool:
        """Whether the user set separate queue depths for CPU and GPU."""
        return isinstance(self.prefetch_queue_depth, dict)

    @property
    def depth(self) -> int:
        """The number of batches prefetched for the consumer; 0: none."""
        return max(self.depths) if self.exec_pipelined and self.exec_async else 0

    def output_dtypes(self, count: int) -> list[DALIDataType | None]:
        """Return the declared types of the outputs."""
        return _broadcast("output_dtype", self.output_dtype, count)

    def output_ndims(self, count: int) -> list[int | None]:
        """Return the declared ranks of the outputs."""
        return _broadcast("output_ndim", self.output_ndim, count)

    def output_layouts(self, count: int) -> list[str | None]:
        """Return the declared layouts of the outputs."""
        return _broadcast("output_layout", self.output_layout, count)

    def check_output_counts(self, count: int) -> None:
        """Raise RuntimeError unless the declarations are for ``count`` outputs."""
        self.output_dtypes(count)
        self.output_ndims(count)
        self.output_layouts(count)

    def check(self) -> None:
        """Raise unless the settings allow the pipeline to run."""
        if self.batch_size is None:
            raise ValueError("The batch size must be set.")
        if self.batch_size <= 0:
            raise ValueError(f"Invalid batch size: {self.batch_size}. Please set a positive integer.")
        if self.num_threads is None:
            raise TypeError("The number of threads must be set: `num_threads` is None.")
        if self.num_threads < 1:
            raise ValueError(
                f"Pipeline created with `num_threads` < 1 can only be used for serialization: {self.num_threads}."
            )
        if min(self.depths) < 1:
            raise ValueError("The prefetch queue depth must be greater than 0.")
        if self.checkpoint is not None and not self.enable_checkpointing:
            raise RuntimeError(
                "Cannot restore checkpoint. The `enable_checkpointing` was not specified when creating the pipeline."
            )

    def check_integers(self) -> None:
        """Raise TypeError for settings that are not integers, or out of range."""
        for name, bits in (
            ("batch_size", 31),
            ("num_threads", 31),
            ("device_id", 31),
            ("seed", 63),
            ("bytes_per_sample", 63),
        ):
            value = getattr(self, name)
            if value is not None and not (hasattr(value, "__index__") and int(value) < 1 << bits):
                raise TypeError(f"`{name}` must be an integer of {bits + 1} bits, got {value!r}")
        if self.bytes_per_sample is not None and self.bytes_per_sample < 0:
            raise TypeError(f"`bytes_per_sample` must not be negative, got {self.bytes_per_sample}")

    def decoding(self) -> Decoding:
        """Return the settings for decoding untrusted data."""
        return Decoding.by_settings(self.limits, self.isolate_decoders, self.num_threads or 1)

    def affinity(self) -> list[int] | None:
        """Return the CPU cores to bind threads to; None if they are not bound."""
        if not self.set_affinity:
            return None
        mask = os.environ.get("DALI_AFFINITY_MASK", "")
        return [int(core) for core in mask.split(",") if core.strip()] or sorted(os.sched_getaffinity(0))


def declared_limits(**limits: object) -> Limits:
    """Return the limits ``max_pixels``, ``max_bytes`` and ``max_frames`` from the user's values; may raise ValueError."""
    return Limits(**{name.removeprefix("max_"): _checked_limit(name, limit) for name, limit in limits.items()})


def _checked_limit(name: str, limit: object) -> int | None:
    """Return a limit as an integer; raise ValueError for an invalid one."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not hasattr(limit, "__index__") or int(limit) < 1:
        raise ValueError(f"`{name}` must be a positive integer, or None for no limit; got {limit!r}")
    return int(limit)


def _queue_depths(depth: object) -> tuple[int, int]:
    if isinstance(depth, dict):
        return depth["cpu_size"], depth["gpu_size"]
    if isinstance(depth, int) and not isinstance(depth, bool):
        return depth, depth
    raise TypeError(
        f"Expected prefetch_queue_depth to be either int or a dict with the keys cpu_size and gpu_size, got {depth!r}"
    )


# Accepted values of the settings that describe outputs, in the words of DALI's messages.
_DESCRIBED = {
    DALIDataType: "a value from {types}.DALIDataType, a list of these",
    int: "an int, a list of ints",
    str: "a string, a list of strings",
}


def _check_outputs(name: str, value: object, kind: type) -> None:
    several = isinstance(value, (list, tuple))
    colon, location = ("", " in the list.") if several else (":", ".")
    item: object
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if item is None:
            continue
        if not isinstance(item, kind):
            described = _DESCRIBED[kind].format(types=as_imported("penstock.types"))
            raise TypeError(f"`{name}` must be either: {described} or None. Found type{colon} {type(item)}{location}")
        if isinstance(item, int) and kind is int and item < 0:
            raise ValueError(f"`{name}` must be non-negative. Found value{colon} {item}{location}")
        if item == DALIDataType.NO_TYPE and kind is DALIDataType:
            raise ValueError(f"`{name}` can't be a types.NO_TYPE. Found{'' if several else ' value:'} {item}{location}")


def _broadcast(name: str, value: object, count: int) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(
            f"Lengths of provided output descriptions do not match. Expected num_outputs={count}. Received: {name}={value}"
        )
    return list(value)
