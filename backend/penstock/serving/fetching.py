"""Fetches files from web servers that the operator allows, for requests that contain an address instead of a file.

Whoever sends a request chooses the address, so the address must not lead into the server's own network: the host must be allowed,
each address that the host's name resolves to must be public, the connection goes to an address that was checked, and each redirect is
checked like the first address.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urljoin, urlsplit

from penstock.errors import PenstockError

_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 3
_MAX_URL_CHARACTERS = 8192
_CHUNK_BYTES = 1 << 16
# IPv6 prefixes of addresses that embed an IPv4 address in their last 32 bits: IPv4-compatible addresses and NAT64.
_EMBEDDING = tuple(ipaddress.IPv6Network(network) for network in ("::/96", "64:ff9b::/96"))

Resolve = Callable[[str, int], Collection[str]]


class FetchError(PenstockError, ValueError):
    """Raised if an address is refused, or its file cannot be fetched. Messages omit the query, which may be secret."""


def is_public(address: str) -> bool:
    """Return whether an IP address, and each address that it embeds, belongs to the public internet."""
    own = ipaddress.ip_address(address.partition("%")[0])
    return own.is_global and not own.is_multicast and all(map(is_public, _embedded(own)))


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[str]:
    """Yield the IPv4 addresses that an IPv6 address embeds."""
    if isinstance(address, ipaddress.IPv6Address):
        found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if any(address in network for network in _EMBEDDING):
            found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        yield from (str(own) for own in found if own is not None)


def allows(hosts: Collection[str], host: str) -> bool:
    """Return whether a host is allowed; ``host`` includes the port, unless it is the protocol's default.

    >>> allows(["images.example.com", "*.example.org:8443"], "a.example.org:8443")
    True
    """
    known = {own.lower() for own in hosts}
    _, dot, parent = host.lower().partition(".")
    parents = []
    while dot:
        parents.append(f"*.{parent}")
        _, dot, parent = parent.partition(".")
    return host.lower() in known or not known.isdisjoint(parents)


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True)
class Fetcher:
    """Fetches files from allowed web servers.

    Attributes:
        hosts: the allowed hosts; see :func:`allows`.
        max_bytes: the largest size of a file, in bytes; None: no limit.
        seconds: the time limit of a fetch, from the look-up of the host to the last byte; None: no limit.
        accepts_address: returns whether a connection may go to an IP address.
        resolve: returns the addresses of a host.
        tls: the settings of encrypted connections.
    """

    hosts: Collection[str]
    max_bytes: int | None
    seconds: float | None
    accepts_address: Callable[[str], bool] = is_public
    resolve: Resolve = _resolve
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def fetch(self, url: str) -> bytes:
        """Return the file at an address.

        Raises:
            FetchError: the address is refused, or the file cannot be fetched in time.
        """
        end = None if self.seconds is None else time.monotonic() + self.seconds
        for _ in range(_MAX_REDIRECTS + 1):
            target = self._checked(url)
            try:
                found = self._get(target, end)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, FetchError):
                    raise
                if end is not None and time.monotonic() >= end:
                    raise FetchError(f"{_shown(target)} did not answer within {self.seconds:g} seconds") from error
                raise FetchError(f"{_shown(target)} cannot be fetched ({type(error).__name__})") from error
            if isinstance(found, bytes):
                return found
            if target.scheme == "https" and urlsplit(found).scheme == "http":
                raise FetchError(f"{_shown(target)} redirects to an address without encryption")
            url = found
        raise FetchError(f"{_shown(target)} redirects more than {_MAX_REDIRECTS} times")

    def _checked(self, url: str) -> SplitResult:
        """Return the parts of an address; raise FetchError if the address may not be requested."""
        if len(url) > _MAX_URL_CHARACTERS or not all("!" <= letter <= "~" for letter in url):
            raise FetchError("an address must consist of at most 8192 visible ASCII characters")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise FetchError("this is not a valid address") from error
        if parts.scheme not in _PORTS or not parts.hostname:
            raise FetchError("an address must start with https:// or http:// and a host")
        if parts.username is not None or parts.password is not None:
            raise FetchError("an address must not have a user or password")
        host = parts.hostname if port in (None, _PORTS[parts.scheme]) else f"{parts.hostname}:{port}"
        if not allows(self.hosts, host):
            raise FetchError(f"the host '{host}' is not allowed; the server's operator can allow it with --allow-host")
        return parts

    def _get(self, target: SplitResult, end: float | None) -> bytes | str:
        """Return the file, or the address to which the server redirects."""
        host, port = target.hostname or "", target.port or _PORTS[target.scheme]
        with _shut_down_at(end) as live, closing(self._connected(target, host, port, end)) as sock:
            live.append(sock)
            kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
            connection = kind(host, port)
            with closing(connection):
                connection.sock = sock
                if target.scheme == "https":
                    connection.sock = self.tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
                    live[0] = connection.sock
                    connection.sock.do_handshake()
                return self._ask(target, connection)

    def _ask(self, target: SplitResult, connection: http.client.HTTPConnection) -> bytes | str:
        path = target._replace(scheme="", netloc="", fragment="", path=target.path or "/").geturl()
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "penstock"}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            return urljoin(target.geturl(), location)
        if response.status != 200:
            raise FetchError(f"{_shown(target)} answered with the status {response.status}")
        return self._read(target, response)

    def _connected(self, target: SplitResult, host: str, port: int, end: float | None) -> socket.socket:
        """Return a connection to the host. All addresses of the host must be public, and the connection goes to one of those that
        were checked, as the name may resolve differently later.
        """
        addresses = self.resolve(host, port)
        if not addresses or not all(map(self.accepts_address, addresses)):
            raise FetchError(f"{_shown(target)} does not resolve to public addresses")
        problem: OSError | None = None
        for address in addresses:
            try:
                return socket.create_connection((address, port), _remaining(end))
            except OSError as error:
                problem = error
        raise problem or OSError("there is no address")

    def _read(self, target: SplitResult, response: http.client.HTTPResponse) -> bytes:
        limit = self.max_bytes
        if limit is not None and (response.length or 0) > limit:
            raise FetchError(f"{_shown(target)} has {response.length} bytes, more than the limit of {limit}")
        content = bytearray()
        while chunk := response.read(_CHUNK_BYTES):
            content += chunk
            if limit is not None and len(content) > limit:
                raise FetchError(f"{_shown(target)} has more bytes than the limit of {limit}")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return bytes(content)


def _shown(target: SplitResult) -> str:
    return f"{target.scheme}://{target.netloc}{target.path}"


def _remaining(end: float | None) -> float | None:
    """Return the number of seconds until a deadline, at least a millisecond; None if there is no deadline."""
    return None if end is None else max(end - time.monotonic(), 1e-3)


@contextmanager
def _shut_down_at(end: float | None) -> Iterator[list[socket.socket]]:
    """Shut down the connection in the yielded list at a deadline, because a socket's timeout applies to each read separately."""
    live: list[socket.socket] = []
    if end is None:
        yield live
        return

    def shut_down() -> None:
        with suppress(IndexError, OSError):  # the connection was not opened yet, or has ended
            # Not `SSLSocket.shutdown`, after which the reader would take encrypted bytes for the answer.
            socket.socket.shutdown(live[0], socket.SHUT_RDWR)

    timer = threading.Timer(_remaining(end) or 0, shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield live
    finally:
        timer.cancel()
