"""``penstock operators``: lists the operators, and which of DALI's are missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import click

from penstock.errors import did_you_mean


@click.command()
@click.argument("words", nargs=-1)
@click.option(
    "--missing", is_flag=True, help="Show instead which of DALI's operators and arguments are missing, and why."
)
def command(words: tuple[str, ...], missing: bool) -> None:
    """Show the operators by family, and where each runs.

    WORDS select operators whose family or name contains one of them.

    In the column GPU, "kernels" are launched once per batch on the device; "by host" computes on the CPU and copies.

    \b
    Examples:
      penstock operators audio resize
      penstock operators --missing
    """
    from penstock.schema.registry import offer_package

    offer_package("penstock.operators")
    if missing:
        _show_missing()
    else:
        _show_operators(words)


def _show_operators(words: tuple[str, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    from penstock.schema.catalogue import gpu_support, public_operators, summary

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column in ("family", "operator", "CPU", "GPU"):
        table.add_column(column, no_wrap=True)
    table.add_column("purpose", no_wrap=True, ratio=1)
    last, count = "", 0
    for family, schema in public_operators():
        path = f"fn.{schema.fn_path}"
        if words and not any(word in family or word in path for word in words):
            continue
        if last and family != last:
            table.add_section()
        on_cpu = "yes" if "cpu" in schema.devices else ""
        table.add_row("" if family == last else family, path, on_cpu, gpu_support(schema), summary(schema))
        last, count = family, count + 1
    console = Console(highlight=False)
    console.print(table)
    console.print(f"\n{count} operators")
    if not count:
        known = {name for _, schema in public_operators() for name in (schema.fn_path, schema.fn_path.split(".")[-1])}
        for word in words:
            console.print(f"No operator is called '{word}'.{did_you_mean(word.removeprefix('fn.'), known)}")


def _show_missing() -> None:
    missing = list(absent_operators())
    for name, reason in missing:
        click.echo(f"{name:<40} {reason}")
    arguments = list(absent_arguments())
    for name, lacking in arguments:
        click.echo(f"{name:<40} lacks {', '.join(lacking)}")
    reference = _dali()
    click.echo(
        f"{len(reference['operators'])} operators of DALI {reference['version']}: {len(missing)} are absent, "
        f"{len(arguments)} lack arguments or devices"
    )


def absent_operators() -> Iterator[tuple[str, str]]:
    """Yield DALI's operators that are missing: the name of the schema, and the reason."""
    from penstock.schema.registry import all_schemas

    here = {schema.name: schema for schema in all_schemas()}
    for name in _dali()["operators"]:
        if name not in here:
            yield name, "no reason known"
        elif here[name].absent:
            yield name, here[name].absent


def absent_arguments() -> Iterator[tuple[str, list[str]]]:
    """Yield the operators that lack arguments or devices that they have in DALI: the name, and what is missing."""
    from penstock.schema.registry import all_schemas

    here = {schema.name: schema for schema in all_schemas()}
    for name, entry in _dali()["operators"].items():
        if name in here:
            lacking = set(entry["arguments"]) - set(here[name].all_arguments)
            lacking |= {f"device '{device}'" for device in set(entry["devices"]) - set(here[name].devices)}
            if lacking:
                yield name, sorted(lacking)


def _dali() -> dict[str, Any]:
    text = resources.files("penstock.compat").joinpath("dali_interface.json").read_text(encoding="utf-8")
    reference: dict[str, Any] = json.loads(text)
    return reference
