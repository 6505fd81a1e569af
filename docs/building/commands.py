"""Generate the page of the command line from the commands' `--help`."""

from __future__ import annotations

import click

from penstock.cli._group import penstock

_WIDTH = 100


def commands_page() -> str:
    """Return the help of `penstock` and of each command, as Markdown."""
    top = click.Context(penstock, info_name="penstock", max_content_width=_WIDTH, terminal_width=_WIDTH)
    parts = ["# Commands", "", "What `penstock --help` and its commands print.", "", *_block(top)]
    for name in penstock.list_commands(top):
        command = penstock.get_command(top, name)
        parts += ["", f"## penstock {name}", ""]
        parts += _block(
            click.Context(command, parent=top, info_name=name, max_content_width=_WIDTH, terminal_width=_WIDTH)
        )
    return "\n".join([*parts, ""])


def _block(context: click.Context) -> list[str]:
    return ["```text", context.command.get_help(context).replace("\b\n", ""), "```"]
