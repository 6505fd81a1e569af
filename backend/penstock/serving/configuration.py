"""Checks a model's Triton configuration against its pipeline, and derives the formats of requests and answers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from penstock.data_types import BFLOAT16, UINT8, dtype_name, numpy_dtype
from penstock.errors import did_you_mean
from penstock.pipeline import Pipeline
from penstock.serving.entries import (
    BYTES,
    TRITON_TYPES,
    UNKNOWN_TYPE,
    Entry,
    control_entries,
    data_type_of,
    dims_of,
    info_of,
    own_dims_of,
    strings_of_sample,
    tensor_dims,
)
from penstock.serving.probing import TensorInfo, declared_inputs, declared_outputs, multi_run_sources, source_steps
from penstock.serving.requests import InputSpec, OutputSpec, sample_of
from penstock.serving.settings import ConfigurationError, ModelConfig, Settings

logger = logging.getLogger(__name__)


def check_configuration(config: ModelConfig, pipeline: Pipeline, settings: Settings) -> None:
    """Raise ConfigurationError if a complete configuration contradicts the pipeline's declarations."""
    declared, batched = declared_inputs(pipeline), bool(config["max_batch_size"])
    if not declared:
        raise ConfigurationError("the pipeline has no external source or video input, so requests have no inputs")
    check_input_names(config["input"], declared)
    check_controls(config)
    entries = {entry["name"]: entry for entry in input_entries(config, pipeline)}
    for info in declared:
        if info.name not in entries:
            raise ConfigurationError(
                f'Missing config for "{info.name}" input. The pipeline\'s external sources are {[i.name for i in declared]}.'
            )
        _check_entry(entries[info.name], info, batched)
    outputs = declared_outputs(pipeline)
    check_not_too_many(config["output"], outputs)
    if len(config["output"]) < len(outputs):
        raise _other_number(config["output"], outputs)
    order = output_order(config["output"], pipeline)
    split = split_outputs(settings, config["output"], outputs, order)
    for entry, index, is_split in zip(config["output"], order, split):
        _check_entry(entry, _outer_removed(outputs[index]) if is_split else outputs[index], batched)


def check_libraries(pipeline: Pipeline) -> None:
    """Raise ConfigurationError if an operator needs a library that cannot be loaded."""
    for op in pipeline.graph.operators:
        for library in op.schema.needs if op.device != "gpu" else ():
            if why := library.missing():
                raise ConfigurationError(
                    f"{op.display_name}: {why} (in the environment that the server runs models in)"
                )


def warn_of_differences(
    config: ModelConfig, pipeline: Pipeline, settings: Settings, seen: Sequence[TensorInfo]
) -> None:
    """Log differences between the outputs of a probe and the configuration. They are no errors: real data may differ
    from generated data.
    """
    order = output_order(config["output"], pipeline)
    for entry, index, split in zip(config["output"], order, split_outputs(settings, config["output"], seen, order)):
        try:
            _check_entry(entry, _outer_removed(seen[index]) if split else seen[index], bool(config["max_batch_size"]))
        except ConfigurationError as error:
            logger.warning(
                "A run on made-up inputs returned something other than what is configured. %s",
                " ".join(str(error).split()),
            )


def output_order(configured: Sequence[Mapping[str, object]], pipeline: Pipeline) -> list[int]:
    """Return the index of the pipeline's output for each configured output: by name if all names are the pipeline's, else by position."""
    return full_output_order(configured, [node.name for node in pipeline.graph.outputs])[: len(configured)]


def full_output_order(configured: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[int]:
    """Return the indices of the pipeline's outputs: the configured ones in their order, then the others."""
    wanted = [entry.get("name") for entry in configured]
    if any(name not in names for name in wanted) or len(set(wanted)) < len(wanted):
        return list(range(len(names)))
    chosen = [names.index(name) for name in wanted if name is not None]
    return chosen + [index for index in range(len(names)) if index not in chosen]


def split_outputs(
    settings: Settings, configured: Sequence[Mapping[str, object]], outputs: Sequence[TensorInfo], order: Sequence[int]
) -> list[bool]:
    """Return whether each configured output is split along the outer axis of its samples. The setting names outputs as in the
    configuration or as in the pipeline.

    Raises:
        ConfigurationError: the setting names an output that does not exist.
    """
    names = [{entry["name"], outputs[index].name} for entry, index in zip(configured, order)]
    unknown = set(settings.split_along_outer_axis).difference(*names)
    if unknown:
        raise ConfigurationError(
            f"split_along_outer_axis names {sorted(unknown)}, which are not outputs: there are {[e['name'] for e in configured]}"
        )
    return [not called.isdisjoint(settings.split_along_outer_axis) for called in names]


def input_specs(config: ModelConfig, pipeline: Pipeline, settings: Settings) -> list[InputSpec]:
    """Return specifications of how to convert the input tensors of a complete configuration to samples."""
    declared = {info.name: info for info in declared_inputs(pipeline)}
    repeating = {op.name for op in source_steps(pipeline) if op.arguments.get("repeat_last")}
    strange = settings.defaults.keys() - declared.keys()
    if strange:
        raise ConfigurationError(f"the parameter 'defaults' names {sorted(strange)}: the inputs are {list(declared)}")
    seen, multi_run = configured_inputs(config), multi_run_sources(pipeline)
    controls = {entry["name"] for entry in control_entries(config)}
    specs = [
        _input_spec(entry, declared[entry["name"]], seen[entry["name"]], repeating, settings)
        for entry in input_entries(config, pipeline)
    ]
    return [replace(spec, multi_run=spec.name in multi_run, is_control=spec.name in controls) for spec in specs]


def input_entries(config: ModelConfig, pipeline: Pipeline) -> list[Entry]:
    """Return the entries of all inputs of requests: those that clients send, and the controls that are inputs of the pipeline."""
    names = {info.name for info in declared_inputs(pipeline)}
    return [*config["input"], *(entry for entry in control_entries(config) if entry["name"] in names)]


def check_controls(config: ModelConfig) -> None:
    """Raise ConfigurationError if a control of the sequence batcher is also listed as an input, which clients would have to send."""
    controls = {entry["name"] for entry in control_entries(config)}
    for entry in config["input"]:
        if entry.get("name") in controls:
            raise ConfigurationError(
                f"'{entry['name']}' is a control of sequence_batching, which Triton adds to requests: remove it from the inputs"
            )


def _input_spec(
    entry: Mapping[str, object], info: TensorInfo, seen: TensorInfo, repeating: Collection[str], settings: Settings
) -> InputSpec:
    optional, dtype = bool(entry.get("optional")), seen.dtype if info.dtype is None else info.dtype
    spec = InputSpec(
        info.name,
        data_type_of(entry) == BYTES,
        None if dtype is None else numpy_dtype(dtype),
        None if info.dims is None else len(info.dims),
        info.layout,
        optional,
        repeats=optional and info.name in repeating,
        max_bytes=settings.max_bytes,
    )
    if not optional or info.name not in settings.defaults:
        return spec
    try:
        return replace(spec, default=sample_of(settings.defaults[info.name], spec))
    except ValueError as error:
        raise ConfigurationError(f"the parameter 'defaults': {error}") from error


def output_specs(config: ModelConfig, pipeline: Pipeline, settings: Settings) -> list[OutputSpec]:
    """Return specifications of how to convert the pipeline's outputs to the tensors of a complete configuration, in its order."""
    entries, batched = config["output"], bool(config["max_batch_size"])
    split = split_outputs(settings, entries, declared_outputs(pipeline), output_order(entries, pipeline))
    return [
        OutputSpec(
            entry["name"],
            data_type_of(entry) == BYTES,
            is_split,
            len(own_dims_of(entry)) + batched,
            tuple(own_dims_of(entry)),
        )
        for entry, is_split in zip(entries, split)
    ]


def configured_inputs(config: ModelConfig) -> dict[str, TensorInfo]:
    """Return the configured properties of the samples of each input, by the input's name."""
    batched = bool(config["max_batch_size"])
    return {entry["name"]: info_of(entry, batched) for entry in (*config["input"], *control_entries(config))}


def check_input_names(entries: Sequence[Entry], declared: Sequence[TensorInfo]) -> None:
    """Raise ConfigurationError for inputs that the pipeline does not have, or whose type it cannot process."""
    names = [info.name for info in declared]
    for entry in entries:
        if data_type_of(entry) == TRITON_TYPES[BFLOAT16]:
            raise ConfigurationError(
                f"Input '{entry['name']}' is TYPE_BF16: pipelines do not compute with bfloat16, which is for outputs. "
                "Send TYPE_FP32 or TYPE_FP16"
            )
        if entry["name"] not in names:
            raise ConfigurationError(
                f"Configuration file contains config for {entry['name']} but such input is not present in the pipeline. "
                f"The pipeline's external sources are {names}.{did_you_mean(entry['name'], names)}"
            )


def check_not_too_many(entries: Sequence[object], outputs: Sequence[TensorInfo]) -> None:
    """Raise ConfigurationError if the configuration has more outputs than the pipeline."""
    if len(entries) > len(outputs):
        raise _other_number(entries, outputs)


def _other_number(entries: Sequence[object], outputs: Sequence[TensorInfo]) -> ConfigurationError:
    return ConfigurationError(
        "The number of outputs specified in the DALI pipeline and the configuration file do not match.\n"
        f"Model config outputs: {len(entries)}\nPipeline outputs: {len(outputs)}\n"
        f"The pipeline's outputs are {[info.name for info in outputs]}."
    )


def _check_entry(entry: Mapping[str, object], info: TensorInfo, batched: bool) -> None:
    """Raise ConfigurationError if an entry contradicts the known properties of its tensor."""
    name, data_type = entry["name"], data_type_of(entry)
    if data_type == BYTES and info.dtype in (None, UINT8):
        _check_strings(entry, info, batched)
        return
    if info.dtype is not None and data_type != TRITON_TYPES.get(info.dtype):
        raise ConfigurationError(
            f'Mismatch of data_type config for "{name}".\nData type defined in config: {data_type or UNKNOWN_TYPE}\n'
            f"Data type defined in pipeline: {TRITON_TYPES.get(info.dtype, dtype_name(info.dtype))}"
        )
    if info.dims is not None:
        _check_dims(entry, tensor_dims(info.dims, batched))


def _check_strings(entry: Mapping[str, object], info: TensorInfo, batched: bool) -> None:
    """Raise ConfigurationError if a sample has other dimensions of strings in the configuration than in the pipeline."""
    strings = strings_of_sample(entry, batched)
    ndim = 1 if info.dims is None else len(info.dims)
    if ndim == 1 and any(extent not in (1, -1) for extent in strings):
        raise ConfigurationError(
            f'A sample of "{entry["name"]}" is configured as {strings} strings, but in the pipeline it has one dimension, which '
            f"means one string. Give it {len(strings) + 1} dimensions there (`ndim`), the last one for the strings' bytes, padded with zeros"
        )
    if ndim > 1 and len(strings) != ndim - 1:
        raise ConfigurationError(
            f'A sample of "{entry["name"]}" is configured as {strings} strings, but in the pipeline it has {ndim} dimensions, of which '
            f"the last one is for the strings' bytes: configure {ndim - 1} dimensions of strings"
        )


def _check_dims(entry: Mapping[str, object], expected: Sequence[int]) -> None:
    name, actual = entry["name"], dims_of(entry)
    if len(actual) != len(expected):
        raise ConfigurationError(
            f'Mismatch in number of dimensions for "{name}"\nNumber of dimensions defined in config: {len(actual)}\n'
            f"Number of dimensions defined in pipeline: {len(expected)}\n"
            f"The configuration has {actual}, the pipeline {list(expected)}."
        )
    if any(g != w and -1 not in (g, w) for g, w in zip(actual, expected)):
        raise ConfigurationError(
            f"Mismatch in dims for {name}\nDims defined in config: {actual}\nDims defined in pipeline: {list(expected)}"
        )


def _outer_removed(info: TensorInfo) -> TensorInfo:
    return TensorInfo(info.name, info.dtype, None if info.dims is None else info.dims[1:])
