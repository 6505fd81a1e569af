"""``penstock serve``: Triton with the backend ``penstock``, in one command."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from penstock.serving.server import LocalServer

_WATCH_EVERY = 2.0
_console = Console(highlight=False)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("repository", type=click.Path(path_type=Path))
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[TRITON FLAGS]...")
@click.option("--http-port", type=int, default=8000, show_default=True, help="Port for HTTP.")
@click.option("--grpc-port", type=int, default=8001, show_default=True, help="Port for gRPC.")
@click.option("--metrics-port", type=int, default=8002, show_default=True, help="Port for Prometheus metrics.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option(
    "--python-env", type=click.Path(path_type=Path), help="Environment to serve from (a folder or its Python)."
)
@click.option("--gpu-pool-mb", type=int, default=1024, show_default=True, help="GPU memory for outputs in flight.")
@click.option("--keep-going", is_flag=True, help="Serve the other models if some cannot be loaded.")
@click.option("--timeout", type=float, default=180.0, show_default=True, help="Seconds to wait for the models.")
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="File for Triton's log.")
@click.option("-v", "--verbose", is_flag=True, help="Show Triton's log here.")
def command(
    repository: Path,
    flags: tuple[str, ...],
    python_env: Path | None,
    gpu_pool_mb: int,
    keep_going: bool,
    verbose: bool,
    **settings: Any,
) -> None:
    """Serve the models of REPOSITORY with Triton, until Ctrl-C.

    Triton is the `tritonserver` of this machine, or the one inside the nvidia-pytriton wheel of the serving
    environment, which `penstock setup` makes. What follows REPOSITORY and is no option of this command goes to Triton,
    for example `--log-verbose=1` or `--model-control-mode=explicit`.

    The serving environment is --python-env, else $PENSTOCK_SERVE_ENV, else the current one, else `.venv-serve` or
    `.venv` here, else the one that `penstock setup` makes when no folder is named.
    """
    from penstock.serving.server import LocalServer

    signal.signal(signal.SIGTERM, _interrupt)
    server = LocalServer(
        repository,
        environment=python_env,
        flags=flags,
        gpu_pool_bytes=gpu_pool_mb << 20,
        allow_failures=keep_going,
        echo=verbose,
        **settings,
    )
    try:
        with _console.status("starting Triton ..."):
            server.start()
        _tell(server)
        _watch(server)
    except KeyboardInterrupt:
        _console.print("stopping ...")
    finally:
        server.stop()


def _tell(server: LocalServer) -> None:
    """Prints where the server is and what it serves."""
    from penstock.serving.server import readable

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "version", "state"):
        table.add_column(column)
    for model in server.models():
        state = "[green]ready[/]" if model.ready else f"[red]{model.state.lower()}[/] {readable(model.reason)}"
        table.add_row(model.name, model.version, state)
    _console.print(f"HTTP     http://{server.http_url}")
    _console.print(f"gRPC     {server.grpc_url}")
    _console.print(f"metrics  {server.metrics_url}")
    _console.print(f"log      {server.log}\n", soft_wrap=True)
    _console.print(table)
    _console.print("\nCtrl-C stops the server.")


def _watch(server: LocalServer) -> None:
    """Looks after the server until it ends; starts it again when a model's process has died, which Triton does not."""
    while True:
        time.sleep(_WATCH_EVERY)
        if not server.running:
            raise click.ClickException(f"Triton has ended. The end of its log:\n{server.log_tail()}")
        if server.dead_stubs():
            _console.print("[red]a model's process has died[/], starting Triton again. The end of its log:")
            _console.print(server.log_tail(), markup=False, soft_wrap=True)
            server.stop()
            server.start()
            _console.print("Triton serves again.")


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
