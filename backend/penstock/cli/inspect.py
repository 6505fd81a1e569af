"""``penstock inspect``: what the passes make of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from penstock.graph import OpNode
    from penstock.passes import Change


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--passes",
    "names",
    metavar="NAMES",
    help='The passes that run, with commas between them; "" for none. Default: those that the pipeline runs, mostly all.',
)
def command(path: Path, names: str | None) -> None:
    """Show what is done to a pipeline's graph before it runs.

    For each pass, in order: how many operators there were before and after, and which it pruned, shared, folded or fused,
    and for which data fused operators run step by step all the same.
    `penstock show` shows the graph as it was written.

    PATH is a file (Python, json, or DALI's wire format), or a model or version folder of a repository.
    """
    from rich.console import Console
    from rich.table import Table

    from penstock.passes import apply_passes
    from penstock.serving.export import model_file
    from penstock.serving.model_files import load_pipeline

    file = model_file(path)
    pipeline = load_pipeline(file)
    try:
        chosen = pipeline.passes if names is None else [name.strip() for name in names.split(",") if name.strip()]
        graph = pipeline.graph
        graph.verify()
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("pass", "operators", "what it did"):
            table.add_column(column, overflow="fold")
        try:
            applied = list(apply_passes(graph, chosen))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--passes") from None
        for step in applied:
            counts = f"{len(step.before.operators)} -> {len(step.after.operators)}"
            table.add_row(step.name, counts, "\n".join(_lines(step.changes)) or "nothing")
        console = Console(highlight=False)
        console.print(f"{file}\n", soft_wrap=True)
        console.print(table)
        last = applied[-1].after if applied else graph
        console.print(f"\nwhat runs: {', '.join(op.schema.name for op in last.operators)}", soft_wrap=True)
    finally:
        pipeline.close()


def _lines(changes: tuple[Change, ...]) -> Iterator[str]:
    for change in changes:
        into = "" if change.into is None else f" into {_named(change.into)}"
        exceptions = f"; step by step all the same: {', '.join(change.exceptions)}" if change.exceptions else ""
        yield f"{change.what} {' + '.join(map(_named, change.operators))}{into}{exceptions}"


def _named(op: OpNode) -> str:
    return f"{op.schema.name} '{op.name}'"
