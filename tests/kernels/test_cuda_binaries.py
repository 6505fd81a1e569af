"""CUDA kernels that are compiled when the package is built: which of them a device uses, and which must not be used."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.kernels import recording
from penstock.kernels.building.cuda import ARCHITECTURES, NvrtcError, build_cuda
from penstock.kernels.cuda import binaries, taps
from penstock.kernels.cuda.sources import OPTIONS
from penstock.kernels.recording import CudaKernel

TAPS = CudaKernel("kernels/cuda/taps.cu", "fill_taps", "")
DIGEST = binaries.digest_of(taps.SOURCE.text(), "fill_taps", OPTIONS)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cuda") / binaries.NAME
    assert build_cuda([TAPS], path) == 1
    return path


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty checkout, in which archives of kernels are looked for."""
    monkeypatch.setattr(binaries, "checkout", lambda: tmp_path)
    binaries._archive.cache_clear()
    (tmp_path / binaries.FOLDER).mkdir(parents=True)
    yield tmp_path
    binaries._archive.cache_clear()


def put(archive: bytes, checkout: Path) -> None:
    (checkout / binaries.FOLDER / binaries.NAME).write_bytes(archive)


@pytest.mark.parametrize(
    ("capability", "entry"),
    [
        ("75", "75"),
        ("80", "80"),
        ("86", "80"),
        ("89", "80"),
        ("90", "90"),
        ("103", "100"),
        ("121", "120"),
        ("130", "ptx"),
    ],
)
def test_a_device_gets_what_its_architecture_runs(archive: Path, checkout: Path, capability: str, entry: str) -> None:
    put(archive.read_bytes(), checkout)
    binary = binaries.find(DIGEST, capability)
    assert binary is not None
    assert "fill_taps" in binary.name
    assert binary.module == zipfile.ZipFile(archive).read(f"{DIGEST}.{entry}")
    assert binary.module.startswith(b"\x7fELF") == (entry != "ptx")
    assert (b".target sm_75" in binary.module) == (entry == "ptx")


def test_devices_before_turing_and_other_sources_get_nothing(archive: Path, checkout: Path) -> None:
    put(archive.read_bytes(), checkout)
    assert binaries.find(DIGEST, "70") is None
    other = binaries.digest_of(taps.SOURCE.text() + " ", "fill_taps", OPTIONS)
    assert binaries.find(other, "90") is None


def test_without_an_archive_there_is_nothing() -> None:
    assert binaries.find(DIGEST, "90") is None


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda _data: b""], ids=["cut off", "empty"])
def test_a_damaged_archive_is_told_and_left_aside(
    archive: Path, checkout: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    put(damage(archive.read_bytes()), checkout)  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert binaries.find(DIGEST, "90") is None
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"'{checkout / binaries.FOLDER / binaries.NAME}' is damaged")


def test_only_what_has_changed_is_compiled_again(archive: Path, tmp_path: Path) -> None:
    before = archive.stat().st_mtime_ns
    assert build_cuda([TAPS], archive) == 0
    assert archive.stat().st_mtime_ns == before
    entries = len(ARCHITECTURES) + 1
    assert len(zipfile.ZipFile(archive).namelist()) == 1 + entries
    more = tmp_path / binaries.NAME
    more.write_bytes(archive.read_bytes())
    other = CudaKernel("kernels/cuda/jpeg_pixels.cu", "transform_blocks", "")
    assert build_cuda([TAPS, other], more) == 1
    assert len(zipfile.ZipFile(more).namelist()) == 1 + 2 * entries
    # Kernels that are no longer listed are removed.
    assert build_cuda([TAPS], more) == 0
    assert len(zipfile.ZipFile(more).namelist()) == 1 + entries


def test_a_kernel_that_does_not_compile_is_named(tmp_path: Path) -> None:
    with pytest.raises(NvrtcError, match=r"no_such_kernel of kernels/cuda/taps\.cu, for sm_75"):
        build_cuda([TAPS._replace(instance="no_such_kernel")], tmp_path / binaries.NAME)


def test_the_list_names_sources_that_exist() -> None:
    package = Path(recording.__file__).parents[1]
    listed = recording.read_cuda()
    assert listed
    assert all((package / kernel.source).is_file() for kernel in listed)
