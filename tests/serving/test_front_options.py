"""Who has access to a front, and which options are refused before it starts."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.serve import command
from penstock.serving.control import ServerError
from penstock.serving.front.options import FrontOptions, is_loopback, read_keys, refuse_exposure

FILE = Path("file.pem")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "no client is allowed"),
        ({"anonymous": True, "api_keys": FILE}, "cannot be combined"),
        ({"anonymous": True, "tls_cert": FILE}, "--tls-cert and --tls-key"),
        ({"client_ca": FILE}, "client certificates need TLS"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ServerError, match=reason):
        FrontOptions("0.0.0.0", **options)


def test_keys_are_lines(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# one\n{'a' * 16}\n\n  {'b' * 20}  \n")
    assert read_keys(tmp_path / "keys") == ["a" * 16, "b" * 20]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# none\n", "there is no key"),
        ("a" * 16 + "\nshort\n", "key 2 .* at least 16 characters"),
        ("key with many spaces in it", "no spaces"),
        ("ключ" * 8, "cannot be read"),
    ],
)
def test_files_without_good_keys(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(ServerError, match=reason):
        read_keys(tmp_path / "keys")


def test_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_keys(tmp_path / "keys")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "localhost", "::1", "[::1]"])
def test_addresses_of_this_machine(address: str) -> None:
    assert is_loopback(address)
    refuse_exposure(address, [f"--http-address={address}", "--log-verbose=1"])


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.0.1", "example.com"])
def test_addresses_of_the_network(address: str) -> None:
    with pytest.raises(ServerError, match=r"--host .* --listen .* --no-front"):
        refuse_exposure(address, [])
    for flags in ([f"--grpc-address={address}"], ["--grpc-address", address]):
        with pytest.raises(ServerError, match="--grpc-address"):
            refuse_exposure("127.0.0.1", flags)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", "0.0.0.0"], "would show Triton to the network"),
        (["--anonymous"], "pass --listen"),
        (["--listen", "0.0.0.0", "--no-front", "--anonymous"], "contradicts"),
        (["--listen", "0.0.0.0", "--host", "0.0.0.0", "--anonymous"], "would show Triton"),
    ],
)
def test_command_refuses_to_expose_triton(tmp_path: Path, arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(command, [str(tmp_path), *arguments])
    assert isinstance(result.exception, ServerError)
    assert reason in str(result.exception)


def test_no_front_allows_any_address(tmp_path: Path) -> None:
    # The options are accepted; the start fails later, because the Python environment does not exist.
    models = tmp_path / "models"
    models.mkdir()
    stopping = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in stopping]
    result = CliRunner().invoke(command, [str(models), "--host", "0.0.0.0", "--no-front", "--python-env", "/no/where"])
    assert "would show Triton" not in str(result.exception)
    assert result.exit_code
    # If the signals remained ignored, servers that are started later, and the processes of their models, would ignore them, too.
    assert [signal.getsignal(number) for number in stopping] == before
