"""``penstock show``: shows a pipeline's operators, inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli._paths import ExistingPath


@click.command()
@click.argument("path", type=ExistingPath())
def command(path: Path) -> None:
    """Show the operators, inputs and outputs of a pipeline.

    PATH is a file (Python, json, or DALI's wire format), or a model or version folder of a repository.

    \b
    Example:
      penstock show model_repository/imagenet_preprocess
    """
    from rich.console import Console
    from rich.table import Table

    from penstock.serving.export import model_file
    from penstock.serving.model_files import load_pipeline

    file = model_file(path)
    pipeline = load_pipeline(file)
    try:
        graph = pipeline.graph
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("operator", "device", "inputs", "outputs"):
            table.add_column(column)
        for op in graph.operators:
            inputs = ", ".join(node.name for node in op.inputs)
            table.add_row(op.schema.name, op.device, inputs, ", ".join(node.name for node in op.outputs))
        console = Console(highlight=False)
        console.print(f"{file}, batches of up to {pipeline.max_batch_size}\n", soft_wrap=True)
        console.print(table)
        console.print(f"\noutputs: {', '.join(node.name for node in graph.outputs)}")
    finally:
        pipeline.close()
