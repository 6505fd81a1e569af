"""The command ``penstock``: each public module of this folder is a subcommand, imported on demand."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command in this process's command line."""
    try:
        import click
        import rich  # noqa: F401  (the commands print with it)
    except ModuleNotFoundError as error:
        sys.exit(f"penstock: the command line needs {error.name}: pip install 'penstock-triton[server]'")
    from penstock.cli._group import penstock
    from penstock.errors import PenstockError

    try:
        penstock.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (PenstockError, OSError) as error:
        sys.exit(f"penstock: {error}")
