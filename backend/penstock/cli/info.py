"""``penstock info``: what this machine has."""

from __future__ import annotations

import platform

import click


@click.command()
def command() -> None:
    """Show versions, GPUs, and where models would be served from."""
    import numpy as np

    from penstock import __version__
    from penstock.errors import PenstockError
    from penstock.serving.environment import count_gpus, find_environment
    from penstock.serving.installation import find_installation
    from penstock.serving.shim import shim

    click.echo(f"penstock     {__version__}")
    click.echo(f"Python       {platform.python_version()}, numpy {np.__version__}")
    click.echo(f"GPUs         {count_gpus()}")
    try:
        environment = find_environment()
        version = ".".join(map(str, environment.version))
        click.echo(f"serving from {environment.python.parent.parent} (Python {version}, numpy {environment.numpy})")
        click.echo(f"Triton       {find_installation(environment).binary}")
    except PenstockError as error:
        click.echo(f"serving      {error}")
    try:
        native = find_environment(native=True)
        click.echo(f"in Triton    {native.library} of {native.python}, by {shim()}")
    except PenstockError as error:
        click.echo(f"in Triton    not possible, models run in Triton's Python stub: {error}")
