"""Local and remote files are read; the remote ones are in fsspec's memory file system."""

from pathlib import Path

import numpy as np
import pytest

from penstock import storage
from penstock.storage import ANYWHERE


@pytest.fixture(params=["local", "remote"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        (tmp_path / "b").mkdir()
        (tmp_path / "a.bin").write_bytes(bytes(range(10)))
        (tmp_path / "b" / "c.txt").write_text("text")
        return str(tmp_path)
    import fsspec

    system = fsspec.filesystem("memory")
    folder = f"/{tmp_path.name}"
    system.pipe(f"{folder}/a.bin", bytes(range(10)))
    system.pipe(f"{folder}/b/c.txt", b"text")
    return f"memory:/{folder}"


def test_reads_files(root: str) -> None:
    data = ANYWHERE.read(storage.join(root, "a.bin"))
    np.testing.assert_array_equal(data, np.arange(10, dtype=np.uint8))
    assert data.flags.writeable
    assert ANYWHERE.read_text(storage.join(root, "b/c.txt")) == "text"


def test_reads_spans(root: str) -> None:
    path = storage.join(root, "a.bin")
    part = ANYWHERE.read_range(path, 3, 4)
    np.testing.assert_array_equal(part, [3, 4, 5, 6])
    assert part.flags.writeable
    with pytest.raises(OSError, match="ends before byte 12"):
        ANYWHERE.read_range(path, 8, 4)
    for start, size in ((-1, 3), (3, -1)):
        with pytest.raises(OSError, match=f"{size} bytes from byte {start} on is not a valid range"):
            ANYWHERE.read_range(path, start, size)


def test_files_that_are_written_anew_are_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "a.bin", tmp_path / "b.bin"
    for contents in (bytes(10_000), b"abc"):
        path.write_bytes(contents)
        assert ANYWHERE.read_range(str(path), 0, 3).tobytes() == contents[:3]
    with pytest.raises(OSError, match="ends before byte 4"):
        ANYWHERE.read_range(str(path), 0, 4)
    other.write_bytes(b"xyz")
    other.replace(path)
    assert ANYWHERE.read_range(str(path), 0, 3).tobytes() == b"xyz"


def test_lists_folders(root: str) -> None:
    assert ANYWHERE.list_folder(root) == (["a.bin"], ["b"])


def test_joins_paths() -> None:
    assert storage.join("", "a") == "a"
    assert storage.join("root", "/a") == "/a"
    assert storage.join("s3://bucket/", "a") == "s3://bucket/a"
    assert storage.join("root", "s3://bucket/a") == "s3://bucket/a"


def test_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        ANYWHERE.read("no such file")


def test_opens_files(root: str) -> None:
    path = storage.join(root, "a.bin")
    assert ANYWHERE.size(path) == 10
    with ANYWHERE.open(path) as file:
        assert file.read(2) == b"\0\1"
        file.seek(-3, 2)
        assert file.read() == b"\7\x08\x09"
        file.seek(20)
        assert (file.tell(), file.read()) == (20, b"")
