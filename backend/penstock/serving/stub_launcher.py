"""Replaces ``bash`` in Triton's ``PATH``: it starts models' processes without letting a shell parse their names.

Triton starts a model with ``bash -c "exec STUB MODEL/1/FILE ..."``, without quoting: a ``default_model_filename`` with
``$(...)`` is executed, and one with a stray quote hangs the load. This program, named ``bash`` and first on ``PATH``,
parses the command and starts the stub itself, so that the backend sees such a name and rejects it.

Each start is recorded in a file, so that the supervisor knows of processes that were gone before it looked.
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
stub=("${BASH_REMATCH[@]}")
{
    read -r stat < /proc/$$/stat
    fields=(${stat##*) })
    printf '%s\0' $$ "${fields[19]}" "${stub[10]}" "${stub[3]}" recorded > "@RECORDS@/$$"
} 2> /dev/null
exec @BASH@ -c "${stub[1]}"'"$@"' bash "${stub[@]:2}"
"""


def lay_out_launcher(folder: Path, records: Path) -> Path:
    """Writes the program into ``folder``, which must come first on Triton's ``PATH``; returns the folder.

    Args:
        folder: of the program.
        records: the folder for records of the processes that it starts, which :class:`~penstock.serving.stubs.Stubs` reads.
    """
    bash = shutil.which("bash") or "/bin/bash"
    folder.mkdir(parents=True, exist_ok=True)
    records.mkdir(parents=True, exist_ok=True)
    program = folder / "bash"
    program.write_text(_SCRIPT.replace("@BASH@", bash).replace("@RECORDS@", str(records)))
    program.chmod(0o755)
    return folder
