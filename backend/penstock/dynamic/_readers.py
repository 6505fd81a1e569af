"""Readers, which iterate over a data set, epoch after epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypedDict, runtime_checkable

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import CallInterface
from penstock.dynamic._capture import Loop
from penstock.dynamic._capture_epochs import epoch_of
from penstock.dynamic._capture_nodes import RunningLoop, SourceNode, StepValues
from penstock.dynamic._devices import Device
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._engine import BoundOperator, bind
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._invariants import all_unmarked, unmarked
from penstock.dynamic._signatures import PIPELINE_ONLY, unexpected
from penstock.dynamic._tensor import Tensor
from penstock.dynamic._value import Value
from penstock.graph import DataNode, OpNode, call_operator
from penstock.graph.calls import constant_node
from penstock.kernels.codecs.tfrecord import Feature
from penstock.pipeline import Pipeline
from penstock.tensors import TensorList


class ReaderMeta(TypedDict):
    """How the samples of a data set are divided among shards.

    Attributes:
        epoch_size: the number of samples of all shards.
        epoch_size_padded: the number of samples of all shards, including those that fill up last batches.
        number_of_shards, shard_id: the number of shards, and the number of the shard that is read.
        pad_last_batch, stick_to_shard: the reader's arguments.
    """

    epoch_size: int
    epoch_size_padded: int
    number_of_shards: int
    shard_id: int
    pad_last_batch: int
    stick_to_shard: int


@runtime_checkable
class _Sharded(Protocol):
    """An operator that reads a data set."""

    def reader_meta(self) -> ReaderMeta: ...


class ReaderState(str):
    """The position of a reader, as a string."""

    __slots__ = ()


class _ReadingBackend:
    """Attributes of a reader that has been used, which DALI programs access."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def GetReaderMeta(self) -> ReaderMeta:
        """See :meth:`Reader.get_metadata`."""
        return self._reader.get_metadata()


class Reader:
    """Reads a data set. :meth:`next_epoch` iterates over it once.

    Args:
        max_batch_size: the batch size, if :meth:`next_epoch` is called without one.
        name: the instance's name.
        device: the device on which it runs.
        num_inputs: ignored; accepted because DALI programs pass it.
        enable_checkpointing: whether :meth:`get_state` will be used.
        arguments: the reader's arguments.
    """

    _interface: ClassVar[CallInterface]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: object = "cpu",
        num_inputs: int | None = None,
        *,
        enable_checkpointing: bool = False,
        **arguments: object,
    ) -> None:
        """Create the reader; for the arguments, see the class."""
        schema = self._interface.schema
        for key in arguments:
            if key not in schema.all_arguments or key in PIPELINE_ONLY:
                raise unexpected(schema, f"{type(self).__name__}.__init__", key)
        self._batch_size, self._name = unmarked(max_batch_size), name
        self._device: Device | None = as_device(unmarked(device))
        self._backend = self._interface.backend(self._device, ())
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, object] = {}
        for key, value in arguments.items():
            self._take(key, all_unmarked(value))
        self._checkpointed = enable_checkpointing
        self._bound: BoundOperator | None = None
        self._state: object = None
        self._shard = self._constant("shard_id", 0)
        if not 0 <= self._shard < self._constant("num_shards", 1):
            raise ValueError(
                f"The shard_id={self._shard} is invalid: there are {self._constant('num_shards', 1)} shards"
            )
        self._run_size: int | None = None
        self._is_eager = False
        self._root: _ReaderRoot | None = None

    def _take(self, name: str, value: object) -> None:
        if isinstance(value, Batch):
            raise ValueError(f"The arguments of a reader must be the same for all samples: `{name}` cannot be a batch")
        if name in self._interface.dtypes and not isinstance(value, (str, int, float, bool, list, tuple, type(None))):
            single = Tensor(value, dtype=self._interface.dtypes[name])
            if single.ndim:
                self._tensors[name] = single
                return
            value = single.item()
        if value is not None:
            self._constants[name] = value

    def _constant(self, name: str, default: int) -> int:
        value = self._constants.get(name)
        return value if isinstance(value, int) else default

    # -- running ---------------------------------------------------------------------------------------------------

    def _operator(self) -> BoundOperator:
        """Return the operator of the reader, which is created when it is first needed."""
        if self._bound is None:
            self._bound = bind(
                self._interface.schema,
                self._backend,
                0,
                tuple(self._tensors),
                self._constants,
                f"{__package__}.{self._interface.schema.fn_path}",
            )
            if self._checkpointed and hasattr(self._bound.operator, "keep_checkpoints"):
                self._bound.operator.keep_checkpoints()
            if self._state is not None:
                self._bound.operator.restore(self._state)
        return self._bound

    def _read(self, batch_size: int, context: EvalContext) -> list[TensorList]:
        data = [value.tensor_list(batch_size) for value in self._tensors.values()]
        return context.engine.run(self._operator(), data, batch_size)

    def _named(self, outputs: Sequence[Value]) -> StepValues:
        """Return the outputs of one step: as a tuple, or as a dictionary if the outputs have names."""
        return tuple(outputs)

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next batch, or the next sample if ``batch_size`` is None."""
        size = self._size(batch_size)
        outputs = self._read(size or 1, EvalContext.current())
        values = [Batch.of(output) if size else Tensor.of(output[0]) for output in outputs]
        return values[0] if len(values) == 1 else self._named(values)

    def _size(self, batch_size: int | None) -> int | None:
        requested = unmarked(batch_size)
        return self._batch_size if requested is None else requested

    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Any]:
        """Iterate over the data set, or its shard, once.

        The iterator must be exhausted before the next one is created.

        Args:
            batch_size: the batch size; by default ``max_batch_size``. If both are None, single samples are read.
            ctx: the evaluation context to use; by default the current one.
            capture: whether to trace the loop's first step into a pipeline, which computes later steps ahead of time
                (:mod:`penstock.dynamic.capture`). All loops over a reader must use the same value.

        Yields:
            A tuple of tensors, or of batches.
        """
        size = self._size(batch_size)
        if capture:
            return self._captured_epoch(size, ctx)
        if self._root is not None:
            raise RuntimeError("This reader was used with capture=True, and cannot switch to eager mode")
        self._is_eager = True
        return self._epoch(size, ctx)

    def _captured_epoch(self, batch_size: int | None, ctx: EvalContext | None) -> Iterator[StepValues]:
        if self._is_eager:
            raise RuntimeError("This reader was used without capture=True, and cannot switch to capture mode")
        if self._checkpointed:
            raise NotImplementedError("A captured loop keeps no checkpoints")
        if batch_size is None:
            raise ValueError("A captured loop (capture=True) requires a non-None batch_size")
        if self._root is None:
            self._root = _ReaderRoot(self, batch_size)
        elif self._root.batch_size != batch_size:
            raise ValueError(f"A captured loop cannot change batch_size from {self._root.batch_size} to {batch_size}")
        return self._root.epoch(EvalContext.current() if ctx is None else ctx)

    def _epoch(self, batch_size: int | None, ctx: EvalContext | None) -> Iterator[StepValues]:
        if batch_size is not None and self._run_size not in (None, batch_size):
            raise ValueError(
                f"The `batch_size` {batch_size} is different than the {self._run_size} that the reader was used with before"
            )
        self._run_size = batch_size or self._run_size
        context = EvalContext.current() if ctx is None else ctx
        done, count = 0, self._epoch_size()
        while done < count:
            with context.entered():
                outputs = self._read(batch_size or 1, context)
            done += len(outputs[0])
            if batch_size is None:
                yield self._named([Tensor.of(output[0]) for output in outputs])
            else:
                yield self._named([Batch.of(output) for output in outputs])
        self._go_to_next_shard()

    def _epoch_size(self) -> int:
        """Return the number of samples in the next epoch of this reader's shard."""
        meta = self.get_metadata()
        size, shards = meta["epoch_size_padded"], meta["number_of_shards"]
        return size * (self._shard + 1) // shards - size * self._shard // shards

    def _go_to_next_shard(self) -> None:
        meta = self.get_metadata()
        if not meta["stick_to_shard"]:
            self._shard = (self._shard + 1) % meta["number_of_shards"]

    def get_metadata(self, batch_size: int | None = None) -> ReaderMeta:
        """Return how the samples of the data set are divided among shards."""
        operator = self._operator().operator
        assert isinstance(operator, _Sharded)
        return operator.reader_meta()

    @property
    def _op_backend(self) -> _ReadingBackend | None:
        return None if self._bound is None else _ReadingBackend(self)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def __keep_checkpoints__(self) -> None:
        if self._checkpointed:
            return
        if self._bound is not None:
            raise RuntimeError(
                f"The reader `{self._interface.display}` was used without checkpoints: construct it with `enable_checkpointing=True`"
            )
        self._checkpointed = True

    def get_state(self, *, cuda_stream: object = None) -> ReaderState:
        """Return the reader's position, as a string that can be stored and passed to :meth:`set_state`.

        Raises:
            RuntimeError: nothing has been read yet, or the reader was created without ``enable_checkpointing``.
        """
        if self._bound is None:
            raise RuntimeError("A reader has no state before its first iteration: begin an epoch first")
        if not self._checkpointed:
            raise RuntimeError(
                f"The reader `{self._interface.display}` keeps no checkpoints: construct it with `enable_checkpointing=True`"
            )
        return ReaderState(json.dumps({"shard": self._shard, "operator": self._bound.operator.state()}))

    def set_state(self, state: str | bytes) -> None:
        """Continue from a state; must be called before anything is read.

        Raises:
            TypeError: the argument is not a state.
            RuntimeError: the reader has been used already.
        """
        if isinstance(state, bytes):
            state = state.decode()
        if not isinstance(state, str):
            raise TypeError(
                f"state must be a ReaderState, or the same text as str or bytes, got {type(state).__name__}"
            )
        if self._bound is not None:
            raise RuntimeError(
                "The state of a reader cannot be set after iteration has begun: construct another reader"
            )
        document = json.loads(state)
        self._checkpointed = True
        self._shard, self._state = document["shard"], document["operator"]


def count_outputs(reader: Reader) -> int:
    """Return the number of outputs of a reader."""
    return reader._operator().count


class _ReaderRoot:
    """A reader as the source that a captured loop iterates over.

    Args:
        reader: the reader.
        batch_size: the loop's batch size.
    """

    def __init__(self, reader: Reader, batch_size: int) -> None:
        self.batch_size = batch_size
        self._reader = reader
        self._loop: Loop | None = None
        self._node: OpNode | None = None
        self._left = 0
        self._handed_over = False

    def epoch(self, context: EvalContext) -> Iterator[StepValues]:
        """Iterate over the data set, or its shard, once."""
        if self._handed_over and self._loop is None:
            raise RuntimeError(
                "This reader belonged to a captured loop that ended with an error: construct another reader"
            )
        if self._loop is None:
            self._loop = Loop(self.batch_size, context)
        elif self._loop.context is not context:
            raise RuntimeError("A captured loop must run in the EvalContext in which it began")
        with context.entered():
            yield from epoch_of(self._loop, self)
        self._reader._go_to_next_shard()

    def begin_epoch(self) -> None:
        self._left = self._reader._epoch_size()

    def has_more(self) -> bool:
        return self._left > 0

    def count_step(self) -> None:
        self._left -= self.batch_size

    def first(self, loop: Loop) -> list[TensorList]:
        return self._reader._read(self.batch_size, loop.context)

    def connect(self, loop: RunningLoop, source: SourceNode) -> list[DataNode]:
        reader = self._reader
        arguments = reader._constants | {
            name: constant_node(value.storage.array, value.storage.dtype) for name, value in reader._tensors.items()
        }
        if reader._interface.schema.random:
            arguments["seed"] = reader._operator().operator.seed
        made = call_operator(
            reader._interface.schema, (), arguments, reader._backend, reader._name, reader._interface.display
        )
        nodes: list[DataNode] = made if isinstance(made, list) else [made]
        self._node = nodes[0].source
        return nodes

    def take_over(self, pipeline: Pipeline) -> None:
        assert self._node is not None
        operators = dict(pipeline.executor.plan.named_operators())
        operators[self._node.name].restore(self._reader._operator().operator.state())
        self._handed_over = True

    def shaped(self, values: Sequence[Batch]) -> StepValues:
        return self._reader._named(values)

    def released(self) -> None:
        self._loop = None
        if not self._handed_over:
            self._reader._root = None

    def left(self, loop: Loop) -> None:
        if loop.depends_on_more:
            loop.end()
        elif loop.is_traced:
            self._loop = None


class TFRecord(Reader):
    """Reads TFRecord files; outputs are named after the features."""

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: object = "cpu",
        num_inputs: int | None = None,
        *,
        features: Mapping[str, Feature],
        enable_checkpointing: bool = False,
        **arguments: object,
    ) -> None:
        """Create the reader; ``features`` names the outputs."""
        self._features = dict(all_unmarked(features))
        options: dict[str, object] = {"feature_names": list(self._features), "features": list(self._features.values())}
        super().__init__(
            max_batch_size, name, device, num_inputs, enable_checkpointing=enable_checkpointing, **options, **arguments
        )

    def _named(self, outputs: Sequence[Value]) -> StepValues:
        return dict(zip(self._features, outputs))
