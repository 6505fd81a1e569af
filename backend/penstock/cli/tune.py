"""``penstock tune``: the instances, threads and queue delay with which a served model keeps up best."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import _options
from penstock.cli._paths import ExistingPath
from penstock.cli._settings import setting_options, settings_from_options

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.serving.load_generator import InferRequest
    from penstock.serving.server import LocalServer
    from penstock.serving.tuning import ServingSettings, Trial, Tuner

_COLUMNS = (("instances", 9), ("threads", 7), ("delay us", 8), ("answers/s", 9), ("p50 ms", 8), ("p99 ms", 8))
MAX_REQUESTS = 256
"""The largest number of files that are sent, repeatedly."""


@click.command()
@click.argument("model", type=ExistingPath())
@_options.data
@click.option(
    "--clients", default=16, show_default=True, type=click.IntRange(min=1), help="Requests that are sent at once."
)
@click.option(
    "--seconds",
    default=3.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="How long to measure each setting.",
)
@click.option(
    "--max-p99-ms",
    type=click.FloatRange(min=0, min_open=True),
    help="The longest that 99 % of the answers may take.  [default: any time]",
)
@click.option("--dry-run", is_flag=True, help="Leave the configuration unchanged.")
@setting_options
def command(
    model: Path,
    paths: tuple[str, ...],
    clients: int,
    seconds: float,
    max_p99_ms: float | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Find the settings with which a served model keeps up best, and write them into its config.pbtxt.

    A server is started with the model alone, and clients send it the files of --data over HTTP, one sample a request, while it
    has one setting after the other: instances, then threads of an instance, then how long requests wait for others to make a larger
    batch. The best is measured once more next to the current settings, and written if it is better by 3 %. The rest of the
    configuration does not change.

    Clients run on this machine, too: on a machine with few cores, the settings found are those for the processor time that clients leave.

    MODEL is a model's folder in a repository. The options of the server, such as --allow-path, are as in `penstock
    serve`.

    \b
    Examples:
      penstock tune model_repository/imagenet_preprocess --data photos/
      penstock tune model_repository/imagenet_preprocess --data photos/ --clients 64 --max-p99-ms 50
    """
    from rich.console import Console

    from penstock.serving.server import LocalServer
    from penstock.serving.tuning import Tuner

    console = Console(highlight=False)
    config = model / "config.pbtxt"
    if not config.is_file():
        raise click.ClickException(
            f"'{model}' has no config.pbtxt: it is not a model folder (`penstock export` writes one)"
        )
    name = model.resolve().name
    flags = ["--model-control-mode=explicit", f"--load-model={name}"]
    server = LocalServer(
        model.resolve().parent,
        flags=flags,
        settings=settings_from_options(options),
        progress=_progress_reporter(console),
    )
    with server:
        requests = _requests(server, model, name, paths, console)
        console.print(_line([column for column, _ in _COLUMNS]), style="bold")
        tuner = Tuner(
            server.control,
            server.http_url,
            name,
            requests,
            clients,
            seconds,
            max_p99=max_p99_ms / 1e3 if max_p99_ms is not None else None,
            tried=lambda trial: console.print(_described(trial)),
        )
        best = tuner.search(len(os.sched_getaffinity(0)))
        _conclude(console, tuner, best, config, dry_run)


def _progress_reporter(console: Console) -> Callable[[str], None]:
    return lambda line: console.print(f"[dim]{line} ...[/]", soft_wrap=True)


def _requests(
    server: LocalServer, model: Path, name: str, paths: tuple[str, ...], console: Console
) -> list[InferRequest]:
    """Return a request for each file that the model answers without an error."""
    from penstock.cli._inputs import InputFiles
    from penstock.cli._running import bad_data, opened
    from penstock.serving.export import model_file
    from penstock.serving.load_generator import InferRequest
    from penstock.serving.tuning import answered

    pipeline = opened(model_file(model), None, None)
    with bad_data("--data"):
        files = InputFiles(pipeline, paths, MAX_REQUESTS)
    configuration = server.control.configuration(name) or {}
    datatypes = {item["name"]: _datatype(item["data_type"]) for item in configuration["input"]}
    batched = int(configuration.get("max_batch_size", 0)) > 0
    made = [InferRequest.of(sample, datatypes, batched) for sample in files.samples()]
    good, reasons = answered(server.http_url, name, made)
    if not good:
        why = reasons[0] if reasons else "the model has no inputs"
        raise click.BadParameter(f"the model answers none of the files: {why}", param_hint="--data")
    if reasons:
        console.print(f"left out: {len(reasons)} of {len(made)} files that the model refuses: {reasons[0]}")
    return good


def _datatype(config_type: str) -> str:
    """Return the name that a type has in requests; ``config_type`` is its name in configurations."""
    plain = config_type.removeprefix("TYPE_")
    return "BYTES" if plain == "STRING" else plain


def _line(texts: list[str]) -> str:
    return "  ".join(text.rjust(width) for text, (_, width) in zip(texts, _COLUMNS, strict=True))


def _values(settings: ServingSettings) -> list[str]:
    delay = "-" if settings.queue_delay_us is None else f"{settings.queue_delay_us:,}"
    return [str(settings.instances), str(settings.num_threads or "auto"), delay]


def _described(trial: Trial) -> str:
    load = trial.load
    times = [f"{load.p50 * 1e3:.2f}", f"{load.p99 * 1e3:.2f}"]
    line = _line([*_values(trial.settings), f"{load.rate:,.0f}", *times])
    return line if not load.failed else f"{line}  {load.failed} failed: {load.reason}"


def _conclude(console: Console, tuner: Tuner, best: Trial, config: Path, dry_run: bool) -> None:
    instances, threads, delay = _values(best.settings)
    plural = "" if instances == "1" else "s"
    found = f"{instances} instance{plural}, {threads} threads, queue delay {delay} us: {best.load.rate:,.0f} answers/s"
    if best.settings == tuner.present:
        console.print(f"\nthe present settings remain, as none are better by 3 %: {found}")
    elif dry_run:
        console.print(f"\nbest: {found}; not written (--dry-run)")
    else:
        tuner.write(config, best.settings)
        console.print(f"\nwritten into {config}: {found}", soft_wrap=True)
