"""Options of the front: the addresses to listen on, the allowed clients, and the limits of requests."""

from __future__ import annotations

import ipaddress
import itertools
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.serving.control import ServerError

MIN_KEY_CHARACTERS = 16
"""The smallest number of characters of a key: shorter ones can be guessed."""

MAX_JSON_BYTES = 64 << 10
"""The largest JSON part of a request, in bytes, and so of a request without the binary tensor extension."""

MAX_JSON_DEPTH = 32
"""The largest number of arrays and objects around a value. Triton 2.51 overflows its stack at some 100,000."""

MAX_HEADER_BYTES = 16 << 10

MAX_CONNECTIONS = 4096
"""The largest number of client connections, over all ports; smaller if this process may open fewer files."""

MAX_UPSTREAM_CONNECTIONS = 256
"""The largest number of connections to Triton's HTTP port; more requests wait in the front, so that Triton's
descriptors are never used up.
"""

_DESCRIPTORS_PER_CONNECTION = 2
_SPARE_DESCRIPTORS = 200
"""The descriptors reserved for listeners, threads, Triton's connections and files."""

_TRITON_ADDRESSES = ("--http-address", "--grpc-address", "--metrics-address")


@dataclass(frozen=True)
class FrontOptions:
    """The addresses that the front listens on, and the clients that it allows.

    Attributes:
        listen: the address.
        tls_cert, tls_key: PEM files of the server's certificate chain and its private key; without them, connections are not encrypted.
        client_ca: a PEM file of the authorities whose certificates clients must show (mutual TLS).
        api_keys: a file with the keys of clients, one per line.
        admin_keys: a file with the keys that also give access to what is closed to clients: loading and unloading
            models, shared memory, and settings of logs and traces.
        anonymous: let anyone ask, without a key or certificate.
        max_request_bytes: the largest size of a request's body, or of a gRPC message, in bytes.
        request_seconds: the longest time that an answer may take, in seconds.
    """

    listen: str
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    api_keys: Path | None = None
    admin_keys: Path | None = None
    anonymous: bool = False
    max_request_bytes: int = 64 << 20
    request_seconds: int = 300

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ServerError("TLS needs both a certificate and its key: pass --tls-cert and --tls-key")
        if self.client_ca is not None and self.tls_cert is None:
            raise ServerError("client certificates need TLS: pass --tls-cert and --tls-key with --client-ca")
        restricted = self.api_keys is not None or self.client_ca is not None
        if not restricted and not self.anonymous:
            raise ServerError(
                "no client is allowed: pass --api-key-file or --client-ca, or --anonymous to allow everyone who reaches "
                f"{self.listen}"
            )
        if restricted and self.anonymous:
            raise ServerError(
                "--anonymous allows everyone, so it cannot be combined with --api-key-file or --client-ca"
            )

    @property
    def max_connections(self) -> int:
        """The largest number of concurrent clients, within this process's limit of open files."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(16, min(MAX_CONNECTIONS, (hard - _SPARE_DESCRIPTORS) // _DESCRIPTORS_PER_CONNECTION))

    @property
    def max_connections_per_client(self) -> int:
        """The largest number of connections of one address, so that one client cannot take them all."""
        return self.max_connections // 4


def read_keys(path: Path) -> list[str]:
    """Return the keys of a file: one per line, without empty lines and those that begin with ``#``.

    Raises:
        ServerError: the file cannot be read, has no key, or one that is too short or not plain text.
    """
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerError(f"the keys in '{path}' cannot be read: {error}") from error
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise ServerError(f"there is no key in '{path}': write one per line, e.g. of `openssl rand -hex 32`")
    for number, key in enumerate(keys, 1):
        if len(key) < MIN_KEY_CHARACTERS or any(character.isspace() for character in key):
            raise ServerError(
                f"key {number} in '{path}' must have at least {MIN_KEY_CHARACTERS} characters and no spaces"
            )
    return keys


def refuse_exposure(host: str, flags: Sequence[str]) -> None:
    """Refuse a Triton that the network reaches without a front.

    Args:
        host: the address that Triton is to listen on.
        flags: Triton's flags, which may set other addresses.

    Raises:
        ServerError: one of these is not an address of this machine alone.
    """
    words = [word for flag in flags for word in flag.split("=", 1)]
    named = [(name, value) for name, value in itertools.pairwise(words) if name in _TRITON_ADDRESSES]
    for name, address in [("--host", host), *named]:
        if not is_loopback(address):
            raise ServerError(
                f"{name} {address} would show Triton to the network, where one request can end it: use --listen {address}, "
                "which puts a proxy in front (docs/facing-a-network.md), or --no-front if something else is in front"
            )


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def proxy_threads() -> int:
    """Return the number of the proxy's threads and of relays for gRPC: few, as processors are for models."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // 4))
