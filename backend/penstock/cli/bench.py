"""``penstock bench``: measures how fast a pipeline is on the user's data."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli import _options
from penstock.cli._paths import ExistingPath


@click.command()
@click.argument("path", type=ExistingPath())
@_options.data
@click.option(
    "--seconds", default=5.0, show_default=True, type=click.FloatRange(min=0), help="How long to run each setting."
)
@click.option(
    "--batch-size",
    "batch_sizes",
    multiple=True,
    type=click.IntRange(min=1),
    help="Samples in a batch; may be repeated, to compare.  [default: the pipeline's, or 32]",
)
@click.option(
    "--threads",
    multiple=True,
    type=click.IntRange(min=1),
    help="CPU threads; may be repeated, to compare.  [default: the pipeline's, or all cores]",
)
def command(
    path: Path, paths: tuple[str, ...], seconds: float, batch_sizes: tuple[int, ...], threads: tuple[int, ...]
) -> None:
    """Measure the throughput of a pipeline.

    The pipeline runs for some seconds, with a consumer that does nothing but wait for batches. Files are read into
    memory first; readers read while the pipeline runs.

    PATH is a file (Python, json, or DALI's wire format), or a model or version folder of a repository.

    \b
    Example:
      penstock bench model_repository/imagenet_preprocess --data photos/ --threads 1 --threads 2
    """
    from rich.console import Console
    from rich.table import Table

    from penstock.cli._progress import measuring
    from penstock.cli._running import bad_data, measure, opened
    from penstock.serving.export import model_file

    file = model_file(path)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("batch", "threads", "samples/s", "CPU ms a sample", "cores used", "p50 ms a batch", "p99"):
        table.add_column(column, justify="right")
    for batch_size in batch_sizes or (None,):
        for count in threads or (None,):
            pipeline = opened(file, batch_size, count)
            try:
                with bad_data("--data"), measuring("measuring") as ran:
                    found = measure(pipeline, paths, seconds, ran)
            finally:
                pipeline.close()
            table.add_row(
                str(pipeline.max_batch_size),
                str(pipeline.num_threads),
                f"{found.rate:,.0f}",
                f"{found.cpu / found.samples * 1e3:.2f}",
                f"{found.cpu / found.seconds:.1f}",
                f"{found.wait(0.5) * 1e3:.2f}",
                f"{found.wait(0.99) * 1e3:.2f}",
            )
    console = Console(highlight=False)
    console.print(f"{file}\n", soft_wrap=True)
    console.print(table)
