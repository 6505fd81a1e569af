"""``penstock index`` writes indices that readers accept, and is available under the names of DALI's scripts."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from penstock import fn, pipeline_def
from penstock.cli._group import penstock

RECORDS = [b"first", b"", b"the third"]


def index(*arguments: object) -> Result:
    return CliRunner().invoke(penstock, ["index", *map(str, arguments)])


def write_archive(path: Path, names: list[str]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    return path


def write_records(path: Path) -> Path:
    framed = (struct.pack("<QI", len(record), 0) + record + bytes(4) for record in RECORDS)
    path.write_bytes(b"".join(framed))
    return path


def write_recordio(path: Path) -> Path:
    """Write two records with an image header and a body, but without labels; the second record is split into two parts."""
    header = struct.pack("<IfQQ", 0, 7, 0, 0)
    parts = [(0, header + b"abc"), (1, header), (3, b"d"), (0, header + b"efgh")]
    with open(path, "wb") as file:
        for flag, body in parts:
            file.write(struct.pack("<II", 0xCED7230A, flag << 29 | len(body)) + body + bytes(-len(body) % 4))
    return path


def test_an_archive(tmp_path: Path) -> None:
    names = ["a/0001.jpg", "a/0001.txt", "README", "a/0002.jpg", ".hidden", "a/0003.tar.gz"]
    archive = write_archive(tmp_path / "train.tar", names)
    result = index(archive)
    assert result.exit_code == 0, result.output
    # These are the lines that DALI's wds2idx writes, except that it confuses the file without an extension with another one.
    assert (tmp_path / "train.idx").read_text().splitlines() == [
        "v1.2 3",
        "jpg 512 10 a/0001.jpg txt 1536 10 a/0001.txt",
        "jpg 3584 10 a/0002.jpg",
        "tar.gz 5632 13 a/0003.tar.gz",
    ]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def names_of_images():
        return fn.readers.webdataset(
            paths=[str(archive)],
            index_paths=[str(tmp_path / "train.idx")],
            ext=["jpg"],
            missing_component_behavior="skip",
        )

    (images,) = names_of_images().run()
    assert [bytes(np.asarray(image)) for image in images] == [b"a/0001.jpg", b"a/0002.jpg"]


def test_records(tmp_path: Path) -> None:
    result = index(write_records(tmp_path / "data.tfrecord"), tmp_path / "elsewhere")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "elsewhere").read_text() == "0 21\n21 16\n37 25\n"


def test_recordio(tmp_path: Path) -> None:
    result = index(write_recordio(tmp_path / "data.rec"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "data.idx").read_text() == "0\t0\n1\t36\n2\t80\n"


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("data.tfrecord", write_records, "the record at byte 37 is cut off"),
        ("data.rec", write_recordio, "no whole record at byte 80"),
    ],
)
def test_files_that_are_cut_off(tmp_path: Path, name, write, message: str) -> None:
    path = write(tmp_path / name)
    path.write_bytes(path.read_bytes()[:-5])
    result = index(path)
    assert (result.exit_code, message in result.output) == (1, True), result.output
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a b.jpg"], "names with spaces: 'a b.jpg'"), (["README"], "holds no files with extensions")],
)
def test_archives_that_no_index_can_tell(tmp_path: Path, names: list[str], message: str) -> None:
    result = index(write_archive(tmp_path / "a.tar", names))
    assert (result.exit_code, message in result.output) == (1, True), result.output


def test_the_format_is_told_where_the_name_does_not(tmp_path: Path) -> None:
    shard = write_records(tmp_path / "shard-00001-of-01024")
    refused = index(shard)
    assert (refused.exit_code, "--format" in refused.output) == (2, True)
    assert index(shard, "--format", "tfrecord").exit_code == 0
    assert (tmp_path / "shard-00001-of-01024.idx").exists()


def test_the_scripts_of_dali(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "train.tar", ["1.jpg"])
    program = tmp_path / "program.py"
    program.write_text(
        "from wds2idx import IndexCreator\n"
        f"with IndexCreator({str(archive)!r}, {str(tmp_path / 'a.idx')!r}, verbose=False) as creator:\n"
        "    creator.create_index()\n"
    )
    command = [sys.executable, "-m", "penstock.compat"]
    subprocess.run([*command, program], check=True, timeout=60)
    subprocess.run([*command, "-m", "wds2idx", archive, tmp_path / "b.idx"], check=True, timeout=60)
    records = write_records(tmp_path / "data.tfrecord")
    subprocess.run([*command, "-m", "tfrecord2idx", records, tmp_path / "c.idx"], check=True, timeout=60)
    assert (tmp_path / "a.idx").read_text() == (tmp_path / "b.idx").read_text() == "v1.2 1\njpg 512 5 1.jpg\n"
    assert (tmp_path / "c.idx").read_text().startswith("0 21\n")
