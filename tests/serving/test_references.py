"""Requests that name files by URL or contain base64: which files are fetched, and which are refused; with a real web server."""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.serving.fetching import Fetcher, FetchError, allows, is_public
from penstock.serving.intake import Intake
from penstock.serving.references import References
from penstock.serving.refusals import Refusal
from penstock.serving.requests import ByteStrings, InputSpec, RequestError
from penstock.serving.served_model import Outputs, ServedModel
from penstock.serving.server import LocalServer
from penstock.serving.settings import ConfigurationError, Settings

from served import HEADER, add_model, stopped_later  # isort: skip

FILE = bytes(range(256)) * 40


class _Handler(BaseHTTPRequestHandler):
    """Answers requests depending on their path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/file":
                self._send(200, FILE)
            case "/chunks":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(FILE), FILE))
            case "/short":
                self.send_response(200)
                self.send_header("Content-Length", str(len(FILE) + 1))
                self.end_headers()
                self.wfile.write(FILE)
                self.close_connection = True
            case "/drip":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                for _ in range(60):
                    try:
                        self.wfile.write(b"x")
                    except OSError:
                        return
                    time.sleep(0.05)
            case "/again":
                self._send(302, b"", Location="/file")
            case "/loop":
                self._send(301, b"", Location="/loop")
            case "/inside":
                self._send(302, b"", Location="http://169.254.169.254/secret")
            case "/elsewhere":
                self._send(307, b"", Location="http://other.example/file")
            case "/script":
                self._send(302, b"", Location="file:///etc/passwd")
            case _:
                self._send(404, b"no")

    def _send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Yield the authority (host and port) of a web server, whose host is files.example."""
    web = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    web.daemon_threads = True
    thread = threading.Thread(target=web.serve_forever, args=(0.02,))
    thread.start()
    yield f"files.example:{web.server_address[1]}"
    web.shutdown()
    thread.join()
    web.server_close()


def fetcher(server: str, **changes: Any) -> Fetcher:
    """Return a fetcher for which files.example resolves to this machine and counts as a public address."""
    settings: dict[str, Any] = {
        "hosts": [server, "169.254.169.254", "inside.example"],
        "max_bytes": 1 << 20,
        "seconds": 5.0,
        "accepts_address": lambda address: address == "127.0.0.1",
        "resolve": lambda host, port: ["127.0.0.1"] if host == "files.example" else [host],
    }
    return Fetcher(**settings | changes)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ssl.SSLContext]]:
    """Yield the authority of a web server with TLS, and a client context that trusts the server's certificate, which is
    for files.example.
    """
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "files.example")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("files.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "both.pem"
    file.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(file)
    web = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    web.daemon_threads = True
    web.socket = own.wrap_socket(web.socket, server_side=True)
    thread = threading.Thread(target=web.serve_forever, args=(0.02,))
    thread.start()
    yield f"files.example:{web.server_address[1]}", ssl.create_default_context(cafile=file)
    web.shutdown()
    thread.join()
    web.server_close()


def test_encrypted_files(encrypted: tuple[str, ssl.SSLContext]) -> None:
    authority, tls = encrypted
    own = fetcher(authority, tls=tls, seconds=2.0)
    assert own.fetch(f"https://{authority}/file") == FILE
    with pytest.raises(FetchError, match="did not answer within"):
        own.fetch(f"https://{authority}/drip")
    # Refused: a certificate for another name, and one signed by an unknown authority.
    other = authority.replace("files", "other")
    settings = {"hosts": [other], "resolve": lambda host, port: ["127.0.0.1"]}
    for changes in ({"tls": tls} | settings, {}):
        with pytest.raises(FetchError, match="SSLCertVerificationError"):
            fetcher(authority, **changes).fetch(f"https://{other if changes else authority}/file")


@pytest.mark.parametrize("path", ["/file", "/chunks", "/again", "/file?key=1#part"])
def test_files_are_fetched(server: str, path: str) -> None:
    assert fetcher(server).fetch(f"http://{server}{path}") == FILE


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://{}/none?secret=1", r"http://files\.example:\d+/none answered with the status 404$"),
        ("http://{}/short", "cannot be fetched"),
        ("http://{}/loop", "redirects more than 3 times"),
        ("http://{}/inside", "http://169.254.169.254/secret does not resolve to public addresses"),
        ("http://{}/elsewhere", "'other.example' is not allowed.*--allow-host"),
        ("http://{}/script", "must start with https:// or http://"),
        ("https://{}/file", "cannot be fetched"),  # this server does not encrypt
        ("http://other.example/file", "'other.example' is not allowed"),
        ("http://files.example/file", "'files.example' is not allowed"),  # another port than the allowed one
        ("http://user:word@{}/file", "must not have a user"),
        ("http://{}:1/file", "not a valid address"),
        ("http://{}/a b", "visible ASCII characters"),
        ("http:///file", "and a host"),
    ],
)
def test_addresses_that_are_refused(server: str, url: str, told: str) -> None:
    with pytest.raises(FetchError, match=told):
        fetcher(server).fetch(url.format(server))


def test_sizes_are_limited(server: str) -> None:
    assert fetcher(server, max_bytes=len(FILE)).fetch(f"http://{server}/file") == FILE
    for path, told in (
        ("file", f"has {len(FILE)} bytes, more than the limit"),
        ("chunks", "more bytes than the limit"),
    ):
        with pytest.raises(FetchError, match=told):
            fetcher(server, max_bytes=len(FILE) - 1).fetch(f"http://{server}/{path}")


def test_time_is_limited_however_the_bytes_come(server: str) -> None:
    began = time.monotonic()
    with pytest.raises(FetchError, match=r"did not answer within 0\.3 seconds"):
        fetcher(server, seconds=0.3).fetch(f"http://{server}/drip")
    assert time.monotonic() - began < 2


def test_a_name_is_resolved_once_and_all_its_addresses_count(server: str) -> None:
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    assert fetcher(server, resolve=rebinding).fetch(f"http://{server}/file") == FILE
    assert asked == ["files.example"]
    with pytest.raises(FetchError, match="does not resolve to public addresses"):
        fetcher(server, resolve=lambda host, port: ["127.0.0.1", "10.0.0.1"]).fetch(f"http://{server}/file")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_this_machine_is_never_asked(server: str, name: str) -> None:
    port = server.rpartition(":")[2]
    own = Fetcher([f"{name.strip('[]')}:{port}"], None, 5.0)
    with pytest.raises(FetchError, match=r"does not resolve to public addresses|cannot be fetched"):
        own.fetch(f"http://{name}:{port}/file")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("::ffff:8.8.8.8", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("2002:0a00:0001::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
    ],
)
def test_public_addresses(address: str, expected: bool) -> None:
    assert is_public(address) is expected


def test_allowed_hosts() -> None:
    hosts = ["Images.example.com", "*.example.org:8443", "*.b.example"]
    assert all(allows(hosts, host) for host in ("images.example.com", "x.y.example.org:8443", "a.b.example"))
    refused = ("example.com", "a.images.example.com", "example.org:8443", "a.example.org", "b.example", "ab.example")
    assert not any(allows(hosts, host) for host in refused)


@dataclass
class Asked:
    """A request."""

    inputs: Mapping[str, Any]
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[str, ...] = ("size",)

    def tensor(self, name: str) -> Any:
        return self.inputs.get(name)

    def reserve(self, name: str, shape: Any, dtype: Any) -> None:
        """Return None: no memory is reserved."""

    def trace(self) -> int:
        return 0

    def is_cancelled(self) -> bool:
        return False


def strings(*items: bytes) -> np.ndarray:
    return np.array(items, np.object_).reshape(-1, 1)


def test_inputs_with_references(server: str) -> None:
    spec = InputSpec("x", is_bytes=True, ndim=1)
    references = References([spec], Settings(url_inputs=("x",), max_fetched_bytes=1 << 20), fetcher(server))
    intake = Intake([spec], 8)
    encoded = b"data:image/png;base64," + base64.b64encode(FILE)
    as_list = ByteStrings(np.frombuffer(item, np.uint8) for item in (f"HTTP://{server}/file".encode(), b"bytes"))
    as_list.shape = (2, 1)
    requests = [
        Asked({"x": strings(b"bytes", f"http://{server}/file".encode(), encoded)}),
        Asked({"x": strings(b"bytes", f"http://{server}/none".encode())}),
        Asked({"x": as_list}),
        Asked({"x": strings(b"DATA:;base64,!!!!")}),
        Asked({"x": strings(b"data:text/plain,words")}),
        Asked({}),
    ]
    own = references.resolved(requests)
    assert [sample.tobytes() for sample in intake.samples_of(own[0])[0]] == [b"bytes", FILE, FILE]
    assert [sample.tobytes() for sample in intake.samples_of(own[2])[0]] == [FILE, b"bytes"]
    for number, told in (
        (1, "input 'x', string 1: .*404"),
        (3, "string 0: the data URL is not valid base64"),
        (4, "data:image/jpeg;base64"),
        (5, "is missing"),
    ):
        with pytest.raises(RequestError, match=told):
            intake.samples_of(own[number])
    references.close()


def test_base64_is_limited() -> None:
    spec = InputSpec("x", is_bytes=True, ndim=1)
    references = References([spec], Settings(url_inputs=("x",), max_fetched_bytes=10))
    for size, fits in ((10, True), (13, False)):
        request = Asked({"x": strings(b"data:;base64," + base64.b64encode(bytes(size)))})
        (own,) = references.resolved([request])
        if fits:
            assert Intake([spec], 8).samples_of(own)[0][0].tobytes() == bytes(10)
        else:
            with pytest.raises(RequestError, match="more bytes than the limit of 10"):
                Intake([spec], 8).samples_of(own)
    references.close()


SIZES = """
@pipeline_def(batch_size=4)
def sizes():
    return fn.cast(fn.external_source(name="x", dtype=types.UINT8, ndim=1).shape(), dtype=types.INT32, name="size")
"""


def served(folder: Path, **parameters: str) -> ServedModel:
    version = folder / "model" / "1"
    version.mkdir(parents=True)
    (version / "pipeline.py").write_text(HEADER + SIZES)
    config: dict[str, Any] = {
        "name": "model",
        "max_batch_size": 4,
        "input": [{"name": "x", "data_type": "TYPE_STRING", "dims": [1]}],
        "output": [{"name": "size", "data_type": "TYPE_INT32", "dims": [1]}],
        "parameters": {name: {"string_value": value} for name, value in parameters.items()},
    }
    return ServedModel.load(version, config, None)


def test_by_default_addresses_are_bytes(tmp_path: Path) -> None:
    model = served(tmp_path)
    (answer,) = model.answer([Asked({"x": strings(b"https://files.example/file")})])
    model.close()
    assert isinstance(answer, Outputs)
    assert answer.tensors["size"].tolist() == [[26]]


def test_a_model_that_takes_base64_fetches_nothing_without_a_grant(tmp_path: Path) -> None:
    model = served(tmp_path, url_inputs="x")
    asked = [Asked({"x": strings(b"data:;base64,AAAA")}), Asked({"x": strings(b"https://files.example/file")})]
    good, bad = model.answer(asked)
    model.close()
    assert isinstance(good, Outputs)
    assert good.tensors["size"].tolist() == [[3]]
    assert isinstance(bad, Refusal)
    assert bad.kind.value == "bad_request"
    assert "'files.example' is not allowed" in bad.message


def test_a_model_cannot_allow_hosts_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'allowed_hosts' asks for 'files\.example'.*--allow-host files"):
        served(tmp_path, url_inputs="x", allowed_hosts="files.example")


def test_url_inputs_are_inputs_of_strings(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'url_inputs' names 'y'; inputs of the type TYPE_STRING are: x"):
        served(tmp_path, url_inputs="y")


def test_base64_in_json_through_triton(tmp_path: Path) -> None:
    config = """
    backend: "penstock"
    max_batch_size: 4
    input [ { name: "x" data_type: TYPE_STRING dims: [ 1 ] } ]
    parameters { key: "url_inputs" value { string_value: "x" } }
    """
    add_model(tmp_path, "sizes", config, HEADER + SIZES.replace("@pipeline_def", "@autoserialize\n@pipeline_def"))
    tensor = {"name": "x", "shape": [2, 1], "datatype": "BYTES", "data": ["data:;base64,AAAA", "plain"]}
    with stopped_later(LocalServer(tmp_path)) as running:
        request = urllib.request.Request(
            f"http://{running.http_url}/v2/models/sizes/infer", json.dumps({"inputs": [tensor]}).encode()
        )
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
    assert answer["outputs"][0]["data"] == [3, 5]
