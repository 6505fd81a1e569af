"""Generate the operator reference from the schemas: a page for each operator, and an index by family."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import groupby

from docstrings import as_markdown
from pictures import drawn_examples
from repository import REPOSITORY_PAGES, ROOT
from values import ENUMERATIONS, value_text

from penstock import fn
from penstock.schema import Argument, Equivalent, Schema
from penstock.schema.catalogue import description, gpu_support, public_operators, summary
from penstock.schema.documentation import shown_arguments, signature
from penstock.schema.registry import all_schemas, find_schema, operator_class

_TYPE_NAMES = {"int32": "int", "int64": "int", "uint32": "int", "string": "str", "layout": "layout"}
_GPU_MARKS = {"": "–", "by host": "by host", "kernels": "✓"}
_CREDITS = (
    "The photographs come with scikit-learn: [china](https://www.flickr.com/photos/danielbuechele/6061409035/) and "
    "[flower](https://www.flickr.com/photos/vultilion/6056698931/), "
    "[CC BY 2.0](https://creativecommons.org/licenses/by/2.0/), reduced."
)
_ACCEPTED_ONLY = "Accepted for compatibility"


def navigation() -> list[object]:
    """Return the navigation entries of the operators: the list, then each family."""
    families: list[object] = ["operators/index.md"]
    for family, schemas in _by_family():
        families.append({_title(family): [{f"fn.{schema.fn_path}": _page(schema)} for schema in schemas]})
    return families


def operator_pages(chosen: Sequence[str] | None = None) -> Iterator[tuple[str, str | bytes]]:
    """Yield path and content of each page and picture; ``chosen`` limits them to operators by schema name."""
    if chosen is None:
        yield "operators/index.md", _index()
    for family, schema in public_operators():
        if chosen is None or schema.name in chosen:
            examples = drawn_examples(schema)
            yield _page(schema), _operator_page(family, schema, examples.markdown)
            yield from examples.files.items()


def _by_family() -> Iterator[tuple[str, list[Schema]]]:
    for family, entries in groupby(public_operators(), key=lambda entry: entry[0]):
        yield family, [schema for _, schema in entries]


def _page(schema: Schema) -> str:
    return f"operators/{schema.fn_path}.md"


def _title(family: str) -> str:
    return family.capitalize()


def _index() -> str:
    lines = [
        "# Operators",
        "",
        "Every operator by family, from its declaration. **CPU** and **GPU** tell where it runs: ✓ with kernels of its own, "
        "*by host* on the CPU with a copy each way.",
    ]
    for family, schemas in _by_family():
        lines += ["", f"## {_title(family)}", "", "| operator | | CPU | GPU |", "| --- | --- | :-: | :-: |"]
        lines += [
            f"| [`fn.{schema.fn_path}`]({schema.fn_path}.md) | {_cell(_plain(summary(schema)))} | {_on_cpu(schema)} "
            f"| {_GPU_MARKS[gpu_support(schema)]} |"
            for schema in schemas
        ]
    return "\n".join([*lines, "", _CREDITS, ""])


def _operator_page(family: str, schema: Schema, examples: str) -> str:
    function = reduce(getattr, schema.fn_path.split("."), fn)
    parts = [
        f"# fn.{schema.fn_path}",
        *(_declared(schema, examples) if _is_made(function) else _written(schema, function)),
        _equivalents(schema.equivalents),
        _speed(schema),
        _further(family, schema),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _is_made(function: Callable[..., object]) -> bool:
    """Return whether the function was generated from the schema; hand-written ones have a docstring that says more."""
    return function.__module__.startswith(fn.__name__)


def _declared(schema: Schema, examples: str) -> list[str]:
    return [
        as_markdown(description(schema)),
        _where_it_runs(schema),
        _deprecation(schema),
        examples,
        _signature(schema),
        _inputs(schema),
        _outputs(schema),
        _arguments(schema),
    ]


def _written(schema: Schema, function: Callable[..., object]) -> list[str]:
    return [_where_it_runs(schema), f"::: {function.__module__}.{function.__name__}"]


def _where_it_runs(schema: Schema) -> str:
    marks = [f"**CPU** {_on_cpu(schema)}", f"**GPU** {_GPU_MARKS[gpu_support(schema)]}"]
    if "mixed" in schema.devices:
        marks.append("**mixed** ✓ (input on the CPU, output on the GPU)")
    traits = {
        "sequences": schema.sequences,
        "volumes": schema.volumetric,
    }
    marks += [f"**{name}** ✓" for name, holds in traits.items() if holds]
    return " · ".join(marks)


def _on_cpu(schema: Schema) -> str:
    return "✓" if "cpu" in schema.devices else "–"


def _deprecation(schema: Schema) -> str:
    if not schema.deprecated_since:
        return ""
    instead = schema.deprecated_in_favor_of
    text = f"Deprecated since DALI {schema.deprecated_since}."
    if instead:
        text += f" Use [`fn.{find_schema(instead).fn_path}`]({find_schema(instead).fn_path}.md)."
    return f"!!! warning\n    {' '.join((text, schema.deprecation_note)).strip()}"


def _signature(schema: Schema) -> str:
    """Render the call with one argument per line, without arguments that are accepted for compatibility only."""
    parameters = [p for p in signature(schema).parameters.values() if p.name not in _accepted_only(schema)]
    keywords = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    required_first = sorted(keywords, key=lambda p: p.default is not inspect.Parameter.empty)
    lines = [*(_parameter(p) for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY), "*"]
    lines += [_parameter(p) for p in required_first]
    return "\n".join(
        ["## Signature", "", "```python", f"fn.{schema.fn_path}(", *(f"    {line}," for line in lines), ")", "```"]
    )


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    return f"{parameter.name}={value_text(parameter.default)}"


def _accepted_only(schema: Schema) -> set[str]:
    return {a.name for a in shown_arguments(schema) if a.doc.startswith(_ACCEPTED_ONLY)}


def _inputs(schema: Schema) -> str:
    if not schema.inputs:
        return "## Inputs\n\nNone: it is a source."
    lines = ["## Inputs", "", "| input | layouts | device | |", "| --- | --- | --- | --- |"]
    for index, declared in enumerate(schema.inputs):
        name = f"`{declared.name}`" + ("" if index < schema.min_input_count else " (optional)")
        layouts = ", ".join(f"`{layout}`" for layout in declared.layouts) or "any"
        device = {"": "the operator's", "any": "either", "match_or_cpu": "the operator's, or CPU", "cpu": "CPU"}[
            declared.device
        ]
        lines.append(f"| {name} | {layouts} | {device} | {_cell(_plain(declared.doc))} |")
    if schema.variadic:
        lines += ["", f"Up to {schema.max_input_count} inputs like the last one."]
    return "\n".join(lines)


def _outputs(schema: Schema) -> str:
    if callable(schema.outputs):
        text = "Their number follows from the arguments."
    else:
        text = (
            {0: "None.", 1: "One."}.get(schema.outputs, f"{schema.outputs}.")
            if not schema.output_per_input
            else "One for each input."
        )
    notes = [text]
    if schema.sequences:
        notes.append("Sequences (layouts that begin with `F`) are processed frame by frame.")
    if schema.batchwise:
        notes.append("A sample's result depends on the other samples of its batch.")
    return "## Outputs\n\n" + " ".join(notes)


def _arguments(schema: Schema) -> str:
    own = {a.name for a in schema.arguments}
    shown = shown_arguments(schema)
    useful = [a for a in shown if not a.deprecated and a.name not in _accepted_only(schema) and a.name in own]
    common = [a for a in shown if not a.deprecated and a.name not in _accepted_only(schema) and a.name not in own]
    deprecated = [a for a in shown if a.deprecated]
    parts = ["## Arguments"]
    if useful:
        parts.append(_argument_table(useful))
    parts.append('??? note "Arguments that every operator has"\n\n' + _indented(_argument_table(common)))
    without_effect = sorted(_accepted_only(schema))
    if without_effect:
        parts.append(
            f"Accepted for compatibility, without effect: {', '.join(f'`{name}`' for name in without_effect)}."
        )
    if deprecated:
        parts.append(f"Deprecated: {', '.join(map(_deprecated_text, deprecated))}.")
    return "\n\n".join(parts)


def _argument_table(arguments: Sequence[Argument]) -> str:
    lines = ["| argument | type | default | constant or tensor | |", "| --- | --- | --- | --- | --- |"]
    for argument in sorted(arguments, key=lambda a: (not a.required, a.name)):
        default = "**required**" if argument.required else f"`{value_text(argument.default)}`"
        given = "constant" if not argument.tensor else "either, per frame too" if argument.per_frame else "either"
        lines.append(
            f"| `{argument.name}` | {_type_text(argument)} | {_cell(default)} | {given} | {_cell(_plain(argument.doc))} |"
        )
    return "\n".join(lines)


def _type_text(argument: Argument) -> str:
    element = argument.type.removesuffix("[]")
    name = _TYPE_NAMES.get(element, element)
    if any(name == kind.__name__ for kind in ENUMERATIONS):
        name = f"[{name}](../api/types.md)"
    return f"list of {name}" if argument.is_list else name


def _deprecated_text(argument: Argument) -> str:
    assert argument.deprecated is not None
    instead = argument.deprecated.renamed_to or argument.deprecated.instead
    return f"`{argument.name}`" + (f" (use `{instead}`)" if instead else "")


def _equivalents(equivalents: Sequence[Equivalent]) -> str:
    if not equivalents:
        return ""
    lines = ["## In other libraries", "", "| | what differs |", "| --- | --- |"]
    lines += [f"| `{own.name}` | {_cell(_plain(own.differs)) or 'nothing'} |" for own in equivalents]
    return "\n".join(lines)


_TABLES = "tests/benchmarks/results/tables.md"


def _speed(schema: Schema) -> str:
    """Return the operator's lines of the benchmark's table."""
    head, line, *rows = (row.partition(" | ") for row in _table_of_speeds())
    own = [cells for name, _, cells in rows if name == f"| `{schema.fn_path}`"]
    if not own:
        return ""
    link = f"[Every operator beside its best peer](../{REPOSITORY_PAGES[_TABLES]}#every-public-operator-on-the-cpu)"
    intro = f"On the CPU, a sample in one thread. {link} tells when and where."
    return "\n".join(["## Speed", "", intro, "", *(f"| {cells}" for cells in (head[2], line[2], *own))])


@cache
def _table_of_speeds() -> list[str]:
    """Return the lines of the table of operators on the CPU, the heading first."""
    section = (ROOT / _TABLES).read_text(encoding="utf-8").partition("## Every public operator on the CPU")[2]
    return section[section.index("\n|") :].strip().partition("\n\n")[0].splitlines()


def _further(family: str, schema: Schema) -> str:
    """Yield further notes, one line each."""
    cls = operator_class(schema.name)
    lines = []
    if schema.random:
        lines.append("It draws random numbers; its stream follows from the pipeline's seed unless `seed` is given.")
    if schema.stateful:
        lines.append("Its state is part of checkpoints.")
    if schema.needs:
        needs = ", ".join(f"{library.name} (`pip install {library.package}`)" for library in schema.needs)
        lines.append(f"On the CPU it needs {needs}.")
    aliases = [
        alias.fn_path for alias in all_schemas() if operator_class(alias.name) is cls and alias.name != schema.name
    ]
    others = [path for path in aliases if path != schema.fn_path and not path.startswith("_")]
    if others:
        lines.append(f"Also called {', '.join(f'`fn.{path}`' for path in sorted(set(others)))}.")
    lines.append(f"As a class: `ops.{'.'.join((*schema.module, schema.class_name))}`. Declared in `{cls.__module__}`.")
    return "## Notes\n\n" + "\n".join(f"- {line}" for line in lines)


def _plain(text: str) -> str:
    return text.replace("``", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
