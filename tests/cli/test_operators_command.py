"""``penstock operators`` lists each operator once, and gives reasons for absent ones."""

from __future__ import annotations

from click.testing import CliRunner

from penstock.cli._group import penstock
from penstock.cli.operators import absent_arguments, absent_operators


def lines(*arguments: str) -> list[str]:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(penstock, ["operators", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def row(name: str) -> list[str]:
    (found,) = (line.split() for line in lines() if f" {name} " in line)
    return found[found.index(name) :]


def test_marks_tell_where_an_operator_runs() -> None:
    assert row("fn.resize")[1:3] == ["yes", "kernels"]
    assert row("fn.decoders.audio")[1] == "yes"
    assert row("fn.decoders.audio")[2] not in ("kernels", "by")


def test_words_choose() -> None:
    chosen = lines("audio", "fn.rot")
    assert any("fn.spectrogram" in line for line in chosen)
    assert any("fn.rotate" in line for line in chosen)
    assert not any("fn.resize" in line for line in chosen)
    assert chosen[-1] == f"{sum('fn.' in line for line in chosen)} operators"


def test_what_is_absent_has_its_reason() -> None:
    absent = dict(absent_operators())
    assert "OpticalFlow" in absent
    assert "no reason known" not in absent.values()
    shown = lines("--missing")
    assert all(any(line.startswith(name) and reason in line for line in shown) for name, reason in absent.items())


def test_no_operator_lacks_an_argument_or_a_device() -> None:
    assert list(absent_arguments()) == []
