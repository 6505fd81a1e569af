"""``penstock inspect``: shows what the passes do to a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli._paths import ExistingPath
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.cli._trial import Trial
    from penstock.graph import Graph
    from penstock.passes import Applied, Change
    from penstock.pipeline import Pipeline


@click.command()
@click.argument("path", type=ExistingPath())
@click.option(
    "--passes",
    "names",
    metavar="NAMES",
    help='The passes to run, separated by commas; "" for none.  [default: those that the pipeline was made with]',
)
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page with the graph before and after each pass, and each operator's output for the input.",
)
@click.option(
    "--input",
    "paths",
    metavar="[NAME=]PATH",
    multiple=True,
    help="Run the pipeline on this file, or the files of this folder: images, recordings and the like as they are, arrays as "
    ".npy. NAME is the input's name, if the pipeline has several. May be repeated, up to a batch.",
)
def command(path: Path, names: str | None, page: Path | None, paths: tuple[str, ...]) -> None:
    """Show what is done to a pipeline's graph before it runs.

    For each pass, in order, this shows the number of operators before and after, which ones were pruned, shared, folded
    or fused, and for which data fused operators still run step by step. With --input, the
    pipeline also runs on that data, and this shows how many samples the fused operators computed at once, how many step
    by step, and why. A pipeline that reads its own data runs for --html without --input.

    `penstock show` shows the graph as written.

    PATH is a file (Python, json, or DALI's wire format), or a model or version folder of a repository.

    \b
    Examples:
      penstock inspect model_repository/imagenet_preprocess
      penstock inspect pipeline.py --html report.html --input cat.jpg --input dog.jpg
    """
    from rich.console import Console

    from penstock.serving.export import model_file
    from penstock.serving.model_files import load_pipeline

    file = model_file(path)

    def load() -> Pipeline:
        pipeline = load_pipeline(file)
        if names is not None:
            pipeline.settings.passes = tuple(_split(names))
        return pipeline

    pipeline = load()
    try:
        graph = pipeline.graph
        graph.verify()
        applied = _applied(graph, pipeline.passes)
        runs = bool(paths) or (page is not None and _reads_itself(pipeline))
    finally:
        pipeline.close()
    console = Console(highlight=False)
    console.print(f"{file}\n", soft_wrap=True)
    trial = None
    try:
        trial = _tried(load, paths, len(graph.operators), page is not None) if runs else None
    except PenstockError as error:
        if paths:
            raise
        # The user did not request a run with --input, and the data that the pipeline reads may not be on this machine.
        console.print(f"not run: {error}\n", soft_wrap=True, markup=False)
    _print(console, graph, applied, trial)
    if page is not None:
        from penstock.cli._report import report

        page.write_text(report(str(file), graph, applied, trial), encoding="utf-8")
        console.print(f"\nwrote {page}", soft_wrap=True)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _applied(graph: Graph, names: Sequence[str] | None) -> list[Applied]:
    from penstock.passes import apply_passes

    try:
        return list(apply_passes(graph, names))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--passes") from None


def _reads_itself(pipeline: Pipeline) -> bool:
    from penstock.cli._inputs import fed_by_hand

    return not fed_by_hand(pipeline)


def _tried(load: Callable[[], Pipeline], paths: Sequence[str], operators: int, each_step: bool) -> Trial:
    from penstock.cli._inputs import InputError
    from penstock.cli._trial import try_out

    try:
        with _progress(operators * (3 if each_step and paths else 2)) as ran:
            return try_out(load, paths, each_step, ran)
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--input") from None


@contextmanager
def _progress(operators: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar while the pipeline runs; yield the function to call for each operator that has run."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("running", total=operators)
        yield lambda name: progress.update(task, advance=1, description=name)


def _print(console: Console, graph: Graph, applied: Sequence[Applied], trial: Trial | None) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("pass", "operators", "what it did"):
        table.add_column(column, overflow="fold")
    for step in applied:
        counts = f"{len(step.before.operators)} -> {len(step.after.operators)}"
        table.add_row(step.name, counts, "\n".join(map(_line, step.changes)) or "nothing")
    console.print(table)
    last = applied[-1].after if applied else graph
    console.print(f"\nwhat runs: {', '.join(op.schema.name for op in last.operators)}", soft_wrap=True)
    if trial is not None:
        for op in last.operators:
            if op.name in trial.counts:
                console.print(f"  {op.schema.name} '{op.name}': {trial.how_computed(op.name)}", soft_wrap=True)
        for index, error in sorted(trial.failures.items()):
            console.print(f"\nsample #{index} failed: {error}", soft_wrap=True, markup=False)


def _line(change: Change) -> str:
    exceptions = f"; step by step for: {', '.join(change.exceptions)}" if change.exceptions else ""
    return f"{change}{exceptions}"
