"""``penstock stubs``: writes the type stubs of `fn` and `ops`, and the index of operators."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a stub is out of date.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
def command(check: bool, folder: Path | None) -> None:
    """Write type stubs of `fn` and `ops`, for editors and mypy, and the index by which operators are loaded when first used.

    They go to FOLDER, by default that of the installed package. Installing the package writes them, too; run this after
    adding or changing an operator.
    """
    import penstock
    from penstock.cli._stub_files import stale_stubs, write_stubs

    folder = folder or Path(penstock.__file__).parent
    paths = stale_stubs(folder) if check else write_stubs(folder)
    for path in paths:
        click.echo(f"{'stale' if check else 'wrote'} {path}")
    if check and paths:
        sys.exit(1)
