"""DALI's wire format: converts saved pipelines between bytes and plain records.

A saved pipeline is one protobuf message, whose fields are declared here. The records are independent of graphs and schemas:
they contain operators, data nodes and arguments under the names in the file.

>>> pipeline = PipelineDef(max_batch_size=4, num_threads=2)
>>> pipeline.operators.append(OpDef("ExternalSource", outputs=[EdgeDef("X", "cpu")], name="X", logical_id=0))
>>> pipeline.outputs.append(EdgeDef("X", "cpu"))
>>> decode(encode(pipeline)) == pipeline
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import SerializationError
from penstock.kernels.codecs.protobuf import Field, Messages

__all__ = ["CPU_ONLY", "ArgumentDef", "EdgeDef", "FeatureDef", "OpDef", "PipelineDef", "decode", "encode"]

CPU_ONLY = -99999
"""The ``device_id`` that DALI writes for a pipeline without a GPU."""


@dataclass
class FeatureDef:
    """One feature of a TFRecord reader.

    Attributes:
        kind: the type of the values: 0: int64, 1: string, 2: float32.
        shape: the shape of a feature of fixed length; None for variable length.
        default_value: an int, a str or a float, depending on ``kind``.
    """

    kind: int
    shape: list[int] | None
    default_value: int | str | float


@dataclass
class ArgumentDef:
    """A constant argument of an operator.

    Attributes:
        type: the type of the value, or of each element of a list: ``int64``, ``float``, ``bool``, ``string`` or
            ``TFRecord``.
        value: an int, float, bool or str; a list of one of these types; for ``TFRecord`` a list of :class:`FeatureDef`. Bytes of a
            string that are not UTF-8 become surrogate escapes, so that nothing is lost.
    """

    name: str
    type: str
    value: Any


@dataclass
class EdgeDef:
    """A data node as an operator's input or output, or as an output of the pipeline.

    Attributes:
        name: the data node's name: the operator's name, or ``name[i]`` if the operator has several outputs.
        device: ``cpu`` or ``gpu``: where the data is consumed or produced.
        argument: the name of the argument that the node feeds; None for positional inputs and for outputs.
        dtype, ndim, layout: the declared type, rank and layout of a pipeline's output; -1: undeclared; None: not in the file.
    """

    name: str
    device: str
    argument: str | None = None
    dtype: int | None = None
    ndim: int | None = None
    layout: str | None = None


@dataclass
class OpDef:
    """An operator.

    Attributes:
        schema: the name of the operator's schema, e.g. ``decoders__Image``.
        inputs: the positional inputs, then the argument inputs sorted by name; when a file is read, any order is accepted.
        name: the name of the instance; unique in the pipeline.
        logical_id: a number that the instances of one call on several input sets share.
    """

    schema: str
    inputs: list[EdgeDef] = field(default_factory=list)
    outputs: list[EdgeDef] = field(default_factory=list)
    arguments: list[ArgumentDef] = field(default_factory=list)
    name: str | None = None
    logical_id: int | None = None

    def argument(self, name: str, default: object = None) -> Any:
        """Return the value of the constant argument ``name``, or ``default`` if it is absent."""
        return next((a.value for a in self.arguments if a.name == name), default)


@dataclass
class PipelineDef:
    """A pipeline. Attributes that are None are not in the file.

    Attributes:
        num_threads: the number of CPU threads; -1: not set.
        operators: the operators in topological order.
        legacy_inputs: names of external inputs, in files of very old versions only.
        device_id: ordinal of the GPU; negative: none or unspecified.
        executor_type: bits: 1 pipelined, 2 asynchronous, 4 separated queues, 8 dynamic.
        executor_flags: bits: 1 thread affinity; 1 to 3 concurrency; 4 to 6 stream policy.
    """

    max_batch_size: int
    num_threads: int | None = None
    operators: list[OpDef] = field(default_factory=list)
    outputs: list[EdgeDef] = field(default_factory=list)
    legacy_inputs: list[str] = field(default_factory=list)
    device_id: int | None = None
    seed: int | None = None
    enable_checkpointing: bool | None = None
    executor_type: int | None = None
    executor_flags: int | None = None
    prefetch_queue_depth_cpu: int | None = None
    prefetch_queue_depth_gpu: int | None = None
    bytes_per_sample_hint: int | None = None


# -- the messages ------------------------------------------------------------------------------------------------------

# Number, name, label and type of each field. Text is declared as bytes, because files may contain any bytes there; this module, not
# protobuf, then reports or preserves invalid UTF-8.
_FIELDS: dict[str, tuple[Field, ...]] = {
    "Argument": (
        (1, "name", "required", "bytes"),
        (2, "type", "optional", "bytes"),
        (3, "floats", "repeated", "float"),
        (4, "ints", "repeated", "int64"),
        (5, "strings", "repeated", "bytes"),
        (6, "bools", "repeated", "bool"),
        (7, "elements", "repeated", "Argument"),
        (8, "is_list", "required", "bool"),
    ),
    "Edge": (
        (1, "name", "required", "bytes"),
        (2, "device", "required", "bytes"),
        (3, "is_argument", "required", "bool"),
        (4, "argument", "optional", "bytes"),
        (5, "dtype", "optional", "int32"),
        (6, "ndim", "optional", "int32"),
        (7, "layout", "optional", "bytes"),
    ),
    "Operator": (
        (1, "schema", "required", "bytes"),
        (2, "inputs", "repeated", "Edge"),
        (3, "outputs", "repeated", "Edge"),
        (4, "arguments", "repeated", "Argument"),
        (5, "name", "optional", "bytes"),
        (6, "logical_id", "optional", "int32"),
    ),
    "Pipeline": (
        (1, "num_threads", "optional", "int64"),
        (2, "max_batch_size", "required", "int32"),
        (5, "operators", "repeated", "Operator"),
        (6, "legacy_inputs", "repeated", "bytes"),
        (7, "outputs", "repeated", "Edge"),
        (8, "device_id", "optional", "int32"),
        (9, "seed", "optional", "int64"),
        (10, "enable_checkpointing", "optional", "bool"),
        (11, "executor_type", "optional", "int32"),
        (12, "executor_flags", "optional", "int64"),
        (13, "prefetch_queue_depth_cpu", "optional", "int32"),
        (14, "prefetch_queue_depth_gpu", "optional", "int32"),
        (15, "bytes_per_sample_hint", "optional", "int64"),
    ),
}

_MESSAGES = Messages("penstock.wire", _FIELDS)

_SETTINGS = tuple(name for _, name, label, kind in _FIELDS["Pipeline"] if label != "repeated" and kind not in _FIELDS)

# By type of an argument: the field of an Argument message that holds the values, and the conversion of a value.
_VALUES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int64": ("ints", int),
    "float": ("floats", float),
    "bool": ("bools", bool),
    "string": ("strings", lambda text: text.encode("utf-8", "surrogateescape")),
}

_FEATURE_TYPES = ("int64", "string", "float")


# -- reading -----------------------------------------------------------------------------------------------------------


def decode(data: bytes) -> PipelineDef:
    """Return the pipeline in ``data``. Unknown fields are ignored.

    Raises:
        SerializationError: ``data`` is not a saved pipeline, or is inconsistent.
        TypeError: ``data`` is neither bytes nor text.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        kind = SerializationError if isinstance(data, str) else TypeError
        raise kind(f"A saved pipeline must be bytes, got {type(data).__name__}")
    try:
        message = _MESSAGES.parse("Pipeline", bytes(data))
    except ImportError as error:
        raise SerializationError(f"Reading DALI pipelines: {error}") from error
    except ValueError as error:
        raise SerializationError(f"This is not a saved DALI pipeline, or it is damaged: {error}") from error
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors()[:5])
        raise SerializationError(f"This is not a saved DALI pipeline, or it is damaged: it lacks {missing}")
    settings = {name: getattr(message, name) for name in _SETTINGS if message.HasField(name)}
    return PipelineDef(
        operators=[_read_operator(op, index) for index, op in enumerate(message.operators)],
        outputs=[_read_edge(edge, "output of the pipeline") for edge in message.outputs],
        legacy_inputs=[_text(name, "name of an input") for name in message.legacy_inputs],
        **settings,
    )


def _read_operator(message: Any, index: int) -> OpDef:
    schema = _text(message.schema, f"schema of operator #{index}")
    name = _text(message.name, f"name of operator #{index}") if message.HasField("name") else None
    where = f"operator '{name if name is not None else schema}'"
    arguments = [_read_argument(argument, where) for argument in message.arguments]
    _check_distinct((a.name for a in arguments), where)
    return OpDef(
        schema=schema,
        inputs=[_read_edge(edge, f"input of {where}") for edge in message.inputs],
        outputs=[_read_edge(edge, f"output of {where}") for edge in message.outputs],
        arguments=arguments,
        name=name,
        logical_id=message.logical_id if message.HasField("logical_id") else None,
    )


def _check_distinct(names: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SerializationError(f"Argument '{name}' is given twice in {where}")
        seen.add(name)


def _read_edge(message: Any, where: str) -> EdgeDef:
    name = _text(message.name, where)
    device = _text(message.device, where)
    if device not in ("cpu", "gpu"):
        raise SerializationError(f"The device of '{name}', {where}, is neither cpu nor gpu: {device!r}")
    if message.is_argument and not message.HasField("argument"):
        raise SerializationError(f"'{name}', {where}, feeds an argument, but lacks the argument's name")
    return EdgeDef(
        name=name,
        device=device,
        argument=_text(message.argument, where) if message.is_argument else None,
        dtype=message.dtype if message.HasField("dtype") else None,
        ndim=message.ndim if message.HasField("ndim") else None,
        layout=_text(message.layout, where) if message.HasField("layout") else None,
    )


def _read_argument(message: Any, where: str) -> ArgumentDef:
    name = _text(message.name, f"name of an argument of {where}")
    where = f"argument '{name}' of {where}"
    kind = _text(message.type, where)
    if kind not in _VALUES and kind != "TFRecord":
        raise SerializationError(f"The type of {where} is not known: {kind!r}")
    read = _read_feature if kind == "TFRecord" else _read_scalar
    if not message.is_list:
        return ArgumentDef(name, kind, read(message, kind, where))
    return ArgumentDef(name, kind, [read(element, kind, where) for element in message.elements])


def _read_scalar(message: Any, kind: str, where: str) -> Any:
    written = _text(message.type, where)
    if written != kind or message.is_list:
        raise SerializationError(f"An element of {where} is {written!r} where {kind!r} was announced")
    values = getattr(message, _VALUES[kind][0])
    if len(values) != 1:
        raise SerializationError(f"Expected one {kind} in {where}, found {len(values)}")
    return values[0].decode("utf-8", "surrogateescape") if kind == "string" else values[0]


def _read_feature(message: Any, _kind: str, where: str) -> FeatureDef:
    where = f"a feature in {where}"
    members = {_text(member.name, where): member for member in message.elements}
    missing = {"type", "has_shape", "shape", "default_value"} - members.keys()
    if missing:
        raise SerializationError(f"{where} lacks {', '.join(sorted(missing))}")
    kind = _read_scalar(members["type"], "int64", where)
    if not 0 <= kind < len(_FEATURE_TYPES):
        raise SerializationError(f"The type of {where} is not known: {kind}")
    return FeatureDef(
        kind=kind,
        shape=list(members["shape"].ints) if _read_scalar(members["has_shape"], "bool", where) else None,
        default_value=_read_scalar(members["default_value"], _FEATURE_TYPES[kind], where),
    )


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SerializationError(f"The {where} is not valid UTF-8: {data!r}") from None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode(pipeline: PipelineDef) -> bytes:
    """Return the bytes that DALI would write for ``pipeline``: fields in order, None omitted.

    Raises:
        SerializationError: a value does not fit its type.
    """
    try:
        message = _MESSAGES.new("Pipeline")
        for name in _SETTINGS:
            _set(message, name, getattr(pipeline, name))
        for op in pipeline.operators:
            _write_operator(message.operators.add(), op)
        for edge in pipeline.outputs:
            _write_edge(message.outputs.add(), edge)
        message.legacy_inputs.extend(name.encode() for name in pipeline.legacy_inputs)
        serialized: bytes = message.SerializeToString(deterministic=True)
        return serialized
    except ImportError as error:
        raise SerializationError(f"Writing DALI pipelines: {error}") from error
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, SerializationError):
            raise
        raise SerializationError(f"The pipeline cannot be written: {error}") from error


def _set(message: object, name: str, value: object) -> None:
    if value is not None:
        setattr(message, name, value.encode() if isinstance(value, str) else value)


def _write_operator(message: Any, op: OpDef) -> None:
    for name in ("schema", "name", "logical_id"):
        _set(message, name, getattr(op, name))
    for edge in op.inputs:
        _write_edge(message.inputs.add(), edge)
    for edge in op.outputs:
        _write_edge(message.outputs.add(), edge)
    _check_distinct((a.name for a in op.arguments), f"operator '{op.name or op.schema}'")
    for argument in op.arguments:
        try:
            _write_argument(message.arguments.add(), argument)
        except (TypeError, ValueError, OverflowError, AttributeError, KeyError) as error:
            where = f"argument '{argument.name}' of operator '{op.name or op.schema}'"
            raise SerializationError(
                f"Cannot write {argument.value!r} as {argument.type} in {where}: {error}"
            ) from error


def _write_edge(message: Any, edge: EdgeDef) -> None:
    for name in ("name", "device", "argument", "dtype", "ndim", "layout"):
        _set(message, name, getattr(edge, name))
    message.is_argument = edge.argument is not None


def _write_argument(message: Any, argument: ArgumentDef) -> None:
    write = _write_feature if argument.type == "TFRecord" else _write_scalar
    if not isinstance(argument.value, (list, tuple)):
        write(message, argument.name, argument.type, argument.value)
        return
    message.name = argument.name.encode()
    message.type = argument.type.encode()
    message.is_list = True
    for index, value in enumerate(argument.value):
        write(message.elements.add(), f"element {index}", argument.type, value)


def _write_scalar(message: Any, name: str, kind: str, value: Any) -> None:
    container, prepare = _VALUES[kind]
    message.name = name.encode()
    message.type = kind.encode()
    getattr(message, container).append(prepare(value))
    message.is_list = False


def _write_feature(message: Any, name: str, kind: str, feature: FeatureDef) -> None:
    message.name = name.encode()
    message.type = kind.encode()
    message.is_list = False
    _write_scalar(message.elements.add(), "type", "int64", feature.kind)
    _write_scalar(message.elements.add(), "has_shape", "bool", feature.shape is not None)
    # DALI writes the extents of a shape as repeated values, and omits the type if there are none.
    shape = message.elements.add(name=b"shape", is_list=False)
    if feature.shape:
        shape.type = b"int64"
        shape.ints.extend(feature.shape)
    _write_scalar(message.elements.add(), "default_value", _FEATURE_TYPES[feature.kind], feature.default_value)
