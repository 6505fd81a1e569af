"""The class of pipelines: a graph of operators, defined once and run for one batch after another."""

from __future__ import annotations

import contextlib
import html
import inspect
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np

from penstock.data_types import CPU_ONLY_DEVICE_ID, DALIDataType, PipelineAPIType
from penstock.errors import did_you_mean
from penstock.graph import DataNode, Graph, Scope
from penstock.graph.conditionals import ConditionStack
from penstock.graph.drawing import to_svg
from penstock.graph.placement import all_on_cpu
from penstock.kernels.codecs.limits import Limits
from penstock.passes import chosen_passes, improve
from penstock.pipeline import current
from penstock.pipeline.attributes import SettingsAttributes
from penstock.pipeline.nvtx_ranges import NvtxTrace, is_nvtx_enabled
from penstock.pipeline.session import (
    Session,
    check_checkpointing,
    memory_statistics,
    sources_of,
    warn_of_unused_outputs,
)
from penstock.pipeline.tracing import Definition, no_outputs
from penstock.runtime import BatchQueue, Executor, Plan
from penstock.runtime.checkpoints import checkpoint_seed
from penstock.runtime.parallel import RunningWorkers, check_workers
from penstock.runtime.settings import OperatorConcurrency, PipelineSettings, StreamPolicy, declared_limits
from penstock.runtime.tolerance import SkippedSamples
from penstock.runtime.trace import Trace, titles
from penstock.schema.registry import offer_package
from penstock.storage import Files
from penstock.tensors import cuda

# How many seconds an abandoned pipeline waits for its current batch.
_FINALIZER_TIMEOUT_SECONDS = 1.0


class Pipeline(SettingsAttributes):
    """A graph of operators, with everything needed to run it.

    Args:
        batch_size: the largest number of samples in a batch.
        num_threads: the number of CPU threads.
        device_id: the number of the GPU; None: the current GPU if the graph uses one, otherwise none.
        seed: the seed of the random operators; None: a new one at each build.
        exec_pipelined, exec_async: whether to prefetch batches; if either is False, each batch is computed on request.
        prefetch_queue_depth: the number of batches to prefetch; for ``{"cpu_size": x, "gpu_size": y}``, the larger of both.
        bytes_per_sample: a hint on buffer sizes; buffers grow as needed.
        set_affinity: whether to bind threads to CPU cores; ``DALI_AFFINITY_MASK``, a comma-separated list, selects the cores.
        enable_memory_stats: whether to count the bytes of each operator's outputs, for :meth:`executor_statistics`.
        enable_checkpointing: whether to enable :meth:`checkpoint`.
        checkpoint: a checkpoint, as returned by :meth:`checkpoint`, from which to continue.
        py_num_workers, py_start_method, py_callback_pickler: the worker processes of parallel external sources: their
            number, start method, and pickler of callbacks.
        output_dtype, output_ndim, output_layout: requirements on the outputs: one for all outputs, or a list with one for each.
        passes: names of the passes to run on the graph, to examine their effects; passes never change a result. None: all; an
            empty list: none. ``penstock inspect`` lists them. Not saved.
        max_pixels: the largest number of pixels (height x width) of an encoded image, or of a video's frames; None: no
            limit. A larger sample is an error (:class:`~penstock.errors.LimitError`); if failures are isolated, only that
            sample fails. The size of the whole image counts, even if only a window of it is decoded.
        max_bytes: the largest number of bytes that one sample may decode to, in the decoder's output type: a whole
            image, the requested frames of a video, a recording before and after resampling, an inflated array or an NPY
            array. None: no limit.
        max_frames: the largest number of frames requested of a video, and of samples (frames x channels) of a
            recording; None: no limit.
        isolate_decoders: which formats to decode in worker processes, where a file that crashes its decoder fails
            alone: ``all``, those with untrusted decoders (``auto``: all but JPEG, PNG, WebP, BMP, PNM, WAV of plain
            samples and FLAC), or ``none`` (except kinds of files known to crash the process). Not saved.
        on_error: what to do with samples that a reader or decoder fails on, unless the operator's argument of this name is set:
            ``raise`` the error, ``skip`` them (the batch is smaller), or ``replace`` them by their neighbours in the
            batch. :attr:`skipped` lists them. Not saved.
        max_errors: the number of samples that may be skipped or replaced before
            :class:`~penstock.errors.TooManyErrorsError` is raised; None: no limit. Not saved.
        confined_to: folders, and prefixes of remote paths; operators may access no files outside them. Relative paths
            start from the first. None: no restriction. Not saved.
        trace: whether to record where time goes, in :attr:`trace`. Takes about 5 us per operator and batch. Not saved.

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
        py_callback_pickler: object = None,
        output_dtype: object = None,
        output_ndim: object = None,
        output_layout: object = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: StreamPolicy | None = None,
        concurrency: OperatorConcurrency | None = None,
        passes: Sequence[str] | None = None,
        max_pixels: int | None = None,
        max_bytes: int | None = None,
        max_frames: int | None = None,
        isolate_decoders: str = "none",
        on_error: str = "raise",
        max_errors: int | None = None,
        confined_to: Sequence[str] | None = None,
        trace: bool = False,
    ) -> None:
        offer_package("penstock.operators")
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
        self.settings = PipelineSettings(
            batch_size=_plain(batch_size),
            num_threads=_plain(num_threads),
            device_id=None if device_id == CPU_ONLY_DEVICE_ID else _plain(device_id),
            seed=_checked_seed(_plain(seed)),
            exec_pipelined=exec_pipelined,
            prefetch_queue_depth=_plain(prefetch_queue_depth),
            exec_async=exec_async,
            bytes_per_sample=_plain(bytes_per_sample),
            set_affinity=set_affinity,
            enable_memory_stats=enable_memory_stats,
            enable_checkpointing=enable_checkpointing,
            checkpoint=checkpoint,
            py_num_workers=_plain(py_num_workers),
            py_start_method=py_start_method,
            py_callback_pickler=py_callback_pickler,
            output_dtype=output_dtype,
            output_ndim=_plain(output_ndim),
            output_layout=output_layout,
            exec_dynamic=exec_dynamic if experimental_exec_dynamic is None else experimental_exec_dynamic,
            # Saved pipelines contain the numbers of these two enumerations.
            stream_policy=None if stream_policy is None else StreamPolicy(stream_policy),
            concurrency=None if concurrency is None else OperatorConcurrency(concurrency),
            passes=None if passes is None else tuple(chosen_passes(passes)),
            limits=declared_limits(
                max_pixels=_plain(max_pixels), max_bytes=_plain(max_bytes), max_frames=_plain(max_frames)
            ),
            isolate_decoders=isolate_decoders,
            on_error=on_error,
            max_errors=_plain(max_errors),
            files=Files(confined_to),
            trace=trace,
        )
        self._definition = Definition()
        self._session = Session(self.settings)

    # -- outputs ---------------------------------------------------------------------------------------------------

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.graph.outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """Return the declared types of the outputs."""
        self.settings.check_output_counts(self.num_outputs)
        return self.settings.output_dtypes(self.num_outputs)

    def output_ndim(self) -> list[int | None]:
        """Return the declared ranks of the outputs."""
        self.settings.check_output_counts(self.num_outputs)
        return self.settings.output_ndims(self.num_outputs)

    def output_layout(self) -> list[str | None]:
        """Return the declared layouts of the outputs."""
        self.settings.check_output_counts(self.num_outputs)
        return self.settings.output_layouts(self.num_outputs)

    # -- defining --------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined on this thread, or None."""
        pipeline: Pipeline | None = current.innermost()
        return pipeline

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Make operators called from now on belong to ``pipeline``, until :meth:`pop_current`."""
        current.push(lambda: pipeline, pipeline._scope)

    @staticmethod
    def pop_current() -> None:
        """Undo :meth:`push_current`."""
        current.pop()

    def __enter__(self) -> Pipeline:
        Pipeline.push_current(self)
        return self

    def __exit__(self, exception_type: object, exception_value: object, traceback: object) -> None:
        Pipeline.pop_current()

    def define_graph(self) -> Any:
        """Call the operators and return the outputs; to be overridden by subclasses."""
        raise no_outputs()

    def iter_setup(self) -> None:
        """Feed the inputs of a batch; called before each batch, to be overridden by subclasses."""

    def set_outputs(self, *output_data_nodes: object) -> None:
        """Set the outputs of each run."""
        self._definition.set_outputs(output_data_nodes)

    def add_sink(self, edge: DataNode) -> None:
        """Compute ``edge`` in each run, even if it is not an output."""
        self._scope.sinks.append(edge)

    @property
    def graph(self) -> Graph:
        """The graph as defined."""
        return self._definition.graph(self, self.define_graph)

    @property
    def _scope(self) -> Scope:
        return self._definition.scope

    def define_by(
        self,
        function: Callable[..., object],
        arguments: Sequence[object] = (),
        keywords: dict[str, object] | None = None,
        conditions: ConditionStack | None = None,
    ) -> None:
        """Define the graph by calling the user's function; if ``conditions`` is set, trace conditionals."""
        self._definition.trace(self, function, arguments, keywords, conditions)

    def move_to_cpu(self) -> None:
        """Move all operators to the CPU, including ``mixed`` ones. Call this before the pipeline is built.

        Results may differ where the kernels of the two devices differ.

        Raises:
            DeviceError: an operator can run on the GPU only.
        """
        self._definition.move_to_cpu(self.graph)
        self.settings.device_id = None

    def set_missing(self, *, batch_size: int, num_threads: int) -> None:
        """Set these settings if the pipeline was made without them. Call this before the pipeline is built."""
        self.settings.batch_size = batch_size if self.settings.batch_size is None else self.settings.batch_size
        self.settings.num_threads = num_threads if self.settings.num_threads is None else self.settings.num_threads

    def tighten_limits(self, max_pixels: int | None, max_bytes: int | None, max_frames: int | None) -> None:
        """Lower the limits on decoded data, if these are lower. Call this before the pipeline is built."""
        self.settings.limits = self.settings.limits.tightened(Limits(max_pixels, max_bytes, max_frames))

    # -- building --------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the pipeline ready to run: verify the graph, run the passes, and construct the operators.

        Raises:
            ValueError: the batch size, the number of threads or the queue depth is missing or out of range.
            RuntimeError: the graph is invalid, or an operator rejects its arguments; the message names the line of the user's program.
            DeviceError: the pipeline needs a GPU, and none can be used.
        """
        session, settings = self._session, self.settings
        if session.executor is not None:
            return
        settings.check()
        settings.check_integers()
        if all_on_cpu():
            self.move_to_cpu()
        graph = self.graph
        self.output_dtype(), self.output_ndim(), self.output_layout()
        graph.verify()
        if settings.enable_checkpointing:
            check_checkpointing(graph)
        self._choose_device(graph)
        improved = improve(graph, settings.passes)
        session.sources = sources_of(improved)
        warn_of_unused_outputs(session.sources, improved)
        checkpoint = settings.checkpoint
        seed = settings.seed if checkpoint is None else checkpoint_seed(checkpoint, settings.seed)
        plan = Plan(
            improved,
            seed,
            settings.decoding(),
            settings.files,
            graph,
            settings.num_threads or 1,
            settings.device_id,
        )
        executor = session.start(plan, settings.depth)
        executor.enable_memory_stats = settings.enable_memory_stats
        told = settings.num_threads or 1, settings.depth, titles(improved.operators)
        if is_nvtx_enabled():
            executor.trace = NvtxTrace(*told, settings.trace)
        elif settings.trace:
            executor.trace = Trace(*told)
        if any(step.operator.lends_inputs for step in plan.operators):
            executor.run_context = current.AsCurrent(weakref.ref(self), self._scope)
        if settings.enable_checkpointing:
            session.keep_states(executor)
        self.start_py_workers()
        if checkpoint is not None:
            session.restore(executor, checkpoint)

    def _choose_device(self, graph: Graph) -> None:
        if self.settings.device_id is not None:
            cuda.require_device(self.settings.device_id)
        elif graph.uses_gpu():
            cupy = cuda.require_cupy("the pipeline")
            self.settings.device_id = int(cupy.cuda.Device().id)

    def start_py_workers(self) -> None:
        """Start the worker processes of parallel external sources now, before :meth:`build` does."""
        sources = self._session.sources if self._session.executor is not None else sources_of(self.graph)
        check_workers(sources, self.settings.py_num_workers)
        for source in sources:
            start = getattr(source, "start", None)
            if start is not None:
                start(self.settings)

    @property
    def _py_pool(self) -> object:
        """The running worker processes of parallel external sources, under DALI's name."""
        # Workers may be started before the pipeline is built.
        graph = self._definition.known_graph
        defined = [] if graph is None else sources_of(graph)
        pool = RunningWorkers(self._session.sources if self._session.executor is not None else defined)
        return pool if pool.pids() else None

    @property
    def _py_pool_started(self) -> bool:
        return self._py_pool is not None

    @property
    def executor(self) -> Executor:
        """The executor that runs the pipeline; builds the pipeline first if needed."""
        return self._queue.executor

    @property
    def _queue(self) -> BatchQueue:
        """The queue of the pipeline's batches; builds the pipeline first if needed."""
        self.build()
        queue = self._session.queue
        assert queue is not None
        return queue

    # -- feeding ---------------------------------------------------------------------------------------------------

    def input_feed_count(self, input_name: str) -> int:
        """Return the number of batches that an external source needs before the first run to fill the prefetch queue."""
        self.build()
        if input_name not in self._session.feeds:
            # DALI's executors raise different errors.
            kind = KeyError if self.settings.exec_dynamic else RuntimeError
            raise kind(f'The pipeline doesn\'t have an input named "{input_name}".')
        return max(self.settings.depths)

    def feed_input(
        self,
        data_node: str | DataNode,
        data: object,
        layout: str | None = None,
        cuda_stream: object = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Feed one batch to an external source.

        Args:
            data_node: the external source's name or node.
            data: an array whose first dimension is the batch, a list of samples, or a tensor list; on the CPU or GPU.
            layout: the layout of a sample.
            cuda_stream: the stream on which GPU data is produced.

        Raises:
            KeyError: the pipeline has no external source with this name.
            TypeError: the name or the layout is not a string.
            RuntimeError: the source has a callback, or the batch is too large or does not match the source's declaration.
        """
        name = data_node.name if isinstance(data_node, DataNode) else data_node
        if not isinstance(name, str):
            raise TypeError(f"Expected the name of an external source, or its node, got {type(data_node).__name__}")
        if not isinstance(layout, (str, type(None))):
            raise TypeError(f"A layout must be a str or None, got {layout!r}")
        self._session.feed_input(self.executor, name, data, layout)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, cuda_stream: object = None, /, **pipeline_inputs: object) -> tuple[Any, ...]:
        """Run the next batch and return its outputs, one tensor list for each.

        Args:
            cuda_stream: the stream on which GPU outputs will be used; None: the call waits until they are complete.
            pipeline_inputs: batches for external sources, by name; only with ``prefetch_queue_depth=1`` or ``exec_pipelined=False``.

        Raises:
            StopIteration: a source is at its end; :meth:`reset` starts the next epoch.
            OperatorError: an operator failed.
        """
        if pipeline_inputs and self.settings.exec_pipelined and max(self.settings.depths) > 1:
            raise RuntimeError(
                "When using pipeline_inputs named arguments, either `prefetch_queue_depth` in Pipeline constructor shall be set "
                "to 1 (for both devices) or `exec_pipelined` shall be set to False. Received: "
                f"prefetch_queue_depth={self.settings.prefetch_queue_depth}, exec_pipelined={self.settings.exec_pipelined}."
            )
        # Use the same queue throughout, even if another thread closes the pipeline in the meantime.
        queue = self._session.queue or self._queue
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        return self._session.run(queue, self.iter_setup, cuda_stream)

    def schedule_run(self) -> None:
        """Start the next batch, or as many as are prefetched at the start of an epoch; :meth:`share_outputs` returns the outputs."""
        self.build()
        with self.running_through(PipelineAPIType.SCHEDULED):
            self._session.schedule(self._queue, self.iter_setup)

    def outputs(self, cuda_stream: object = None) -> tuple[Any, ...]:
        """Return the outputs of the oldest batch whose outputs were not returned yet."""
        with self.running_through(PipelineAPIType.SCHEDULED):
            self.release_outputs()
            return self._session.take(self._session.queue, cuda_stream)

    def share_outputs(self, cuda_stream: object = None) -> tuple[Any, ...]:
        """Return the outputs of the oldest batch whose outputs were not returned yet; call :meth:`release_outputs` afterwards."""
        with self.running_through(PipelineAPIType.SCHEDULED):
            return self._session.take(self._session.queue, cuda_stream)

    def release_outputs(self) -> None:
        """End the use of shared outputs. They remain valid: memory is reused only when nothing refers to it."""
        with self.running_through(PipelineAPIType.SCHEDULED):
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

    def running_through(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Raise RuntimeError if another API for running the pipeline was used; calls inside the context are not checked."""
        return self._session.running_through(api)

    def enable_api_check(self, enable: bool) -> None:
        """Set whether mixing :meth:`run` with :meth:`schedule_run` is rejected."""
        self._session.api_check = enable

    def output_stream(self) -> Any:
        """Return the CuPy stream on which GPU outputs are computed; None for CPU pipelines."""
        stream = self.executor.stream
        return None if stream is None else stream

    def reset(self) -> None:
        """Start the next epoch. Call this after StopIteration, or after an error, which ends the epoch."""
        self._session.reset()

    def end_epoch(self) -> None:
        """Discard the rest of the epoch, including prefetched batches; :meth:`reset` starts the next epoch from its
        beginning.
        """
        self._session.end_epoch()

    @property
    def failed(self) -> bool:
        """Whether a batch of this epoch raised an error."""
        return self._session.failed

    @property
    def skipped(self) -> SkippedSamples:
        """The samples that were skipped or replaced because of ``on_error``: each with its source and the reason.

        >>> for sample in pipe.skipped:  # doctest: +SKIP
        ...     print(sample.source, sample.reason)
        """
        return self._session.skipped

    def kept_of(self, count: int) -> int:
        """Return how many of the first ``count`` samples are in the batch taken last: fewer if some were skipped."""
        kept = self._session.kept
        return count if kept is None else sum(position < count for position in kept)

    def empty(self) -> bool:
        """Return whether no batch is in flight."""
        return self._session.empty

    # -- looking ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        graph = self._shown_graph()
        lines = ["(its graph is not defined yet)"] if graph is None else repr(graph).splitlines()
        return "\n    ".join([self._heading(), *lines])

    def _repr_html_(self) -> str:
        """Return the graph as SVG for notebooks."""
        graph = self._shown_graph()
        picture = "<p>Its graph is not defined yet.</p>" if graph is None else to_svg(graph.operators, graph.outputs)
        return f"<div><code>{html.escape(self._heading())}</code><br>{picture}</div>"

    def _heading(self) -> str:
        made_with = ("batch_size", "num_threads", "device_id")
        settings = ", ".join(f"{name}={getattr(self.settings, name)}" for name in made_with)
        return f"{type(self).__name__}({settings})"

    def _shown_graph(self) -> Graph | None:
        """Return the graph, if it is known without calling the user's code."""
        return self._definition.graph_so_far()

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the number of samples in an epoch, including padding, of the reader ``name``; without a name, of each reader,
        by name.
        """
        self.build()
        if name is not None:
            return self._session.reader_meta(name)["epoch_size_padded"]
        return {key: self._session.reader_meta(key)["epoch_size_padded"] for key in self._session.readers}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return how the reader ``name`` shards and pads its data; without a name, return this for each reader, by name."""
        self.build()
        if name is not None:
            return self._session.reader_meta(name)
        return {key: self._session.reader_meta(key) for key in self._session.readers}

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """Return the bytes of each operator's outputs: the largest sum of a batch, and the largest sample.

        Bytes are counted if ``enable_memory_stats`` is set and ``exec_dynamic`` is not. The key of an operator consists of its
        device and name: ``CPU_resized``.
        """
        self.build()
        if not self.settings.enable_memory_stats or self.settings.exec_dynamic:
            return {}
        return memory_statistics(self.executor)

    @property
    def trace(self) -> Trace | None:
        """Return where time went so far; see :class:`~penstock.runtime.trace.Trace`. None unless the pipeline was made with
        ``trace=True``.
        """
        return self.executor.trace if self.settings.trace else None

    def fusion_statistics(self) -> dict[str, dict[str, int]]:
        """Return, for each fused operator, how many samples ran fused ("fused"), and how many step by step, by reason.

        >>> pipe.fusion_statistics()  # doctest: +SKIP
        {'fused_image': {'fused': 62, 'frames': 2}}
        """
        self.build()
        return self.executor.plan.fusion_statistics()

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the size in bytes of each shared-memory buffer of the workers of parallel external sources."""
        return self._session.shared_memory()

    def save_graph_to_dot_file(
        self, filename: str, *, show_tensors: bool = False, show_ids: object = None, use_colors: bool = False
    ) -> None:
        """Write the graph as a Graphviz file."""
        from penstock.serialize.dot import to_dot

        if show_ids is not None:
            warnings.warn(
                'The argument "show_ids" is deprecated because it no longer has any effect.',
                DeprecationWarning,
                stacklevel=2,
            )

        text = to_dot(self.graph, show_tensors, use_colors)
        try:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise RuntimeError(f'Cannot open "{filename}" for writing: {error}') from error

    # -- saving ----------------------------------------------------------------------------------------------------

    def serialize(self, define_graph: object = None, filename: str | None = None) -> bytes:
        """Return the pipeline in DALI's wire format; if ``filename`` is set, also write the pipeline to that file."""
        from penstock.serialize.dali_format import to_wire

        if define_graph is not None:
            if not callable(define_graph):
                hint = " Was `serialize(filename=...)` meant?" if isinstance(define_graph, str) else ""
                raise TypeError(f"Provided `define_graph` argument is not callable.{hint}")
            if self._definition.is_given:
                raise RuntimeError(
                    "Duplicate graph definition - `define_graph` argument should not be specified: the pipeline has outputs already"
                )
            with self:
                self._definition.take_defined(define_graph())
        data = to_wire(self.graph, self.settings)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(data)
        return data

    @classmethod
    def deserialize(
        cls, serialized_pipeline: bytes | None = None, filename: str | None = None, **kwargs: object
    ) -> Pipeline:
        """Return a pipeline that was saved in DALI's wire format; keyword arguments override the saved settings.

        Execution settings are not taken from the file: batches are computed on request, unless ``exec_pipelined`` or
        ``exec_async`` is set. Unknown keyword arguments are ignored.
        """
        from penstock.serialize.dali_format import from_wire

        if (serialized_pipeline is None) == (filename is None):
            raise ValueError(
                "serialized_pipeline and filename arguments are mutually exclusive. Precisely one of them should be defined."
            )
        if filename is not None:
            with open(filename, "rb") as file:
                serialized_pipeline = file.read()
        assert serialized_pipeline is not None
        pipeline = from_wire(serialized_pipeline, cls, _overriding(kwargs))
        pipeline.build()
        return pipeline

    def deserialize_and_build(self, serialized_pipeline: bytes) -> None:
        """Load a saved graph into this pipeline, and build it; settings that this pipeline lacks come from the saved pipeline."""
        from penstock.serialize.dali_format import load_graph

        saved = load_graph(serialized_pipeline, self)
        for name in ("batch_size", "num_threads", "device_id", "seed"):
            if getattr(self.settings, name) is None:
                setattr(self.settings, name, saved[name])
        self.build()

    def save(self, filename: str) -> None:
        """Save the pipeline in the readable format: versioned JSON, in which nothing is executable."""
        from penstock.serialize.readable_format import to_text

        with open(filename, "w", encoding="utf-8") as file:
            file.write(to_text(self.graph, self.settings))

    @classmethod
    def load(cls, filename: str, *, allowed_modules: Sequence[str] = (), **kwargs: object) -> Pipeline:
        """Return the pipeline written by :meth:`save`.

        Args:
            filename: the JSON file.
            allowed_modules: modules (and their submodules) from which Python operators may be imported.
            kwargs: override the saved settings.
        """
        from penstock.serialize.readable_format import from_text

        if cls is Pipeline:
            check_settings(kwargs)
        with open(filename, encoding="utf-8") as file:
            return from_text(file.read(), cls, allowed_modules, kwargs)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def checkpoint(self, filename: str | None = None, *, iterator: object = None) -> bytes:
        """Return a checkpoint, from which another pipeline with the same graph continues with the next batch.

        Args:
            filename: a file to which the checkpoint is written, too.
            iterator: the state of an iterator over the pipeline, restored as :attr:`iterator_state`.

        Raises:
            RuntimeError: the pipeline was not made with ``enable_checkpointing=True``.
        """
        if not self.settings.enable_checkpointing:
            raise RuntimeError(
                "Cannot save the checkpoint. The `enable_checkpointing` was not specified when creating the pipeline"
            )
        data = self._session.checkpoint(self.executor, iterator)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(data)
        return data

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a checkpoint."""
        return self._session.restored

    @property
    def iterator_state(self) -> Any:
        """The state of an iterator in the checkpoint from which the pipeline continues; None if there is none."""
        return self._session.iterator_state

    def close(self) -> None:
        """End the pipeline's threads and worker processes."""
        self._session.close()

    def __del__(self) -> None:
        # At interpreter shutdown, modules may already be gone.
        with contextlib.suppress(Exception):
            # With a timeout: the garbage collector may have interrupted the holder of a lock that the batch waits for.
            self._session.close(_FINALIZER_TIMEOUT_SECONDS)


CONSTRUCTOR = tuple(name for name in inspect.signature(Pipeline.__init__).parameters if name != "self")


def check_settings(settings: Iterable[str]) -> None:
    """Raise TypeError for unknown arguments of a pipeline, suggesting similar ones."""
    for name in settings:
        if name not in CONSTRUCTOR:
            raise TypeError(f"Pipeline has no argument '{name}'.{did_you_mean(name, CONSTRUCTOR)}")


def _overriding(keywords: dict[str, Any]) -> dict[str, object]:
    """Return the settings requested by the keyword arguments of ``deserialize``."""
    settings = {name: value for name, value in keywords.items() if name in CONSTRUCTOR}
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


Setting = TypeVar("Setting")


def _plain(value: Setting) -> Setting:
    """Return a setting with NumPy's numbers converted to Python's: NumPy's cannot be saved, and their arithmetic may overflow."""
    plain: object = value
    if isinstance(value, np.generic):
        plain = value.item()
    elif isinstance(value, (list, tuple)):
        plain = type(value)(map(_plain, value))
    elif isinstance(value, dict):
        plain = {key: _plain(each) for key, each in value.items()}
    return cast(Setting, plain)


def _checked_seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if seed < 0:
        warnings.warn(
            "The use of a negative seed for an automatic one is deprecated. Use `None` instead.", stacklevel=3
        )
        return None
    return int(seed) if hasattr(seed, "__index__") else seed
