"""Pipelines as data sets of ``tf.data``, implemented with its interface to Python generators."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from penstock.data_types import CPU_ONLY_DEVICE_ID
from penstock.errors import did_you_mean
from penstock.graph import OpNode
from penstock.pipeline import Pipeline
from penstock.runtime.sources import Source, fetch_all
from penstock.tensors import TensorList
from penstock.tensors.cuda import device_count

DTypes: TypeAlias = "tf.DType | Sequence[tf.DType]"
Shapes: TypeAlias = "tf.TensorShape | Sequence[int | None] | Sequence[Sequence[int | None] | None] | None"


# The copies of pipelines whose iteration has begun and not ended.
_running: set[Pipeline] = set()


@atexit.register
def _end() -> None:
    """End all iterations now: TensorFlow would do so after Python has ended, and could then wait for a generator forever."""
    if _running:
        for found in gc.get_objects():
            if isinstance(found, OwnedIterator):
                found._iterator_resource = None  # private: keeps the iteration alive; no public method ends it
    while _running:
        _running.pop().close()


def serialize_pipeline(pipeline: Pipeline) -> bytes:
    """Return the saved pipeline, of which each iteration over a data set runs a copy.

    Raises:
        RuntimeError: the pipeline has operators that cannot be saved, such as Python functions.
    """
    try:
        return pipeline.serialize()
    except RuntimeError as error:
        raise RuntimeError(
            "The pipeline cannot be saved, and each iteration over a data set runs a copy of it. Some operators, such as "
            f"functions of Python, cannot be used in data sets of TensorFlow: {error}"
        ) from error


def dataset_options() -> tf.data.Options:
    """Return options for data sets that follow this one. They disable TensorFlow's tuning, as the pipeline prefetches by itself."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


class Input:
    """A data set that feeds an external source.

    Args:
        dataset: a data set whose elements are single tensors; strings, such as encoded images, are fed as bytes.
        layout: the layout of a sample; None: the external source's.
        batch: whether elements are batches rather than samples; None: batches, which external sources without a callback expect.

    Raises:
        TypeError: ``dataset`` is not a data set.
    """

    def __init__(self, dataset: tf.data.Dataset, *, layout: str | None = None, batch: bool | None = False) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                "The inputs specified to DALIDataset must be instances of type `tf.data.Dataset` got: "
                f"`{dataset}` of type: {type(dataset)} instead."
            )
        self.dataset = dataset
        self.layout = layout
        self.batch = batch


class DALIDatasetWithInputs(tf.data.Dataset):  # type: ignore[misc, unused-ignore]
    """A data set of a pipeline's batches, which other data sets and Python sources may feed.

    Each iteration runs a new copy of the pipeline. If the pipeline has a reader, the data set never ends, like the pipeline. If it has
    inputs or sources, the data set ends when one of them does; samples that do not fill a batch are dropped.

    Outputs on a GPU are copied to the host. TensorFlow uses a batch on the host in place if all its samples lie in one block of memory.
    The outputs of decoders do not, so they are copied into one block. Inputs are copied once.

    Args:
        pipeline: the pipeline; an element is the tuple of its outputs, tensors of shape (batch, ...). Samples of an output
            must have equal shapes within a batch.
        output_dtypes: a tuple with the type of each output, or a type if there is one output.
        output_shapes: the shapes of the outputs, including the batch; None stands for any extent, or for any shape. If a shape has
            fewer dimensions than an output, the output's dimensions of extent 1 are dropped, also the batch's if ``batch_size`` is 1.
        fail_on_device_mismatch: without effect: outputs are always on the host.
        input_datasets: data sets of samples, or objects of :class:`Input`, by the name of the external source that each feeds.
        batch_size, num_threads, device_id, prefetch_queue_depth: settings of the copies of the pipeline. Without a GPU, `device_id`
            must be None.
        exec_separated, cpu_prefetch_queue_depth, gpu_prefetch_queue_depth: separate depths for CPU and GPU; the larger one is used.
        exec_dynamic: without effect.
        dtypes, shapes: deprecated names of `output_dtypes` and `output_shapes`.

    Raises:
        TypeError: `output_dtypes` are not types, or an input is not a data set.
        ValueError: inputs and external sources do not match, or the number of types or shapes is not that of the outputs.
        RuntimeError: the pipeline cannot be saved.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: DTypes | None = None,
        output_shapes: Shapes = None,
        fail_on_device_mismatch: bool = True,
        *,
        input_datasets: Mapping[str, tf.data.Dataset | Input] | None = None,
        batch_size: int = 1,
        num_threads: int = 4,
        device_id: int | None = 0,
        exec_separated: bool = False,
        exec_dynamic: bool = False,
        prefetch_queue_depth: int = 2,
        cpu_prefetch_queue_depth: int = 2,
        gpu_prefetch_queue_depth: int = 2,
        dtypes: DTypes | None = None,
        shapes: Shapes = None,
    ) -> None:
        given_dtypes = _not_deprecated("dtypes", output_dtypes, dtypes)
        given_shapes = _not_deprecated("shapes", output_shapes, shapes)
        signature = _signature(given_dtypes, given_shapes, pipeline.num_outputs)
        depth = max(cpu_prefetch_queue_depth, gpu_prefetch_queue_depth) if exec_separated else prefetch_queue_depth
        copies = Copies(pipeline, _sources(pipeline, input_datasets or {}), batch_size, num_threads, device_id, depth)
        if any(node.device == "gpu" for node in pipeline.graph.outputs):
            warnings.warn(
                "Outputs on a GPU are copied to the host: TensorFlow takes data from generators there", stacklevel=2
            )
        self._batches = tf.data.Dataset.from_generator(
            functools.partial(_elements, copies, signature), output_signature=signature
        )
        super().__init__(self._batches._variant_tensor)  # private: the base class's constructor needs it

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._batches]

    @property
    def element_spec(self) -> tuple[tf.TensorSpec, ...]:
        """The types and shapes of the outputs."""
        spec: tuple[tf.TensorSpec, ...] = self._batches.element_spec
        return spec


class DALIDataset(DALIDatasetWithInputs):
    """A data set of a pipeline's batches; see :class:`~penstock.plugin.tf.experimental.DALIDatasetWithInputs`.

    Raises:
        ValueError: the pipeline has external sources; use `experimental.DALIDatasetWithInputs` for these.
        TypeError: `input_datasets` is passed.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: DTypes | None = None,
        output_shapes: Shapes = None,
        fail_on_device_mismatch: bool = True,
        **settings: Any,
    ) -> None:
        if "input_datasets" in settings:
            raise TypeError(
                "__init__() got an unexpected keyword argument 'input_datasets'. Dataset inputs are allowed only in "
                "'experimental.DALIDatasetWithInputs'."
            )
        if _external_sources(pipeline):
            raise ValueError(
                "DALIDataset got a DALI pipeline containing External Source operator nodes. They are allowed only in "
                "'experimental.DALIDatasetWithInputs', where data sets or their own `source` feed them."
            )
        super().__init__(pipeline, output_dtypes, output_shapes, fail_on_device_mismatch, **settings)


class Copies:
    """Copies of a pipeline, each starting from the beginning.

    Args:
        pipeline: the pipeline to copy.
        sources: the sources that feed the external sources of each copy.
        batch_size, num_threads, device_id, depth: the settings of each copy.
    """

    def __init__(
        self,
        pipeline: Pipeline | bytes,
        sources: Sequence[Source],
        batch_size: int,
        num_threads: int,
        device_id: int | None,
        depth: int,
    ) -> None:
        self._saved = pipeline if isinstance(pipeline, bytes) else serialize_pipeline(pipeline)
        self._sources = sources
        self._settings: dict[str, Any] = {
            "batch_size": batch_size,
            "num_threads": num_threads,
            "device_id": device_id if device_id != CPU_ONLY_DEVICE_ID and device_count() else None,
            "prefetch_queue_depth": depth,
            "exec_pipelined": True,
            "exec_async": True,
        }
        if isinstance(pipeline, Pipeline):
            copied_settings = ("on_error", "max_errors", "isolate_decoders", "passes")
            self._settings |= {name: getattr(pipeline.settings, name) for name in copied_settings}
        self._depth = depth

    def batches(self) -> Iterator[tuple[TensorList, ...]]:
        """Yield the batches of a new copy."""
        pipeline = Pipeline.deserialize(self._saved, **self._settings)
        _running.add(pipeline)
        try:
            yield from self._batches_fed(pipeline) if self._sources else _batches_of_source(pipeline)
        finally:
            if pipeline in _running:
                _running.discard(pipeline)
                pipeline.close()

    def _batches_fed(self, pipeline: Pipeline) -> Iterator[tuple[TensorList, ...]]:
        sources = [_begun(source) for source in self._sources]
        running, over = 0, False
        while (running or not over) and pipeline in _running:
            try:
                fetched = [] if over else fetch_all(sources, pipeline.max_batch_size or 1, 0)
            except StopIteration:
                fetched = []
            over = not fetched
            for source, outputs in fetched:
                for name, data, layout in zip(source.names, outputs, source.layouts):
                    pipeline.feed_input(name, data, layout)
            if not over:
                pipeline.schedule_run()
                running += 1
            if running and (over or running >= self._depth):
                running -= 1
                yield pipeline.share_outputs()


def _batches_of_source(pipeline: Pipeline) -> Iterator[tuple[TensorList, ...]]:
    with contextlib.suppress(StopIteration):
        while pipeline in _running:
            yield pipeline.run()


def _begun(source: Source) -> Source:
    """Return a copy of a source that runs in this process and starts from the beginning."""
    return Source(
        source.source,
        source.cycle,
        source.batch,
        source.batch_info,
        source.num_outputs,
        source.layouts,
        source.no_copy,
        source.names,
    )


class _Elements:
    """Iterates over the elements of a data set, in the form of a pipeline's input."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[np.ndarray]:
        for element in self._dataset.as_numpy_iterator():
            yield np.frombuffer(element, np.uint8) if isinstance(element, bytes) else np.asarray(element)


def _elements(copies: Copies, signature: Sequence[tf.TensorSpec]) -> Iterator[tuple[np.ndarray, ...]]:
    for batches in copies.batches():
        yield tuple(as_declared(batch, spec, index) for index, (batch, spec) in enumerate(zip(batches, signature)))


def as_declared(batch: TensorList, spec: tf.TensorSpec, index: int) -> np.ndarray:
    """Return an output as an array of the declared type and shape, which shares the output's memory if possible.

    Raises:
        TypeError, ValueError: the output has another type or shape, or its samples differ in shape.
    """
    host = batch.as_cpu()
    if not host.is_dense_tensor() and len({sample.shape for sample in host.samples}) > 1:
        raise ValueError(
            f"The samples of output {index} differ in shape, {host.samples[0].shape} and others, and an element of a data set is one "
            "tensor: resize, crop or pad them, e.g. with `fn.pad`"
        )
    array = host.stacked()
    if tf.as_dtype(array.dtype) != spec.dtype:
        raise TypeError(
            f"Output {index} is of {tf.as_dtype(array.dtype).name}, but `output_dtypes` says {spec.dtype.name}"
        )
    shape = _squeezed(array.shape, spec.shape)
    if shape is None:
        raise ValueError(f"Output {index} has the shape {array.shape}, but `output_shapes` says {spec.shape}")
    return array.reshape(shape)


def _squeezed(shape: tuple[int, ...], wanted: tf.TensorShape) -> tuple[int, ...] | None:
    """Return a shape without as many dimensions of extent 1 as the declared shape ``wanted`` requires; None if it cannot match."""
    if wanted.rank is None or (len(shape) == wanted.rank and wanted.is_compatible_with(shape)):
        return shape
    if len(shape) <= wanted.rank:
        return None
    shorter = (shape[:axis] + shape[axis + 1 :] for axis, size in enumerate(shape) if size == 1)
    return next((found for found in (_squeezed(rest, wanted) for rest in shorter) if found is not None), None)


def _not_deprecated(name: str, current: object, deprecated: object) -> object:
    if deprecated is None:
        return current
    if current is not None:
        raise ValueError(
            f"Usage of `{name}` is deprecated in favor of `output_{name}`. Both arguments were provided, but only "
            f"`output_{name}` should be provided."
        )
    warnings.warn(
        f"Use of argument `{name}` is deprecated. Please use `output_{name}` instead. `output_{name}` should be provided as a "
        "tuple or a single value.",
        Warning,
        stacklevel=3,
    )
    return tuple(deprecated) if isinstance(deprecated, list) else deprecated


def _signature(dtypes: DTypes | None, shapes: Shapes, outputs: int) -> tuple[tf.TensorSpec, ...]:
    single = isinstance(dtypes, tf.DType)
    if not single and not (isinstance(dtypes, tuple) and all(isinstance(dtype, tf.DType) for dtype in dtypes)):
        raise TypeError(
            "`output_dtypes` should be provided as single tf.DType value or a tuple of tf.DType values. Got value "
            f"`{dtypes}` of the type `{type(dtypes)}`."
        )
    types = (dtypes,) if single else tuple(dtypes)  # type: ignore[arg-type]
    declared_shapes = [None] * len(types) if shapes is None else [shapes] if single else list(shapes)
    if single and isinstance(shapes, tuple) and len(shapes) == 1 and isinstance(shapes[0], (tuple, list)):
        declared_shapes = list(shapes)
    for name, values in (("output_dtypes", types), ("output_shapes", declared_shapes)):
        if len(values) != outputs:
            raise ValueError(f"The pipeline has {outputs} outputs, but `{name}` has {len(values)} entries")
    return tuple(tf.TensorSpec(shape, dtype) for shape, dtype in zip(declared_shapes, types))


def _external_sources(pipeline: Pipeline) -> list[OpNode]:
    return [operator for operator in pipeline.graph.operators if operator.schema.name == "ExternalSource"]


def _sources(pipeline: Pipeline, inputs: Mapping[str, tf.data.Dataset | Input]) -> list[Source]:
    """Return the sources for the pipeline's external sources: ``inputs``, and their own callbacks."""
    what = (
        "`input_datasets` must be a dictionary that maps input names (the `name` specified for External Source node in DALI "
        "pipeline) to input datasets objects (`tf.data.Dataset`) or `nvidia.dali.plugin.tf.experimental.Input` wrapper objects"
    )
    if not isinstance(inputs, Mapping):
        raise TypeError(f"{what}, got: `{inputs}` of type: {type(inputs)} instead.")
    sources: list[Source] = []
    open_ends: dict[str, OpNode] = {}
    for operator in _external_sources(pipeline):
        if not isinstance(operator.payload, Source):
            open_ends[operator.name] = operator
        elif operator.payload not in sources:
            sources.append(operator.payload)
    fed_names = {name for source in sources for name in source.names}
    for name, value in inputs.items():
        if not isinstance(name, str) or not isinstance(value, (tf.data.Dataset, Input)):
            raise TypeError(f"{what}, got: `{name}`: `{value}` of type: {type(value)} instead.")
        if name in fed_names:
            raise ValueError(
                f"Double specification of External Source input is not allowed. '{name}' has a `source`, and one of the "
                "`input_datasets`."
            )
        if name not in open_ends:
            raise ValueError(
                f"Did not find an External Source placeholder node with name='{name}' in the provided pipeline. Names of available "
                f"placeholder External Source nodes are: {list(open_ends)}.{did_you_mean(name, open_ends)}"
            )
    missing = [name for name in open_ends if name not in inputs]
    if missing:
        raise ValueError(
            f"Found External Source nodes in the Pipeline, that were not assigned any inputs. Nodes without inputs: {missing}. "
            f"Nodes that were assigned inputs: {list(inputs)}."
        )
    wrapped = {name: value if isinstance(value, Input) else Input(value) for name, value in inputs.items()}
    # External sources without a `source` expect batches.
    return sources + [
        Source(_Elements(value.dataset), batch=value.batch is not False, layouts=[value.layout], names=[name])
        for name, value in wrapped.items()
    ]
