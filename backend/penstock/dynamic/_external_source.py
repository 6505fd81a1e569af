"""``ExternalSource``: data from a callback or an iterable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Any

from penstock.dynamic._batch import Batch
from penstock.dynamic._capture import Loop, current_loop
from penstock.dynamic._capture_epochs import epoch_of
from penstock.dynamic._capture_nodes import RunningLoop, SourceNode, StepValues
from penstock.dynamic._devices import DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DTypeLike
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._making import as_batch, as_tensor
from penstock.dynamic._tensor import Tensor
from penstock.dynamic._value import Results
from penstock.external_source import external_source
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.runtime.sources import Source
from penstock.tensors import TensorList


class _Role(Enum):
    """How a source is used; once set, this never changes."""

    UNUSED = auto()
    EAGER = auto()
    FEEDER = auto()
    ROOT = auto()


class ExternalSource:
    """Returns data of a callback or an iterable, one item per call.

    Args:
        source: a function without parameters, an iterable, or a generator function. An item is an array or numbers, which become a tensor,
            or a batch; with several outputs, it is a sequence of these.
        num_outputs: the number of outputs in each item.
        cycle: the behaviour at the end of an iterable: ``"no"``: raise StopIteration from then on; ``"raise"``: raise StopIteration once,
            and then start again; ``"quiet"``: start again.
        device: the device to which data are copied.
        layout: the layout of all outputs, or a list with one for each output.
        dtype: the dtype of all outputs, or a list with one for each output.

    >>> source = ExternalSource([[1, 2], [3, 4]], cycle="quiet")
    >>> [int(source()[0]) for _ in range(3)]
    [1, 3, 1]
    """

    def __init__(
        self,
        source: object,
        num_outputs: int = 1,
        *,
        cycle: str | bool | None = None,
        device: DeviceLike = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: DTypeLike | Sequence[DTypeLike | None] | None = None,
    ) -> None:
        self._num_outputs = unmarked(num_outputs)
        if self._num_outputs < 1:
            raise ValueError(f"num_outputs must be at least 1, got {num_outputs}")
        self._source = Source(unmarked(source), unmarked(cycle))
        if self._source.takes_info:
            raise ValueError(
                "The source of a dynamic ExternalSource must be a function with no parameters, or an iterable"
            )
        self._device = unmarked(device)
        self._role = _Role.UNUSED
        self._loop: Loop | None = None
        self._node: SourceNode | None = None
        self._layouts = self._for_each(unmarked(layout))
        self._dtypes = self._for_each(unmarked(dtype))

    def _for_each(self, setting: Any) -> list[Any]:
        """Return a list with one value for each output."""
        if isinstance(setting, (str, bytes)) or not isinstance(setting, Sequence):
            return [setting] * self._num_outputs
        if len(setting) != self._num_outputs:
            raise ValueError(
                f"Expected a sequence of size {self._num_outputs}, one for each output; got {len(setting)}"
            )
        return list(setting)

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next item: a tensor, or a batch if the source yields batches; a tuple if there are several
        outputs.

        Args:
            batch_size: the expected size of batches; tensors are repeated this many times.

        Raises:
            StopIteration: the source has ended.
            ValueError: the source returned another number of outputs or of samples.
        """
        loop = current_loop()
        if loop is not None:
            return self._asked_in(loop, unmarked(batch_size))
        if self._role in (_Role.FEEDER, _Role.ROOT):
            raise RuntimeError("This ExternalSource is already used in a capture-mode loop")
        self._role = _Role.EAGER
        return self.shaped(self._next(unmarked(batch_size)))

    def _asked_in(self, loop: Loop, batch_size: int | None) -> StepValues:
        """Return the next item, for a call in the body of a captured loop."""
        if self._role is _Role.EAGER:
            raise RuntimeError("This ExternalSource was used eagerly, so it cannot be part of a captured loop")
        if self._role is _Role.ROOT:
            raise RuntimeError("This ExternalSource is used through .captured(): its items come from the loop itself")
        if self._loop not in (None, loop):
            raise RuntimeError("This ExternalSource belongs to a different capture context: another loop reads it")
        loop.check_batch_size(batch_size)
        if self._node is None:
            if not loop.is_traced:
                loop.end()
                raise RuntimeError(
                    "An ExternalSource that a captured loop reads must be read in its first step, during tracing"
                )
            data = self.first(loop)
            self._role, self._loop, self._node = _Role.FEEDER, loop, loop.add_source(self, self._num_outputs)
            loop.read(self._node)
            return loop.values_of(self._node, data)
        loop.read(self._node)
        return loop.produced_by_source(self._node)

    def captured(self, batch_size: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Iterate over the source once; the loop's first step is traced into a pipeline, which computes later steps ahead of time.

        Other sources that the body calls are read once per step, ahead of time; items that they returned for steps that are not reached are
        lost.

        Args:
            batch_size: the size of batches; if the source returns tensors, each is repeated this many times.
            ctx: the evaluation context to use; by default the current one.

        Yields:
            A batch, or a tuple of batches if there are several outputs.
        """
        size = unmarked(batch_size)
        if self._role is _Role.EAGER:
            raise RuntimeError("This ExternalSource was used eagerly, so it cannot be captured")
        if self._role is _Role.FEEDER:
            raise RuntimeError("This ExternalSource is read in the body of another captured loop")
        if self._loop is not None and self._loop.batch_size != size:
            raise ValueError(f"A captured loop cannot change batch_size from {self._loop.batch_size} to {size}")
        context = EvalContext.current() if ctx is None else ctx
        if self._loop is not None and self._loop.context is not context:
            raise RuntimeError("A captured loop must run in the EvalContext in which it began")
        if self._loop is None:
            self._loop = Loop(size, context)
        self._role = _Role.ROOT
        return self._epoch(self._loop)

    def _epoch(self, loop: Loop) -> Iterator[StepValues]:
        with loop.context.entered():
            yield from epoch_of(loop, self)

    # -- as part of a captured loop --------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Called when an epoch begins; does nothing."""

    def has_more(self) -> bool:
        """Return True: only reading the source shows whether there are more items."""
        return True

    def count_step(self) -> None:
        """Called when a step begins; does nothing."""

    def first(self, loop: RunningLoop) -> list[TensorList]:
        """Return the outputs of the next item, as batches."""
        return [self._as_batch(value, loop.batch_size) for value in self._next(loop.batch_size)]

    @staticmethod
    def _as_batch(value: Tensor | Batch, size: int) -> TensorList:
        return value.tensor_list(size)

    def connect(self, loop: RunningLoop, source: SourceNode) -> list[DataNode]:
        """Add the source to the pipeline that is being defined; return its outputs there."""
        target = as_device(self._device)
        device_type = "cpu" if target is None else target.device_type

        def fetch() -> list[TensorList]:
            try:
                return self.first(loop)
            except StopIteration:
                if loop.sources[0] is source:
                    loop.root_ended = True
                raise

        nodes: list[DataNode] = external_source(fetch, self._num_outputs, device=device_type, no_copy=True)
        return nodes

    def take_over(self, pipeline: Pipeline) -> None:
        """Let the pipeline read the source from now on."""

    def shaped(self, values: Sequence[Tensor | Batch]) -> Results:
        """Return the outputs of an item in the form in which the source returned them."""
        return values[0] if self._num_outputs == 1 else tuple(values)

    def left(self, loop: Loop) -> None:
        """Called if the body was left before the end."""
        loop.end()

    def released(self) -> None:
        """Called when the loop has ended and will not be continued."""
        self._role, self._loop, self._node = _Role.UNUSED, None, None

    def _next(self, batch_size: int | None) -> list[Tensor | Batch]:
        item = self._source.call()
        outputs = [item]
        if self._num_outputs > 1:
            if not isinstance(item, Sequence) or len(item) != self._num_outputs:
                found = f"{len(item)}" if isinstance(item, Sequence) else f"a {type(item).__name__}"
                raise ValueError(
                    f"The source returned too few or too many outputs: expected {self._num_outputs} outputs, got {found}"
                )
            outputs = list(item)
        values = [self._converted(data, batch_size, index) for index, data in enumerate(outputs)]
        if len({type(value) for value in values}) > 1:
            raise TypeError("All outputs of a source must be tensors, or all must be batches")
        return values

    def _converted(self, data: object, batch_size: int | None, index: int) -> Tensor | Batch:
        target = as_device(self._device)
        layout, dtype = self._layouts[index], self._dtypes[index]
        if isinstance(data, (Batch, TensorList)):
            whole = as_batch(data, dtype, target, layout)
            if batch_size not in (None, whole.batch_size):
                raise ValueError(
                    f"The source returned a batch of another size: expected batch size {batch_size}, got {whole.batch_size}"
                )
            return whole
        single = as_tensor(data, dtype, target, layout)
        return single if batch_size is None else Batch.broadcast(single, batch_size)
