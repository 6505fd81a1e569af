"""`penstock completion` prints scripts that complete commands and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from penstock.cli._group import penstock


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    result = CliRunner().invoke(penstock, ["completion", shell])
    assert result.exit_code == 0
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in result.output


def test_other_shells_are_refused() -> None:
    result = CliRunner().invoke(penstock, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in result.output


@pytest.mark.parametrize(
    ("words", "completed"),
    [("penstock comp", "completion"), ("penstock serve --li", "--listen"), ("penstock completion z", "zsh")],
)
def test_the_program_completes_words(words: str, completed: str) -> None:
    """Request completions as bash's scripts do: through environment variables and the program's entry point."""
    asked = {"_PENSTOCK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = "import sys; sys.argv = ['penstock']; from penstock.cli import main; main()"
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert f"plain,{completed}" in run.stdout.splitlines(), run.stderr
