"""The front: a real proxy before a real Triton, and the requests that it blocks."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tritonclient.grpc import service_pb2

sys.path.insert(0, str(Path(__file__).parent))
from hostile_requests import CRASHES, INFER, Target, compressed_body, grpc_request, request_body, send_storm
from served import HEADER, add_model, stopped_later

from penstock.serving.control import ServerError
from penstock.serving.front.options import MAX_JSON_DEPTH, FrontOptions
from penstock.serving.server import LocalServer

pytestmark = pytest.mark.exhaustive

KEY, ADMIN_KEY = "k" * 32, "a" * 32
AUTHORIZATION = {"authorization": f"Bearer {KEY}"}
ADMIN = {"authorization": f"Bearer {ADMIN_KEY}"}
PATIENCE_SECONDS = 60.0

ECHO = (
    HEADER
    + """
@autoserialize
@pipeline_def(batch_size=8, num_threads=1)
def echo():
    return fn.copy(fn.external_source(name="x", dtype=types.UINT8, ndim=1), name="y")
"""
)
# The model takes about as long as the deadlines of a storm allow.
SLOW = (
    HEADER
    + """
@autoserialize
@pipeline_def(batch_size=8, num_threads=1)
def slow():
    y = fn.cast(fn.external_source(name="x", dtype=types.UINT8, ndim=1), dtype=types.FLOAT)
    for _ in range(3):
        y = fn.gaussian_blur(fn.reshape(y, shape=[-1, 100, 1], layout="HWC"), sigma=3.0)
    return fn.cast(y, dtype=types.UINT8, name="y")
"""
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    add_model(folder, "echo", 'backend: "penstock"\nmax_batch_size: 8\n', ECHO)
    output = 'output [ { name: "y" data_type: TYPE_UINT8 dims: [ -1, -1, 1 ] } ]'
    add_model(folder, "slow", f'backend: "penstock"\nmax_batch_size: 8\ndynamic_batching {{}}\n{output}\n', SLOW)
    return folder


@pytest.fixture(scope="module")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "keys").write_text(f"# of a team\n{'x' * 20}\n{KEY}\n")
    (folder / "admins").write_text(f"{ADMIN_KEY}\n")
    return {"api_keys": folder / "keys", "admin_keys": folder / "admins"}


@pytest.fixture(scope="module")
def server(repository: Path, key_files: dict[str, Path]) -> Iterator[LocalServer]:
    with stopped_later(LocalServer(repository, front=FrontOptions("127.0.0.1", **key_files))) as running:
        yield running


@pytest.fixture
def http_target(server: LocalServer) -> Target:
    return Target(address(server, "HTTP"), "echo", AUTHORIZATION)


def address(server: LocalServer, use: str) -> str:
    assert server.front is not None
    return server.front.address(use)


def get(server: LocalServer, path: str, headers: dict[str, str], method: str = "GET", use: str = "HTTP") -> int:
    connection = http.client.HTTPConnection(address(server, use), timeout=PATIENCE_SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        return connection.getresponse().status


def call(server: LocalServer, method: str, headers: dict[str, str], request: bytes = b"") -> bytes:
    with grpc.insecure_channel(address(server, "gRPC")) as channel:
        send = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        return bytes(send(request, metadata=tuple(headers.items()), timeout=PATIENCE_SECONDS))


def status_of(server: LocalServer, method: str, headers: dict[str, str], request: bytes = b"") -> str:
    try:
        call(server, method, headers, request)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def check_serves(server: LocalServer) -> None:
    """Assert that both ports answer a request correctly."""
    status, answer = Target(address(server, "HTTP"), "echo", AUTHORIZATION).post(request_body([1, 3], [1, 2, 3]))
    assert (status, json.loads(answer)["outputs"][0]["data"]) == (200, [1, 2, 3])
    response = service_pb2.ModelInferResponse.FromString(
        call(server, "ModelInfer", AUTHORIZATION, grpc_request("echo", 5))
    )
    assert response.raw_output_contents[0] == b"aaaaa"


def cancelled(server: LocalServer) -> bool:
    """Return whether the model's metrics count a cancelled request."""
    with urllib.request.urlopen(server.metrics_url, timeout=PATIENCE_SECONDS) as page:
        return b'kind="cancelled"' in page.read()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


# -- what ends Triton ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(repository: Path) -> Iterator[LocalServer]:
    with stopped_later(LocalServer(repository)) as running:
        yield running


@pytest.mark.parametrize("name", CRASHES)
def test_triton_alone_dies(bare: LocalServer, name: str) -> None:
    # If this fails for a request with a newer Triton, that Triton handles the request: note this in the table of docs/facing-a-network.md.
    pid = bare.pid
    assert CRASHES[name](Target(bare.http_url, "echo")) == 0
    assert eventually(lambda: bare.running and bare.pid != pid and bare.control.live())


@pytest.mark.parametrize(
    ("name", "status"),
    {
        "nested": 413,
        "overflowing shape": 400,
        "huge shape": 400,
        "chunks": 411,
    }.items(),
)
def test_front_refuses_what_ends_triton(server: LocalServer, http_target: Target, name: str, status: int) -> None:
    pid = server.pid
    # If the server refuses a request while the client is still sending, the client's system may drop the answer.
    assert CRASHES[name](http_target) in (status, 0)
    check_serves(server)
    assert server.pid == pid


@pytest.mark.parametrize("storm", ["deadlines", "cancellations"])
def test_calls_that_clients_give_up_do_not_reach_triton(server: LocalServer, storm: str) -> None:
    pid = server.pid
    counts = send_storm(storm, Target(address(server, "gRPC"), "slow", AUTHORIZATION))
    assert counts.total() == 8000
    assert counts["DEADLINE_EXCEEDED"] + counts["CANCELLED"] > 1000
    assert counts["UNAVAILABLE"] == 0
    check_serves(server)
    assert server.pid == pid
    assert not cancelled(server)


def test_compressed_requests_are_refused(server: LocalServer, http_target: Target) -> None:
    assert compressed_body(http_target) in (415, 0)
    assert http_target.post(b"", content_encoding="deflate")[0] == 415
    with grpc.insecure_channel(address(server, "gRPC"), compression=grpc.Compression.Gzip) as channel:
        send = channel.unary_unary(INFER)
        with pytest.raises(grpc.RpcError) as failure:
            send(grpc_request("echo", 100_000), metadata=tuple(AUTHORIZATION.items()))
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED


SHAPED = '{"inputs":[{"name":"x","shape":%s,"datatype":"UINT8","data":[1]}]}'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (SHAPED % "[1,4611686018427387904]", "'shape' has more elements"),
        (SHAPED % "[65536,65536,65536,65536]", "'shape' has more elements"),
        (SHAPED % "[0,99999999999999999999]", "'shape' has more elements"),
        (SHAPED % "[1,100000]", "'shape' has more elements than there are data"),
        (SHAPED % "[1,-1]", "'shape' must be a list of integers that are not negative"),
        (SHAPED % "[1e12]", "'shape' must be a list of integers that are not negative"),
        (SHAPED % '"big"', "'shape' must be a list"),
        (SHAPED.replace('"shape"', '"sh\\u0061pe"') % "[1,4611686018427387904]", "keys must have no escapes"),
        (SHAPED.replace('"shape":%s', '"shape":[1],"shape":%s') % "[1,100000]", "the key 'shape' is given twice"),
        (
            '{"inputs":[{"name":"x","shape":[1,100000],"datatype":"UINT8","parameters":{},'
            '"parameters":{"binary_data_size":3},"data":[1]}]}',
            "the key 'parameters' is given twice",
        ),
        ('{"inputs":[{"shape":[1,100000],"binary_data_size":3,"data":[1]}]}', "'shape' has more elements than there"),
        ('{"inputs":[{"shape":[1],"parameters":{"binary_data_size":"3"}}]}', "'binary_data_size' must be a number"),
        ('{"a":' * (MAX_JSON_DEPTH + 1), "nested deeper"),
        ('{"a":"' + "[" * 100 + '"}', ""),
        ('{"a":"\\"' + "[" * 100 + '"}', ""),
        ("[" * MAX_JSON_DEPTH, ""),
        ("]", ""),
        ('"unfinished', ""),
    ],
)
def test_json_is_read_before_triton_does(server: LocalServer, http_target: Target, body: str, reason: str) -> None:
    pid = server.pid
    status, answer = http_target.post(body.encode())
    refused = json.loads(answer)["error"]
    # Harmless requests reach Triton, which reports their errors.
    assert refused.startswith(reason) if reason and "nested" not in reason else reason in refused
    assert status in ((400,) if reason else (400, 500))
    assert server.pid == pid


def test_binary_tensors_pass(http_target: Target) -> None:
    data = bytes(range(256)) * 2400
    head = request_body([1, len(data)], [], parameters={"binary_data_size": len(data)}).replace(b', "data": []', b"")
    status, answer = http_target.post(head + data, inference_header_content_length=str(len(head)))
    assert status == 200
    assert json.loads(answer)["outputs"][0]["data"][:3] == [0, 1, 2]


@pytest.mark.parametrize("length", ["100000", "9", "-1", "x", "99999999999999999999"])
def test_length_of_json_is_checked(http_target: Target, length: str) -> None:
    status, answer = http_target.post(b"{}", inference_header_content_length=length)
    assert status in (400, 413), answer


def test_length_of_json_counts_for_inference_only(http_target: Target) -> None:
    # For this path, Triton parses the whole body as JSON, whatever the header says.
    path = "/v2/models/echo/generate"
    status, answer = http_target.post(b"{}" + b"[" * 10_000, path, inference_header_content_length="2")
    assert status == 400
    assert b"nested deeper" in answer


@pytest.mark.parametrize(("size", "status"), [((64 << 10) + 1, 413), ((64 << 20) + 1, 413)], ids=["JSON", "request"])
def test_large_requests_are_refused(http_target: Target, size: int, status: int) -> None:
    assert http_target.post(b" " * size)[0] in (status, 0)


def test_large_headers_are_refused(http_target: Target) -> None:
    assert http_target.post(b"{}", x_filler="x" * 20_000)[0] == 431
    assert http_target.post(b"{}", x_filler="x" * 200_000)[0] in (400, 0)


def test_slow_headers_are_cut_off(server: LocalServer) -> None:
    host, port = address(server, "HTTP").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n")
        connection.settimeout(PATIENCE_SECONDS)
        assert b" 408 " in connection.recv(1000)


# -- who may do what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"authorization": f"Bearer {KEY[:-1]}"}, {"authorization": "Bearer "}])
def test_key_is_required(server: LocalServer, headers: dict[str, str]) -> None:
    assert get(server, "/v2", headers) == 401
    assert get(server, "/metrics", headers, use="metrics") == 401
    assert Target(address(server, "HTTP"), "echo", headers).post(request_body([1, 1], [1]))[0] == 401
    assert status_of(server, "ModelInfer", headers, grpc_request("echo")) == "UNAUTHENTICATED"
    # Load balancers' health checks have no key.
    assert get(server, "/v2/health/ready", headers) == 200
    assert status_of(server, "ServerReady", headers) == "OK"


@pytest.mark.parametrize("path", ["/v2", "/v2/models/echo", "/v2/models/echo/versions/1/config", "/v2/models/stats"])
def test_clients_read(server: LocalServer, path: str) -> None:
    assert get(server, path, AUTHORIZATION) == 200


def test_clients_read_metrics(server: LocalServer) -> None:
    assert get(server, "/metrics", AUTHORIZATION, use="metrics") == 200
    assert get(server, "/v2", AUTHORIZATION, use="metrics") == 404


RESTRICTED_PATHS = [
    ("POST", "/v2/repository/index"),
    ("POST", "/v2/repository/models/echo/load"),
    ("POST", "/v2/repository/models/echo/unload"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/systemsharedmemory/region/r/register"),
    ("POST", "/v2/systemsharedmemory/unregister"),
    ("GET", "/v2/cudasharedmemory/status"),
    ("POST", "/v2/cudasharedmemory/region/r/register"),
    ("GET", "/v2/logging"),
    ("POST", "/v2/logging"),
    ("POST", "/v2/trace/setting"),
    ("POST", "/v2/models/echo/trace/setting"),
]


@pytest.mark.parametrize(("method", "path"), RESTRICTED_PATHS)
def test_clients_do_not_control(server: LocalServer, method: str, path: str) -> None:
    assert get(server, path, AUTHORIZATION, method) == 403


@pytest.mark.parametrize("path", ["//v2/logging", "/v2/./logging", "/v2/%6cogging", "/v2/logging/", "/v2/nothing"])
def test_other_paths_are_unknown(server: LocalServer, path: str) -> None:
    assert get(server, path, AUTHORIZATION) == 404


RESTRICTED_METHODS = [
    method
    for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name
    if method.startswith(("Repository", "System", "Cuda", "Trace", "Log"))
]


@pytest.mark.parametrize("method", RESTRICTED_METHODS)
def test_clients_do_not_control_over_grpc(server: LocalServer, method: str) -> None:
    assert status_of(server, method, AUTHORIZATION) == "PERMISSION_DENIED"


def test_administrators_control(server: LocalServer) -> None:
    assert get(server, "/v2/logging", ADMIN) == 200
    assert get(server, "/v2/systemsharedmemory/status", ADMIN) == 200
    assert status_of(server, "LogSettings", ADMIN) == "OK"
    assert status_of(server, "NoSuchMethod", ADMIN) == "UNIMPLEMENTED"


def test_keys_are_in_no_command_line(server: LocalServer) -> None:
    assert server.front is not None
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists()]
    assert any(b"haproxy.cfg" in command for command in commands)
    assert not [command for command in commands if KEY.encode() in command or ADMIN_KEY.encode() in command]


# -- processes -------------------------------------------------------------------------------------------------------


def processes_of(folder: Path | str, word: bytes) -> list[int]:
    """Return the processes of a front whose command line contains a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_bytes()
            if str(folder).encode() in command and word in command:
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("word", [b"haproxy.cfg", b"relay.py"])
def test_process_that_dies_is_started_again(server: LocalServer, word: bytes) -> None:
    front = server.front
    assert front is not None
    assert front.folder is not None
    folder = front.folder
    pid = processes_of(folder, word)[0]
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: front.running and processes_of(folder, word) not in ([], [pid]))

    def serves() -> bool:
        try:
            check_serves(server)
        except (OSError, grpc.RpcError, AssertionError):
            return False
        return True

    assert eventually(serves)


def test_streams_pass(server: LocalServer) -> None:
    requests = [service_pb2.ModelInferRequest.FromString(grpc_request("echo", size)) for size in (1, 2, 3)]
    with grpc.insecure_channel(address(server, "gRPC")) as channel:
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        sent = (request.SerializeToString() for request in requests)
        answers = [
            service_pb2.ModelStreamInferResponse.FromString(answer)
            for answer in stream(sent, metadata=tuple(AUTHORIZATION.items()), timeout=PATIENCE_SECONDS)
        ]
    assert sorted(answer.infer_response.raw_output_contents[0] for answer in answers) == [b"a", b"aa", b"aaa"]


def test_streams_that_clients_leave_end(server: LocalServer) -> None:
    pid = server.pid
    with grpc.insecure_channel(address(server, "gRPC")) as channel:
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        for _ in range(300):  # more connections than may be open at the same time
            answers = stream(iter([grpc_request("slow", 10_000)] * 3), metadata=tuple(AUTHORIZATION.items()))
            answers.cancel()
    check_serves(server)
    assert status_of(server, "ModelInfer", AUTHORIZATION, grpc_request("slow", 10_000)) == "OK"
    assert server.pid == pid
    assert not cancelled(server)


def test_triton_alone_gets_to_know_of_cancellations(bare: LocalServer) -> None:
    with grpc.insecure_channel(bare.grpc_url) as channel:

        def cancels() -> bool:
            for _ in range(50):
                answer = channel.unary_unary(INFER).future(grpc_request("slow", 10_000))
                time.sleep(0.001)
                answer.cancel()
            return cancelled(bare)

            # Whether a cancellation arrives before the answer is a matter of chance.

        assert eventually(cancels)


IDLE_CONNECTIONS = 1150

SERVE = """
import sys
from pathlib import Path
from penstock.serving.front.options import FrontOptions
from penstock.serving.server import LocalServer
with LocalServer(sys.argv[1], front=FrontOptions("127.0.0.1", anonymous=True)) as server:
    print(server.front.address("HTTP"), server.front.folder, flush=True)
    server.wait()
"""


@contextlib.contextmanager
def served_elsewhere(repository: Path, limit: int) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Yield a server in a separate process that may open only ``limit`` files, the server's address, and the front's folder."""
    command = f'ulimit -n {limit}; exec "$0" -c "$1" "$2"'
    process = subprocess.Popen(
        ["bash", "-c", command, sys.executable, SERVE, str(repository)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        where, folder = process.stdout.readline().split()
        yield process, where, folder
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()


def test_idle_connections_keep_nobody_out(repository: Path) -> None:
    with served_elsewhere(repository, 1024) as (_, where, _), contextlib.ExitStack() as held:
        host, port = where.split(":")
        for _ in range(IDLE_CONNECTIONS):
            with contextlib.suppress(ConnectionResetError):  # the limit of connections from one address is reached
                held.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS))
        for _ in range(20):
            other = http.client.HTTPConnection(host, int(port), timeout=5, source_address=("127.0.0.2", 0))
            with contextlib.closing(other):
                other.request("GET", "/v2/health/ready")
                assert other.getresponse().status == 200


def test_front_ends_with_its_server(repository: Path) -> None:
    with served_elsewhere(repository, 4096) as (process, _, folder):
        assert len(processes_of(folder, b"")) >= 2
        process.kill()
        assert eventually(lambda: not processes_of(folder, b"") and not Path(folder).exists())


# -- TLS -------------------------------------------------------------------------------------------------------------


def certificate(folder: Path, name: str, authority: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """Write a certificate to NAME.pem and its key to NAME.key; without an authority, the certificate is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority[0].subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
    )
    signed = builder.sign(authority[1] if authority else key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return signed, key


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificate(folder, "authority")
    certificate(folder, "server", authority)
    certificate(folder, "client", authority)
    certificate(folder, "stranger")
    return folder


def reads(where: str, context: ssl.SSLContext) -> bool:
    """Return whether the server answers over TLS, rather than ending the handshake or the connection."""
    connection = http.client.HTTPSConnection(where, context=context, timeout=PATIENCE_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/v2")
            return connection.getresponse().status == 200
        except (ssl.SSLError, ConnectionError):
            return False


def test_clients_show_certificates(repository: Path, certificates: Path) -> None:
    options = FrontOptions(
        "127.0.0.1",
        tls_cert=certificates / "server.pem",
        tls_key=certificates / "server.key",
        client_ca=certificates / "authority.pem",
    )
    with stopped_later(LocalServer(repository, front=options)) as server:
        for client, accepted in (("client", True), ("stranger", False), (None, False)):
            context = ssl.create_default_context(cafile=certificates / "authority.pem")
            shown = [None, None]
            if client is not None:
                context.load_cert_chain(certificates / f"{client}.pem", certificates / f"{client}.key")
                shown = [(certificates / f"{client}.{end}").read_bytes() for end in ("key", "pem")]
            assert reads(address(server, "HTTP"), context) == accepted
            credentials = grpc.ssl_channel_credentials((certificates / "authority.pem").read_bytes(), *shown)
            with grpc.secure_channel(address(server, "gRPC"), credentials) as channel:
                send = channel.unary_unary(INFER)
                if accepted:
                    assert send(grpc_request("echo"), timeout=PATIENCE_SECONDS)
                else:
                    with pytest.raises(grpc.RpcError):
                        send(grpc_request("echo"), timeout=PATIENCE_SECONDS)


def test_front_that_cannot_start_says_why(
    repository: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = FrontOptions(
        "127.0.0.1", tls_cert=certificates / "server.pem", tls_key=certificates / "client.key", anonymous=True
    )
    with pytest.raises(ServerError, match=r"the proxy does not start:\n.*server\.pem"):
        LocalServer(repository, front=wrong).start()
    monkeypatch.setenv("RAY_SERVE_HAPROXY_BINARY_PATH", "/no/haproxy")
    with pytest.raises(ServerError, match="/no/haproxy"):
        LocalServer(repository, front=FrontOptions("127.0.0.1", anonymous=True)).start()
