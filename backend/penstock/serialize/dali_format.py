"""Pipelines in DALI's wire format."""

from __future__ import annotations

from collections.abc import Callable

from penstock.data_types import DALIDataType
from penstock.errors import SerializationError
from penstock.graph import DataNode, Graph, OpNode
from penstock.runtime.settings import OperatorConcurrency, PipelineSettings, StreamPolicy
from penstock.runtime.sources import Source
from penstock.serialize import wire
from penstock.serialize.rebuilding import Defined, Rebuilder, SavedOperator, ToDefine

_UNDECLARED = -1
_RUNTIME_ONLY = ("bytes_per_sample_hint",)
# The bits of two fields of the executor's flags.
_CONCURRENCY, _STREAM_POLICY = 0b000_111_0, 0b111_000_0
_PIPELINED, _ASYNC, _SEPARATED, _DYNAMIC = 1, 2, 4, 8


def to_wire(graph: Graph, settings: PipelineSettings) -> bytes:
    """Return a pipeline, as defined, in DALI's wire format, without the user's source lines.

    Raises:
        SerializationError: an operator calls a Python function, which the format cannot represent.
        RuntimeError: the graph is invalid.
    """
    if settings.batch_size is None:
        raise SerializationError("The pipeline's batch size must be set before it is saved")
    graph.verify()
    logical_ids = graph.logical_ids()
    executor_type = _PIPELINED * settings.exec_pipelined | _ASYNC * settings.exec_async
    executor_type |= _SEPARATED * settings.exec_separated | _DYNAMIC * bool(settings.exec_dynamic)
    count = len(graph.outputs)
    definition = wire.PipelineDef(
        max_batch_size=settings.batch_size,
        num_threads=-1 if settings.num_threads is None else settings.num_threads,
        operators=[_to_record(op, logical_ids[op]) for op in graph.operators],
        outputs=[
            _output_edge(node, dtype, ndim)
            for node, dtype, ndim in zip(graph.outputs, settings.output_dtypes(count), settings.output_ndims(count))
        ],
        device_id=wire.CPU_ONLY if settings.device_id is None else settings.device_id,
        seed=settings.seed,
        enable_checkpointing=settings.enable_checkpointing,
        executor_type=executor_type,
        executor_flags=int(settings.set_affinity) | _executor_choices(settings),
        prefetch_queue_depth_cpu=settings.depths[0],
        prefetch_queue_depth_gpu=settings.depths[1],
        bytes_per_sample_hint=settings.bytes_per_sample,
    )
    return wire.encode(definition)


def _executor_choices(settings: PipelineSettings) -> int:
    """Return the bits of the concurrency, BACKEND by default, and of the stream policy."""
    concurrency, policy = settings.concurrency, settings.stream_policy
    choices = OperatorConcurrency.BACKEND if concurrency is None else concurrency
    return choices.value | (0 if policy is None else policy.value)


def _to_record(op: OpNode, logical_id: int) -> wire.OpDef:
    if op.payload is not None and not isinstance(op.payload, Source):
        raise SerializationError(
            f"Could not serialize the operator `{op.display_name}` ('{op.name}'): DALI's format cannot name Python objects. "
            "Save the pipeline with `save` in the readable format instead."
        )
    inputs = [wire.EdgeDef(node.name, node.device) for node in op.inputs]
    inputs += [
        wire.EdgeDef(op.argument_inputs[k].name, op.argument_inputs[k].device, k) for k in sorted(op.argument_inputs)
    ]
    arguments = [wire.ArgumentDef("device", "string", op.device)]
    for name, value in op.arguments.items():
        if name in _RUNTIME_ONLY:
            continue
        argument = op.schema.all_arguments[name]
        arguments.append(wire.ArgumentDef(name, argument.element.wire, value))
    arguments.append(wire.ArgumentDef("preserve_name", "bool", op.named))
    outputs = [wire.EdgeDef(node.name, node.device) for node in op.outputs]
    return wire.OpDef(op.schema.name, inputs, outputs, arguments, op.name, logical_id)


def _output_edge(node: DataNode, dtype: DALIDataType | None, ndim: int | None) -> wire.EdgeDef:
    return wire.EdgeDef(
        node.name,
        node.device,
        dtype=_UNDECLARED if dtype is None else int(dtype),
        ndim=_UNDECLARED if ndim is None else ndim,
    )


def from_wire(data: bytes, kind: Callable[..., Defined], overrides: dict[str, object]) -> Defined:
    """Return the pipeline in ``data``, made by calling ``kind`` and not built yet; ``overrides`` replace saved settings.

    Raises:
        SerializationError: the bytes are not a pipeline, or the pipeline is invalid.
    """
    definition = wire.decode(data)
    settings = _settings(definition) | _output_declarations(definition)
    settings |= {key: value for key, value in overrides.items() if value is not None}
    pipeline = kind(**settings)
    _define_from(definition, pipeline)
    return pipeline


def _settings(definition: wire.PipelineDef) -> dict[str, object]:
    flags = definition.executor_flags or 0
    return {
        "stream_policy": _choice(flags, _STREAM_POLICY, StreamPolicy),
        "concurrency": _choice(flags, _CONCURRENCY, OperatorConcurrency),
        "batch_size": definition.max_batch_size,
        "num_threads": None if definition.num_threads in (None, -1) else definition.num_threads,
        "device_id": definition.device_id if definition.device_id is not None and definition.device_id >= 0 else None,
        "seed": definition.seed,
        "enable_checkpointing": bool(definition.enable_checkpointing),
        "prefetch_queue_depth": definition.prefetch_queue_depth_cpu or 2,
    }


def _choice(flags: int, field: int, choices: type[OperatorConcurrency | StreamPolicy]) -> int:
    number = flags & field
    if number not in {choice.value for choice in choices}:
        raise SerializationError(f"The executor flags {flags:#x} are not valid")
    return number


def load_graph(data: bytes, pipeline: ToDefine) -> dict[str, object]:
    """Define the graph of ``pipeline`` from saved bytes, and return the saved settings."""
    definition = wire.decode(data)
    _define_from(definition, pipeline)
    return _settings(definition)


def _output_declarations(definition: wire.PipelineDef) -> dict[str, object]:
    outputs = definition.outputs
    dtypes = [None if e.dtype in (None, _UNDECLARED) else DALIDataType(e.dtype) for e in outputs]
    ndims = [None if e.ndim in (None, _UNDECLARED) else e.ndim for e in outputs]
    return {"output_dtype": dtypes, "output_ndim": ndims, "output_layout": [e.layout or None for e in outputs]}


def _define_from(definition: wire.PipelineDef, pipeline: ToDefine) -> None:
    rebuilder = Rebuilder()
    for name in definition.legacy_inputs:
        rebuilder.add(SavedOperator("ExternalSource", name, "cpu", [], outputs=[name]))
    for record in definition.operators:
        op = rebuilder.add(_from_record(record))
        if op.preserved and op.outputs:
            pipeline.add_sink(op.outputs[0])
    pipeline.set_outputs(*(rebuilder.node((e.name, e.device), "the outputs") for e in definition.outputs))


def _from_record(record: wire.OpDef) -> SavedOperator:
    return SavedOperator(
        schema=record.schema,
        name=record.name or "",
        device=record.argument("device", "cpu"),
        inputs=[(edge.name, edge.device) for edge in record.inputs if edge.argument is None],
        argument_inputs={e.argument: (e.name, e.device) for e in record.inputs if e.argument is not None},
        arguments={argument.name: argument.value for argument in record.arguments},
        outputs=[edge.name for edge in record.outputs],
        group=None if record.logical_id in (None, -1) else record.logical_id,
    )
