"""nvImageCodec's C API from Python, with its CPU decoders, which are called like those of a GPU."""

from __future__ import annotations

import ctypes
import io
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec import library
from penstock.kernels.codecs.nvimgcodec.decoder import BGR, GRAY, RGB, BatchDecoder, EncodedImages, PixelFormat
from penstock.kernels.codecs.nvimgcodec.library import Backend, Share

STRUCTURES = {
    "nvimgcodecProperties_t": library.Properties,
    "nvimgcodecInstanceCreateInfo_t": library.InstanceCreateInfo,
    "nvimgcodecDecodeParams_t": library.DecodeParams,
    "nvimgcodecOrientation_t": library.Orientation,
    "nvimgcodecRegion_t": library.Region,
    "nvimgcodecCodeStreamView_t": library.CodeStreamView,
    "nvimgcodecImagePlaneInfo_t": library.PlaneInfo,
    "nvimgcodecImageInfo_t": library.ImageInfo,
    "nvimgcodecBackendParams_t": library.BackendParams,
    "nvimgcodecExecutionParams_t": library.ExecutionParams,
}


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
    """Files with the sizes that they are said to have, and what they are decoded to."""
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
    """What became of each file, and its pixels."""
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


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    lines = []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("%zu ", sizeof({name}));')
        fields = [field for field, *_ in structure._fields_]
        lines += [f'printf("%zu ", offsetof({name}, {field}));' for field in fields]
    (tmp_path / "cuda_runtime_api.h").write_text("typedef struct CUstream_st* cudaStream_t;\n")
    source = (
        "#include <cstddef>\n#include <cstdio>\n#include <nvimgcodec.h>\nint main() {\n" + "\n".join(lines) + "\n}\n"
    )
    (tmp_path / "sizes.cpp").write_text(source)
    include = Path(nvimgcodec().__file__).with_name("include")
    command = [
        "g++",
        "-I",
        str(tmp_path),
        "-I",
        str(include),
        "-o",
        str(tmp_path / "sizes"),
        str(tmp_path / "sizes.cpp"),
    ]
    subprocess.run(command, check=True)
    told = list(map(int, subprocess.run([tmp_path / "sizes"], check=True, capture_output=True).stdout.split()))
    own = []
    for structure in STRUCTURES.values():
        own.append(ctypes.sizeof(structure))
        own += [getattr(structure, field).offset for field, *_ in structure._fields_]
    assert own == told


def test_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.library() is not None
    monkeypatch.setattr(library, "VERSION", (0, 10))
    library.library.cache_clear()
    try:
        assert library.library() is None
    finally:
        monkeypatch.undo()
        library.library.cache_clear()


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


def test_a_second_decoder_is_made_for_what_the_first_refuses() -> None:
    files = [jpeg(40, 50), jpeg(50, 40)]
    decoder = BatchDecoder(None, 1, [Share(Backend.CPU_ONLY)], [Share(Backend.CPU_ONLY)])
    output = np.zeros((2, 60, 60, 3), np.uint8)
    batch = images([files[0]] * 2, [(41, 50), (40, 50)], output)
    assert decoder.decode(batch, RGB, keep=output).wait() == [0, 1]
    # From now on there is a second one, which leaves what the first takes alone.
    states, outputs = decoded(decoder, files)
    assert states == [1, 1]
    np.testing.assert_array_equal(outputs[1], by_library(files[1], DALIImageType.RGB))
    decoder.close()


@pytest.mark.parametrize("spares", [False, True])
def test_baseline_jpegs_are_spared_the_second_decoder(spares: bool) -> None:
    cpu, filled = [Share(Backend.CPU_ONLY)], jpeg(50, 40)
    filled = np.concatenate([filled[:2], np.full(3, 0xFF, np.uint8), filled[2:]])
    baseline, others = [jpeg(40, 50), jpeg(45, 50, optimize=True), filled], [jpeg(50, 40, progressive=True)]
    decoder = BatchDecoder(None, 1, cpu, cpu, spares_baseline=spares)
    # A handle with which every call fails.
    decoder._first = 0
    for files in (baseline, [*baseline, *others], baseline):
        states, outputs = decoded(decoder, files)
        assert states == [0 if spares else 2] * len(baseline) + [2] * (len(files) - len(baseline))
        for state, output in zip(states, outputs):
            assert bool(output.any()) == bool(state)
    decoder.close()


def test_no_second_decoder_is_made_for_baseline_jpegs_that_are_spared() -> None:
    cpu, output = [Share(Backend.CPU_ONLY)], np.zeros((60, 60, 3), np.uint8)
    decoder = BatchDecoder(None, 1, cpu, cpu, spares_baseline=True)
    for progressive in (False, True):
        batch = decoder.decode(images([jpeg(40, 50, progressive=progressive)], [(41, 50)], output[None]), RGB)
        assert batch.wait() == [0]
        assert batch.had_second == progressive
    decoder.close()


def test_a_decoder_that_cannot_be_made_says_so() -> None:
    with pytest.raises(RuntimeError, match="nvImageCodec could not make a decoder"):
        BatchDecoder(99, 1, [Share(Backend.CPU_ONLY)])


def test_without_memory_no_other_decoder_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Full:
        def nvimgcodecDecoderCreate(self, *_: object) -> int:
            asked.append(self)
            return 5

    monkeypatch.setattr(library, "_loaded", Full)
    monkeypatch.setattr(library, "instance", lambda: 1)
    with pytest.raises(MemoryError, match="no memory was left"):
        BatchDecoder(None, 1, [Share(Backend.CPU_ONLY)], [Share(Backend.CPU_ONLY)])
    assert len(asked) == 1


def test_batches_that_were_on_their_way_get_the_second_decoder_too() -> None:
    file = jpeg(40, 50)
    output = np.zeros((3, 60, 60, 3), np.uint8)
    decoder = BatchDecoder(None, 1, [Share(Backend.CPU_ONLY)], [Share(Backend.CPU_ONLY)])
    # The first takes nothing of this size; the library would be asked once more for each batch.
    batches = [decoder.decode(images([file], [(41, 50)], [part]), RGB, keep=output) for part in output]
    assert [batch.wait() for batch in batches] == [[0], [0], [0]]
    assert all(batch.had_second for batch in batches)
    decoder.close()


def test_threads_share_the_library() -> None:
    """While others are read and decoded, and decoders are made and closed."""
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
