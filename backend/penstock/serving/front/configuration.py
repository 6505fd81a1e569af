"""Writes the files that the proxy reads: its configuration, the filter of requests, and the digests of keys."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from penstock.serving.front.options import (
    MAX_HEADER_BYTES,
    MAX_JSON_BYTES,
    MAX_JSON_DEPTH,
    MAX_UPSTREAM_CONNECTIONS,
    FrontOptions,
    proxy_threads,
    read_keys,
)

FILTER = Path(__file__).with_name("requests.lua")
_TEMPLATE = Path(__file__).with_name("haproxy.cfg")

_BUFFER_MARGIN_BYTES = 8 << 10
"""The bytes of a buffer for the proxy's records of headers, and for the headers that it adds."""


def write_configuration(
    options: FrontOptions, folder: Path, ports: Mapping[str, int], triton: Mapping[str, str], relays: Sequence[str]
) -> Path:
    """Write all files of the proxy, readable by this user only; return the path of the configuration.

    Args:
        options: the operator's options.
        folder: the folder to write to, which must be private.
        ports: the ports to listen on, by protocol: HTTP, gRPC and metrics.
        triton: ``host:port`` of Triton, by protocol: HTTP and metrics.
        relays: the addresses of the relays, which are processes that pass on gRPC calls.

    Raises:
        ServerError: a file with keys cannot be used.
    """
    api_keys = read_keys(options.api_keys) if options.api_keys is not None else []
    admin_keys = read_keys(options.admin_keys) if options.admin_keys is not None else []
    _write_digests(folder / "api_keys", api_keys)
    _write_digests(folder / "admin_keys", admin_keys)
    if options.tls_cert is not None and options.tls_key is not None:
        # The proxy looks for a certificate's key in a file with this name beside the certificate.
        (folder / "server.pem").symlink_to(options.tls_cert.absolute())
        (folder / "server.pem.key").symlink_to(options.tls_key.absolute())
    shutil.copyfile(FILTER, folder / FILTER.name)
    path = folder / "haproxy.cfg"
    path.write_text(render(options, folder, ports, triton, relays))
    return path


def render(
    options: FrontOptions, folder: Path, ports: Mapping[str, int], triton: Mapping[str, str], relays: Sequence[str]
) -> str:
    """Return the proxy's configuration; for the arguments, see :func:`write_configuration`."""
    return Template(_TEMPLATE.read_text()).substitute(
        listen=f"[{options.listen.strip('[]')}]" if ":" in options.listen else options.listen,
        folder=folder,
        http_port=ports["HTTP"],
        grpc_port=ports["gRPC"],
        metrics_port=ports["metrics"],
        triton_http=triton["HTTP"],
        triton_metrics=triton["metrics"],
        relay_servers="\n".join(
            f"    server relay{number} {relay} proto h2 maxconn {MAX_UPSTREAM_CONNECTIONS}"
            for number, relay in enumerate(relays)
        ),
        tls_http=_tls(options, folder, "http/1.1"),
        tls_grpc=_tls(options, folder, "h2"),
        client_rule=f"var(txn.key) -m str -f {folder}/api_keys" if options.api_keys is not None else "always_true",
        threads=proxy_threads(),
        buffer_bytes=MAX_JSON_BYTES + MAX_HEADER_BYTES + _BUFFER_MARGIN_BYTES,
        max_connections=options.max_connections,
        max_connections_per_client=options.max_connections_per_client,
        max_header_bytes=MAX_HEADER_BYTES,
        max_json_bytes=MAX_JSON_BYTES,
        max_json_depth=MAX_JSON_DEPTH,
        max_request_bytes=options.max_request_bytes,
        max_upstream_connections=MAX_UPSTREAM_CONNECTIONS,
        request_seconds=options.request_seconds,
    )


def _tls(options: FrontOptions, folder: Path, protocol: str) -> str:
    if options.tls_cert is None:
        return ""
    words = f" ssl crt {folder}/server.pem alpn {protocol}"
    # If clients must show certificates, the TLS handshake fails without one.
    return words if options.client_ca is None else f"{words} verify required ca-file {options.client_ca.absolute()}"


def _write_digests(path: Path, keys: Sequence[str]) -> None:
    """Write the SHA-256 of each key, as the proxy computes it, so that the file does not reveal the keys."""
    text = "".join(f"{hashlib.sha256(key.encode()).hexdigest().upper()}\n" for key in keys)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
