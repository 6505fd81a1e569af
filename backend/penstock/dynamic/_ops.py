"""Operators as classes and functions, and readers: all made from the schemas of pipelines' operators."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, TypedDict

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import Face, call
from penstock.dynamic._capture import Loop
from penstock.dynamic._capture_epochs import epoch_of
from penstock.dynamic._capture_nodes import RunningLoop, SourceNode
from penstock.dynamic._devices import Device
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._engine import BoundOperator, bind
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._faculties import Given, Outcome
from penstock.dynamic._invariants import all_unmarked, unmarked
from penstock.dynamic._syntax import face_of
from penstock.dynamic._tensor import Tensor
from penstock.graph import DataNode, OpNode, call_operator
from penstock.graph.calls import constant_node
from penstock.kernels.codecs.tfrecord import Feature
from penstock.pipeline import Pipeline
from penstock.schema import Operator as RunningOperator
from penstock.schema import Schema, find_schema, operator_class
from penstock.schema.documentation import docstring, shown_arguments
from penstock.schema.fused import FusedOperator
from penstock.schema.input_operator import InputOperator
from penstock.schema.namespaces import submodule
from penstock.schema.registry import subscribe
from penstock.tensors import TensorList

_ROOT = __name__.rpartition(".")[0]
# What was deprecated before dynamic mode began is not in it.
_FIRST_VERSION = (2, 0)
_PIPELINE_ONLY = frozenset({"bytes_per_sample_hint", "preserve"})
_KEYWORD = inspect.Parameter.KEYWORD_ONLY

_all_ops: list[type[Operator] | type[Reader]] = []
_all_functions: list[Callable[..., Outcome]] = []


class Operator:
    """An operator with arguments given at construction, which can be called any number of times.

    Args:
        max_batch_size: accepted for DALI's programs.
        name: of the instance.
        device: where it runs.
        num_inputs: accepted for DALI's programs.
        arguments: of the operator; more can be given at the call.
    """

    _face: ClassVar[Face]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: object = "cpu",
        num_inputs: int | None = None,
        **arguments: object,
    ) -> None:
        """Makes the operator; the class tells of its arguments."""
        self._max_batch_size, self._name, self._arguments = max_batch_size, name, arguments
        self._device = as_device(unmarked(device))
        self._face.backend(self._device, ())

    def __call__(self, *inputs: object, batch_size: int | None = None, **arguments: object) -> Outcome:
        """The operator's result for these inputs, or a tuple of several.

        Args:
            inputs: tensors, batches, or what can be made one.
            batch_size: of the results, where there are no inputs to tell it.
            arguments: of the operator, and ``rng``, the generator of a random one.
        """
        given = self._arguments | {name: value for name, value in arguments.items() if value is not None}
        return call(self._face, inputs, given, batch_size, self._device)


class ReaderMeta(TypedDict):
    """How a reader's samples are shared out.

    Attributes:
        epoch_size: number of samples of all shards.
        epoch_size_padded: with those that fill up last batches.
        number_of_shards, shard_id: which part is read.
        pad_last_batch, stick_to_shard: as the reader was told.
    """

    epoch_size: int
    epoch_size_padded: int
    number_of_shards: int
    shard_id: int
    pad_last_batch: int
    stick_to_shard: int


class ReaderState(str):
    """Where a reader is, as text."""

    __slots__ = ()


class _ReadingBackend:
    """What DALI's programs ask about a reader in use."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def GetReaderMeta(self) -> ReaderMeta:
        """See :meth:`Reader.get_metadata`."""
        return self._reader.get_metadata()


class Reader:
    """Reads a data set. :meth:`next_epoch` goes through it once.

    Args:
        max_batch_size: of its batches, where :meth:`next_epoch` is given none.
        name: of the instance.
        device: where it runs.
        num_inputs: accepted for DALI's programs.
        enable_checkpointing: :meth:`get_state` will be used.
        arguments: of the reader.
    """

    _face: ClassVar[Face]

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
        """Makes the reader; the class tells of its arguments."""
        schema = self._face.schema
        for key in arguments:
            if key not in schema.all_arguments or key in _PIPELINE_ONLY:
                raise _unexpected(schema, f"{type(self).__name__}.__init__", key)
        self._batch_size, self._name = unmarked(max_batch_size), name
        self._device: Device | None = as_device(unmarked(device))
        self._backend = self._face.backend(self._device, ())
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
            raise ValueError(f"A reader has the same arguments for all samples: `{name}` cannot be a batch")
        if name in self._face.dtypes and not isinstance(value, (str, int, float, bool, list, tuple, type(None))):
            single = Tensor(value, dtype=self._face.dtypes[name])
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
        """What reads; made when it is first needed."""
        if self._bound is None:
            self._bound = bind(
                self._face.schema,
                self._backend,
                0,
                tuple(self._tensors),
                self._constants,
                f"{_ROOT}.{self._face.schema.fn_path}",
            )
            if self._checkpointed and hasattr(self._bound.operator, "keep_checkpoints"):
                self._bound.operator.keep_checkpoints()
            if self._state is not None:
                self._bound.operator.restore(self._state)
        return self._bound

    def _read(self, batch_size: int, context: EvalContext) -> list[TensorList]:
        data = [value.tensor_list(batch_size) for value in self._tensors.values()]
        return context.engine.run(self._operator(), data, batch_size)

    def _named(self, outputs: Sequence[Outcome]) -> Outcome:
        """What one step gives: a tuple, or a dictionary where outputs have names."""
        return tuple(outputs)

    def __call__(self, *, batch_size: int | None = None) -> Outcome:
        """The next batch, or the next sample if there is no batch size."""
        size = self._size(batch_size)
        outputs = self._read(size or 1, EvalContext.current())
        values = [Batch.of(output) if size else Tensor.of(output[0]) for output in outputs]
        return values[0] if len(values) == 1 else self._named(values)

    def _size(self, batch_size: int | None) -> int | None:
        given = unmarked(batch_size)
        return self._batch_size if given is None else given

    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Outcome]:
        """Goes through the data set, or its shard, once.

        The iterator has to be used up before the next one is made.

        Args:
            batch_size: of the batches; by default ``max_batch_size``, and without that, single samples are read.
            ctx: to run with; by default the current one.
            capture: trace the loop's first step into a pipeline, which computes the later ones ahead
                (:mod:`penstock.dynamic.capture`). A reader is always used with it, or always without.

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

    def _captured_epoch(self, batch_size: int | None, ctx: EvalContext | None) -> Iterator[Outcome]:
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

    def _epoch(self, batch_size: int | None, ctx: EvalContext | None) -> Iterator[Outcome]:
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
        """The number of samples that the next epoch has."""
        meta = self.get_metadata()
        size, shards = meta["epoch_size_padded"], meta["number_of_shards"]
        return size * (self._shard + 1) // shards - size * self._shard // shards

    def _go_to_next_shard(self) -> None:
        meta = self.get_metadata()
        if not meta["stick_to_shard"]:
            self._shard = (self._shard + 1) % meta["number_of_shards"]

    def get_metadata(self, batch_size: int | None = None) -> ReaderMeta:
        """How the samples are shared out."""
        operator: Given = self._operator().operator
        meta: ReaderMeta = operator.reader_meta()
        return meta

    @property
    def _op_backend(self) -> _ReadingBackend | None:
        return None if self._bound is None else _ReadingBackend(self)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def __keep_checkpoints__(self) -> None:
        if self._checkpointed:
            return
        if self._bound is not None:
            raise RuntimeError(
                f"The reader `{self._face.display}` was used without checkpoints: construct it with `enable_checkpointing=True`"
            )
        self._checkpointed = True

    def get_state(self, *, cuda_stream: object = None) -> ReaderState:
        """Where the reader is: ``str`` of it can be stored, and is what :meth:`set_state` takes.

        Raises:
            RuntimeError: nothing was read yet, or the reader was constructed without ``enable_checkpointing``.
        """
        if self._bound is None:
            raise RuntimeError("A reader has no state before its first iteration: begin an epoch first")
        if not self._checkpointed:
            raise RuntimeError(
                f"The reader `{self._face.display}` keeps no checkpoints: construct it with `enable_checkpointing=True`"
            )
        return ReaderState(json.dumps({"shard": self._shard, "operator": self._bound.operator.state()}))

    def set_state(self, state: str | bytes) -> None:
        """Continues from a state; before anything is read.

        Raises:
            TypeError: this is no state.
            RuntimeError: the reader was used already.
        """
        if isinstance(state, bytes):
            state = state.decode()
        if not isinstance(state, str):
            raise TypeError(f"state must be a ReaderState, or its text, got {type(state).__name__}")
        if self._bound is not None:
            raise RuntimeError("The state of a reader cannot be set after iteration has begun: construct another one")
        document = json.loads(state)
        self._checkpointed = True
        self._shard, self._state = document["shard"], document["operator"]


def count_outputs(reader: Reader) -> int:
    """The number of outputs that a reader has."""
    return reader._operator().count


class _ReaderRoot:
    """A reader as what a captured loop goes over.

    Args:
        reader: the reader.
        batch_size: of the loop.
    """

    def __init__(self, reader: Reader, batch_size: int) -> None:
        self.batch_size = batch_size
        self._reader = reader
        self._loop: Loop | None = None
        self._node: OpNode | None = None
        self._left = 0
        self._handed_over = False

    def epoch(self, context: EvalContext) -> Iterator[Outcome]:
        """Goes through the data set, or its shard, once."""
        if self._handed_over and self._loop is None:
            raise RuntimeError("This reader belonged to a captured loop that an error has ended: construct another one")
        if self._loop is None:
            self._loop = Loop(self.batch_size, context)
        elif self._loop.context is not context:
            raise RuntimeError("A captured loop runs in the EvalContext in which it began")
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
        if reader._face.schema.random:
            arguments["seed"] = reader._operator().operator.seed
        made = call_operator(reader._face.schema, (), arguments, reader._backend, reader._name, reader._face.display)
        nodes: list[DataNode] = made if isinstance(made, list) else [made]
        self._node = nodes[0].source
        return nodes

    def take_over(self, pipeline: Pipeline) -> None:
        assert self._node is not None
        operators = dict(pipeline.executor.plan.named_operators())
        operators[self._node.name].restore(self._reader._operator().operator.state())
        self._handed_over = True

    def shaped(self, values: Sequence[Batch]) -> Outcome:
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


class _TFRecord(Reader):
    """Its outputs are named by the features."""

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: object = "cpu",
        num_inputs: int | None = None,
        *,
        features: Mapping[str, Feature],
        enable_checkpointing: bool = False,
        **arguments: Given,
    ) -> None:
        """Makes the reader; ``features`` names its outputs."""
        self._features = dict(all_unmarked(features))
        own: dict[str, Given] = {"feature_names": list(self._features), "features": list(self._features.values())}
        super().__init__(
            max_batch_size, name, device, num_inputs, enable_checkpointing=enable_checkpointing, **own, **arguments
        )

    def _named(self, outputs: Sequence[Outcome]) -> Outcome:
        return dict(zip(self._features, outputs))


# -- making them from schemas ----------------------------------------------------------------------------------------


def _belongs(schema: Schema) -> bool:
    """Whether dynamic mode has the operator: not those that need a pipeline or callbacks, or were old when it began."""
    if schema.deprecated_since:
        version = tuple(int(part) for part in schema.deprecated_since.split(".")[:2])
        if version <= _FIRST_VERSION:
            return False
    own = operator_class(schema.name)
    return not issubclass(own, (FusedOperator, InputOperator)) and own.bind is RunningOperator.bind


def _is_reader(schema: Schema) -> bool:
    return "readers" in schema.module


def _publish(schema: Schema) -> None:
    if not _belongs(schema) or schema.name == "readers___TFRecord":
        return
    if _is_reader(schema):
        _publish_reader(schema)
        return
    face = face_of(schema.name)
    made = _make_class(schema, Operator, f"{_ROOT}._ops", face)
    _all_ops.append(made)
    setattr(submodule(f"{_ROOT}._ops", ".".join(schema.module)), schema.class_name, made)
    function = _make_function(face, made)
    _all_functions.append(function)
    path, _, name = schema.fn_path.rpartition(".")
    setattr(submodule(_ROOT, path), name, function)


def _publish_reader(schema: Schema) -> None:
    base: type[Reader] = Reader
    if schema.name == "readers__TFRecord":
        schema, base = find_schema("readers___TFRecord"), _TFRecord
    made = _make_class(schema, base, _ROOT, Face(schema, schema.fn_path), "TFRecord" if base is _TFRecord else None)
    made.__signature__ = _reader_signature(base, schema)
    _all_ops.append(made)
    setattr(submodule(_ROOT, ".".join(schema.module)), made.__name__, made)


def _make_class(schema: Schema, base: type, root: str, face: Face, name: str | None = None) -> Given:
    name = name or schema.class_name
    made = type(name, (base,), {"_face": face, "__doc__": documentation(schema), "__qualname__": name})
    made.__module__ = ".".join((root, *schema.module))
    return made


def _make_function(face: Face, made: object) -> Callable[..., Outcome]:
    path, _, name = face.schema.fn_path.rpartition(".")
    least, most = _input_counts(face.schema)
    known = _accepted(face.schema)

    def function(*inputs: object, batch_size: int | None = None, device: object = None, **arguments: object) -> Outcome:
        if not least <= len(inputs) <= most or not known.issuperset(arguments):
            raise _miscalled(face.schema, name, len(inputs), [own for own in arguments if own not in known])
        return call(face, inputs, arguments, batch_size, device)

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"{_ROOT}.{path}" if path else _ROOT
    function.__doc__ = documentation(face.schema)
    for attribute, value in {
        "__signature__": _signature(face.schema),
        "_op_class": made,
    }.items():
        setattr(function, attribute, value)
    return function


def _input_counts(schema: Schema) -> tuple[int, float]:
    """The least and the greatest number of inputs that a call can have."""
    if schema.variadic:
        return max(schema.min_input_count, 1), math.inf
    return schema.min_input_count, len(schema.inputs)


def _accepted(schema: Schema) -> frozenset[str]:
    """The arguments that a call can have; random operators draw their seeds from ``rng``."""
    if schema.random:
        return frozenset(schema.all_arguments) - _PIPELINE_ONLY - {"seed"} | {"rng"}
    return frozenset(schema.all_arguments) - _PIPELINE_ONLY


def _miscalled(schema: Schema, name: str, count: int, unknown: Sequence[str]) -> TypeError:
    """What Python itself would say of a function with these parameters."""
    if unknown:
        return _unexpected(schema, name, unknown[0])
    least, most = _input_counts(schema)
    if count < least:
        inputs = [f"input_{index}" if schema.variadic else schema.inputs[index].name for index in range(count, least)]
        missing = " and ".join(map(repr, inputs))
        return TypeError(f"{name}() missing {_plural(least - count, 'required positional argument')}: {missing}")
    takes = (
        _plural(int(most), "positional argument") if least == most else f"from {least} to {most} positional arguments"
    )
    return TypeError(f"{name}() takes {takes} but {count} {'was' if count == 1 else 'were'} given")


def _unexpected(schema: Schema, name: str, argument: str) -> TypeError:
    why = "" if argument in schema.all_arguments else f". {schema.unknown_argument(argument).args[0]}"
    return TypeError(f"{name}() got an unexpected keyword argument {argument!r}{why}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _signature(schema: Schema) -> inspect.Signature:
    parameters = []
    for index, own in enumerate(schema.inputs):
        default = None if index >= schema.min_input_count else inspect.Parameter.empty
        parameters.append(inspect.Parameter(own.name, inspect.Parameter.POSITIONAL_ONLY, default=default))
    if schema.variadic:
        parameters.append(inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL))
    parameters += [inspect.Parameter(name, _KEYWORD, default=None) for name in ("batch_size", "device")]
    parameters += [own for own in _keywords(schema) if not (schema.random and own.name == "seed")]
    if schema.random:
        parameters.append(inspect.Parameter("rng", _KEYWORD, default=None))
    return inspect.Signature(parameters)


def _keywords(schema: Schema) -> list[inspect.Parameter]:
    """The operator's own arguments, in order of name."""
    return [
        inspect.Parameter(own.name, _KEYWORD, default=inspect.Parameter.empty if own.required else None)
        for own in sorted(shown_arguments(schema), key=lambda own: own.name)
        if own.name not in _PIPELINE_ONLY
    ]


def _reader_signature(base: type[Reader], schema: Schema) -> inspect.Signature:
    """What the base's constructor names, with the schema's arguments in place of ``**arguments``."""
    named = dict(inspect.signature(base).parameters)
    del named["arguments"]
    # The constructor makes `feature_names` from `features`.
    taken = [own for own in _keywords(schema) if own.name not in {*named, "feature_names"}]
    return inspect.Signature([*named.values(), *taken])


def schema_of(made: type[Operator] | type[Reader]) -> Schema:
    """The declaration of an operator's class here."""
    return made._face.schema


def documentation(schema: Schema) -> str:
    """The docstring of an operator in dynamic mode."""
    text = re.sub(r"\bfn\.", "dynamic.", docstring(schema).replace("DataNode", "Tensor | Batch"))
    return text.replace("TensorList", "Batch").replace("the graph", "a call").replace("given by a call", "given")


def all_operators() -> list[type[Operator] | type[Reader]]:
    """The classes that were made so far."""
    return list(_all_ops)


def all_functions() -> list[Callable[..., Outcome]]:
    """The functions that were made so far."""
    return list(_all_functions)


def publish() -> None:
    """Makes the classes and functions of all operators, and of those registered later."""
    if not _all_ops:
        subscribe(_publish)


__all__ = [
    "Operator",
    "Reader",
    "ReaderMeta",
    "ReaderState",
    "all_functions",
    "all_operators",
    "documentation",
    "publish",
]
__path__: list[str] = []
