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
"""The smallest number of characters in a key; shorter keys could be guessed."""

MAX_JSON_BYTES = 64 << 10
"""The largest size in bytes of a request's JSON part, and so of a request that does not use the binary tensor extension."""

MAX_JSON_DEPTH = 32
"""The largest number of nested arrays and objects. With about 100,000, Triton 2.51 overflows its stack."""

MAX_HEADER_BYTES = 16 << 10

MAX_CONNECTIONS = 4096
"""The largest number of client connections, over all ports; smaller if the limit of open files is lower."""

MAX_UPSTREAM_CONNECTIONS = 256
"""The largest number of connections to Triton's HTTP port; further requests wait in the front, so that Triton's
descriptors are never used up.
"""

_DESCRIPTORS_PER_CONNECTION = 2
_SPARE_DESCRIPTORS = 200
"""The number of descriptors reserved for listeners, threads, connections to Triton, and files."""

_TRITON_ADDRESSES = ("--http-address", "--grpc-address", "--metrics-address")


@dataclass(frozen=True)
class FrontOptions:
    """The address on which the front listens, the clients that it allows, and limits of requests.

    Attributes:
        listen: the address to listen on.
        tls_cert, tls_key: PEM files of the server's certificate chain and its private key; without them, connections are not encrypted.
        client_ca: a PEM file with the authorities that must have signed the clients' certificates (mutual TLS).
        api_keys: a file with the keys of clients, one per line.
        admin_keys: a file with keys that also give access to interfaces that are closed to other clients: loading and unloading
            models, shared memory, and the settings of logs and traces.
        anonymous: whether to allow all clients, without a key or certificate.
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
        """The largest number of client connections, within this process's limit of open files."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(16, min(MAX_CONNECTIONS, (hard - _SPARE_DESCRIPTORS) // _DESCRIPTORS_PER_CONNECTION))

    @property
    def max_connections_per_client(self) -> int:
        """The largest number of connections from one address, so that one client cannot use up all connections."""
        return self.max_connections // 4


def read_keys(path: Path) -> list[str]:
    """Return the keys in a file: its lines, except empty ones and those that begin with ``#``.

    Raises:
        ServerError: the file cannot be read, has no keys, or has a key that is too short or not plain text.
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
    """Raise an error if the network would reach Triton without a front.

    Args:
        host: the address on which Triton would listen.
        flags: Triton's flags, which may set other addresses.

    Raises:
        ServerError: an address is reachable from outside this machine.
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
    """Return whether an address is only reachable from this machine."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def proxy_threads() -> int:
    """Return the number of threads of the proxy and the number of relays: few, to leave processors to the models."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // 4))
