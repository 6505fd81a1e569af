"""Paths on the command line."""

from __future__ import annotations

import os
from pathlib import Path

import click

from penstock.errors import did_you_mean


class ExistingPath(click.Path):
    """A file or folder that must exist; otherwise the error suggests the most similar name in its folder.

    Args:
        dir_okay: whether folders are accepted.
    """

    def __init__(self, dir_okay: bool = True) -> None:
        super().__init__(exists=True, dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; fail if it does not exist."""
        path = Path(value)
        if not path.exists() and path.parent.is_dir():
            near = did_you_mean(path.name, os.listdir(path.parent))
            self.fail(f"{self.name.title()} '{value}' does not exist.{near}", param, ctx)
        return super().convert(value, param, ctx)
