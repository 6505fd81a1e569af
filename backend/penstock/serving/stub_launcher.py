"""Replaces ``bash`` in Triton's ``PATH``: starts the processes of models without letting a shell parse file names.

Triton starts a model with ``bash -c "exec STUB MODEL/1/FILE ..."``, without quoting. So a shell would execute ``$(...)`` in a
``default_model_filename``, and a stray quote in one would make loading hang. This program is called ``bash`` and comes first on
``PATH``; it parses the command and starts the stub itself, so that the backend gets the name unchanged and rejects it.

Each start is recorded in a file, so that the supervisor also learns of processes that ended before it looked.

The program also refuses models that the server's operator does not trust, before any of their code runs: it then starts the stub with
a model that reports the reason to Triton.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.serving.trust import NO_UPLOADS

_SCRIPT = r"""#!@BASH@
# Written by `penstock serve`: see penstock/serving/stub_launcher.py.
PATH=${PATH#*:}
command='^(.*[[:space:]])([^ ]+/triton_python_backend_stub) (.*) ([^ ]+) ([0-9]+) ([0-9]+) ([0-9]+) ([^ ]+) ([0-9]+) (.*) ([^ ]+)$'
if [[ $1 != -c || $# != 2 || ! $2 =~ $command ]]; then
    exec @BASH@ "$@"
fi
# Triton puts "exec", or the activation of the environment that a model names, before the stub.
stub=("${BASH_REMATCH[@]}")
is_in_repository() {
    local path repository
    path=$(realpath --canonicalize-missing --no-symlinks -- "$1")
    for repository in @REPOSITORIES@; do
        [[ $path == "$repository"/* ]] && return
    done
    return 1
}
refuse() {
    # Where a model names an environment, the stub expects its folder of libraries before the first colon.
    stub[1]='exec env "LD_LIBRARY_PATH=:$LD_LIBRARY_PATH" '
    stub[3]=@REFUSALS@/$1/1/model.py
    stub[11]=DEFAULT
}
{
    read -r stat < /proc/$$/stat
    fields=(${stat##*) })
    printf '%s\0' $$ "${fields[19]}" "${stub[10]}" "${stub[3]}" recorded > "@RECORDS@/$$"
} 2> /dev/null
if ! is_in_repository "${stub[3]}"; then
    refuse upload
elif [[ @ENVIRONMENTS@ != true && ${stub[11]} != DEFAULT && ! ${stub[1]} =~ ^[[:space:]]*exec[[:space:]]+$ ]]; then
    # A backend written in Python, such as ours, whose models need not be code.
    refuse environment
fi
exec @BASH@ -c "${stub[1]}"'"$@"' bash "${stub[@]:2}"
"""

_NO_ENVIRONMENTS = (
    "Invalid argument: the parameter EXECUTION_ENV_PATH names an environment, which would run here as code. `penstock serve "
    "--trust-repository` permits that; otherwise install the packages where the server runs models"
)
_REFUSALS = {"upload": NO_UPLOADS, "environment": _NO_ENVIRONMENTS}

_REFUSING_MODEL = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        raise ValueError({reason!r})

    def initialize(self, args):
        raise ValueError({reason!r})
"""


@dataclass(frozen=True)
class Trusted:
    """The models that may run in separate processes.

    Attributes:
        repositories: the folders in which models must be; None: any.
        environments: whether models of Python-based backends may contain their own environments.
    """

    repositories: Sequence[Path] | None = None
    environments: bool = False


def lay_out_launcher(folder: Path, records: Path, trusted: Trusted) -> Path:
    """Write the program into ``folder``, which must come first on Triton's ``PATH``; return the folder.

    Args:
        folder: the program's folder.
        records: the folder for records of the processes that the program starts; :class:`~penstock.serving.stubs.Stubs` reads them.
        trusted: the models that the program starts.
    """
    bash = shutil.which("bash") or "/bin/bash"
    folder.mkdir(parents=True, exist_ok=True)
    records.mkdir(parents=True, exist_ok=True)
    program = folder / "bash"
    repositories = ["/"] if trusted.repositories is None else map(os.path.abspath, trusted.repositories)
    values = {
        "BASH": bash,
        "RECORDS": str(records),
        "REPOSITORIES": " ".join(shlex.quote(repository.rstrip("/")) for repository in repositories),
        "REFUSALS": shlex.quote(str(folder / "refusals")),
        "ENVIRONMENTS": str(trusted.environments).lower(),
    }
    script = _SCRIPT
    for name, value in values.items():
        script = script.replace(f"@{name}@", value)
    program.write_text(script)
    program.chmod(0o755)
    for name, reason in _REFUSALS.items():
        version = folder / "refusals" / name / "1"
        version.mkdir(parents=True, exist_ok=True)
        (version / "model.py").write_text(_REFUSING_MODEL.format(reason=reason))
    return folder
