"""The options of ``penstock serve`` for a server that the network reaches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from penstock.cli._paths import ExistingPath

_OPTIONS = (
    click.option(
        "--listen",
        metavar="ADDRESS",
        help="Put a proxy in front of Triton that the network reaches at this address: 0.0.0.0 for all.",
    ),
    click.option("--tls-cert", type=ExistingPath(), help="With --listen: the server's certificate chain (PEM)."),
    click.option("--tls-key", type=ExistingPath(), help="With --listen: the key of that certificate (PEM)."),
    click.option(
        "--client-ca",
        type=ExistingPath(),
        help="With --listen: certificate authorities (PEM); clients must present a certificate of one of them.",
    ),
    click.option("--api-key-file", type=ExistingPath(), help="With --listen: keys of clients, one per line."),
    click.option(
        "--admin-key-file",
        type=ExistingPath(),
        help="With --listen: keys that also open model control, shared memory, and settings of logs and traces.",
    ),
    click.option("--anonymous", is_flag=True, help="With --listen: anyone may send requests, without a key."),
    click.option(
        "--max-request-mb",
        type=click.IntRange(1, 2047),
        default=64,
        show_default=True,
        help="With --listen: of a request.",
    ),
    click.option(
        "--no-front",
        is_flag=True,
        help="Allow --host beyond this machine, without the proxy: protect Triton by other means.",
    ),
)


def front_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command. The command gets the argument ``front``: the proxy's settings, or None for no proxy.

    Raises:
        ServerError: the options contradict each other, or the network would reach Triton itself.
    """

    @functools.wraps(function)
    def with_front(
        *,
        host: str,
        flags: tuple[str, ...],
        listen: str | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        client_ca: Path | None,
        api_key_file: Path | None,
        admin_key_file: Path | None,
        anonymous: bool,
        max_request_mb: int,
        no_front: bool,
        **others: object,
    ) -> None:
        from penstock.serving.control import ServerError
        from penstock.serving.front.options import FrontOptions, refuse_exposure

        if listen is None and (anonymous or any((tls_cert, tls_key, client_ca, api_key_file, admin_key_file))):
            raise ServerError("options for TLS and keys apply to the front: pass --listen ADDRESS as well")
        if listen is not None and no_front:
            raise ServerError("--listen starts the front, so it contradicts --no-front")
        if not no_front:
            refuse_exposure(host, flags)
        front = None
        if listen is not None:
            front = FrontOptions(
                listen,
                tls_cert=tls_cert,
                tls_key=tls_key,
                client_ca=client_ca,
                api_keys=api_key_file,
                admin_keys=admin_key_file,
                anonymous=anonymous,
                max_request_bytes=max_request_mb << 20,
            )
        function(host=host, flags=flags, front=front, **others)

    result: Callable[..., None] = with_front
    for option in reversed(_OPTIONS):
        result = option(result)
    return result
