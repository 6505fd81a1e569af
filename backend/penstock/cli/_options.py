"""Options that several commands share."""

from __future__ import annotations

import click

data = click.option(
    "--data",
    "paths",
    metavar="[NAME=]PATH",
    multiple=True,
    help="A file, or a folder of files and subfolders, for the pipeline's input NAME: images, recordings and the like as they are, arrays as "
    ".npy. They are fed over and over. Not needed for a pipeline that reads its own data.",
)
