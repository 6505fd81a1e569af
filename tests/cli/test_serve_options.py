"""Options of ``penstock serve`` that become settings of the server."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from penstock.cli._settings import settings_from_options
from penstock.cli.serve import command


def settings(repository: Path, *words: str) -> dict[str, str]:
    """Return the settings that result from options on the command line."""
    context = command.make_context("serve", [str(repository), *words])
    return settings_from_options(dict(context.params))


def test_nothing_is_granted_by_default(tmp_path: Path) -> None:
    assert settings(tmp_path) == {}


def test_grants_and_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--allow-path", "data", "--allow-path=s3://bucket/photos", "--allow-module", "a.b", "--trust-repository"]
    assert settings(tmp_path, *words, "--allow-model-upload", "--max-pixels", "7", "--log-verbose=1") == {
        "allowed_paths": f"{tmp_path}/data,s3://bucket/photos",
        "allowed_modules": "a.b",
        "trust_repository": "true",
        "allow_model_upload": "true",
        "max_pixels": "7",
    }


def test_an_option_grants_one_item(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="one name without commas"):
        settings(tmp_path, "--allow-module", "a,b")
