"""``penstock completion``: the script with which a shell completes commands, options and paths."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

# The variable by which the completion script requests completions from the program; Click prescribes its name.
_VARIABLE = "_PENSTOCK_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that makes SHELL complete this command.

    \b
    Examples:
      eval "$(penstock completion bash)"        in ~/.bashrc
      eval "$(penstock completion zsh)"         in ~/.zshrc
      penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    from penstock.cli._group import penstock

    completion = get_completion_class(shell)
    assert completion is not None  # click allows only shells for which there is one
    click.echo(completion(penstock, {}, "penstock", _VARIABLE).source())
