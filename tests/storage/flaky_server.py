"""A faulty web server: drops connections, stalls, answers with errors, truncates, or ignores ranges."""

from __future__ import annotations

import contextlib
import email.utils
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FlakyServer(ThreadingHTTPServer):
    """Serves the files in its dictionary, with faults on request.

    Attributes:
        files: the contents of the files by path, such as ``/name``.
        faults: by path, the faults of the next GET requests, in order: ``drop`` the connection, ``stall``, send ``half`` of the
            contents, or answer with an error status such as ``503``.
        requests: the number of GET requests so far, by path.
        latency: the delay before each answer to a GET request, in seconds.
        knows_ranges: whether the server answers requests for ranges of bytes.
        tells: the header that identifies a file's version: ``ETag`` or ``Last-Modified``; another value: none.
        written: the modification times of files by path, in seconds since 1970.
        asked: the number of HEAD requests so far, by path.
        refusals: the number of following HEAD requests that are answered with status 503, by path.
        before_answer: called with the path before contents are sent.
    """

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(files)
        self.faults: dict[str, list[str]] = {}
        self.requests: Counter[str] = Counter()
        self.latency = 0.0
        self.knows_ranges = True
        self.tells = ""
        self.written: dict[str, float] = {}
        self.asked: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.before_answer: Callable[[str], None] = lambda path: None
        self.released = threading.Event()

    def url(self, name: str) -> str:
        """Return the URL of a file."""
        return f"http://127.0.0.1:{self.server_port}/{name}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: the tests include clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    server: FlakyServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.server.asked[self.path] += 1
        if self.server.refusals[self.path]:
            self.server.refusals[self.path] -= 1
            self.send_error(503)
            return
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self.server.requests[self.path] += 1
        time.sleep(self.server.latency)
        faults = self.server.faults.get(self.path, [])
        fault = faults.pop(0) if faults else ""
        if fault == "drop":
            self.close_connection = True
        elif fault == "stall":
            self.server.released.wait(60)
            self.close_connection = True
        elif fault.isdecimal():
            self.send_error(int(fault))
        else:
            self.server.before_answer(self.path)
            self._answer(with_body=True, half=fault == "half")

    def _answer(self, with_body: bool, half: bool = False) -> None:
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if self.server.knows_ranges else None
        if wanted and int(wanted[1]) >= len(content):
            self.send_error(416)
            return
        part = content[int(wanted[1]) : int(wanted[2]) + 1 if wanted[2] else None] if wanted else content
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(part)))
        if self.server.knows_ranges:
            self.send_header("Accept-Ranges", "bytes")
        if self.server.tells == "ETag":
            self.send_header("ETag", f'"{zlib.crc32(content)}"')
        elif self.server.tells == "Last-Modified":
            self.send_header(
                "Last-Modified", email.utils.formatdate(self.server.written.get(self.path, 0), usegmt=True)
            )
        self.end_headers()
        if with_body:
            self.wfile.write(part[: len(part) // 2] if half else part)
            self.close_connection = half

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are counted instead."""


@contextlib.contextmanager
def serving(files: Mapping[str, bytes]) -> Iterator[FlakyServer]:
    """Serve ``files`` until the `with` block ends."""
    server = FlakyServer({f"/{name}": content for name, content in files.items()})
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
