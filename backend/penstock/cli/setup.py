"""``penstock setup``: prepares an environment for serving."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--stub", is_flag=True, help="Make an environment for Triton's Python stub, in FOLDER.")
@click.option(
    "--python", type=click.Path(path_type=Path), help="Interpreter to make it from; found automatically by default."
)
@click.option(
    "--gpu/--no-gpu",
    default=None,
    help="With or without the packages for NVIDIA GPUs; by default, with them if there is a GPU.",
)
@click.option(
    "--with", "packages", multiple=True, metavar="PACKAGE", help="A package that your models need; may be repeated."
)
def command(folder: Path | None, stub: bool, python: Path | None, gpu: bool | None, packages: tuple[str, ...]) -> None:
    """Prepare this environment for serving models.

    Installs Triton (the nvidia-pytriton wheel), and compiles the library with which Triton hosts this Python (using the
    machine's C++ compiler, or the one in the ziglang wheel) and the kernels that most images need. If Triton is already
    installed on this machine, the backend goes there instead: a plain `tritonserver` can then serve models, too.

    With --stub, makes a separate environment for Triton's Python stub, with numpy 1.26, which the stub of Triton 24.10
    needs: in FOLDER, or in the cache (~/.cache/penstock/serve). It is used if Triton cannot host Python itself, and
    with `penstock serve --backend stub`. Use Python 3.11 or 3.12 if possible; if there is only 3.13, numpy 1.26 is
    built from source, which takes a C compiler and some minutes.
    """
    from penstock.serving.environment import complete_environment, create_environment, default_folder
    from penstock.serving.installation import install_backend

    values = {"FOLDER": folder, "--python": python, "--gpu/--no-gpu": gpu, "--with": packages or None}
    given = [name for name, value in values.items() if value is not None]
    if given and not stub:
        raise click.UsageError(
            f"{', '.join(given)} can be given only with --stub; without --stub, the environment of this command is set up"
        )
    if stub:
        made = create_environment(
            folder or default_folder(), python=python, gpu=gpu, packages=packages, report=click.echo
        )
    else:
        made = complete_environment(click.echo)
        backends = install_backend(made)
        if backends is not None:
            click.echo(f"the backend is in '{backends}'")
    click.echo(f"ready: {made.python.parent.parent} (numpy {made.numpy})")
