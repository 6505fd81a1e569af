"""Small sounds, clips, arrays and records, as bytes."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from fuzzing.image_seeds import Seed, image_seeds, picture


def audio_seeds() -> Iterator[Seed]:
    """Yield sounds in the formats that libsndfile writes."""
    try:
        import soundfile
    except ImportError:
        return
    sound = np.sin(np.arange(600)[:, None] * [0.1, 0.23]) * 0.6
    for format in (
        "WAV",
        "WAVEX",
        "RF64",
        "W64",
        "FLAC",
        "OGG",
        "MP3",
        "AIFF",
        "AU",
        "CAF",
        "VOC",
        "PAF",
        "SVX",
        "NIST",
    ):
        for subtype in sorted(soundfile.available_subtypes(format)):
            for channels in (1, 2):
                file = io.BytesIO()
                try:
                    soundfile.write(file, sound[:, :channels], 16000, subtype, format=format)
                except (soundfile.SoundFileError, ValueError):
                    continue
                yield format.lower() if format in ("WAV", "FLAC", "OGG", "MP3") else "sound", file.getvalue()


_CLIPS = (
    *(("mp4", "libx264"), ("mp4", "mpeg4"), ("webm", "libvpx-vp9"), ("webm", "libvpx")),
    *(("matroska", "mjpeg"), ("avi", "mjpeg"), ("avi", "mpeg4"), ("mpegts", "mpeg2video"), ("flv", "flv")),
    *(("mov", "png"), ("mpeg", "mpeg1video"), ("ivf", "libvpx"), ("mp4", "libsvtav1"), ("gif", "gif")),
)


def video_seeds() -> Iterator[Seed]:
    """Yield clips of six frames in several containers and codecs, those that the installed FFmpeg can write."""
    try:
        import av
    except ImportError:
        return
    av.logging.set_level(None)
    for container, codec in _CLIPS:
        try:
            yield "video", _clip(av, container, codec)
        except (av.error.FFmpegError, ValueError, av.codec.codec.UnknownCodecError):
            continue


def _clip(av: Any, container: str, codec: str) -> bytes:
    file = io.BytesIO()
    height, width = (64, 80) if codec == "libsvtav1" else (32, 48)
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=25)
        stream.width, stream.height, stream.gop_size = width, height, 3
        stream.pix_fmt = {"mjpeg": "yuvj420p", "png": "rgb24", "gif": "rgb8"}.get(codec, "yuv420p")
        for number in range(6):
            frame = av.VideoFrame.from_ndarray(np.roll(picture(3, height, width), 5 * number, 1), format="rgb24")
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return file.getvalue()


def npy_seeds() -> Iterator[Seed]:
    """Yield `.npy` files with arrays of several types and orders, in several versions of the format."""
    arrays: list[np.ndarray] = [
        *(np.arange(24).astype(kind).reshape(4, 6) for kind in ("u1", "<i2", ">i4", "<f4", "<f8", "?", "<f2")),
        *(np.asfortranarray(np.arange(12.0, dtype=np.float32).reshape(3, 4)), np.zeros((0, 3), np.float32)),
        *(np.float32(3).reshape(()), np.arange(6, dtype="<c8"), np.array(["ab", "c"]), np.zeros(2, [("a", "i4")])),
    ]
    for array in arrays:
        for version in ((1, 0), (2, 0), (3, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asanyarray(array), version)
            yield "npy", file.getvalue()


INFLATED = 1024
"""The size of each LZ4 block of the seeds after decompression, in bytes."""


def lz4_seeds() -> Iterator[Seed]:
    """Yield LZ4 blocks, and a file that consists of a table of offsets followed by two blocks."""
    try:
        from lz4 import block
    except ImportError:
        return
    noise = np.random.default_rng(1).integers(0, 256, INFLATED, np.uint8)
    for data in (np.arange(INFLATED, dtype=np.uint8), np.zeros(INFLATED, np.uint8), noise, noise // 64):
        yield "lz4", block.compress(data.tobytes(), store_size=False)
        yield "lz4", block.compress(data.tobytes(), store_size=False, mode="high_compression")
        packed = block.compress(data.tobytes(), store_size=False)
        yield "chunks", struct.pack("<ii", 8, 8 + len(packed)) + packed + packed


# -- data sets of readers: files, by name ------------------------------------------------------------------------------

Files = dict[str, bytes]
"""The files of a data set, by name."""


def data_sets() -> Iterator[tuple[str, Files]]:
    """Yield small data sets: the name of a reader, and the files that it reads."""
    images = [data for name, data in image_seeds() if name in ("jpeg", "png")][:4]
    yield "tfrecord", _tfrecord(images)
    yield "mxnet", _recordio(images)
    yield "webdataset", _archive(images)
    if find_spec("pycocotools"):
        yield "coco", _coco(images[0])
    yield "file_list", {"a.bin": images[0], "list.txt": b"a.bin 0\na.bin 7\n"}
    arrays = [data for _, data in npy_seeds()][:9]
    yield "numpy", {"a.npy": arrays[3]}
    if find_spec("lmdb"):
        yield "caffe", _datums(images)
        yield "caffe2", _protos(images)
    pngs = [data for name, data in image_seeds() if name == "png"][4:6]
    yield "sequence", {f"stream/{number}.png": png for number, png in enumerate(pngs)}
    for number, (_, clip) in enumerate(video_seeds()):
        if number in (0, 1, 2, 5):
            yield "clips", {"a.mp4": clip}
    for sky in _skies():
        yield "fits", {"a.fits": sky}
    sounds = [data for name, data in audio_seeds() if name == "wav"][:1]
    for sound in sounds:
        line = json.dumps({"audio_filepath": "a.wav", "duration": 0.02, "offset": 0.001, "text": "so it is"})
        yield "nemo_asr", {"a.wav": sound, "manifest.json": f"{line}\n{line}\n".encode()}


def varint(number: int) -> bytes:
    """Return a number in protobuf's encoding."""
    parts = bytearray()
    while True:
        parts.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(parts)


def field(number: int, content: bytes | int) -> bytes:
    """Return a field of a protobuf message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def _tfrecord(images: list[bytes]) -> Files:
    data, index = b"", ""
    for number, image in enumerate(images):
        features = {
            b"image": field(1, field(1, image[:400])),
            b"label": field(3, field(1, varint(number))),
            b"box": field(2, field(1, np.arange(4, dtype="<f4").tobytes())),
        }
        entries = b"".join(field(1, field(1, name) + field(2, value)) for name, value in features.items())
        example = field(1, entries)
        record = struct.pack("<Q", len(example)) + bytes(4) + example + bytes(4)
        index += f"{len(data)} {len(record)}\n"
        data += record
    return {"a.tfrecord": data, "a.idx": index.encode()}


def _recordio(images: list[bytes]) -> Files:
    data, index = b"", ""
    for number, image in enumerate(images):
        labels = np.arange(number, dtype="<f4").tobytes()
        body = struct.pack("<IfQQ", number, 3.5, number, 0) + labels + image[:400]
        index += f"{number}\t{len(data)}\n"
        data += struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4)
    return {"a.rec": data, "a.idx": index.encode()}


def _archive(images: list[bytes]) -> Files:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for number, image in enumerate(images):
            for extension, content in (("jpg", image[:700]), ("cls", struct.pack("<i", number))):
                entry = tarfile.TarInfo(f"folder/{number}.{extension}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    index = f"v1.2 {len(images)}\n"
    with tarfile.open(fileobj=io.BytesIO(file.getvalue())) as archive:
        members = [f"{m.name.split('.')[1]} {m.offset_data} {m.size} {m.name}" for m in archive]
    index += "".join(f"{a} {b}\n" for a, b in zip(members[::2], members[1::2]))
    return {"a.tar": file.getvalue(), "a.idx": index.encode()}


def _coco(image: bytes) -> Files:
    annotations = {
        "images": [{"id": n, "file_name": "a.jpg", "width": 56, "height": 48} for n in (1, 2)],
        "categories": [{"id": 7}, {"id": 9}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 20, 30], "iscrowd": 0}
            | {"segmentation": [[1, 2, 20, 2, 20, 30, 1, 30]]},
            {"id": 2, "image_id": 2, "category_id": 9, "bbox": [0, 0, 9, 9], "iscrowd": 1}
            | {"segmentation": {"size": [48, 56], "counts": [100, 40, 2548]}},
        ],
    }
    return {"a.jpg": image, "a.json": json.dumps(annotations).encode()}


def _datums(images: list[bytes]) -> Files:
    """Return the records of an LMDB database, by key; the database itself is written later."""
    records = [field(1, 3) + field(4, image[:300]) + field(5, number) for number, image in enumerate(images)]
    return {f"{number:08d}": record for number, record in enumerate(records)}


def _protos(images: list[bytes]) -> Files:
    records = [
        field(1, field(2, 4) + field(6, image[:300])) + field(1, field(1, varint(1)) + field(2, 2) + field(4, number))
        for number, image in enumerate(images)
    ]
    return {f"{number:08d}": record for number, record in enumerate(records)}


def _skies() -> Iterator[bytes]:
    try:
        from astropy.io import fits
    except ImportError:
        return
    pixels = picture(0, 20, 24)
    units = [
        fits.ImageHDU(pixels.astype(np.int16)),
        fits.ImageHDU(pixels.astype(np.float32)),
        *(fits.CompImageHDU(pixels.astype(np.int16), compression_type=c) for c in ("RICE_1", "GZIP_1", "HCOMPRESS_1")),
        fits.BinTableHDU(np.zeros(3, [("a", "i4"), ("b", "f8")])),
    ]
    for unit in units:
        file = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), unit]).writeto(file)
        yield file.getvalue()
