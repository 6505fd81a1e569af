"""``penstock trace``: shows where a pipeline spends its time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli import _options
from penstock.cli._paths import ExistingPath

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from penstock.cli._running import Measurement
    from penstock.runtime.trace import Summary


@click.command()
@click.argument("path", type=ExistingPath())
@_options.data
@click.option("--seconds", default=5.0, show_default=True, type=click.FloatRange(min=0), help="How long to run.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Samples in a batch.  [default: the pipeline's, or 32]")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads.  [default: the pipeline's, or all cores]")
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the trace as JSON, for https://ui.perfetto.dev or chrome://tracing.",
)
def command(
    path: Path, paths: tuple[str, ...], seconds: float, batch_size: int | None, threads: int | None, output: Path | None
) -> None:
    """Show where a pipeline's time goes, and what to change.

    The pipeline runs for some seconds, with a consumer that does nothing but wait for batches. Per batch, for each
    operator: time from start to end, CPU time on all threads, and GPU time; for each thread, how busy it was; and who
    waited for whom.

    In a program, `Pipeline(trace=True)` records the same with the real consumer: see `pipeline.trace`.

    PATH is a file (Python, json, or DALI's wire format), or a model or version folder of a repository.

    \b
    Example:
      penstock trace model_repository/imagenet_preprocess --data photos/ --threads 2 --output trace.json
    """
    from rich.console import Console

    from penstock.cli._progress import measuring
    from penstock.cli._running import bad_data, measure, opened
    from penstock.serving.export import model_file

    file = model_file(path)
    pipeline = opened(file, batch_size, threads, trace=True)
    try:
        with bad_data("--data"), measuring("tracing") as ran:
            measured = measure(pipeline, paths, seconds, ran)
        trace = pipeline.trace
        assert trace is not None
        console = Console(highlight=False)
        console.print(
            f"{file}, batches of {pipeline.max_batch_size}, threads: {pipeline.num_threads}\n", soft_wrap=True
        )
        _print(console, trace.summary(), measured)
        if output is not None:
            trace.write(output)
            console.print(f"\nwrote {output}: open it at https://ui.perfetto.dev", soft_wrap=True)
    finally:
        pipeline.close()


def _print(console: Console, summary: Summary, measured: Measurement) -> None:
    console.print(_operators(summary))
    console.print()
    console.print(_threads(summary))
    share = 1 / max(summary.elapsed, 1e-9)
    console.print(
        f"\n{measured.rate:,.0f} samples/s. The consumer waited {summary.blocked * share:.0%} of the time, the pipeline "
        f"{summary.idle * share:.0%} for the consumer and {summary.starved * share:.0%} for input; "
        f"{summary.queue_fill:.1f} of {summary.depth} batches were ready when it asked.",
        soft_wrap=True,
    )
    for remedy in summary.advice():
        console.print(f"- {remedy}", soft_wrap=True, markup=False)


def _operators(summary: Summary) -> Table:
    from rich.table import Table

    on_gpu = any(times.gpu is not None for times in summary.operators)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operator", overflow="fold")
    for column in ("runs", "ms a batch", "CPU ms", *(["GPU ms"] if on_gpu else []), "share"):
        table.add_column(column, justify="right")
    total = sum(times.wall for times in summary.operators) or 1.0
    for times in summary.operators:
        runs = max(times.batches, 1)
        gpu = [f"{times.gpu / runs * 1e3:.2f}" if times.gpu is not None else ""] if on_gpu else []
        wall, cpu = (f"{value / runs * 1e3:.2f}" for value in (times.wall, times.cpu))
        table.add_row(times.name, str(times.batches), wall, cpu, *gpu, f"{times.wall / total:.0%}")
    return table


def _threads(summary: Summary) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("thread")
    table.add_column("busy", justify="right")
    for name, cpu in sorted(summary.threads.items()):
        table.add_row(name, f"{cpu / max(summary.elapsed, 1e-9):.0%}")
    return table
