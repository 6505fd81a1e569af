"""The folders of running servers remain, and those of dead servers are removed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serving.control import ServerError
from penstock.serving.server_folder import ServerFolder, remove_leftovers

OWNER = """
import sys, time
from penstock.serving.server_folder import ServerFolder
folder = ServerFolder(sys.argv[1])
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def new_prefix() -> str:
    return f"penstock_{uuid.uuid4().hex[:12]}_"


@pytest.fixture
def region() -> Iterator[Path]:
    path = Path("/dev/shm", f"{new_prefix()}region")
    path.write_bytes(bytes(100))
    yield path
    path.unlink(missing_ok=True)


def test_what_a_killed_owner_left_is_removed(region: Path) -> None:
    prefix = region.name.removesuffix("region")
    with subprocess.Popen([sys.executable, "-c", OWNER, prefix], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert folder.is_dir()
        assert remove_leftovers() == []
        owner.send_signal(signal.SIGKILL)
    assert folder.is_dir()
    assert remove_leftovers() == [folder]
    assert not folder.exists()
    assert not region.exists()


def test_what_this_process_uses_stays() -> None:
    folder = ServerFolder(new_prefix())
    assert remove_leftovers() == []
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()


def test_folders_whose_owner_is_unknown_stay(temporary: Path) -> None:
    unknown = temporary / "penstock-serve-unknown"
    unknown.mkdir()
    link = temporary / "penstock-serve-link"
    link.symlink_to(temporary)
    assert remove_leftovers() == []
    assert unknown.is_dir()
    assert link.is_symlink()


def test_an_owner_whose_disk_was_full_leaves_no_shared_memory_to_remove(temporary: Path, region: Path) -> None:
    folder = temporary / "penstock-serve-broken"
    folder.mkdir()
    (folder / "owner.json").write_text("{")
    assert remove_leftovers() == [folder]
    assert region.exists()


def test_no_temporary_folder_is_a_clear_error(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing"))
    with pytest.raises(ServerError, match="No such file or directory; set TMPDIR"):
        ServerFolder(new_prefix())
