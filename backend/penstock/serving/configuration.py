"""A model's Triton configuration: completed from its pipeline, and held against it."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import did_you_mean
from penstock.pipeline import Pipeline
from penstock.serving.probing import TensorInfo, declared_inputs, declared_outputs, probe, source_steps, streams
from penstock.serving.requests import InputSpec, OutputSpec, sample_of
from penstock.serving.settings import ConfigurationError, Settings
from penstock.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    dtype_name,
    numpy_dtype,
)

__all__ = [
    "BYTES",
    "ConfigurationError",
    "ModelConfiguration",
    "TensorConfiguration",
    "check_configuration",
    "check_libraries",
    "complete_configuration",
    "configured_inputs",
    "expected_configuration",
    "input_specs",
    "is_batched",
    "output_order",
    "output_specs",
    "warn_of_differences",
]

logger = logging.getLogger(__name__)

TRITON_TYPES = {
    BOOL: "TYPE_BOOL",
    UINT8: "TYPE_UINT8",
    UINT16: "TYPE_UINT16",
    UINT32: "TYPE_UINT32",
    UINT64: "TYPE_UINT64",
    INT8: "TYPE_INT8",
    INT16: "TYPE_INT16",
    INT32: "TYPE_INT32",
    INT64: "TYPE_INT64",
    FLOAT16: "TYPE_FP16",
    FLOAT: "TYPE_FP32",
    FLOAT64: "TYPE_FP64",
}
BYTES = "TYPE_STRING"
_UNKNOWN_TYPE = "TYPE_INVALID"  # how Triton says that an entry has none


@dataclass(frozen=True)
class TensorConfiguration:
    """One input or output in a model's configuration.

    Attributes:
        name: as clients call it.
        data_type: as the configuration calls it, e.g. ``TYPE_FP32``.
        dims: extents without the batch dimension, -1 where they vary.
        ragged: requests of different sizes may meet in one batch.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    ragged: bool = False


@dataclass(frozen=True)
class ModelConfiguration:
    """What a pipeline wants of its model's configuration."""

    max_batch_size: int
    inputs: tuple[TensorConfiguration, ...]
    outputs: tuple[TensorConfiguration, ...]


def expected_configuration(pipeline: Pipeline, max_batch_size: int) -> ModelConfiguration:
    """The whole configuration of a pipeline's model; the pipeline is run to learn what its outputs are."""
    config: dict[str, Any] = {"max_batch_size": max_batch_size, "input": [], "output": []}
    complete_configuration(config, pipeline, Settings(), batched=True)
    inputs, outputs = (
        tuple(
            TensorConfiguration(
                entry["name"], entry["data_type"], tuple(entry["dims"]), entry.get("allow_ragged_batch", False)
            )
            for entry in config[kind]
        )
        for kind in ("input", "output")
    )
    return ModelConfiguration(max_batch_size, inputs, outputs)


# -- batches -----------------------------------------------------------------------------------------------------------


def is_batched(config: Mapping[str, Any], text: str = "") -> bool:
    """Whether Triton batches the model's requests: its ``max_batch_size`` is not 0.

    Args:
        config: as Triton gives it, in which 0 may also mean that there is no entry.
        text: of the model's ``config.pbtxt``, which tells the one from the other.
    """
    if config.get("max_batch_size"):
        return True
    return not any(name == "max_batch_size" and int(value, 0) == 0 for name, value in _numbers_of(text))


_TOKEN = re.compile(r'#.*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{\[<]|[}\]>]|(\w+)\s*:\s*(\d\w*)|\w+')


def _numbers_of(text: str) -> list[tuple[str, str]]:
    """The fields of a text-format message that are numbers, without those of messages inside of it."""
    found, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "{[<") - (token[0] in "}]>")
        if token[1] and not depth:
            found.append((token[1], token[2]))
    return found


# -- completing --------------------------------------------------------------------------------------------------------


def complete_configuration(config: dict[str, Any], pipeline: Pipeline, settings: Settings, batched: bool) -> None:
    """Fills in what a configuration does not tell: whole inputs and outputs, parts of them, batch size, batching.

    Args:
        config: as Triton gives it; changed.
        pipeline: of the model; it is run where it does not declare its outputs.
        settings: of the model.
        batched: Triton is to batch the requests.

    Raises:
        ConfigurationError: the configuration contradicts what the pipeline declares, or too little is known.
    """
    config["max_batch_size"] = (config.get("max_batch_size") or pipeline.max_batch_size or 1) if batched else 0
    _complete_inputs(config, pipeline, settings)
    _complete_outputs(config, pipeline, settings)
    # What lasts for several runs is run one by one, and better by several instances.
    if batched and not streams(pipeline) and "dynamic_batching" not in config and "sequence_batching" not in config:
        config["dynamic_batching"] = {}


def _complete_inputs(config: dict[str, Any], pipeline: Pipeline, settings: Settings) -> None:
    entries = config.setdefault("input", [])
    declared = declared_inputs(pipeline)
    _name_nameless(entries, [info.name for info in declared])
    _check_input_names(entries, declared)
    for info in declared:
        entry = next((item for item in entries if item["name"] == info.name), None)
        if entry is None:
            entry = {"name": info.name}
            entries.append(entry)
        _complete_input(entry, info, bool(config["max_batch_size"]))
        if info.name in settings.defaults:
            entry["optional"] = True


def _complete_input(entry: dict[str, Any], info: TensorInfo, batched: bool) -> None:
    if _data_type(entry) is None:
        # A source that declares neither type nor rank takes encoded data: bytes of any length.
        entry["data_type"] = _triton_type(info.name, UINT8 if info.dtype is None else info.dtype)
    if not entry.get("dims"):
        encoded = entry["data_type"] in (BYTES, TRITON_TYPES[UINT8])
        if info.dims is None and not encoded:
            raise ConfigurationError(
                f"the rank of the input '{info.name}' is not known: give it `dims` in the configuration, or `ndim` in the pipeline"
            )
        of_sample = (1,) if entry["data_type"] == BYTES else (-1,) if info.dims is None else info.dims
        entry["dims"] = _tensor_dims(of_sample, batched)
    if -1 in _dims(entry) and entry["data_type"] != BYTES:
        # Requests come one by one to a Python backend, so nothing speaks against those of different shapes in a batch.
        entry["allow_ragged_batch"] = batched


def _complete_outputs(config: dict[str, Any], pipeline: Pipeline, settings: Settings) -> None:
    entries = config.setdefault("output", [])
    declared, batched = declared_outputs(pipeline), bool(config["max_batch_size"])
    _check_not_too_many(entries, declared)
    order = _complete_order(entries, [info.name for info in declared])
    for index in order[len(entries) :]:
        entries.append({"name": declared[index].name})
    for entry, index in zip(entries, order):
        entry["name"] = entry.get("name") or declared[index].name
    split = _split_outputs(settings, entries, declared, order)
    known = declared
    if not all(_data_type(entry) and entry.get("dims") for entry in entries):
        known = _known_outputs(declared, probe(pipeline, configured_inputs(config)))
    for entry, index, is_split in zip(entries, order, split):
        _complete_output(entry, known[index], is_split, batched)


def _complete_output(entry: dict[str, Any], info: TensorInfo, split: bool, batched: bool) -> None:
    if _data_type(entry) is None:
        entry["data_type"] = _triton_type(entry["name"], info.dtype)
    if not entry.get("dims"):
        if info.dims is None:
            raise _unknown(entry["name"])
        entry["dims"] = _tensor_dims((1,) if entry["data_type"] == BYTES else info.dims[split:], batched)


def _triton_type(name: str, dtype: DALIDataType | None) -> str:
    if dtype is None:
        raise _unknown(name)
    if dtype not in TRITON_TYPES:
        raise ConfigurationError(f"'{name}' is of the type {dtype_name(dtype)}, which Triton does not know")
    return TRITON_TYPES[dtype]


def _unknown(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"the type and rank of the output '{name}' are not known before real data comes: list the outputs in config.pbtxt, or "
        "give `output_dtype` and `output_ndim` in the pipeline's definition"
    )


def _known_outputs(declared: Sequence[TensorInfo], seen: Sequence[TensorInfo] | None) -> list[TensorInfo]:
    """What is declared, with the extents that a probe saw where that does not contradict it."""
    if seen is None:
        return list(declared)
    return [
        TensorInfo(
            saying.name,
            seeing.dtype if saying.dtype is None else saying.dtype,
            seeing.dims if saying.dims is None or len(saying.dims) == len(seeing.dims or ()) else saying.dims,
        )
        for saying, seeing in zip(declared, seen)
    ]


def _name_nameless(entries: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Names entries without a name after what the pipeline has in their place, or has and nobody names."""
    taken = {entry["name"] for entry in entries if entry.get("name")}
    free = [name for name in names if name not in taken]
    for index, entry in enumerate(entries):
        if entry.get("name"):
            continue
        if not free:
            raise ConfigurationError(
                f"The input at index {index} in the model configuration does not contain a `name` field, and the pipeline has no "
                f"further external source: it has {list(names)}."
            )
        entry["name"] = free.pop(free.index(names[index]) if index < len(names) and names[index] in free else 0)


# -- checking ----------------------------------------------------------------------------------------------------------


def check_configuration(config: Mapping[str, Any], pipeline: Pipeline, settings: Settings) -> None:
    """Raises ConfigurationError where a complete configuration contradicts what the pipeline declares."""
    declared, batched = declared_inputs(pipeline), bool(config["max_batch_size"])
    if not declared:
        raise ConfigurationError(
            "the pipeline has no external source or video input, so there is nothing that a request could bring"
        )
    _check_input_names(config["input"], declared)
    entries = {entry["name"]: entry for entry in config["input"]}
    for info in declared:
        if info.name not in entries:
            raise ConfigurationError(
                f'Missing config for "{info.name}" input. The pipeline\'s external sources are {[i.name for i in declared]}.'
            )
        _check_entry(entries[info.name], info, batched)
    outputs = declared_outputs(pipeline)
    _check_not_too_many(config["output"], outputs)
    if len(config["output"]) < len(outputs):
        raise _other_number(config["output"], outputs)
    order = output_order(config["output"], pipeline)
    split = _split_outputs(settings, config["output"], outputs, order)
    for entry, index, is_split in zip(config["output"], order, split):
        _check_entry(entry, _outer_removed(outputs[index]) if is_split else outputs[index], batched)


def check_libraries(pipeline: Pipeline) -> None:
    """Raises ConfigurationError where an operator needs a library that cannot be loaded."""
    for op in pipeline.graph.operators:
        for library in op.schema.needs if op.device != "gpu" else ():
            if why := library.missing():
                raise ConfigurationError(
                    f"{op.display_name}: {why} (in the environment that the server runs models in)"
                )


def warn_of_differences(
    config: Mapping[str, Any], pipeline: Pipeline, settings: Settings, seen: Sequence[TensorInfo]
) -> None:
    """Logs where a probe saw other outputs than are configured: made-up data may be of another kind than real data."""
    order = output_order(config["output"], pipeline)
    for entry, index, split in zip(config["output"], order, _split_outputs(settings, config["output"], seen, order)):
        try:
            _check_entry(entry, _outer_removed(seen[index]) if split else seen[index], bool(config["max_batch_size"]))
        except ConfigurationError as error:
            logger.warning("Made-up inputs gave something else than is configured. %s", " ".join(str(error).split()))


def output_order(configured: Sequence[Mapping[str, Any]], pipeline: Pipeline) -> list[int]:
    """For each configured output, which of the pipeline's it is: by name where all names are known, else by position."""
    return _complete_order(configured, [node.name for node in pipeline.graph.outputs])[: len(configured)]


def _complete_order(configured: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[int]:
    """The order of the configured outputs, and behind them the others."""
    wanted = [entry.get("name") for entry in configured]
    if any(name not in names for name in wanted) or len(set(wanted)) < len(wanted):
        return list(range(len(names)))
    chosen = [names.index(name) for name in wanted if name is not None]
    return chosen + [index for index in range(len(names)) if index not in chosen]


def _split_outputs(
    settings: Settings, configured: Sequence[Mapping[str, Any]], outputs: Sequence[TensorInfo], order: Sequence[int]
) -> list[bool]:
    """Whether each configured output is split along its samples' outer axis; it may be named as here or as in the pipeline.

    Raises:
        ConfigurationError: the parameter names something else.
    """
    names = [{entry["name"], outputs[index].name} for entry, index in zip(configured, order)]
    unknown = set(settings.split_along_outer_axis).difference(*names)
    if unknown:
        raise ConfigurationError(
            f"split_along_outer_axis names {sorted(unknown)}, which are no outputs: there are {[e['name'] for e in configured]}"
        )
    return [not called.isdisjoint(settings.split_along_outer_axis) for called in names]


def input_specs(config: Mapping[str, Any], pipeline: Pipeline, settings: Settings) -> list[InputSpec]:
    """How the tensors of a complete configuration's inputs become samples."""
    declared = {info.name: info for info in declared_inputs(pipeline)}
    repeating = {op.name for op in source_steps(pipeline) if op.arguments.get("repeat_last")}
    strange = settings.defaults.keys() - declared.keys()
    if strange:
        raise ConfigurationError(f"the parameter 'defaults' names {sorted(strange)}: the inputs are {list(declared)}")
    said = configured_inputs(config)
    return [
        _input_spec(entry, declared[entry["name"]], said[entry["name"]], repeating, settings)
        for entry in config["input"]
    ]


def _input_spec(
    entry: Mapping[str, Any], info: TensorInfo, said: TensorInfo, repeating: Collection[str], settings: Settings
) -> InputSpec:
    optional, dtype = bool(entry.get("optional")), said.dtype if info.dtype is None else info.dtype
    spec = InputSpec(
        info.name,
        _data_type(entry) == BYTES,
        None if dtype is None else numpy_dtype(dtype),
        None if info.dims is None else len(info.dims),
        info.layout,
        optional,
        repeats=optional and info.name in repeating,
    )
    if not optional or info.name not in settings.defaults:
        return spec
    try:
        return replace(spec, default=sample_of(settings.defaults[info.name], spec))
    except ValueError as error:
        raise ConfigurationError(f"the parameter 'defaults': {error}") from error


def output_specs(config: Mapping[str, Any], pipeline: Pipeline, settings: Settings) -> list[OutputSpec]:
    """How the pipeline's outputs become the tensors of a complete configuration, in its order."""
    entries, batched = config["output"], bool(config["max_batch_size"])
    split = _split_outputs(settings, entries, declared_outputs(pipeline), output_order(entries, pipeline))
    return [
        OutputSpec(entry["name"], _data_type(entry) == BYTES, is_split, len(_own_dims(entry)) + batched)
        for entry, is_split in zip(entries, split)
    ]


def _own_dims(entry: Mapping[str, Any]) -> Sequence[Any]:
    """An entry's dims as the model, rather than the client, sees them."""
    reshaped = entry.get("reshape")
    return reshaped.get("shape", ()) if reshaped else entry["dims"]


def configured_inputs(config: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """What the configuration says of each input's samples."""
    batched = bool(config["max_batch_size"])
    return {entry["name"]: _configured(entry, batched) for entry in config["input"]}


def _configured(entry: Mapping[str, Any], batched: bool) -> TensorInfo:
    if _data_type(entry) == BYTES:
        return TensorInfo(entry["name"], UINT8, (-1,))
    dtype = next((dtype for dtype, name in TRITON_TYPES.items() if name == entry.get("data_type")), None)
    dims = tuple(_dims(entry)[0 if batched else 1 :])
    return TensorInfo(entry["name"], dtype, dims if entry.get("dims") else None)


def _check_input_names(entries: Sequence[Mapping[str, Any]], declared: Sequence[TensorInfo]) -> None:
    names = [info.name for info in declared]
    for entry in entries:
        if entry["name"] not in names:
            raise ConfigurationError(
                f"Configuration file contains config for {entry['name']} but such input is not present in the pipeline. "
                f"The pipeline's external sources are {names}.{did_you_mean(entry['name'], names)}"
            )


def _check_not_too_many(entries: Sequence[Any], outputs: Sequence[TensorInfo]) -> None:
    if len(entries) > len(outputs):
        raise _other_number(entries, outputs)


def _other_number(entries: Sequence[Any], outputs: Sequence[TensorInfo]) -> ConfigurationError:
    return ConfigurationError(
        "The number of outputs specified in the DALI pipeline and the configuration file do not match.\n"
        f"Model config outputs: {len(entries)}\nPipeline outputs: {len(outputs)}\n"
        f"The pipeline's outputs are {[info.name for info in outputs]}."
    )


def _check_entry(entry: Mapping[str, Any], info: TensorInfo, batched: bool) -> None:
    """Raises ConfigurationError where an entry contradicts what is known of its tensor."""
    name, data_type = entry["name"], _data_type(entry)
    if data_type == BYTES and info.dtype in (None, UINT8) and (info.dims is None or len(info.dims) == 1):
        return
    if info.dtype is not None and data_type != TRITON_TYPES.get(info.dtype):
        raise ConfigurationError(
            f'Mismatch of data_type config for "{name}".\nData type defined in config: {data_type or _UNKNOWN_TYPE}\n'
            f"Data type defined in pipeline: {TRITON_TYPES.get(info.dtype, dtype_name(info.dtype))}"
        )
    if info.dims is not None:
        _check_dims(entry, _tensor_dims(info.dims, batched))


def _check_dims(entry: Mapping[str, Any], wanted: Sequence[int]) -> None:
    name, given = entry["name"], _dims(entry)
    if len(given) != len(wanted):
        raise ConfigurationError(
            f'Mismatch in number of dimensions for "{name}"\nNumber of dimensions defined in config: {len(given)}\n'
            f"Number of dimensions defined in pipeline: {len(wanted)}\n"
            f"The configuration has {given}, the pipeline {list(wanted)}."
        )
    if any(g != w and -1 not in (g, w) for g, w in zip(given, wanted)):
        raise ConfigurationError(
            f"Mismatch in dims for {name}\nDims defined in config: {given}\nDims defined in pipeline: {list(wanted)}"
        )


def _outer_removed(info: TensorInfo) -> TensorInfo:
    return TensorInfo(info.name, info.dtype, None if info.dims is None else info.dims[1:])


def _tensor_dims(of_sample: Sequence[int], batched: bool) -> list[int]:
    """The dims of a tensor in the configuration: without batches, the samples' own number comes first."""
    return (list(of_sample) or [1]) if batched else [-1, *of_sample]


def _data_type(entry: Mapping[str, Any]) -> str | None:
    given = entry.get("data_type")
    return None if given == _UNKNOWN_TYPE else given


def _dims(entry: Mapping[str, Any]) -> list[int]:
    return [int(extent) for extent in entry.get("dims") or ()]
