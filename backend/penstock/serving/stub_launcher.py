"""Replaces ``bash`` in Triton's ``PATH``: it starts models' processes without letting a shell parse their names.

Triton starts a model with ``bash -c "exec STUB MODEL/1/FILE ..."``, without quoting: a ``default_model_filename`` with
``$(...)`` is executed, and one with a stray quote hangs the load. This program, named ``bash`` and first on ``PATH``,
parses the command and starts the stub itself, so that the backend sees such a name and rejects it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_SCRIPT = r"""#!@BASH@
# Written by `penstock serve`: see penstock/serving/stub_launcher.py.
PATH=${PATH#*:}
command='^(.*[[:space:]])([^ ]+/triton_python_backend_stub) (.*) ([^ ]+) ([0-9]+) ([0-9]+) ([0-9]+) ([^ ]+) ([0-9]+) (.*) ([^ ]+)$'
if [[ $1 != -c || $# != 2 || ! $2 =~ $command ]]; then
    exec @BASH@ "$@"
fi
# What comes before the stub is Triton's: "exec", or the activation of the environment that a model names.
exec @BASH@ -c "${BASH_REMATCH[1]}"'"$@"' bash "${BASH_REMATCH[@]:2}"
"""


def lay_out_launcher(folder: Path) -> Path:
    """Writes the program into ``folder``, which must come first on Triton's ``PATH``; returns the folder."""
    bash = shutil.which("bash") or "/bin/bash"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bash"
    program.write_text(_SCRIPT.replace("@BASH@", bash))
    program.chmod(0o755)
    return folder
