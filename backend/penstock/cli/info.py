"""``penstock info``: describes this machine."""

from __future__ import annotations

import platform

import click


@click.command()
def command() -> None:
    """Show versions, GPUs, and the installation of Triton that would serve models."""
    import numpy as np

    from penstock import __version__
    from penstock.errors import PenstockError
    from penstock.serving.environment import count_gpus, find_environment
    from penstock.serving.installation import find_installation
    from penstock.serving.shim import shim

    click.echo(f"penstock     {__version__}")
    click.echo(f"Python       {platform.python_version()}, numpy {np.__version__}")
    click.echo(f"GPUs         {count_gpus()}")
    for model_host, native in (("natively", True), ("in the stub", False)):
        try:
            environment = find_environment(native=native)
            triton = find_installation(environment, native).binary
            version = ".".join(map(str, environment.version))
            click.echo(
                f"{model_host:12} {environment.python.parent.parent} (Python {version}, numpy {environment.numpy})"
            )
            click.echo(f"{'':12} Triton {triton}")
            if native:
                click.echo(f"{'':12} library {shim()}, Python's {environment.library}")
        except PenstockError as error:
            click.echo(f"{model_host:12} no models can be run: {error}")
