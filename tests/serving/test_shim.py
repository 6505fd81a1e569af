"""The library with which Triton hosts Python: it is compiled once, and not used if it cannot be compiled."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.core import compiling
from penstock.core.compiling import CompilerError
from penstock.serving.server import LocalServer
from penstock.serving.shim import shim

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path / "cache"


def test_it_is_compiled_once_and_has_what_triton_looks_for(cache: Path) -> None:
    library = shim()
    assert library.is_relative_to(cache)
    made = library.stat().st_mtime_ns
    assert shim() == library
    assert library.stat().st_mtime_ns == made
    # Symbols are bound lazily, because the functions that the server supplies are missing here.
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
    for name in ("Initialize", "ModelInitialize", "ModelInstanceInitialize", "ModelInstanceExecute", "Finalize"):
        assert hasattr(loaded, f"TRITONBACKEND_{name}")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    # As if the wheel ziglang were not installed.
    monkeypatch.setattr(compiling, "_ZIG", (sys.executable, "-m", "no_such_module"))
    with pytest.raises(CompilerError, match=r"no C\+\+ compiler: install g\+\+ or clang, or `pip install ziglang`"):
        shim()


@pytest.mark.parametrize(("compiler", "told"), [("/nowhere/c++", "does not work"), ("false", "failed")])
def test_a_compiler_that_refuses(monkeypatch: pytest.MonkeyPatch, cache: Path, compiler: str, told: str) -> None:
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(CompilerError, match=told):
        shim()
    assert not list(cache.rglob("*.so"))


def test_models_run_in_the_stub_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PENSTOCK_BACKEND", raising=False)
    monkeypatch.setenv("CXX", "/nowhere/c++")
    (tmp_path / "models").mkdir()
    reports: list[str] = []
    with stopped_later(LocalServer(tmp_path / "models", report=reports.append)) as server:
        assert server.model_host == "stub"
    assert "models run by 'stub': `/nowhere/c++` does not work" in reports[0]


def test_that_it_was_asked_for_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(CompilerError, match="does not work"):
        LocalServer(tmp_path, model_host="native").start()


def full_disk(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program for which ``folder`` is on a disk of 200 KB."""
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = f'mount -t tmpfs -o size=200k full "{folder}" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", *as_root, "sh", "-c", mount, "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_cache_is_replaced_by_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cache.mkdir()
    filled = f"open({str(cache / 'large')!r}, 'wb').write(bytes(190_000));"
    run = full_disk(cache, f"{filled} from penstock.serving.shim import shim; print(shim())")
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).is_relative_to(tmp_path / f"penstock-native-{os.geteuid()}")
    assert Path(run.stdout.strip()).is_file()


def test_no_folder_for_the_library(monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / f"penstock-native-{os.geteuid()}").write_bytes(b"")
    cache.write_bytes(b"")
    run = subprocess.run(
        [sys.executable, "-c", "from penstock.serving.shim import shim; shim()"],
        capture_output=True,
        text=True,
        check=False,
    )
    told = run.stderr.splitlines()[-1]
    assert "CompilerError: libtriton_penstock.so cannot be saved in" in told
    assert "(Not a directory): free space there, or set HOME" in told
