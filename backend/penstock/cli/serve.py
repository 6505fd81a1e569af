"""``penstock serve``: starts Triton with the backend ``penstock`` in one command."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.cli._paths import ExistingPath
from penstock.serving.settings import Scope, Settings, declared
from penstock.storage import is_remote

if TYPE_CHECKING:
    from penstock.serving.server import LocalServer, ModelState

_console = Console(highlight=False)

_SETTINGS = {
    "device": "auto|cpu",
    "max_pixels": "N|none",
    "max_bytes": "N|none",
    "max_frames": "N|none",
    "isolate_decoders": "auto|all|none",
}
"""The settings of all models that are options here, with their metavars."""


_GRANTS = {"allow_module": ("allowed_modules", "NAME"), "allow_path": ("allowed_paths", "PATH")}
"""The options that each grant one item of a setting, with the setting and their metavars."""

_SWITCHES = [item.name for item in declared() if item.metadata["scope"] is Scope.SERVER]
"""The settings that are options without a value."""


def _setting_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options for settings, which are passed on as text."""
    grants = {setting: (option, metavar) for option, (setting, metavar) in _GRANTS.items()}
    for item in reversed(list(declared())):  # what is added last is shown first
        if item.name in _SWITCHES:
            function = click.option(f"--{item.name.replace('_', '-')}", is_flag=True, help=item.metadata["doc"])(
                function
            )
        elif item.name in grants:
            option, metavar = grants[item.name]
            function = click.option(
                f"--{option.replace('_', '-')}",
                multiple=True,
                metavar=metavar,
                callback=_check_grants,
                help=f"{item.metadata['doc']} May be repeated.",
            )(function)
        elif item.name in _SETTINGS:
            default = "none" if (value := getattr(Settings(), item.name)) is None else value
            function = click.option(
                f"--{item.name.replace('_', '-')}",
                metavar=_SETTINGS[item.name],
                callback=_check_setting,
                help=f"{item.metadata['doc']} [default: {default}]",
            )(function)
    return function


def _check_setting(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    (item,) = (item for item in declared() if item.name == option.name)
    try:
        if text is not None:
            item.metadata["parse"](text)
    except ValueError:
        raise click.BadParameter(f"it must be {item.metadata['wanted']}, not {text!r}") from None
    return text


def _check_grants(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if "," in value or not value.strip():
            raise click.BadParameter(f"it must be one name without commas, not {value!r}")
    is_path = option.name == "allow_path"
    return tuple(os.path.abspath(value) if is_path and not is_remote(value) else value for value in values)


def _given_settings(options: dict[str, Any]) -> dict[str, str]:
    """Takes the options that are settings from all options, and returns them as text."""
    given = {name: text for name in _SETTINGS if (text := options.pop(name)) is not None}
    given |= {setting: ",".join(values) for name, (setting, _) in _GRANTS.items() if (values := options.pop(name))}
    return given | {name: "true" for name in _SWITCHES if options.pop(name)}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("repository", type=ExistingPath())
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[TRITON FLAGS]...")
@click.option("--http-port", type=int, default=8000, show_default=True, help="Port for HTTP.")
@click.option("--grpc-port", type=int, default=8001, show_default=True, help="Port for gRPC.")
@click.option("--metrics-port", type=int, default=8002, show_default=True, help="Port for Prometheus metrics.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option(
    "--python-env", type=click.Path(path_type=Path), help="Environment to serve from (a folder or its Python)."
)
@click.option(
    "--as", "also", type=click.Choice(["dali"]), help="Also take models whose backend is `dali`, as they are."
)
@click.option(
    "--backend",
    "model_host",
    type=click.Choice(["native", "stub"]),
    help="Run models in Triton's own process (native; the default where possible), or each instance in a process of its own, Triton's Python stub.",
)
@_setting_options
@click.option("--gpu-pool-mb", type=int, default=1024, show_default=True, help="GPU memory for outputs in flight.")
@click.option("--keep-going", is_flag=True, help="Serve the other models if some cannot be loaded.")
@click.option(
    "--restarts",
    type=int,
    default=5,
    show_default=True,
    help="How often in a row to restart a Triton that dies within a minute.",
)
@click.option(
    "--timeout", type=float, default=180.0, show_default=True, help="Seconds to wait until the models are ready."
)
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="File for Triton's log.")
@click.option("-v", "--verbose", is_flag=True, help="Show Triton's log here.")
def command(
    repository: Path,
    flags: tuple[str, ...],
    python_env: Path | None,
    gpu_pool_mb: int,
    keep_going: bool,
    verbose: bool,
    also: str | None,
    **options: Any,
) -> None:
    """Serve the models of REPOSITORY with Triton, until Ctrl-C.

    A model whose process dies is reloaded, while the others go on; if Triton dies, it is restarted. Options that this
    command does not know are passed to Triton.

    \b
    Examples:
      penstock serve models                                 all models of the folder
      penstock serve models --model-control-mode=poll --repository-poll-secs=5
                                                            edited models are reloaded
      penstock serve models --model-control-mode=explicit --load-model=resize
                                                            clients load and unload models
      penstock serve models --allow-path /data/labels --allow-module my_company.preprocessing
                                                            saved pipelines may use these, besides their models' folders
      penstock serve models --as dali --device cpu          a repository of the DALI backend, on a machine without a GPU
      penstock serve models --max-pixels 50000000 --backend-config=penstock,num_threads=4
                                                            settings of all models; their own parameters take precedence

    Clients can load models only with --model-control-mode=explicit, and upload models only with --allow-model-upload, since those run
    code here. With Triton's response cache (--cache-config), requests to plain Python models that failed are repeated, too, as
    successes without outputs.

    Triton is the `tritonserver` of this machine, or else the one in the nvidia-pytriton wheel of the serving environment,
    which `penstock setup` installs. The serving environment is --python-env or $PENSTOCK_SERVE_ENV, if given; otherwise
    the first usable one of the current environment, `.venv-serve` and `.venv` in the working folder, and the one that
    `penstock setup --stub` makes by default.
    """
    from penstock.serving.installation import BACKEND
    from penstock.serving.server import LocalServer

    settings = _given_settings(options)
    _stop_on_signals()
    server = LocalServer(
        repository,
        environment=python_env,
        flags=flags,
        backends=[BACKEND, *filter(None, [also])],
        settings=settings,
        gpu_pool_bytes=gpu_pool_mb << 20,
        allow_failures=keep_going,
        echo=verbose,
        report=_report,
        **options,
    )
    try:
        with _console.status("starting Triton ..."):
            server.start()
        _print_address_and_models(server)
        server.wait()
    except KeyboardInterrupt:
        _console.print("stopping ...")
    finally:
        server.stop()


def _print_address_and_models(server: LocalServer) -> None:
    """Prints the server's address and its models."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "version", "state"):
        table.add_column(column)
    for model in server.models():
        table.add_row(model.name, model.version, _state(model))
    _console.print(f"HTTP     http://{server.http_url}")
    _console.print(f"gRPC     {server.grpc_url}")
    _console.print(f"metrics  {server.metrics_url}")
    _console.print(f"log      {server.log}\n", soft_wrap=True)
    _console.print(table)
    _console.print("\nCtrl-C stops the server.")


def _state(model: ModelState) -> str:
    from penstock.serving.control import readable

    if model.ready:
        return "[green]ready[/]"
    if model.failed:
        return f"[red]{model.state.lower()}[/] {escape(readable(model.reason))}"
    return "[dim]not loaded[/]"


def _report(line: str) -> None:
    _console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {escape(line)}", soft_wrap=True)


def _stop_on_signals() -> None:
    """Makes the signals that end a program stop the server as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
