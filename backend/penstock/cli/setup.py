"""``penstock setup``: the environment to serve from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--python", type=click.Path(path_type=Path), help="Interpreter to make it from; found by itself if not given."
)
@click.option("--gpu/--no-gpu", default=None, help="With the packages for NVIDIA GPUs; by default if there is one.")
@click.option(
    "--with", "packages", multiple=True, metavar="PACKAGE", help="What else the models need; may be repeated."
)
def command(folder: Path | None, python: Path | None, gpu: bool | None, packages: tuple[str, ...]) -> None:
    """Make the environment that models are served from, in FOLDER.

    It holds penstock, numpy 1.26 (which the Python backend of Triton 24.10 needs), and Triton itself, from the
    nvidia-pytriton wheel. Without FOLDER it goes to the cache (~/.cache/penstock/serve), where `penstock serve` finds
    it. Python 3.10 to 3.12 is best; with 3.13 alone, numpy 1.26 is built from source, which takes a C compiler and some
    minutes. Run again to bring it up to date.
    """
    from penstock.serving.environment import create_environment, default_folder
    from penstock.serving.shim import ShimError, shim

    environment = create_environment(
        folder or default_folder(), python=python, gpu=gpu, packages=packages, report=click.echo
    )
    try:
        click.echo(f"backend library: {shim()}")
    except ShimError as error:
        click.echo(f"models run in Triton's Python stub: {error}")
    click.echo(f"ready: {environment.python.parent.parent} (numpy {environment.numpy})")
