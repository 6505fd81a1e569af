"""``python -m penstock.compat script.py args...`` (or ``-m module args...``): runs a DALI program on Penstock.

With ``--device cpu`` first, operators that the program requests on a GPU run on the CPU.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from penstock.compat import install
from penstock.tensors.cuda import DEVICE_VARIABLE

_USAGE = "usage: python -m penstock.compat [--device cpu] (script.py | -m module) [arguments ...]"


def main() -> None:
    """Run the program that the command line names, as the main module of this process."""
    arguments = sys.argv[1:]
    if arguments[:2] == ["--device", "cpu"]:
        os.environ[DEVICE_VARIABLE] = "cpu"
        del arguments[:2]
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] == "-m" and len(arguments) < 2):
        sys.exit(_USAGE)
    install()
    # Processes that the program starts should find Penstock instead of DALI, too; `multiprocessing` passes `sys.path` only to processes
    # that it starts itself.
    stand_ins = str(Path(__file__).parent / "path")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (stand_ins, os.environ.get("PYTHONPATH"))))
    sys.path.insert(0, stand_ins)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
