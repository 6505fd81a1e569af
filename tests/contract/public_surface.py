"""Records the public surface: names, arguments, commands, settings and format versions that releases keep compatible.

    python tests/contract/public_surface.py --write    # after a release, or after a change that the changelog announces

docs/versions.md describes the policy; `public_surface.json` contains the surface of the last release.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import pydoc
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

FILE = Path(__file__).with_suffix(".json")
_API_PAGES = Path(__file__).parents[2] / "docs" / "api"
_DOCUMENTED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# Plugins import frameworks that are not always installed. Their names follow the frameworks and DALI; the plugins' tests compare them.
_PLUGINS = "penstock.plugin."
# The members that programs may use: DALI's, and those of Penstock that the docs mention. Penstock uses other members
# internally; they may change.
_TENSOR = """as_cpu copy_to_external data_ptr device_type dtype get_property layout ndim reinterpret set_layout shape source_info
    squeeze"""
_TENSOR_LIST = """as_cpu as_reshaped_tensor as_tensor at copy_to_external data_ptr device_id device_type dtype is_dense_tensor layout ndim
    reset shape source_info"""
_DATA = "batch_size cpu device dtype evaluate gpu layout ndim select shape slice tensors to_device torch"
MEMBERS = {
    "Batch": _DATA,
    "Checkpoint": "clear collect deserialize get_state is_loaded load names register restore save serialize set_state",
    "EvalContext": "cuda_stream current default device_id evaluate_all num_threads",
    "Pipeline": """add_sink batch_size build checkpoint close current define_graph deserialize deserialize_and_build device_id empty
        end_epoch epoch_size exec_async exec_dynamic exec_pipelined exec_separated executor_statistics feed_input fusion_statistics
        input_feed_count is_restored_from_checkpoint iter_setup load max_batch_size num_outputs num_threads outputs passes
        prefetch_queue_depth py_num_workers py_start_method reader_meta release_outputs reset run save save_graph_to_dot_file
        schedule_run seed serialize set_outputs share_outputs skipped start_py_workers""",
    "Retries": "attempts first_pause max_pause seconds_per_mib timeout",
    "RNG": "clone get_state seed set_state",
    "Tensor": "cpu device dtype evaluate gpu item layout ndim shape to_device torch",
    "TensorCPU": _TENSOR,
    "TensorGPU": _TENSOR,
    "TensorListCPU": _TENSOR_LIST,
    "TensorListGPU": _TENSOR_LIST,
}

# A parameter's kind and default, by its name. The default of a required parameter is "".
Parameters = dict[str, list[str]]
Surface = dict[str, Parameters]


def surface() -> Surface:
    """Return the parameters of each public name, by the name; names that cannot be called have no parameters."""
    found = dict([*_names(), *_operators(), *_commands(), *_settings(), *_metrics(), *_formats()])
    return {name: found[name] for name in sorted(found)}


def _names() -> Iterator[tuple[str, Parameters]]:
    """Yield the names in the API reference with their parameters: classes and their methods, and the members of modules."""
    import penstock

    yield from ((f"penstock.{name}", {}) for name in penstock.__all__)
    for page in sorted(_API_PAGES.glob("*.md")):
        for path in _DOCUMENTED.findall(page.read_text(encoding="utf-8")):
            if path.startswith(_PLUGINS):
                continue
            value = pydoc.locate(path)
            yield path, _parameters(value)
            if inspect.isclass(value):
                yield from ((f"{path}.{name}", _parameters(member)) for name, member in _members(value))
            elif inspect.ismodule(value):
                yield from ((f"{path}.{name}", _parameters(getattr(value, name))) for name in value.__all__)


def _members(documented: type) -> Iterator[tuple[str, object]]:
    if issubclass(documented, enum.Enum):
        yield from ((name, None) for name in documented.__members__)
        return
    for name in MEMBERS.get(documented.__name__, "").split():
        if hasattr(documented, name):
            member = getattr(documented, name)
            yield name, member if inspect.isfunction(member) else None


def _operators() -> Iterator[tuple[str, Parameters]]:
    from penstock import fn
    from penstock.schema.catalogue import public_operators

    for _, schema in public_operators():
        function: object = fn
        for part in schema.fn_path.split("."):
            function = getattr(function, part)
        yield f"penstock.fn.{schema.fn_path}", _parameters(function)


def _parameters(value: object) -> Parameters:
    if not callable(value):
        return {}
    try:
        signature = inspect.signature(value)
    except ValueError:
        return {}
    return {
        name: [parameter.kind.name, "" if parameter.default is parameter.empty else _default(parameter.default)]
        for name, parameter in signature.parameters.items()
    }


def _default(value: object) -> str:
    """Return a default as text that is the same in each process: without addresses of objects."""
    return f"<{type(value).__name__}>" if " at 0x" in repr(value) else repr(value)


def _commands() -> Iterator[tuple[str, Parameters]]:
    from penstock.cli._group import penstock

    context = click.Context(penstock, info_name="penstock")
    for name in penstock.list_commands(context):
        command = penstock.get_command(context, name)
        assert command is not None
        yield from _command(f"$ penstock {name}", command)


def _command(name: str, command: click.Command) -> Iterator[tuple[str, Parameters]]:
    options = [option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)]
    yield name, {option: [] for option in options}
    if isinstance(command, click.Group):
        for below, subcommand in command.commands.items():
            yield from _command(f"{name} {below}", subcommand)


def _settings() -> Iterator[tuple[str, Parameters]]:
    from penstock.serving.settings import Settings

    for field in dataclasses.fields(Settings):
        yield f"model parameter {field.name}", {}


def _metrics() -> Iterator[tuple[str, Parameters]]:
    from penstock.serving.metrics import Metric

    yield from ((f"metric {metric.value.name}", {label: [] for label in metric.value.labels}) for metric in Metric)


def _formats() -> Iterator[tuple[str, Parameters]]:
    from penstock.serialize.readable_format import VERSION

    for version in range(1, VERSION + 1):
        yield f"readable format, version {version}", {}


def incompatible(recorded: Surface, current: Surface) -> list[str]:
    """Return a sentence for each difference of `current` that breaks programs written for `recorded`."""
    found = [f"{name} is gone" for name in recorded if name not in current]
    for name, before in recorded.items():
        now = current.get(name, before)
        found += [f"{name}: {parameter} is gone" for parameter in before if parameter not in now]
        for parameter, kind_and_default in now.items():
            if parameter not in before:
                required = kind_and_default and not kind_and_default[1] and not kind_and_default[0].startswith("VAR_")
                found += [f"{name}: {parameter} is new and required"] if required else []
            elif before[parameter] != kind_and_default:
                found.append(f"{name}: {parameter} was {before[parameter]}, is {kind_and_default}")
        kept = [parameter for parameter in now if parameter in before]
        if _positional(before, list(before)) != _positional(before, kept):
            found.append(f"{name}: positional parameters have another order")
    return found


def _positional(parameters: Parameters, names: list[str]) -> list[str]:
    return [name for name in names if parameters[name] and parameters[name][0].startswith("POSITIONAL")]


def main() -> None:
    """Print the differences from the recorded surface; with `--write`, record the current surface instead."""
    current = surface()
    recorded: Surface = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for line in incompatible(recorded, current):
        print(line)
    for name in sorted(current.keys() - recorded.keys()):
        print(f"{name} is new")
    if "--write" in sys.argv[1:]:
        lines = [f"{json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in current.items()]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
