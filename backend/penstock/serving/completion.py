"""Completes a model's configuration from its pipeline."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.data_types import UINT8
from penstock.pipeline import Pipeline
from penstock.serving.config_text import without_field
from penstock.serving.configuration import (
    check_controls,
    check_input_names,
    check_not_too_many,
    configured_inputs,
    full_output_order,
    split_outputs,
)
from penstock.serving.entries import (
    BYTES,
    TRITON_TYPES,
    control_entries,
    data_type_of,
    dims_of,
    strings_of,
    tensor_dims,
    triton_type,
)
from penstock.serving.probing import TensorInfo, declared_inputs, declared_outputs, probe, streams
from penstock.serving.settings import ConfigurationError, Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TensorConfiguration:
    """One input or output in a model's configuration.

    Attributes:
        name: the name that clients see.
        data_type: the type in the configuration, e.g. ``TYPE_FP32``.
        dims: the extents without the batch dimension; -1: variable.
        ragged: whether requests with different shapes may share a batch.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    ragged: bool = False


@dataclass(frozen=True)
class ModelConfiguration:
    """The configuration that a pipeline requires of its model; ``split``: the outputs whose samples are split along
    their first dimension.
    """

    max_batch_size: int
    inputs: tuple[TensorConfiguration, ...]
    outputs: tuple[TensorConfiguration, ...]
    split: tuple[str, ...] = ()


def expected_configuration(pipeline: Pipeline, max_batch_size: int, split: tuple[str, ...] = ()) -> ModelConfiguration:
    """Return the complete configuration for a pipeline's model; run the pipeline to find the properties of its outputs."""
    config: dict[str, Any] = {"max_batch_size": max_batch_size, "input": [], "output": []}
    complete_configuration(config, pipeline, Settings(split_along_outer_axis=split), batched=True)
    inputs, outputs = (
        tuple(
            TensorConfiguration(
                entry["name"], entry["data_type"], tuple(entry["dims"]), entry.get("allow_ragged_batch", False)
            )
            for entry in config[kind]
        )
        for kind in ("input", "output")
    )
    return ModelConfiguration(max_batch_size, inputs, outputs, split)


# -- batches -----------------------------------------------------------------------------------------------------------


def is_batched(config: Mapping[str, object], text: str = "") -> bool:
    """Return whether Triton batches the model's requests: its ``max_batch_size`` is not 0.

    Args:
        config: the configuration from Triton, in which 0 may also mean that ``max_batch_size`` is missing.
        text: the text of the model's ``config.pbtxt``, which tells whether the field is missing.
    """
    if config.get("max_batch_size"):
        return True
    return not any(name == "max_batch_size" and int(value, 0) == 0 for name, value in _numbers_of(text))


_TOKEN = re.compile(r'#.*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{\[<]|[}\]>]|(\w+)\s*:\s*(\d\w*)|\w+')


def _numbers_of(text: str) -> list[tuple[str, str]]:
    """Return the names and values of the numeric fields of a text-format message, without those of nested messages."""
    found, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "{[<") - (token[0] in "}]>")
        if token[1] and not depth:
            found.append((token[1], token[2]))
    return found


# -- completing --------------------------------------------------------------------------------------------------------


def complete_configuration(config: dict[str, object], pipeline: Pipeline, settings: Settings, batched: bool) -> None:
    """Complete a configuration: inputs and outputs, or parts of them, the batch size, and batching.

    Args:
        config: the configuration from Triton, which is modified.
        pipeline: the model's pipeline, which is run if it does not declare its outputs.
        settings: the model's settings.
        batched: whether Triton should batch the requests.

    Raises:
        ConfigurationError: the configuration contradicts the pipeline's declarations, or these do not suffice.
    """
    config["max_batch_size"] = (config.get("max_batch_size") or pipeline.max_batch_size or 1) if batched else 0
    _complete_inputs(config, pipeline, settings)
    _complete_outputs(config, pipeline, settings)
    # Requests whose samples last for several runs are processed one at a time, so batching is of no use to them.
    if batched and not streams(pipeline) and "dynamic_batching" not in config and "sequence_batching" not in config:
        config["dynamic_batching"] = {}


def explained_choices(config: Mapping[str, Any], pipeline: Pipeline, text: str) -> list[str]:
    """Return explanations of the choices that the server made where a configuration leaves them open.

    Args:
        config: the complete configuration.
        pipeline: the model's pipeline.
        text: the text of the model's ``config.pbtxt``.
    """
    explained = []
    if config.get("dynamic_batching") == {} and without_field(text, "dynamic_batching") == text:
        explained.append(
            f"the configuration has no dynamic_batching: requests are batched up to {config['max_batch_size']} samples, without a queue "
            "delay, since they gather while a batch is computed, and a request that comes alone should not wait"
        )
    if without_field(text, "instance_group") == text:
        why = (
            "on each GPU, as a second one would make batches smaller"
            if pipeline.graph.uses_gpu()
            else "whose threads share each batch"
        )
        explained.append(
            f"the configuration has no instance_group: there is one instance {why}. `penstock tune` tries others"
        )
    return explained


def _complete_inputs(config: dict[str, Any], pipeline: Pipeline, settings: Settings) -> None:
    entries = config.setdefault("input", [])
    check_controls(config)
    controls = {entry["name"] for entry in control_entries(config)}
    declared = [info for info in declared_inputs(pipeline) if info.name not in controls]
    _name_nameless(entries, [info.name for info in declared], "input")
    check_input_names(entries, declared)
    for info in declared:
        entry = next((item for item in entries if item["name"] == info.name), None)
        if entry is None:
            entry = {"name": info.name}
            entries.append(entry)
        _complete_input(entry, info, bool(config["max_batch_size"]))
        if info.name in settings.defaults:
            entry["optional"] = True


def _complete_input(entry: dict[str, object], info: TensorInfo, batched: bool) -> None:
    if data_type_of(entry) is None:
        if info.dtype is None and not entry.get("dims"):
            logger.info("the type of the input '%s' is unknown: encoded data of any length is expected", info.name)
        entry["data_type"] = triton_type(info.name, UINT8 if info.dtype is None else info.dtype)
    if not entry.get("dims"):
        encoded = entry["data_type"] in (BYTES, TRITON_TYPES[UINT8])
        if info.dims is None and not encoded:
            raise ConfigurationError(
                f"the rank of the input '{info.name}' is not known: give it `dims` in the configuration, or `ndim` in the pipeline"
            )
        of_sample = strings_of(info) if entry["data_type"] == BYTES else (-1,) if info.dims is None else info.dims
        entry["dims"] = tensor_dims(of_sample, batched)
    if -1 in dims_of(entry) and entry["data_type"] != BYTES:
        # A Python backend receives requests one by one, so the requests of a batch may differ in shape.
        entry["allow_ragged_batch"] = batched


def _complete_outputs(config: dict[str, Any], pipeline: Pipeline, settings: Settings) -> None:
    entries = config.setdefault("output", [])
    declared, batched = declared_outputs(pipeline), bool(config["max_batch_size"])
    check_not_too_many(entries, declared)
    names = [info.name for info in declared]
    if all(entry["name"] in names for entry in entries if entry.get("name")):
        _name_nameless(entries, names, "output")
    order = full_output_order(entries, names)
    for index in order[len(entries) :]:
        entries.append({"name": declared[index].name})
    for entry, index in zip(entries, order):
        entry["name"] = entry.get("name") or declared[index].name
    split = split_outputs(settings, entries, declared, order)
    known = declared
    if not all(data_type_of(entry) and entry.get("dims") for entry in entries):
        known = _known_outputs(declared, probe(pipeline, configured_inputs(config)))
    for entry, index, is_split in zip(entries, order, split):
        _complete_output(entry, known[index], is_split, batched)


def _complete_output(entry: dict[str, Any], info: TensorInfo, split: bool, batched: bool) -> None:
    if data_type_of(entry) is None:
        if info.dtype is None:
            raise _unknown(entry["name"])
        entry["data_type"] = triton_type(entry["name"], info.dtype)
    if not entry.get("dims"):
        if info.dims is None:
            raise _unknown(entry["name"])
        entry["dims"] = tensor_dims(strings_of(info) if entry["data_type"] == BYTES else info.dims[split:], batched)


def _unknown(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"the type and rank of the output '{name}' are not known before real data comes: list the outputs in config.pbtxt, or "
        "give `output_dtype` and `output_ndim` in the pipeline's definition"
    )


def _known_outputs(declared: Sequence[TensorInfo], seen: Sequence[TensorInfo] | None) -> list[TensorInfo]:
    """Return the declared outputs, completed by what a probe found: the types and, if the ranks agree, the extents."""
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


def _name_nameless(entries: Sequence[dict[str, object]], names: Sequence[str], kind: str) -> None:
    """Set the names of entries without one: to the name of the pipeline's node at the same position, or, if that name is used,
    to the first unused one."""
    used_names = {entry["name"] for entry in entries if entry.get("name")}
    free = [name for name in names if name not in used_names]
    for index, entry in enumerate(entries):
        if entry.get("name"):
            continue
        if not free:
            raise ConfigurationError(
                f"The {kind} at index {index} in the model configuration does not contain a `name` field, and the pipeline has no "
                f"further one: it has {list(names)}."
            )
        entry["name"] = free.pop(free.index(names[index]) if index < len(names) and names[index] in free else 0)
