"""nvImageCodec's C API from Python, with its CPU decoders, which are called like those of a GPU."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from failing_codec import failing_codec
from PIL import Image

from penstock.core.codecs import codec_version, load_codec
from penstock.core.library import CORE
from penstock.data_types import DALIImageType
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec.decoder import BGR, GRAY, RGB, BatchDecoder, EncodedImages, PixelFormat
from penstock.kernels.codecs.nvimgcodec.library import Backend, Share

CORE_HEADER = Path(__file__).parents[3] / "backend" / "core" / "nvimgcodec_api.h"


@pytest.fixture(scope="module")
def decoder() -> BatchDecoder:
    return BatchDecoder(None, 1, [Share(Backend.CPU_ONLY)])


def jpeg(height: int, width: int, **options: object) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([128 + 100 * np.sin(x / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


Region = tuple[int, int, int, int]


def images(
    files: Sequence[np.ndarray],
    sizes: Sequence[tuple[int, int]],
    outputs: Sequence[np.ndarray],
    region: Region | None = None,
) -> EncodedImages:
    """Return files with their expected sizes and the arrays for their pixels."""
    addresses = np.array([output.ctypes.data for output in outputs], np.int64)
    return EncodedImages(
        EncodedFiles(files), np.array(sizes), np.array([region or (0, 0, 0, 0)] * len(files)), addresses
    )


def decoded(
    decoder: BatchDecoder,
    files: Sequence[np.ndarray],
    pixels: PixelFormat = RGB,
    region: Region | None = None,
) -> tuple[list[int], list[np.ndarray]]:
    """Decode files; return the state of each, and its pixels."""
    sizes, outputs = [], []
    for file in files:
        header = read_header(file)
        top, left, bottom, right = region or (0, 0, header.height, header.width)
        outputs.append(np.zeros((bottom - top, right - left, pixels.channels), np.uint8))
        sizes.append((header.height, header.width))
    return decoder.decode(images(files, sizes, outputs, region), pixels, keep=outputs).wait(), outputs


def by_library(file: np.ndarray, kind: DALIImageType) -> np.ndarray:
    header = read_header(file)
    output = np.empty(header.shape(kind), np.uint8)
    decode(file, header, output, kind, False)
    return output


def test_declarations_are_those_of_the_header(tmp_path: Path) -> None:
    """Compare the sizes of structs, the offsets of all fields, and the types of functions."""
    own = CORE_HEADER.read_text()
    checks = []
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", own, re.MULTILINE | re.DOTALL):
        if name in ("Functions", "OutOfBoundsSample"):
            continue
        checks.append(f"static_assert(sizeof(own::{name}) == sizeof(nvimgcodec{name}_t));")
        fields = re.findall(r"(\w+)(?:\[\w+\])*(?: = [^;]*)?;", body)
        assert fields[:3] == ["struct_type", "struct_size", "struct_next"]
        checks += [
            f"static_assert(offsetof(own::{name}, {field}) == offsetof(nvimgcodec{name}_t, {field}));"
            for field in fields
        ]
    names = re.findall(r"Status \(\*(\w+)\)", own)
    assert len(checks) > 60
    assert len(names) == 14
    for name in names:
        real = "nvimgcodec" + "".join(word.capitalize() for word in name.split("_"))
        checks.append(f"static_assert(parameters(own::Functions().{name}) == parameters(&{real}));")
    (tmp_path / "cuda_runtime_api.h").write_text("typedef struct CUstream_st* cudaStream_t;\n")
    source = tmp_path / "check.cc"
    source.write_text(
        "#include <cstddef>\n#include <nvimgcodec.h>\n"
        f'#include "{CORE_HEADER}"\n'
        "namespace own = penstock::nvimgcodec;\n"
        "template <typename R, typename... T> constexpr int parameters(R (*)(T...)) { return sizeof...(T); }\n"
        + "\n".join(checks)
    )
    include = Path(nvimgcodec().__file__).with_name("include")
    places = ["-I", str(tmp_path), "-I", str(include)]
    subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", *places, str(source)], check=True)


def test_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = failing_codec(monkeypatch)
    path = str(codec.path)
    own = load_codec(path)
    assert own is not None
    assert codec_version(own) // 100 == 9
    for version, is_known in ((901, True), (1000, False), (800, False), (1900, False)):
        with codec.of_version(version):
            assert (load_codec(path) is not None) == is_known


def test_what_is_no_such_library_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    assert load_codec(str(tmp_path / "text.so")) is None
    assert load_codec(str(tmp_path / "missing.so")) is None
    # A library without these functions.
    assert load_codec(str(CORE.path())) is None


@pytest.mark.parametrize(
    ("pixels", "kind"), [(RGB, DALIImageType.RGB), (BGR, DALIImageType.BGR), (GRAY, DALIImageType.GRAY)]
)
def test_pixels_are_those_of_the_python_api(decoder: BatchDecoder, pixels: PixelFormat, kind: DALIImageType) -> None:
    files = [jpeg(60 + k, 90 - 3 * k, quality=80 + k, progressive=k % 2 == 0) for k in range(9)]
    states, outputs = decoded(decoder, files, pixels)
    assert states == [1] * len(files)
    for file, output in zip(files, outputs):
        np.testing.assert_array_equal(output, by_library(file, kind))


def test_regions(decoder: BatchDecoder) -> None:
    file = jpeg(120, 160)
    states, (output,) = decoded(decoder, [file], region=(10, 21, 61, 90))
    assert states == [1]
    np.testing.assert_array_equal(output, by_library(file, DALIImageType.RGB)[10:61, 21:90])


def test_what_is_not_as_announced_is_left_alone(decoder: BatchDecoder) -> None:
    file = jpeg(40, 50)
    broken = file.copy()
    broken[2:] = 7
    output = np.zeros((3, 60, 60, 3), np.uint8)
    batch = images([file, file, broken], [(40, 50), (60, 50), (40, 50)], output)
    assert decoder.decode(batch, RGB, keep=output).wait() == [1, 0, 0]
    assert output[0].any()
    assert not output[1:].any()


CPU = [Share(Backend.CPU_ONLY)]


def test_a_second_decoder_is_made_for_what_the_first_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, files = failing_codec(monkeypatch), [jpeg(40, 50), jpeg(50, 40)]
    codec.refuse_next()
    decoder, before = BatchDecoder(None, 1, CPU, CPU), codec.creations
    for _ in range(2):
        states, outputs = decoded(decoder, files)
        assert states == [2, 2]
        assert codec.creations == before + 1
        for file, output in zip(files, outputs):
            np.testing.assert_array_equal(output, by_library(file, DALIImageType.RGB))
    decoder.close()


def test_no_second_decoder_is_made_for_what_is_not_as_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, file = failing_codec(monkeypatch), jpeg(40, 50)
    decoder, before = BatchDecoder(None, 1, CPU, CPU), codec.creations
    output = np.zeros((2, 60, 60, 3), np.uint8)
    batch = images([file] * 2, [(41, 50), (40, 50)], output)
    assert decoder.decode(batch, RGB, keep=output).wait() == [0, 1]
    assert codec.creations == before
    decoder.close()


@pytest.mark.parametrize("spares", [False, True])
def test_baseline_jpegs_are_spared_the_second_decoder(spares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    codec, filled = failing_codec(monkeypatch), jpeg(50, 40)
    filled = np.concatenate([filled[:2], np.full(3, 0xFF, np.uint8), filled[2:]])
    baseline, others = [jpeg(40, 50), jpeg(45, 50, optimize=True), filled], [jpeg(50, 40, progressive=True)]
    codec.refuse_next()
    decoder, before = BatchDecoder(None, 1, CPU, CPU, spares_baseline=spares), codec.creations
    # The second decoder is made for the first image that may use it.
    for files, made in ((baseline, not spares), ([*baseline, *others], True), (baseline, True)):
        states, outputs = decoded(decoder, files)
        assert codec.creations == before + made
        assert states == [0 if spares else 2] * len(baseline) + [2] * (len(files) - len(baseline))
        for state, output in zip(states, outputs):
            assert bool(output.any()) == bool(state)
    decoder.close()


def test_a_decoder_that_cannot_be_made_says_so() -> None:
    with pytest.raises(RuntimeError, match="nvImageCodec could not make a decoder"):
        BatchDecoder(99, 1, [Share(Backend.CPU_ONLY)])


@pytest.mark.parametrize("status", [5, 15])
def test_without_memory_no_other_decoder_stands_in(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = failing_codec(monkeypatch)
    before = codec.creations
    with codec.failing_to_make(status), pytest.raises(MemoryError, match="no memory was left"):
        BatchDecoder(None, 1, CPU, CPU)
    assert codec.creations == before + 1


def test_another_decoder_stands_in_for_one_that_is_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = failing_codec(monkeypatch)
    before = codec.creations
    with codec.failing_to_make(9), pytest.raises(RuntimeError, match="status 9"):
        BatchDecoder(None, 1, CPU, CPU)
    assert codec.creations == before + 2


@pytest.mark.parametrize(("status", "error"), [(5, MemoryError), (9, RuntimeError)])
def test_a_second_decoder_that_cannot_be_made_says_so(
    status: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    codec, file = failing_codec(monkeypatch), jpeg(40, 50)
    codec.refuse_next()
    decoder = BatchDecoder(None, 1, CPU, CPU)
    with codec.failing_to_make(status), pytest.raises(error, match=f"could not make a decoder.*{status}"):
        decoded(decoder, [file])
    assert decoded(decoder, [file])[0] == [2]
    decoder.close()


def test_a_forked_process_leaves_the_decoder_alone(decoder: BatchDecoder) -> None:
    file = jpeg(40, 50)
    child = os.fork()
    if child == 0:
        # A forked process does not have the decoder's threads.
        decoder.close()
        mine = BatchDecoder(None, 1, CPU)
        os._exit(0 if decoded(mine, [file])[0] == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert decoded(decoder, [file])[0] == [1]


def test_threads_share_the_library() -> None:
    """Threads read and decode files while other threads make and close decoders."""
    files = [jpeg(60 + 7 * k, 90 - 3 * k, quality=80 + k, progressive=k % 2 == 0) for k in range(9)]
    expected = [by_library(file, DALIImageType.RGB) for file in files]

    def decode_again(_: int) -> None:
        for _ in range(10):
            decoder = BatchDecoder(None, 2, [Share(Backend.CPU_ONLY)])
            for _ in range(5):
                states, outputs = decoded(decoder, files)
                assert states == [1] * len(files)
                for output, right in zip(outputs, expected):
                    np.testing.assert_array_equal(output, right)
            decoder.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(decode_again, range(6)))
