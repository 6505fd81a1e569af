"""The cache of compiled kernels on disk: read-only folders, damaged files, full disks, and processes that start at the same time."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock

KERNEL = """
from penstock.kernels.cpu.options import cfunc, inner, kernel
from some_functions import squared

@kernel
def sum_of_squares(n):
    total = 0
    for x in range(n):
        total += squared(x)
    return total

@cfunc("int64", "int64")
def doubled(x):
    return 2 * x
"""

FUNCTIONS = """
from penstock.kernels.cpu.options import inner

@inner
def squared(x):
    return x * x
"""

PROGRAM = """
import ctypes, logging, sys
logging.basicConfig(format="%(message)s")
sys.path.insert(0, sys.argv[1])
from some_kernels import doubled, sum_of_squares
assert sum_of_squares(10) == 285
assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(doubled.address)(4) == 8
print("compiled" if sum_of_squares.dispatcher.stats.cache_misses else "loaded")
"""

# If the tests run as root, who may write even to read-only folders, kernels run as another user.
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder that contains a module of kernels, an empty cache and a temporary folder. Unlike pytest's folders, all users may
    enter it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "some_kernels.py").write_text(KERNEL)
        (folder / "some_functions.py").write_text(FUNCTIONS)
        for name in ("cache", "temporary"):
            (folder / name).mkdir()
            (folder / name).chmod(0o777)
        yield folder
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)


def environment(place: Path, **changes: str) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    places = {"NUMBA_CACHE_DIR": str(place / "cache"), "TMPDIR": str(place / "temporary")}
    return variables | places | {"PENSTOCK_KERNELS": "compile", "PYTHONDONTWRITEBYTECODE": "1"} | changes


def start(place: Path, prefix: list[str], **changes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", PROGRAM, str(place)],
        env=environment(place, **changes),
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(place: Path, prefix: list[str] | None = None, **changes: str) -> tuple[str, str]:
    """Run the kernels in a new process; return its output and its log."""
    process = start(place, AS_NOBODY if prefix is None else prefix, **changes)
    out, log = process.communicate()
    assert process.returncode == 0, log
    return out.strip(), log


def saved(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def seal(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_later_process_loads_what_an_earlier_one_compiled(place: Path) -> None:
    assert [run(place) for _ in range(2)] == [("compiled", ""), ("loaded", "")]
    assert not list((place / "temporary").iterdir())


def test_a_read_only_cache_is_read(place: Path) -> None:
    run(place)
    seal(place / "cache")
    assert run(place) == ("loaded", "")


def test_an_empty_read_only_cache_is_replaced_by_a_private_folder(place: Path) -> None:
    seal(place / "cache")
    outcome, log = run(place)
    assert outcome == "compiled"
    assert log.splitlines() == [
        f"compiled kernels cannot be saved in '{place / 'cache'}' (Permission denied): they are saved in "
        f"'{place / 'temporary'}/penstock-kernels-{65534 if AS_NOBODY else os.geteuid()}'. NUMBA_CACHE_DIR can name a folder for them"
    ]
    assert run(place) == ("loaded", "")


def test_without_a_trusted_folder_kernels_are_compiled(place: Path) -> None:
    seal(place / "cache")
    user = 65534 if AS_NOBODY else os.geteuid()
    planted = place / "temporary" / f"penstock-kernels-{user}"
    planted.mkdir()
    planted.chmod(0o777)
    for _ in range(2):
        outcome, log = run(place)
        assert outcome == "compiled"
        assert len(log.splitlines()) == 1
        assert "(Permission denied): each process compiles them again" in log
    assert not saved(planted)


def test_without_a_home_kernels_are_saved_in_a_private_folder(place: Path) -> None:
    seal(place)
    (place / "temporary").chmod(0o777)
    outcome, log = run(place, NUMBA_CACHE_DIR="", XDG_CACHE_HOME="/proc/nowhere")
    assert outcome == "compiled"
    assert "'/proc/nowhere/penstock/kernels' (No such file or directory)" in log
    assert run(place, NUMBA_CACHE_DIR="", XDG_CACHE_HOME="/proc/nowhere") == ("loaded", "")


@pytest.mark.parametrize("damage", ["cut off", "emptied", "overwritten", "one bit"])
def test_damaged_files_are_compiled_again_and_replaced(place: Path, damage: str) -> None:
    run(place)
    files = saved(place / "cache")
    assert len(files) == 3
    for file in files:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes({"cut off": data[:100], "emptied": b"", "overwritten": b"x" * 500, "one bit": data}[damage])
        file.chmod(0o666)
    outcome, log = run(place)
    assert outcome == "compiled"
    assert log.count("is damaged and is compiled again: its checksum is wrong") == len(log.splitlines()) > 0
    assert run(place) == ("loaded", "")


def test_damaged_files_that_cannot_be_replaced_are_replaced_elsewhere(place: Path) -> None:
    run(place)
    for file in saved(place / "cache"):
        file.write_bytes(b"")
    seal(place / "cache")
    outcome, log = run(place)
    assert outcome == "compiled"
    assert f"they are saved in '{place / 'temporary'}" in log
    assert run(place)[0] == "loaded"


@pytest.mark.parametrize("changed", ["some_kernels.py", "some_functions.py"])
def test_changed_sources_are_compiled_again_into_the_same_files(place: Path, changed: str) -> None:
    """This includes the case that only a function that the kernel calls has changed."""
    run(place)
    before = saved(place / "cache")
    text = (place / changed).read_text()
    (place / changed).write_text(text.replace("x * x", "x * x + 0").replace("total = 0", "total = 0 + 0 * n"))
    assert run(place) == ("compiled", "")
    assert saved(place / "cache") == before


def test_processes_that_start_at_once_leave_a_whole_cache(place: Path) -> None:
    processes = [start(place, AS_NOBODY) for _ in range(3)]
    for process in processes:
        _, log = process.communicate()
        assert (process.returncode, log) == (0, "")
    assert run(place) == ("loaded", "")
    assert {path.suffix for path in (place / "cache").rglob("*") if path.is_file()} == {".nbc"}


def test_on_a_full_disk_kernels_are_compiled(place: Path) -> None:
    as_root = [] if AS_NOBODY else ["--map-root-user"]
    mount = f'mount -t tmpfs -o size=8k,mode=777 full "{place}/cache" && exec "$@"'
    outcome, log = run(place, ["unshare", "--mount", *as_root, "sh", "-c", mount, "sh", *AS_NOBODY])
    assert outcome == "compiled"
    assert f"'{place / 'cache'}' (No space left on device): they are saved in '{place / 'temporary'}" in log
    assert saved(place / "temporary")


def test_all_kernels_use_this_cache() -> None:
    package = Path(penstock.__file__).parent
    importing = {
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "numba"
        if {"njit", "jit", "cfunc", "vectorize", "guvectorize"} & {name.name for name in node.names}
    }
    assert not importing
