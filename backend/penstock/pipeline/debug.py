"""Debug mode: operators run when they are called, so that the user's program can inspect the data."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from penstock.data_types import PipelineAPIType
from penstock.graph import DataNode, Graph, OpNode, Scope
from penstock.graph.conditionals import ConditionStack
from penstock.graph.graph import verify_operator
from penstock.graph.placement import all_on_cpu, move_to_cpu
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.session import feed
from penstock.pipeline.tracing import as_output, trace
from penstock.runtime import Plan
from penstock.runtime.feeding import to_batch
from penstock.runtime.plan import Step, construct, operator_seeds
from penstock.runtime.sources import Source
from penstock.tensors import TensorList, TensorListGPU, cuda

_Key = tuple[Any, ...]


class DataNodeDebug(DataNode):
    """The output of an operator, with its data.

    It can be used like a node: in arithmetic, comparisons, indexing, as an input or an argument.

    Args:
        node: the graph's node.
        batch: the node's data.
        move: copies data to a device.
    """

    __slots__ = ("_batch", "_move")

    def __init__(self, node: DataNode, batch: TensorList, move: Callable[[TensorList, str], TensorList]) -> None:
        super().__init__(node.name, node.device, node.source, node.index, node.ndim, node.dtype, node.layout)
        self._batch = batch
        self._move = move

    def get(self) -> Any:
        """Return the data, a :class:`TensorListCPU` or :class:`TensorListGPU`."""
        return self._batch

    def shape(self) -> list[tuple[int, ...]]:  # type: ignore[override]
        """Return the shape of each sample, as numbers, not as a node."""
        return self._batch.shape()

    def on_device(self, device: str) -> DataNodeDebug:
        return DataNodeDebug(super().on_device(device), self._move(self._batch, device), self._move)

    def __str__(self) -> str:
        lines = str(self._batch).replace("\n", "\n    ")
        return f'DataNodeDebug(\n    name="{self.name}",\n    data={lines})'

    __repr__ = __str__


class DebugPipeline(Pipeline):
    """A pipeline whose function is called for each batch, and whose operators run when they are called.

    Operators keep their state, such as a position in a data set, from batch to batch. An operator is identified by the
    line that calls it, and by how many times that line has been executed in this batch. Random operators draw the same
    numbers as in an ordinary pipeline with the same seed, if they are called in the order of its graph.

    Args:
        function: the graph-defining function.
        arguments, keywords: the positional and keyword arguments of the function.
        conditionals: whether ``if`` on a node chooses a branch for each sample.
        settings: the settings of :class:`Pipeline`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[object] = (),
        keywords: dict[str, Any] | None = None,
        conditionals: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._function, self._arguments, self._keywords = function, arguments, keywords or {}
        self._conditionals = conditionals
        self._steps: dict[_Key, Step] = {}
        self._known: list[OpNode] = []
        self._called_sources: dict[_Key, Source] = {}
        self._fed: dict[str, deque[tuple[object, str | None]]] = defaultdict(deque)
        self._output_count = 0
        self._begin_batch()

    def _begin_batch(self) -> None:
        self._calls: Counter[_Key] = Counter()
        self._fetched: dict[Source, Iterator[tuple[object, str | None]]] = {}
        self._current_size: int | None = None

    @property
    def graph(self) -> Graph:
        """Raise RuntimeError: there is no graph, as operators run when they are called."""
        raise RuntimeError("A pipeline in debug mode has no graph. Define it with `debug=False` to save or show it.")

    @property
    def num_outputs(self) -> int:
        """The number of outputs of the last run."""
        return self._output_count

    def build(self) -> None:
        """Make the pipeline ready to run; the function is called in the first run, not here."""
        if self._session.executor is not None:
            return
        self.settings.check()
        if all_on_cpu():
            self.settings.device_id = None
        if self.settings.device_id is not None:
            self._choose_device(Graph([]))
        self._session.start(Plan(Graph([]), self.settings.seed, self.settings.decoding()), depth=0)

    # -- running ---------------------------------------------------------------------------------------------------

    def feed_input(
        self,
        data_node: str | DataNode,
        data: object,
        layout: str | None = None,
        cuda_stream: object = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Store a batch for the external source with that name; see :meth:`Pipeline.feed_input`."""
        self._fed[data_node.name if isinstance(data_node, DataNode) else data_node].append((data, layout))

    def run(self, cuda_stream: object = None, /, **pipeline_inputs: object) -> tuple[Any, ...]:
        """Call the function, which runs the operators, and return the outputs, one tensor list each.

        Args:
            cuda_stream: the stream on which GPU outputs will be used; without effect, as the call waits for them.
            pipeline_inputs: batches for external sources, by name.

        Raises:
            StopIteration: a source is at its end; :meth:`reset` starts the next epoch.
            OperatorError: an operator failed; raised from the line that called it.
        """
        self.build()
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        if self._session.exhausted:
            raise StopIteration
        with self.running_through(PipelineAPIType.BASIC):
            try:
                outputs = self._evaluate_function()
            except StopIteration:
                self._session.exhausted = True
                raise
        if self.executor.stream is not None:
            self.executor.stream.synchronize()
        self.executor.iteration += 1
        self._output_count = len(outputs)
        self._session.check_outputs(outputs)
        return outputs

    def _evaluate_function(self) -> tuple[object, ...]:
        self._begin_batch()
        scope = self._definition.scope = Scope()
        scope.tracer, scope.debug = trace.__code__, self
        scope.conditions = ConditionStack() if self._conditionals else None
        with self:
            self.iter_setup()
            returned = trace(self._function, *self._arguments, **self._keywords)
            if returned is None:
                Pipeline.define_graph(self)
            returned = returned if isinstance(returned, tuple) else (returned,)
            nodes = [as_output(value, index) for index, value in enumerate(returned)]
            return tuple(self._data_of(node) for node in nodes)

    def schedule_run(self) -> NoReturn:
        """Raise RuntimeError: debug mode does not prefetch."""
        raise RuntimeError("Batches cannot be scheduled in debug mode: call `run`.")

    # -- operators, when they are called -----------------------------------------------------------------------------

    def adopt(self, inputs: Sequence[object]) -> list[object]:
        """Return the positional inputs of a call, with batches of other libraries (arrays, lists of arrays) converted."""
        return [self._adopted(item) if _is_foreign_batch(item) else item for item in inputs]

    def _adopted(self, data: object) -> DataNodeDebug:
        executor = self.executor
        with executor.on_device():
            batch = to_batch(data, None, executor.max_batch_size, executor.host_pool, executor.workers)
        device = "gpu" if isinstance(batch, TensorListGPU) else "cpu"
        return DataNodeDebug(DataNode(self._scope.next_name("data"), device), batch, self._move)

    def evaluate(self, op: OpNode) -> list[DataNodeDebug]:
        """Run a newly called operator, and return its outputs."""
        verify_operator(op)
        if op.device != "cpu" and all_on_cpu():
            move_to_cpu(op)
        if op.device != "cpu":
            self._need_gpu()
        key = self._key_of(op)
        step = self._step_of(op, key)
        if hasattr(step.operator, "feed"):
            self._feed_operator(step, key)
        nodes = [*op.inputs, *op.argument_inputs.values()]
        slots: list[Any] = [*map(self._data_of, nodes), *[None] * len(op.outputs)]
        self.executor.run_step(step, slots, self._current_size or self.executor.max_batch_size)
        batches = slots[len(nodes) :]
        return [DataNodeDebug(node, batch, self._move) for node, batch in zip(op.outputs, batches)]

    def _step_of(self, op: OpNode, key: _Key) -> Step:
        """Return a step for a call: with the operator that ran the same call in an earlier batch, or else with a new operator."""
        inputs, arguments, outputs = len(op.inputs), len(op.argument_inputs), len(op.outputs)
        known = self._steps.get(key)
        if known is None:
            self._known.append(op)
        seed = (
            operator_seeds(self._known, self.executor.plan.seed).get(op, -1) if known is None else known.operator.seed
        )
        if known is not None and _is_same(known.node, op):
            operator = known.operator
            operator.bind(op.payload)
        else:
            settings = self.settings
            operator = construct(
                op,
                seed,
                settings.files,
                self.executor.plan.decoding,
                settings.num_threads or 1,
                settings.device_id,
            )
            if known is not None:
                operator.restore(known.operator.state())
        step = Step(
            op,
            operator,
            list(range(inputs)),
            {name: inputs + index for index, name in enumerate(op.argument_inputs)},
            list(range(inputs + arguments, inputs + arguments + outputs)),
        )
        self._steps[key] = step
        if hasattr(operator, "reader_meta"):
            self._session.readers[op.name] = step
        return step

    def _key_of(self, op: OpNode) -> _Key:
        """Return a key that is the same for this call in each batch."""
        line = (op.schema.name, op.device, op.sites, op.name if op.named else None)
        self._calls[line] += 1
        return (*line, self._calls[line])

    def _feed_operator(self, step: Step, key: _Key) -> None:
        op = step.node
        if isinstance(op.payload, Source):
            data, layout = next(self._fetch(op.payload, key))
            copy = not op.payload.no_copy
        elif self._fed[op.name]:
            data, layout = self._fed[op.name].popleft()
            copy = not op.arguments.get("no_copy")
        else:
            return
        feed(self.executor, step, data, layout, copy)
        size = step.operator.pending_batch_size()
        if self._current_size not in (None, size):
            raise RuntimeError(
                f"Batch size must be uniform across an iteration. External Source operator returned batch size {size} for "
                f"'{op.name}', expected {self._current_size}. An external source must return outputs with consistent batch size."
            )
        self._current_size = size

    def _fetch(self, called: Source, key: _Key) -> Iterator[tuple[object, str | None]]:
        """Return the outputs, not taken yet, of a source for this batch. The source is the one of the same call in the first batch."""
        if called not in self._fetched:
            source = self._called_sources.get(key)
            if source is None:
                source = self._called_sources[key] = called
                self._session.sources.append(source)
                start = getattr(source, "start", None)
                if start is not None:
                    start(self.settings)
            outputs = source.fetch(self.executor.max_batch_size, self._session.epoch)
            self._fetched[called] = iter(list(zip(outputs, source.layouts)))
        return self._fetched[called]

    # -- data ------------------------------------------------------------------------------------------------------

    def _data_of(self, node: DataNode) -> TensorList:
        if not isinstance(node, DataNodeDebug):
            raise RuntimeError(f"{node} does not belong to this pipeline, which runs in debug mode")
        return node.get()

    def _move(self, batch: Any, device: str) -> TensorList:
        if all_on_cpu():
            stays: TensorList = batch
            return stays
        self._need_gpu()
        with self.executor.on_device():
            moved: TensorList = TensorListGPU.upload(batch) if device == "gpu" else batch.as_cpu()
        moved.positions = batch.positions
        return moved

    def _need_gpu(self) -> None:
        executor = self.executor
        if executor.device_id is None:
            cupy = cuda.require_cupy("the pipeline")
            self.settings.device_id = executor.device_id = int(cupy.cuda.Device().id)


def _is_same(known: OpNode, op: OpNode) -> bool:
    """Return whether the operator made for node ``known`` can also run ``op``."""
    same_inputs = known.argument_inputs.keys() == op.argument_inputs.keys()
    return same_inputs and known.arguments == op.arguments


def _is_foreign_batch(item: object) -> bool:
    if isinstance(item, (DataNode, str, bytes)):
        return False
    if isinstance(item, TensorList):
        return True
    if isinstance(item, (list, tuple)):
        return bool(item) and all(hasattr(sample, "shape") and not isinstance(sample, DataNode) for sample in item)
    return len(getattr(item, "shape", ())) > 0
