"""The command group, which finds its commands in this folder."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import click

from penstock import __version__
from penstock.errors import did_you_mean


class LazyGroup(click.Group):
    """Makes the variable ``command`` of each public module of :mod:`penstock.cli` a command with the module's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(
            module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name[0] != "_"
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command; for an unknown one, fail and suggest the most similar command."""
        if args[0] not in self.list_commands(ctx):
            ctx.fail(f"No such command '{args[0]}'.{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, imported on demand."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"penstock.cli.{cmd_name}").command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def penstock() -> None:
    """Preprocessing pipelines for Triton Inference Server and for training loops.

    \b
    From a pipeline to a served model:
      penstock setup                                     prepare this environment for serving, once
      penstock export my_pipeline.py models/my_model     write a model folder for Triton
      penstock serve models                              start Triton with it
    \b
    Look around:
      penstock show models/my_model                      inputs, operators and outputs of a pipeline
      penstock inspect models/my_model                   what is fused, folded, shared and pruned before it runs
      penstock inspect models/my_model --html page.html --input cat.jpg
                                                         every operator's output for an image, on a page
      penstock trace models/my_model --data photos/      where the time goes, and what to change
      penstock bench models/my_model --data photos/      samples per second
      penstock tune models/my_model --data photos/       instances, threads and queue delay, tried on a server
      penstock info                                      versions, GPUs, where Triton is
    """
