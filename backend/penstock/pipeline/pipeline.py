"""The pipeline: a graph of operators that is defined once and run batch after batch."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from penstock.graph import DataNode, Graph, Scope, scope_stack
from penstock.graph.branching import load
from penstock.graph.conditionals import ConditionStack
from penstock.graph.constants import constant_node, is_constant
from penstock.graph.placement import on_cpu
from penstock.kernels.codecs.decoding import ISOLATION_MODES, Decoding
from penstock.kernels.codecs.limits import Limits
from penstock.kernels.storage import Files
from penstock.passes import chosen_passes, improve
from penstock.runtime import Executor, Plan
from penstock.runtime.checkpoints import checkpoint_seed
from penstock.runtime.feeding import to_batch
from penstock.runtime.parallel import RunningWorkers, check_workers
from penstock.runtime.sources import Source, fetch_all
from penstock.schema.registry import load_package
from penstock.tensors import cuda
from penstock.types import CPU_ONLY_DEVICE_ID, DALIDataType, PipelineAPIType, dtype_name

_NOT_DEFINED = object()


class StreamPolicy(Enum):
    """How many CUDA streams the executor uses; kept as it is given, for one stream a pipeline serves all here."""

    UNSPECIFIED = 0
    SINGLE = 1
    PER_BACKEND = 2
    PER_OPERATOR = 3


class OperatorConcurrency(Enum):
    """Which operators may run at the same time; kept as it is given, for samples rather than operators run in parallel here."""

    UNSPECIFIED = 0
    NONE = 1
    BACKEND = 2
    FULL = 3


_local = threading.local()
# Seconds that a pipeline that nobody holds any more waits for the batch which it is running.
_FINALIZERS_PATIENCE = 1.0


def _pipelines() -> list[Callable[[], Pipeline | None]]:
    if not hasattr(_local, "pipelines"):
        _local.pipelines = []
    return _local.pipelines


class Pipeline:
    """A graph of operators with all that it needs to run.

    Args:
        batch_size: the most samples in a batch.
        num_threads: CPU threads.
        device_id: the GPU; None: the current one where the graph uses a GPU, else none.
        seed: of the random operators; None: another at each build.
        exec_pipelined, exec_async: batches are prepared ahead of the consumer; False: each when it is asked for.
        prefetch_queue_depth: how many batches ahead; ``{"cpu_size": x, "gpu_size": y}`` is taken as the greater of both.
        bytes_per_sample: a hint on buffer sizes; buffers grow as needed.
        set_affinity: bind the threads to CPU cores (``DALI_AFFINITY_MASK``, a comma-separated list, chooses which).
        enable_memory_stats: count the bytes of each operator's outputs, for :meth:`executor_statistics`.
        enable_checkpointing: allow :meth:`checkpoint`.
        checkpoint: what :meth:`checkpoint` gave, to continue from there.
        py_num_workers, py_start_method, py_callback_pickler: worker processes of parallel external sources.
        output_dtype, output_ndim, output_layout: what the outputs must be: one for all, or one for each.
        passes: names of the passes that improve the graph, for looking into what one does: they change no result. None:
            all; an empty list: none. ``penstock inspect`` lists them. It is not part of what is saved.
        max_pixels: the most pixels (height x width) of an encoded image, or of a video's frames; None: any number. A sample
            with more is an error (:class:`~penstock.errors.LimitError`), of that sample alone where failures are isolated. An
            image counts as a whole, also where only a window of it is decoded.
        max_bytes: the most bytes that one sample may decode to, in the decoder's output type: an image as a whole, a video's
            wanted frames, a recording before and after it is resampled, an inflated or an NPY array.
        max_frames: the most frames that may be wanted of a video, and the most samples (moments x channels) of a recording.
        isolate_decoders: which formats are decoded in worker processes, where a file that kills its decoder fails alone:
            ``all``, those whose decoders cannot be trusted (``auto``: all but JPEG, PNG, WebP, BMP, PNM, WAV of plain samples and
            FLAC), or ``none`` (but for kinds of files that are known to end the process). It is not part of what is saved.
        confined_to: the only folders, and beginnings of remote paths, in which operators touch files; relative paths start
            from the first. None: any. It is not part of what is saved.

    >>> from penstock import fn
    >>> with Pipeline(batch_size=2, num_threads=1) as pipe:
    ...     numbers = fn.external_source(lambda: np.ones((2, 3), np.float32))
    ...     pipe.set_outputs(numbers * 2)
    >>> pipe.run()[0].as_array()
    array([[2., 2., 2.],
           [2., 2., 2.]], dtype=float32)
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: str | bytes | None = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: StreamPolicy | None = None,
        concurrency: OperatorConcurrency | None = None,
        passes: Sequence[str] | None = None,
        max_pixels: int | None = None,
        max_bytes: int | None = None,
        max_frames: int | None = None,
        isolate_decoders: str = "none",
        confined_to: Sequence[str] | None = None,
    ) -> None:
        load_package("penstock.operators")
        if experimental_exec_dynamic is not None:
            warnings.warn(
                "experimental_exec_dynamic is deprecated, please use exec_dynamic instead", Warning, stacklevel=2
            )
        for name, value in (
            ("default_cuda_stream_priority", default_cuda_stream_priority),
            ("max_streams", max_streams),
        ):
            if value is not None:
                warnings.warn(f"The `{name}` is deprecated and has no effect.", Warning, stacklevel=2)
        if py_callback_pickler is not None and py_start_method == "fork":
            raise ValueError("`py_callback_pickler` should not be set when the 'fork' start method is used.")
        self._batch_size = batch_size
        self._num_threads = num_threads
        self._device_id = None if device_id == CPU_ONLY_DEVICE_ID else device_id
        self._seed = _checked_seed(seed)
        self._exec_pipelined = exec_pipelined
        self._exec_async = exec_async
        self._depths = _queue_depths(prefetch_queue_depth)
        self._prefetch_queue_depth = prefetch_queue_depth
        self._bytes_per_sample = bytes_per_sample
        self._set_affinity = set_affinity
        self._enable_memory_stats = enable_memory_stats
        self._enable_checkpointing = enable_checkpointing
        self._checkpoint = checkpoint
        self._iterator_state: Any = None
        self._restored = False
        self._py_num_workers = py_num_workers
        self._py_start_method = py_start_method
        self._py_callback_pickler = py_callback_pickler
        self._output_dtype = _checked_outputs("output_dtype", output_dtype, DALIDataType)
        self._output_ndim = _checked_outputs("output_ndim", output_ndim, int)
        self._output_layout = _checked_outputs("output_layout", output_layout, str)
        if self.exec_separated and not exec_async:
            raise ValueError(
                "`exec_async` must not be `False` when separated queues are used: CPU's and GPU's depths apart."
            )
        dynamic = exec_dynamic if experimental_exec_dynamic is None else experimental_exec_dynamic
        if dynamic is None and exec_pipelined and exec_async and not self.exec_separated:
            dynamic = True
        self._exec_dynamic = dynamic
        # Saved pipelines have them as numbers.
        self._stream_policy = None if stream_policy is None else StreamPolicy(stream_policy)
        self._concurrency = None if concurrency is None else OperatorConcurrency(concurrency)
        self._passes = None if passes is None else tuple(chosen_passes(passes))
        self._limits = Limits(
            _checked_limit("max_pixels", max_pixels),
            _checked_limit("max_bytes", max_bytes),
            _checked_limit("max_frames", max_frames),
        )
        if isolate_decoders not in ISOLATION_MODES:
            raise ValueError(f"`isolate_decoders` is {isolate_decoders!r}; use one of {', '.join(ISOLATION_MODES)}")
        self._isolate_decoders = isolate_decoders
        self._files = Files(confined_to)

        self._scope = Scope()
        self._returned: Any = _NOT_DEFINED
        self._outputs: list[DataNode] | None = None
        self._graph: Graph | None = None
        self._executor: Executor | None = None
        self._sources: list[Source] = []
        self._epoch = 0
        self._first_iteration = True
        self._exhausted = False
        self._to_consume = 0
        # Where the consumer is: prefetching is ahead of it.
        self._consumer_epoch = self._consumer_iteration = self._consumer_batches = 0
        self._consumed_states: dict[str, Any] | None = None
        self._api: PipelineAPIType | None = None
        self._api_check = True

    # -- what it was made with -----------------------------------------------------------------------------------

    @property
    def batch_size(self) -> int | None:
        """Deprecated: see :attr:`max_batch_size`."""
        warnings.warn("batch_size is deprecated, please use max_batch_size instead", Warning, stacklevel=2)
        return self._batch_size

    @property
    def max_batch_size(self) -> int | None:
        """The most samples in a batch."""
        return self._batch_size

    @property
    def num_threads(self) -> int | None:
        """CPU threads."""
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        """The GPU, or None."""
        return self._device_id

    @property
    def seed(self) -> int | None:
        """The seed that the user gave, or None."""
        return self._seed

    @property
    def exec_pipelined(self) -> bool:
        """Whether batches are prepared ahead, CPU's and GPU's work in stages."""
        return self._exec_pipelined

    @property
    def exec_async(self) -> bool:
        """Whether batches are prepared in the background."""
        return self._exec_async

    @property
    def exec_dynamic(self) -> bool | None:
        """As it was given, or True where that is the default: pipelined, asynchronous, with one queue depth."""
        return self._exec_dynamic

    @property
    def exec_separated(self) -> bool:
        """Whether the queue depths of CPU and GPU were given apart."""
        return isinstance(self._prefetch_queue_depth, dict)

    @property
    def stream_policy(self) -> StreamPolicy | None:
        """How streams are given to operators, as given; one stream serves them all."""
        return self._stream_policy

    @property
    def concurrency(self) -> OperatorConcurrency | None:
        """Which operators may run side by side, as given; they run in order."""
        return self._concurrency

    @property
    def passes(self) -> tuple[str, ...] | None:
        """The names of the passes that were chosen, in the order in which they run; None: all run."""
        return self._passes

    @property
    def max_pixels(self) -> int | None:
        """The most pixels of an encoded image, or of a video's frames; None: any number."""
        return self._limits.pixels

    @property
    def max_bytes(self) -> int | None:
        """The most bytes that one sample may decode to; None: any number."""
        return self._limits.bytes

    @property
    def max_frames(self) -> int | None:
        """The most frames of a video, or samples of a recording; None: any number."""
        return self._limits.frames

    @property
    def isolate_decoders(self) -> str:
        """Which formats are decoded in worker processes: ``none``, ``auto`` or ``all``."""
        return self._isolate_decoders

    @property
    def set_affinity(self) -> bool:
        """Whether the worker threads are bound to cores."""
        return self._set_affinity

    @property
    def max_streams(self) -> int:
        """Deprecated: without effect."""
        return -1

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int]:
        """Batches prepared ahead, as given."""
        return self._prefetch_queue_depth

    @property
    def cpu_queue_size(self) -> int:
        """How many batches of the CPU's are prepared ahead."""
        return self._depths[0]

    @property
    def gpu_queue_size(self) -> int:
        """How many batches of the GPU's are prepared ahead."""
        return self._depths[1]

    @property
    def default_cuda_stream_priority(self) -> int:
        """Deprecated: without effect."""
        return 0

    @property
    def enable_memory_stats(self) -> bool:
        """Whether :meth:`executor_statistics` has something to tell."""
        return self._enable_memory_stats

    @property
    def py_num_workers(self) -> int:
        """Worker processes of parallel external sources."""
        return self._py_num_workers

    @property
    def py_start_method(self) -> str:
        """How worker processes are started: ``fork`` or ``spawn``."""
        return self._py_start_method

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether it continues from a checkpoint."""
        return self._restored

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.graph.outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """The declared types of the outputs."""
        return _broadcast("output_dtype", self._output_dtype, self.num_outputs)

    def output_ndim(self) -> list[int | None]:
        """The declared ranks of the outputs."""
        return _broadcast("output_ndim", self._output_ndim, self.num_outputs)

    def output_layout(self) -> list[str | None]:
        """The declared layouts of the outputs."""
        return _broadcast("output_layout", self._output_layout, self.num_outputs)

    # -- defining --------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> Pipeline | None:
        """The pipeline that is being defined on this thread, or None."""
        pipelines = _pipelines()
        return pipelines[-1]() if pipelines else None

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Operators that are called from now on belong to ``pipeline``, until :meth:`pop_current`."""
        _push(lambda: pipeline, pipeline._scope)

    @staticmethod
    def pop_current() -> None:
        """Ends what :meth:`push_current` began."""
        _pipelines().pop()
        scope_stack().pop()

    def __enter__(self) -> Pipeline:
        Pipeline.push_current(self)
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        Pipeline.pop_current()

    def define_graph(self) -> Any:
        """Overridden by subclasses: calls the operators and returns the outputs."""
        raise NotImplementedError(
            "The pipeline has no outputs: return them from the graph-defining function, override `define_graph`, or call "
            "`set_outputs`."
        )

    def iter_setup(self) -> None:
        """Overridden by subclasses: called before each batch, to feed its inputs."""

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Chooses what each run returns."""
        outputs = [_as_output(node, index) for index, node in enumerate(output_data_nodes)]
        self._outputs = outputs or None
        self._graph = None

    def add_sink(self, edge: DataNode) -> None:
        """Has ``edge`` computed at each run, although it is no output."""
        self._scope.sinks.append(edge)

    @property
    def graph(self) -> Graph:
        """The graph as it was defined."""
        if self._graph is None:
            if self._outputs is None:
                if self._returned is _NOT_DEFINED:
                    self._define(self.define_graph)
                    self._set_defined(self._returned)
                else:
                    self._set_returned(self._returned)
            assert self._outputs is not None
            self._graph = Graph(self._outputs, self._scope.sinks)
        return self._graph

    def _define(
        self,
        function: Any,
        arguments: Sequence[Any] = (),
        keywords: dict[str, Any] | None = None,
        conditions: ConditionStack | None = None,
    ) -> None:
        """Defines the graph by a call of the user's function; what it returns is looked at when the graph is needed."""
        scope = self._scope
        scope.tracer, scope.conditions = _trace.__code__, conditions
        try:
            with self:
                self._returned = _trace(function, *arguments, **(keywords or {}))
        finally:
            scope.tracer = scope.conditions = None

    def _set_returned(self, outputs: Any) -> None:
        """Takes what a pipeline_def's function returned."""
        if outputs is None or (isinstance(outputs, tuple) and not outputs):
            Pipeline.define_graph(self)
        self.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))

    def _set_defined(self, outputs: Any) -> None:
        """Takes what :meth:`define_graph` returned: there, a list is as good as a tuple."""
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        if not outputs:
            raise RuntimeError("The pipeline was defined with an incorrect number of outputs (0).")
        self.set_outputs(*outputs)

    def move_to_cpu(self) -> None:
        """Places all operators on the CPU, before the pipeline is built: those of the GPU, and ``mixed`` ones.

        What is computed there may differ by what the two devices' kernels differ by.

        Raises:
            DeviceError: some operators run on a GPU alone.
        """
        self._graph = on_cpu(self.graph)
        self._device_id = None

    def set_missing(self, *, batch_size: int, num_threads: int) -> None:
        """Sets what the pipeline was made without; to be called before it is built."""
        self._batch_size = batch_size if self._batch_size is None else self._batch_size
        self._num_threads = num_threads if self._num_threads is None else self._num_threads

    def tighten_limits(self, max_pixels: int | None, max_bytes: int | None, max_frames: int | None) -> None:
        """Allows no more than these of what is decoded, nor more than it did; to be called before it is built."""
        self._limits = self._limits.tightened(Limits(max_pixels, max_bytes, max_frames))

    # -- building --------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Makes the pipeline ready to run: verifies the graph, improves it, prepares what the operators need.

        Raises:
            ValueError: batch size, thread count or queue depth are missing or out of range.
            RuntimeError: the graph is wrong, or an operator refuses its arguments; the message names the user's line.
            DeviceError: a GPU is wanted and none can be used.
        """
        if self._executor is not None:
            return
        self._check_settings()
        self._check_integers()
        graph = self.graph
        self.output_dtype(), self.output_ndim(), self.output_layout()
        graph.verify()
        if self._enable_checkpointing:
            _check_checkpointing(graph)
        self._choose_device(graph)
        improved = improve(graph, self._passes)
        self._sources = _sources_of(improved)
        _warn_of_unused_outputs(self._sources, improved)
        seed = self._seed if self._checkpoint is None else checkpoint_seed(self._checkpoint, self._seed)
        plan = Plan(improved, seed, self._decoding(), self._files, graph)
        depth = max(self._depths) if self._exec_pipelined and self._exec_async else 0
        self._executor = Executor(
            plan, self._batch_size or 0, self._num_threads or 1, self._device_id, depth, self._affinity()
        )
        self._executor.enable_memory_stats = self._enable_memory_stats
        self._executor.keep_states = self._enable_checkpointing
        self._executor.surroundings = functools.partial(_AsCurrent, weakref.ref(self), self._scope)
        self._feeds: dict[str, Any] = {
            step.node.name: step for step in plan.operators if hasattr(step.operator, "feed")
        }
        self._readers = {step.node.name: step for step in plan.operators if hasattr(step.operator, "reader_meta")}
        for step in self._readers.values() if self._enable_checkpointing else ():
            reader: Any = step.operator
            reader.keep_checkpoints()
        self.start_py_workers()
        if self._checkpoint is not None:
            self._restore(self._checkpoint)

    def _check_settings(self) -> None:
        if self._batch_size is None:
            raise ValueError("The batch size must be set.")
        if self._batch_size <= 0:
            raise ValueError(f"Invalid batch size: {self._batch_size}. Please set a positive integer.")
        if self._num_threads is None:
            raise TypeError("The number of threads must be set: `num_threads` is None.")
        if self._num_threads < 1:
            raise ValueError(
                f"Pipeline created with `num_threads` < 1 can only be used for serialization: {self._num_threads}."
            )
        if min(self._depths) < 1:
            raise ValueError("The prefetch queue depth must be greater than 0.")
        if self._checkpoint is not None and not self._enable_checkpointing:
            raise RuntimeError(
                "Cannot restore checkpoint. The `enable_checkpointing` was not specified when creating the pipeline."
            )

    def _check_integers(self) -> None:
        """Raises TypeError for settings that should be integers and are not, or are out of range."""
        for name, value, bits in (
            ("batch_size", self._batch_size, 31),
            ("num_threads", self._num_threads, 31),
            ("device_id", self._device_id, 31),
            ("seed", self._seed, 63),
            ("bytes_per_sample", self._bytes_per_sample, 63),
        ):
            if value is not None and not (hasattr(value, "__index__") and int(value) < 1 << bits):
                raise TypeError(f"`{name}` must be an integer of {bits + 1} bits, got {value!r}")
        if self._bytes_per_sample is not None and self._bytes_per_sample < 0:
            raise TypeError(f"`bytes_per_sample` must not be negative, got {self._bytes_per_sample}")

    def _choose_device(self, graph: Graph) -> None:
        if self._device_id is not None:
            cuda.require_device(self._device_id)
        elif graph.uses_gpu():
            cupy = cuda.require_cupy("the pipeline")
            self._device_id = int(cupy.cuda.Device().id)

    def _decoding(self) -> Decoding:
        return Decoding.by_settings(self._limits, self._isolate_decoders, self._num_threads or 1)

    def _affinity(self) -> list[int] | None:
        if not self._set_affinity:
            return None
        mask = os.environ.get("DALI_AFFINITY_MASK", "")
        return [int(core) for core in mask.split(",") if core.strip()] or sorted(os.sched_getaffinity(0))

    def start_py_workers(self) -> None:
        """Starts the worker processes of parallel external sources; done by :meth:`build` if not before."""
        sources = self._sources if self._executor is not None else _sources_of(self.graph)
        check_workers(sources, self._py_num_workers)
        for source in sources:
            start = getattr(source, "start", None)
            if start is not None:
                start(self)

    @property
    def _py_pool(self) -> Any:
        """The worker processes of parallel external sources, where some run: DALI's programs look after them by this name."""
        # Workers may be started before the pipeline is built.
        defined = _sources_of(self._graph) if self._graph is not None else []
        pool = RunningWorkers(self._sources if self._executor is not None else defined)
        return pool if pool.pids() else None

    @property
    def _py_pool_started(self) -> bool:
        return self._py_pool is not None

    @property
    def executor(self) -> Executor:
        """What runs the pipeline; builds it first if need be."""
        self.build()
        assert self._executor is not None
        return self._executor

    # -- feeding ---------------------------------------------------------------------------------------------------

    def input_feed_count(self, input_name: str) -> int:
        """How many batches an external source wants before the first run, for prefetching to be complete."""
        self._feed_step(input_name)
        return max(self._depths)

    def _feed_step(self, name: str) -> Any:
        self.build()
        step = self._feeds.get(name)
        if step is None:
            raise KeyError(f'Could not find an input operator with name "{name}"')
        return step

    def feed_input(
        self,
        data_node: str | DataNode,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Gives an external source one batch, for a run to come.

        Args:
            data_node: the external source's name or node.
            data: an array whose first dimension is the batch, a list of samples, or a tensor list; on CPU or GPU.
            layout: of a sample.
            cuda_stream: the stream on which GPU data was made.

        Raises:
            KeyError: there is no such source.
            RuntimeError: the source has a callback, or the batch is too large or not of the declared type.
        """
        name = data_node.name if isinstance(data_node, DataNode) else data_node
        if not isinstance(name, str):
            raise TypeError(f"Expected the name of an external source, or its node, got {type(data_node).__name__}")
        step = self._feed_step(name)
        if isinstance(step.node.payload, Source):
            raise RuntimeError(
                f"Cannot use `feed_input` on the external source '{name}' with a `source` argument specified."
            )
        self._feed(step, data, layout, copy=not step.node.arguments.get("no_copy"))

    def _feed(self, step: Any, data: Any, layout: str | None, copy: bool) -> None:
        executor = self.executor
        with executor._on_device():
            step.operator.feed(to_batch(data, layout, executor.max_batch_size, executor.host_pool, copy))

    def _feed_from_sources(self) -> None:
        for source, outputs in fetch_all(self._sources, self.executor.max_batch_size, self._epoch):
            for name, data, layout in zip(source.names, outputs, source.layouts):
                if name in self._feeds:
                    self._feed(self._feeds[name], data, layout, copy=not source.no_copy)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[Any, ...]:
        """Runs on the next batch and returns the outputs, one tensor list each.

        Args:
            cuda_stream: the stream on which GPU outputs will be used; without it the call waits for them.
            pipeline_inputs: batches for external sources, by name (with ``prefetch_queue_depth=1``, or not pipelined).

        Raises:
            StopIteration: a source is at its end; :meth:`reset` begins the next epoch.
            OperatorError: an operator failed.
        """
        self.build()
        if pipeline_inputs and self._exec_pipelined and max(self._depths) > 1:
            raise RuntimeError(
                "When using pipeline_inputs named arguments, either `prefetch_queue_depth` in Pipeline constructor shall be set "
                "to 1 (for both devices) or `exec_pipelined` shall be set to False. Received: "
                f"prefetch_queue_depth={self._prefetch_queue_depth}, exec_pipelined={self._exec_pipelined}."
            )
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        with self._through(PipelineAPIType.BASIC):
            # The one executor all along: another thread may close the pipeline meanwhile.
            executor = self.executor
            self._schedule(executor)
            return self._take(executor, cuda_stream)

    def schedule_run(self) -> None:
        """Begins the next batch (at first as many as are prefetched); its outputs come by :meth:`share_outputs`."""
        self.build()
        with self._through(PipelineAPIType.SCHEDULED):
            self._schedule(self.executor)

    def _schedule(self, executor: Executor) -> None:
        if not (self._first_iteration and self._exec_pipelined):
            self._schedule_one(executor)
            return
        self._first_iteration = False
        for number in range(max(self._depths)):
            if number and not self._has_data():
                break
            self._schedule_one(executor)

    def _has_data(self) -> bool:
        """Whether every source that the user feeds has something for one more batch."""
        fed = (step for step in self._feeds.values() if not isinstance(step.node.payload, Source))
        return all(
            step.operator.pending_batch_size() is not None or step.node.arguments.get("blocking") for step in fed
        )

    def _schedule_one(self, executor: Executor) -> None:
        if self._exhausted:
            return
        try:
            self.iter_setup()
            self._feed_from_sources()
        except StopIteration:
            self._exhausted = True
            return
        executor.schedule()
        self._to_consume += 1

    def outputs(self, cuda_stream: Any = None) -> tuple[Any, ...]:
        """The outputs of the oldest batch that was begun and not yet returned."""
        with self._through(PipelineAPIType.SCHEDULED):
            self.release_outputs()
            return self._take(self._executor, cuda_stream)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[Any, ...]:
        """The outputs of the oldest batch that was begun; call :meth:`release_outputs` when done with them."""
        with self._through(PipelineAPIType.SCHEDULED):
            return self._take(self._executor, cuda_stream)

    def release_outputs(self) -> None:
        """Ends the use of shared outputs. Memory here is reused only when nothing refers to it, so nothing is invalidated."""
        with self._through(PipelineAPIType.SCHEDULED):
            self.build()

    def _run(self) -> None:
        warnings.warn("_run is deprecated, please use schedule_run instead", Warning, stacklevel=2)
        self.schedule_run()

    def _share_outputs(self) -> None:
        warnings.warn("_share_outputs is deprecated, please use share_outputs instead", Warning, stacklevel=2)
        self.share_outputs()

    def _release_outputs(self) -> None:
        warnings.warn("_release_outputs is deprecated, please use release_outputs instead", Warning, stacklevel=2)
        self.release_outputs()

    def _take(self, executor: Executor | None, cuda_stream: Any) -> tuple[Any, ...]:
        if self._to_consume == 0 or executor is None:
            raise StopIteration
        self._to_consume -= 1
        result = executor.next_result()
        self._consumer_iteration += 1
        self._consumer_batches += 1
        self._consumed_states = result.states
        if result.ready is not None:
            if cuda_stream is None:
                result.ready.synchronize()
            else:
                from penstock.tensors.tensor import as_cupy_stream

                as_cupy_stream(cuda_stream).wait_event(result.ready)
        self._check_outputs(result.outputs)
        return tuple(result.outputs)

    def _check_outputs(self, outputs: Sequence[Any]) -> None:
        declared = zip(outputs, self.output_dtype(), self.output_ndim(), self.output_layout())
        for index, (batch, dtype, ndim, layout) in enumerate(declared):
            for what, expected, received in (
                ("Data type", dtype, batch.dtype),
                ("Number of dimensions", ndim, batch.ndim()),
                ("Layout", layout or None, batch.layout()),
            ):
                if expected is not None and expected != received:
                    names = [dtype_name(x) if isinstance(x, DALIDataType) else x for x in (expected, received)]
                    raise RuntimeError(
                        f"{what} in the output_idx={index} does not match. Expected: {names[0]}. Received: {names[1]}."
                    )

    @contextlib.contextmanager
    def _through(self, api: PipelineAPIType) -> Iterator[None]:
        """Refuses to mix the ways in which a pipeline is run; what is called inside is not looked at."""
        checked = self._api_check
        if checked:
            self._api = self._api or api
            if self._api != api:
                raise RuntimeError(f"Mixing pipeline API type. Currently used: {self._api}, but trying to use {api}")
        self._api_check = False
        try:
            yield
        finally:
            self._api_check = checked

    def enable_api_check(self, enable: bool) -> None:
        """Whether mixing :meth:`run` with :meth:`schedule_run` is refused."""
        self._api_check = enable

    def output_stream(self) -> Any:
        """The CUDA stream (as an address holder) on which outputs are made; None for CPU pipelines."""
        stream = self.executor.stream
        return None if stream is None else stream

    def reset(self) -> None:
        """Begins the next epoch after StopIteration."""
        if not self._exhausted:
            return
        self._first_iteration = True
        self._exhausted = False
        self._epoch += 1
        self._consumer_epoch += 1
        self._consumer_iteration = 0
        for source in self._sources:
            source.reset()

    def empty(self) -> bool:
        """Whether no batch is on its way."""
        return self._to_consume == 0

    # -- looking ---------------------------------------------------------------------------------------------------

    def epoch_size(self, name: str | None = None) -> Any:
        """The number of samples in an epoch, padding included: of the reader ``name``, or of each reader by name."""
        self.build()
        if name is not None:
            return self._meta_of(self._reader(name))["epoch_size_padded"]
        return {key: self._meta_of(step)["epoch_size_padded"] for key, step in self._readers.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """How a reader shards and pads its data: of the reader ``name``, or of each by name."""
        self.build()
        if name is not None:
            return self._meta_of(self._reader(name))
        return {key: self._meta_of(step) for key, step in self._readers.items()}

    @staticmethod
    def _meta_of(step: Any) -> dict[str, Any]:
        return step.operator.reader_meta()

    def _reader(self, name: str) -> Any:
        if name not in self._readers:
            raise RuntimeError(
                f"Operator {name} not found or does not expose valid metadata; the pipeline's readers: {sorted(self._readers)}"
            )
        return self._readers[name]

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """Bytes of each operator's outputs: the sum of a batch and the largest sample.

        They are counted where ``enable_memory_stats`` is set and ``exec_dynamic`` is not. Operators are called by their device
        and name: ``CPU_resized``.
        """
        self.build()
        if not self._enable_memory_stats or self._exec_dynamic:
            return {}
        peaks = self.executor.peak_bytes
        return {
            name: {
                "real_memory_size": [total],
                "max_real_memory_size": [largest],
                "reserved_memory_size": [total],
                "max_reserved_memory_size": [largest],
            }
            for name, (total, largest) in peaks.items()
        }

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Bytes of each buffer in shared memory that the workers of parallel external sources hold."""
        statistics = [source.shared_memory() for source in self._sources if hasattr(source, "shared_memory")]
        return {
            "capacities": [size for capacities, _ in statistics for size in capacities],
            "per_sample_capacities": [size for _, per_sample in statistics for size in per_sample],
        }

    def save_graph_to_dot_file(
        self, filename: str, *, show_tensors: bool = False, show_ids: Any = None, use_colors: bool = False
    ) -> None:
        """Writes the graph as a Graphviz file."""
        from penstock.serialize.dot import to_dot

        text = to_dot(self.graph, show_tensors, use_colors)
        try:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise RuntimeError(f'Cannot open "{filename}" for writing: {error}') from error

    # -- saving ----------------------------------------------------------------------------------------------------

    def serialize(self, define_graph: Any = None, filename: str | None = None) -> bytes:
        """The pipeline in DALI's wire format, which DALI loads too; also written to ``filename`` if given."""
        from penstock.serialize.dali_format import to_wire

        if define_graph is not None:
            if not callable(define_graph):
                hint = " Was `serialize(filename=...)` meant?" if isinstance(define_graph, str) else ""
                raise TypeError(f"Provided `define_graph` argument is not callable.{hint}")
            if self._outputs is not None:
                raise RuntimeError(
                    "Duplicate graph definition: `define_graph` was given, but the pipeline has outputs already"
                )
            with self:
                self._set_defined(define_graph())
        data = to_wire(self)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(data)
        return data

    @classmethod
    def deserialize(
        cls, serialized_pipeline: bytes | None = None, filename: str | None = None, **kwargs: Any
    ) -> Pipeline:
        """The pipeline that was saved in DALI's wire format; keyword arguments override what it was saved with.

        How it is run is not taken from the file: batches are made when they are asked for, unless ``exec_pipelined`` or
        ``exec_async`` is given. Keyword arguments that the constructor does not know are ignored.
        """
        from penstock.serialize.dali_format import from_wire

        if (serialized_pipeline is None) == (filename is None):
            raise ValueError(
                "`serialized_pipeline` and `filename` are mutually exclusive, and one of them must be given"
            )
        if filename is not None:
            with open(filename, "rb") as file:
                serialized_pipeline = file.read()
        assert serialized_pipeline is not None
        pipeline = from_wire(serialized_pipeline, cls, _overriding(kwargs))
        pipeline.build()
        return pipeline

    def deserialize_and_build(self, serialized_pipeline: bytes) -> None:
        """Makes this pipeline the one that was saved, and builds it; what was not set here is taken from there."""
        from penstock.serialize.dali_format import load_graph

        saved = load_graph(serialized_pipeline, self)
        for name in ("batch_size", "num_threads", "device_id", "seed"):
            if getattr(self, f"_{name}") is None:
                setattr(self, f"_{name}", saved[name])
        self.build()

    def save(self, filename: str) -> None:
        """Writes the readable format: versioned JSON in which nothing executes."""
        from penstock.serialize.readable_format import to_text

        with open(filename, "w", encoding="utf-8") as file:
            file.write(to_text(self))

    @classmethod
    def load(cls, filename: str, *, allowed_modules: Sequence[str] = (), **kwargs: Any) -> Pipeline:
        """The pipeline that :meth:`save` wrote.

        Args:
            filename: the JSON file.
            allowed_modules: modules (and their submodules) from which Python operators may be imported.
            kwargs: override the settings that it was saved with.
        """
        from penstock.serialize.readable_format import from_text

        with open(filename, encoding="utf-8") as file:
            return from_text(file.read(), cls, allowed_modules, kwargs)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def checkpoint(self, filename: str | None = None) -> bytes:
        """The state from which another pipeline of the same graph continues with the next batch."""
        from penstock.runtime.checkpoints import save_checkpoint

        data = save_checkpoint(self)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(data)
        return data

    def _restore(self, checkpoint: str | bytes) -> None:
        from penstock.runtime.checkpoints import restore_checkpoint

        self._iterator_state = restore_checkpoint(self, checkpoint)
        self._restored = True

    def close(self) -> None:
        """Ends the pipeline's threads and worker processes."""
        self._close(None)

    def _close(self, timeout: float | None) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.close(timeout)
        for source in self._sources:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def __del__(self) -> None:
        # Interpreter shutdown may have taken modules away already.
        with contextlib.suppress(Exception):
            # Not for ever: the garbage collection may have interrupted somebody who holds a lock that the batch waits for.
            self._close(_FINALIZERS_PATIENCE)


def _push(reference: Callable[[], Pipeline | None], scope: Scope) -> None:
    _pipelines().append(reference)
    scope_stack().append(scope)


class _AsCurrent:
    """Makes a pipeline the current one for the Python functions that it calls, without keeping it alive."""

    def __init__(self, reference: weakref.ref[Pipeline], scope: Scope) -> None:
        self._reference = reference
        self._scope = scope

    def __enter__(self) -> None:
        _push(self._reference, self._scope)

    def __exit__(self, *_: object) -> None:
        Pipeline.pop_current()


def _trace(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Calls the graph-defining function; frames below this one are the user's."""
    return function(*arguments, **keywords)


def _overriding(keywords: dict[str, Any]) -> dict[str, Any]:
    """The settings that the keyword arguments of ``deserialize`` ask for."""
    known = inspect.signature(Pipeline.__init__).parameters
    settings = {name: value for name, value in keywords.items() if name in known}
    if (settings.get("seed") or 0) < 0:
        _checked_seed(settings.pop("seed"))
    ahead = bool(settings.get("exec_async"))
    settings["exec_async"] = ahead
    settings["exec_pipelined"] = bool(settings.get("exec_pipelined")) or ahead
    settings["exec_dynamic"] = bool(settings.get("exec_dynamic"))
    depth = settings.get("prefetch_queue_depth")
    if isinstance(depth, dict):
        if "cpu" not in depth and "gpu" not in depth:
            raise ValueError("`prefetch_queue_depth` must contain either a 'cpu' or a 'gpu' key")
        cpu = depth.get("cpu", depth.get("gpu"))
        settings["prefetch_queue_depth"] = {"cpu_size": cpu, "gpu_size": depth.get("gpu", cpu)}
    return settings


def _checked_seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if seed < 0:
        warnings.warn(
            "The use of a negative seed for an automatic one is deprecated. Use `None` instead.", stacklevel=3
        )
        return None
    return int(seed) if hasattr(seed, "__index__") else seed


def _checked_limit(name: str, limit: Any) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not hasattr(limit, "__index__") or int(limit) < 1:
        raise ValueError(f"`{name}` must be a positive integer, or None for no limit; got {limit!r}")
    return int(limit)


def _queue_depths(depth: Any) -> tuple[int, int]:
    if isinstance(depth, dict):
        return depth["cpu_size"], depth["gpu_size"]
    if isinstance(depth, int) and not isinstance(depth, bool):
        return depth, depth
    raise TypeError(
        f"Expected prefetch_queue_depth to be either int or a dict with the keys cpu_size and gpu_size, got {depth!r}"
    )


def _checked_outputs(name: str, value: Any, kind: type) -> Any:
    item: Any
    for item in list(value) if isinstance(value, (list, tuple)) else [value]:
        if item is None:
            continue
        if kind is int and isinstance(item, int) and item < 0:
            raise ValueError(f"`{name}` must be non-negative. Found value: {item}.")
        if not isinstance(item, kind):
            raise TypeError(
                f"`{name}` must be either: a value of {kind.__name__}, a list of these or None. Found: {item!r}."
            )
        if item == DALIDataType.NO_TYPE and kind is DALIDataType:
            raise ValueError(f"`{name}` can't be a types.NO_TYPE. Found value: {item}.")
    return value


def _broadcast(name: str, value: Any, count: int) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(
            f"Lengths of provided output descriptions do not match. Expected num_outputs={count}. Received: {name}={value}"
        )
    return list(value)


def _as_output(value: Any, index: int) -> DataNode:
    value = load(value)
    if isinstance(value, DataNode):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(item, DataNode) for item in value):
        raise TypeError(
            f"Illegal pipeline output type. The output {index} contains a nested `DataNode`. Missing list/tuple expansion (*) is "
            "the likely cause."
        )
    nested = isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple)) for item in value)
    if nested or not is_constant(value):
        raise TypeError(
            f"Illegal output type. The output {index} is a `{type(value)}`. Allowed types are ``DataNode`` and types convertible "
            "to `types.Constant` (numerical constants, 1D lists/tuple of numbers and ND arrays)."
        )
    return constant_node(value)


def _check_checkpointing(graph: Graph) -> None:
    """Raises RuntimeError for operators whose state is not the pipeline's own; warns of sources whose state cannot be kept."""
    detached = [op.name for op in graph.operators if op.detached]
    if detached:
        raise RuntimeError(
            "The pipeline does not support checkpointing, because it contains operators that were defined outside the pipeline: "
            f"{', '.join(detached)}. Call them in the function that defines it."
        )
    for source in _sources_of(graph):
        if not source._wants_info:
            warnings.warn(
                "Checkpointing is enabled in a pipeline with an external source operator whose source does not take the number of "
                "the sample or batch. Penstock doesn't capture state of such 'source'. Items of an iterable are skipped when a "
                "checkpoint is loaded; a callback continues wherever it is.",
                UserWarning,
                stacklevel=3,
            )


def _sources_of(graph: Graph) -> list[Source]:
    found: list[Source] = []
    for op in graph.operators:
        if isinstance(op.payload, Source) and op.payload not in found:
            found.append(op.payload)
    return found


def _warn_of_unused_outputs(sources: Sequence[Source], graph: Graph) -> None:
    used = {op.name for op in graph.operators}
    for source in sources:
        unused = [str(index) for index, name in enumerate(source.names) if name not in used]
        if not unused:
            continue
        which = "outputs at the indices" if len(unused) > 1 else "output at the index"
        warnings.warn(
            f"The external source node '{str(source.source)[:100]}' produces {len(source.names)} outputs, but the {which} "
            f"{', '.join(unused)} {'are' if len(unused) > 1 else 'is'} not used: its callback could do less.",
            Warning,
            stacklevel=3,
        )
