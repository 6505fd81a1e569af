"""The flags that users set, and the flags that Triton gets."""

from __future__ import annotations

import pytest

from penstock.serving.control import ServerError
from penstock.serving.flags import Flags


def test_a_users_flags_replace_those_set_by_default() -> None:
    flags = Flags.parse(["--http-port=5", "--exit-timeout-secs", "3", "--backend-config=a,b=c", "--strict-readiness"])
    own = {"--http-port": "1", "--backend-config": "python,d=e", "--host-policy": ["x", "y"], "--model-repository": "m"}
    line = flags.command_line(own, ["*"])
    assert [flag for flag in line if flag.startswith(("--http-port", "--exit-timeout"))] == [
        "--http-port=5",
        "--exit-timeout-secs=3",
    ]
    assert [flag for flag in line if flag.startswith("--backend-config")] == [
        "--backend-config=python,d=e",
        "--backend-config=a,b=c",
    ]
    assert {"--host-policy=x", "--host-policy=y", "--model-repository=m", "--strict-readiness"} <= set(line)


@pytest.mark.parametrize("given", [[], ["--model-control-mode=none"], ["--model-control-mode=poll"]])
def test_clients_load_models_only_where_that_is_asked_for(given: list[str]) -> None:
    flags = Flags.parse(given)
    ((header, key),) = flags.headers.items()
    line = flags.command_line({}, flags.models)
    assert "--model-control-mode=explicit" in line
    assert "--load-model=*" in line
    assert f"--http-restricted-api=model-repository:{header}={key}" in line
    assert f"--grpc-restricted-protocol=model-repository:{header}={key}" in line
    assert Flags.parse(given).headers != flags.headers


def test_explicit_is_open_and_loads_what_it_is_told() -> None:
    flags = Flags.parse(["--model-control-mode=explicit", "--load-model=a", "--load-model", "b"])
    assert flags.models == ("a", "b")
    assert flags.headers == {}
    assert flags.command_line({}, ["b", "c"]) == [
        "--model-control-mode=explicit",
        "--load-model=b",
        "--load-model=c",
    ]
    assert Flags.parse(["--model-control-mode=explicit"]).models == ()


def test_a_users_own_restrictions_are_kept_and_met() -> None:
    restriction = "--http-restricted-api=health,model-repository:admin=secret"
    flags = Flags.parse([restriction, "--repository-poll-secs=3", "--model-control-mode=poll"])
    line = flags.command_line({}, flags.models)
    assert [flag for flag in line if flag.startswith("--http-restricted")] == [restriction]
    assert not any(flag.startswith("--repository-poll-secs") for flag in line)
    assert flags.headers["admin"] == "secret"
    assert flags.poll_interval == 3


def test_settings_of_backends_are_read() -> None:
    flags = Flags.parse(["--backend-config=penstock,a=1", "--backend-config", "dali,b=2=3", "--backend-config=x=1"])
    assert flags.backend_settings() == {"penstock": {"a": "1"}, "dali": {"b": "2=3"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--model-control-mode=automatic", "none, poll or explicit, not 'automatic'"),
        ("--repository-poll-secs=often", "a number of seconds, not 'often'"),
        ("--allow-http=false", "monitored over HTTP"),
    ],
)
def test_what_cannot_be_had_is_refused(given: str, message: str) -> None:
    with pytest.raises(ServerError, match=message):
        Flags.parse([given])
