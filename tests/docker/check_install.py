"""Runs the image's install commands in a new virtual environment, as far as possible without Docker.

    python tests/docker/check_install.py [--python python3.12] [--extras server,front,image,audio,video]

The script takes minutes, and downloads the same files as building the image, so it is not part of the test suite.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dockerfile import ROOT, instructions, run_commands


def main() -> None:
    """Build the environment, then run the image's installation steps in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="to make the environment from (default: this one)")
    parser.add_argument("--extras", help="instead of the Dockerfile's default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        context, environment = Path(folder) / "context", Path(folder) / "environment"
        _copy_context(context)
        subprocess.run([options.python, "-m", "venv", environment], check=True)
        variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        }

        def run(*command: str | Path) -> None:
            print("$", shlex.join(map(str, command)), flush=True)
            subprocess.run(command, cwd=context, env=variables, check=True)

        *installing, setting_up = run_commands(options.extras)
        for command in installing:
            run("bash", "-ec", command)
        run("bash", "-ec", setting_up.split(" && ")[0])
        run("penstock", "info")
    print("the image's install commands work here")


def _copy_context(context: Path) -> None:
    """Copy the files that the Dockerfile uses to the same paths below a folder."""
    context.mkdir()
    for name, text in instructions():
        if name != "COPY" or text.startswith("--from="):
            continue
        *sources, target = text.split()
        for source in sources:
            found = ROOT / source
            if found.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(found, context / (source if target.startswith("/") else target), ignore=ignored)
            else:
                shutil.copy(found, context / target)


if __name__ == "__main__":
    main()
