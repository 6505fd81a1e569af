"""``penstock serve``: starts Triton with the backend ``penstock`` in one command."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.cli._front import front_options
from penstock.cli._paths import ExistingPath
from penstock.cli._settings import setting_options, settings_from_options

if TYPE_CHECKING:
    from penstock.serving.server import LocalServer, ModelState

_console = Console(highlight=False)

_STOPPING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that stop the server, as Ctrl-C does."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("repository", type=ExistingPath())
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[TRITON FLAGS]...")
@click.option("--http-port", type=int, default=8000, show_default=True, help="Port for HTTP.")
@click.option("--grpc-port", type=int, default=8001, show_default=True, help="Port for gRPC.")
@click.option("--metrics-port", type=int, default=8002, show_default=True, help="Port for Prometheus metrics.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that Triton listens on.")
@front_options
@click.option(
    "--python-env", type=click.Path(path_type=Path), help="Environment to serve from (a folder or its Python)."
)
@click.option("--as", "also", type=click.Choice(["dali"]), help="Also serve models whose backend is `dali`, unchanged.")
@click.option(
    "--backend",
    "model_host",
    type=click.Choice(["native", "stub"]),
    help="Run models in Triton's own process (native; the default where possible), or each instance in a separate process, Triton's Python stub.",
)
@setting_options
@click.option("--gpu-pool-mb", type=int, default=1024, show_default=True, help="GPU memory for outputs in flight.")
@click.option("--keep-going", is_flag=True, help="Serve the other models if some cannot be loaded.")
@click.option(
    "--restarts",
    type=int,
    help="How often in a row to restart a Triton that dies at once. [default: without limit]",
)
@click.option(
    "--timeout", type=float, default=180.0, show_default=True, help="Seconds to wait until the models are ready."
)
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="File for Triton's log.")
@click.option(
    "--log-mb", type=click.IntRange(1), default=50, show_default=True, help="Size from which a new log file is begun."
)
@click.option(
    "--log-files",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Log files that remain, older ones included.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show Triton's log here.")
def command(
    repository: Path,
    flags: tuple[str, ...],
    python_env: Path | None,
    gpu_pool_mb: int,
    log_mb: int,
    keep_going: bool,
    verbose: bool,
    also: str | None,
    **options: Any,
) -> None:
    """Serve the models of REPOSITORY with Triton, until Ctrl-C.

    A model whose process dies is reloaded, while the others go on; if Triton dies, it is restarted with the same
    models. At the end, requests in flight are answered and new ones refused, for --exit-timeout-secs at most (10 by
    default). Options that this command does not know are passed to Triton.

    \b
    Examples:
      penstock serve models                                 all models of the folder
      penstock serve models --model-control-mode=poll --repository-poll-secs=5
                                                            edited models are reloaded
      penstock serve models --model-control-mode=explicit --load-model=resize
                                                            clients load and unload models
      penstock serve models --allow-path /data/labels --allow-module my_company.preprocessing
                                                            saved pipelines may use these, besides their models' folders
      penstock serve models --listen 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --api-key-file keys
                                                            the network reaches it, through a proxy
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
    from penstock.serving.triton_launch import raise_file_limit

    settings = settings_from_options(options)
    raise_file_limit()
    progress = _Progress()
    server = LocalServer(
        repository,
        environment=python_env,
        flags=flags,
        backends=[BACKEND, *filter(None, [also])],
        settings=settings,
        gpu_pool_bytes=gpu_pool_mb << 20,
        allow_failures=keep_going,
        echo=verbose,
        log_bytes=log_mb << 20,
        report=_report,
        progress=progress.show,
        **options,
    )
    with _stopped_by_signals():
        try:
            with progress:
                server.start()
            # The server continues even if the output cannot be written, such as to a full disk.
            with contextlib.suppress(OSError):
                _print_address_and_models(server)
            server.wait()
        except KeyboardInterrupt:
            _console.print("stopping: requests in flight are answered, new ones are refused ...", soft_wrap=True)
        finally:
            # While requests are being answered, a second signal is ignored, except Ctrl-C.
            for number in _STOPPING:
                signal.signal(number, signal.SIG_IGN)
            server.stop()


class _Progress:
    """Shows the steps of starting a server: on a terminal in one changing line, otherwise in one line for each step."""

    def __init__(self) -> None:
        self._status = _console.status("starting ...") if _console.is_terminal else None

    def __enter__(self) -> None:
        if self._status is not None:
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, line: str) -> None:
        """Show one line."""
        if self._status is not None:
            self._status.update(escape(f"{line} ..."))
        else:
            _report(line)


def _print_address_and_models(server: LocalServer) -> None:
    """Print the server's address and its models."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "version", "state"):
        table.add_column(column)
    for model in server.models():
        table.add_row(model.name, model.version, _state(model))
    http, grpc, metrics = _addresses(server)
    _console.print(f"HTTP     {http}")
    _console.print(f"gRPC     {grpc}")
    _console.print(f"metrics  {metrics}")
    _console.print(f"log      {server.log}\n", soft_wrap=True)
    _console.print(table)
    _console.print("\nCtrl-C stops the server.")


def _addresses(server: LocalServer) -> tuple[str, str, str]:
    """Return the addresses of HTTP, gRPC and metrics for clients: the proxy's, if there is one."""
    front = server.front
    if front is None:
        return f"http://{server.http_url}", server.grpc_url, server.metrics_url
    scheme = "https" if front.options.tls_cert is not None else "http"
    return (
        f"{scheme}://{front.address('HTTP')}",
        front.address("gRPC"),
        f"{scheme}://{front.address('metrics')}/metrics",
    )


def _state(model: ModelState) -> str:
    from penstock.serving.control import readable

    if model.ready:
        return "[green]ready[/]"
    if model.failed:
        return f"[red]{model.state.lower()}[/] {escape(readable(model.reason))}"
    return "[dim]not loaded[/]"


def _report(line: str) -> None:
    _console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {escape(line)}", soft_wrap=True)


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Make the signals that end a program stop the server as Ctrl-C does; restore their handlers afterwards.

    If these signals remained ignored, all programs that this process starts later would ignore them, too: processes of a
    later server's models could not be ended.
    """
    before = {number: signal.getsignal(number) for number in _STOPPING}
    for number, action in before.items():
        if action is not signal.SIG_IGN:  # ignored, such as under nohup: leave it so
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, action in before.items():
            # None: the handler was not set from Python and cannot be restored, so set the default.
            signal.signal(number, signal.SIG_DFL if action is None else action)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
