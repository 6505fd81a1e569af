"""Runs a command as a hardened container would: ``python tests/serving/hardened.py [--without-tmp] COMMAND ...``.

The command runs as the user `nobody`, without HOME and without privileges, on a read-only file system, without a network, in separate
process and mount namespaces. `/tmp` is an empty folder in memory, like an `emptyDir`, or read-only, too, with ``--without-tmp``;
`/dev/shm` has the 64 MB that containers get. This program fails if the command fails, or leaves processes, temporary files or shared
memory behind. It needs root, as other users may not become `nobody`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "hardened"
"""The user's cache; it contains what `penstock setup` compiles, as in a container image."""

NOBODY = "65534"
NAMESPACES = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
SCRATCH = [Path("/tmp"), Path("/dev/shm")]
CACHES = ("penstock-kernels-", "penstock-native-")
"""The prefixes of the caches that a user keeps for the next start, which are not leftovers."""


def main() -> None:
    """Enter the namespaces, or, if they were entered, run the command in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-tmp", action="store_true", help="/tmp is read-only, too")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.inside:
        sys.exit(run_inside(given.command, given.without_tmp))
    tried = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        sys.exit(f"hardened: namespaces are not permitted here: {tried.stderr.strip()}")
    # As when a container image is built: once, with the rights of root.
    compile_library = "from penstock.serving.shim import shim; shim()"
    subprocess.run([sys.executable, "-c", compile_library], env=os.environ | {"XDG_CACHE_HOME": str(CACHE)}, check=True)
    inside = [sys.executable, __file__, *sys.argv[1:]]
    inside.insert(2, "--inside")
    sys.exit(subprocess.run(["unshare", *NAMESPACES, *inside], check=False).returncode)


def run_inside(command: Sequence[str], without_tmp: bool) -> int:
    """Remove all privileges, run the command, and check what it leaves behind."""
    make_readable([Path(sys.base_prefix), ROOT])
    make_read_only(() if without_tmp else ("/tmp",))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    setpriv = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
    ]
    variables = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(CACHE)}
    code = subprocess.run([*setpriv, *command], env=variables, cwd=ROOT, check=False).returncode
    left = leftovers()
    for line in left:
        print(f"hardened: left behind: {line}", file=sys.stderr)
    return code or bool(left)


def make_readable(folders: Sequence[Path]) -> None:
    """Make folders accessible that lie in a folder which only its owner may enter, such as /root, by mounting them over it."""
    for folder in folders:
        barred = next((parent for parent in reversed(folder.parents) if not parent.stat().st_mode & 1), None)
        if barred is None:
            continue
        # Through an open descriptor, because the next mount hides the path of the folder.
        held = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        mount("-t", "tmpfs", "-o", "mode=755,size=1m", "tmpfs", str(barred))
        folder.mkdir(parents=True)
        # `--no-canonicalize`, because mount(8) would resolve the descriptor to the folder's path, which is hidden by then.
        bind = ["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{held}", str(folder)]
        subprocess.run(bind, pass_fds=[held], check=True)
        os.close(held)


def make_read_only(scratch: Sequence[str]) -> None:
    """Make all file systems read-only, except those of the kernel and the file systems in memory that a container gets."""
    kernels = {"proc", "autofs", "binfmt_misc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "mqueue"}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        target, kind = line.split()[1:3]
        if kind not in kernels:
            mount("-o", "remount,bind,ro", target.encode().decode("unicode_escape"))
    for folder in scratch:
        mount("-t", "tmpfs", "-o", "mode=1777,size=256m", "tmpfs", folder)
    mount("-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", "/dev/shm")


def mount(*arguments: str) -> None:
    """Call mount(8)."""
    subprocess.run(["mount", *arguments], check=True)


def leftovers() -> list[str]:
    """Return all other processes, and the files in the writable folders."""
    processes = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.name != str(os.getpid())]
    lines = [(path / "cmdline").read_text(errors="replace").replace("\0", " ") for path in processes]
    writable = [folder for folder in SCRATCH if os.access(folder, os.W_OK)]
    files = [path for folder in writable for path in folder.iterdir() if not path.name.startswith(CACHES)]
    return [line for line in lines if line] + list(map(str, files))


if __name__ == "__main__":
    main()
