"""A pipeline's settings as attributes, under the names by which programs written for DALI read them."""

from __future__ import annotations

import warnings

from penstock.runtime.settings import OperatorConcurrency, PipelineSettings, StreamPolicy


class SettingsAttributes:
    """The settings that a pipeline was made with."""

    settings: PipelineSettings

    @property
    def batch_size(self) -> int | None:
        """Deprecated: see :attr:`max_batch_size`."""
        warnings.warn("batch_size is deprecated, please use max_batch_size instead", Warning, stacklevel=2)
        return self.settings.batch_size

    @property
    def max_batch_size(self) -> int | None:
        """The largest number of samples in a batch."""
        return self.settings.batch_size

    @property
    def num_threads(self) -> int | None:
        """The number of CPU threads."""
        return self.settings.num_threads

    @property
    def device_id(self) -> int | None:
        """The number of the GPU, or None."""
        return self.settings.device_id

    @property
    def seed(self) -> int | None:
        """Return the seed that the user set, or None."""
        return self.settings.seed

    @property
    def exec_pipelined(self) -> bool:
        """Whether batches are prefetched, with CPU and GPU work in stages."""
        return self.settings.exec_pipelined

    @property
    def exec_async(self) -> bool:
        """Whether batches are prefetched in the background."""
        return self.settings.exec_async

    @property
    def exec_dynamic(self) -> bool | None:
        """Whether the executor is DALI's default one: pipelined, asynchronous, with a single queue depth."""
        return self.settings.exec_dynamic

    @property
    def exec_separated(self) -> bool:
        """Return whether the user set separate queue depths for CPU and GPU."""
        return self.settings.exec_separated

    @property
    def stream_policy(self) -> StreamPolicy | None:
        """The stream policy, which has no effect: a pipeline has a single stream."""
        return self.settings.stream_policy

    @property
    def concurrency(self) -> OperatorConcurrency | None:
        """The operator concurrency, which has no effect: operators run one after another."""
        return self.settings.concurrency

    @property
    def passes(self) -> tuple[str, ...] | None:
        """The names of the passes to run; None: all."""
        return self.settings.passes

    @property
    def max_pixels(self) -> int | None:
        """The largest number of pixels of an encoded image, or of a video's frames; None: no limit."""
        return self.settings.limits.pixels

    @property
    def max_bytes(self) -> int | None:
        """The largest number of bytes that one sample may decode to; None: no limit."""
        return self.settings.limits.bytes

    @property
    def max_frames(self) -> int | None:
        """The largest number of frames of a video, or samples of a recording; None: no limit."""
        return self.settings.limits.frames

    @property
    def isolate_decoders(self) -> str:
        """Which formats are decoded in worker processes: ``none``, ``auto`` or ``all``."""
        return self.settings.isolate_decoders

    @property
    def set_affinity(self) -> bool:
        """Whether the worker threads are bound to cores."""
        return self.settings.set_affinity

    @property
    def max_streams(self) -> int:
        """Deprecated: without effect."""
        return -1

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int]:
        """Return the prefetch queue depth that the user set."""
        return self.settings.prefetch_queue_depth

    @property
    def cpu_queue_size(self) -> int:
        """The number of batches prefetched on the CPU."""
        return self.settings.depths[0]

    @property
    def gpu_queue_size(self) -> int:
        """The number of batches prefetched on the GPU."""
        return self.settings.depths[1]

    @property
    def default_cuda_stream_priority(self) -> int:
        """Deprecated: without effect."""
        return 0

    @property
    def enable_memory_stats(self) -> bool:
        """Whether :meth:`executor_statistics` is available."""
        return self.settings.enable_memory_stats

    @property
    def py_num_workers(self) -> int:
        """The number of worker processes of parallel external sources."""
        return self.settings.py_num_workers

    @property
    def py_start_method(self) -> str:
        """How worker processes are started: ``fork`` or ``spawn``."""
        return self.settings.py_start_method

    # Programs written for DALI also read these private names.
    _max_batch_size = max_batch_size
    _num_threads = num_threads
    _device_id = device_id
    _seed = seed
    _exec_pipelined = exec_pipelined
    _exec_async = exec_async
    _prefetch_queue_depth = prefetch_queue_depth
    _cpu_queue_size = cpu_queue_size
    _gpu_queue_size = gpu_queue_size
    _py_num_workers = py_num_workers
    _py_start_method = py_start_method
