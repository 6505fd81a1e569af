"""``penstock export``: a model folder for Triton from a pipeline."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from penstock.cli._paths import ExistingPath


@click.command()
@click.argument("pipeline", type=ExistingPath(dir_okay=False))
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "dali", "python"]),
    help="How the pipeline is saved: as readable JSON, in DALI's wire format, or as its Python source.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "gpu"]),
    default="cpu",
    show_default=True,
    help="Where operators run, for json, dali and presets.",
)
@click.option("--batch-size", type=int, help="Largest batch; by default the pipeline's own.")
@click.option("--version", type=int, default=1, show_default=True, help="The model version to write.")
@click.option("--preset", "is_preset", is_flag=True, help="PIPELINE is a model's own preprocessor_config.json.")
@click.option(
    "--drop-alpha",
    is_flag=True,
    help="With --preset: keep the colours stored for transparent pixels instead of putting them on white.",
)
@click.option("--uint8", is_flag=True, help="Take encoded data as UINT8 arrays instead of as BYTES.")
def command(
    pipeline: Path,
    model: Path,
    form: str | None,
    device: str,
    batch_size: int | None,
    version: int,
    is_preset: bool,
    drop_alpha: bool,
    uint8: bool,
) -> None:
    """Write a model folder for Triton from a pipeline.

    PIPELINE is a Python file, or a pipeline saved in either format; MODEL is the folder to write. By default, a definition
    that takes an argument `device` is exported as Python, so that it runs on the server's device, and any other as json.

    \b
    Examples:
      penstock export pipelines/imagenet_preprocess.py model_repository/imagenet_preprocess
      penstock export --preset models/clip/preprocessor_config.json model_repository/clip_preprocess
    """
    from penstock.serving.export import export_model, export_preset

    if drop_alpha and not is_preset:
        raise click.UsageError(
            "--drop-alpha is for presets: in a pipeline, the decoders' arguments decide how alpha is treated"
        )
    export = partial(export_preset, drop_alpha=drop_alpha) if is_preset else export_model
    written = export(
        pipeline, model, form=form, device=device, batch_size=batch_size, version=version, as_bytes=not uint8
    )
    for path in written:
        click.echo(f"wrote {path}")
