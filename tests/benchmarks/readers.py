"""Readers of local data sets, in Penstock and in DALI.

    python tests/benchmarks/readers.py [--json FILE]

Needs DALI in the same environment (`make bench` makes one). Figures are milliseconds per batch, of processor time of all threads
and of wall time: the medians of interleaved rounds. As in a training loop, two batches are prefetched, and two threads share the work.
Data are in the page cache, and kernels have been compiled.

If WebDataset and LitData are installed, their loaders read the same samples, WebDataset from the same shards. They read in this
process, without worker processes, whose time would not be counted.
"""

from __future__ import annotations

import argparse
import io
import struct
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from other_loaders import LOADERS
from PIL import Image
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES
from turns import Run, cpu_ms, headline, in_turns, keep, wall_ms

BATCH = 64
SAMPLES = 512
_THREADS = 2
# The number of runs to warm up: libraries decode the first 5000 recordings, and then kernels are compiled.
_BEFORE = 400
_SIZE = 12_000


@dataclass
class Reading:
    """One row of the table.

    Attributes:
        name: the row's name.
        define: a function from a module and the folder with the data to the outputs.
        batch: the number of samples in each run.
        beside: the kind of contents of the samples, if other loaders read them, too; empty: no other loaders are measured.
    """

    name: str
    define: Callable[[Any, str], Any]
    batch: int = BATCH
    beside: str = ""


def _features(module: Any) -> dict[str, Any]:
    if module is MODULES["DALI"]:
        from nvidia.dali import tfrecord
    else:
        from penstock import tfrecord
    return {
        "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }


def _files(folder: str, kind: str) -> list[str]:
    return [f"{folder}/{kind}/{number:04}.{kind}" for number in range(SAMPLES)]


def _tfrecord(module: Any, folder: str) -> Any:
    path, index = f"{folder}/a.tfrecord", f"{folder}/a.tfrecord.idx"
    found = module.fn.readers.tfrecord(path=path, index_path=index, features=_features(module))
    return tuple(found.values())


def _webdataset(module: Any, folder: str, kind: str = "bin") -> Any:
    path = f"{folder}/{kind}.tar"
    return tuple(module.fn.readers.webdataset(paths=[path], index_paths=[f"{path}.idx"], ext=[kind, "cls"]))


def _webdataset_images(module: Any, folder: str) -> Any:
    encoded, label = _webdataset(module, folder, "jpg")
    return module.fn.decoders.image(encoded), label


def _sounds(module: Any, folder: str) -> Any:
    encoded, _ = module.fn.readers.file(files=[f"{folder}/flac/{number:04}.flac" for number in range(64)])
    return tuple(module.fn.decoders.audio(encoded, downmix=True))


def _images(module: Any, folder: str) -> Any:
    encoded, labels = module.fn.readers.file(files=_files(folder, "jpg"))
    return module.fn.decoders.image(encoded), labels


def readings() -> list[Reading]:
    """Return all rows."""
    return [
        Reading("file", lambda m, f: tuple(m.fn.readers.file(files=_files(f, "bin")))),
        Reading(
            "file, shuffled", lambda m, f: tuple(m.fn.readers.file(files=_files(f, "bin"), random_shuffle=True, seed=1))
        ),
        Reading("webdataset", _webdataset, beside="bin"),
        Reading("tfrecord", _tfrecord),
        Reading("LMDB (caffe)", lambda m, f: tuple(m.fn.readers.caffe(path=f"{f}/lmdb"))),
        Reading("mxnet", lambda m, f: tuple(m.fn.readers.mxnet(path=f"{f}/a.rec", index_path=f"{f}/a.rec.idx"))),
        Reading("numpy, 1.2 kB", lambda m, f: m.fn.readers.numpy(files=_files(f, "npy"))),
        Reading(
            "numpy, 32x32 of 2000x1000",
            lambda m, f: m.fn.readers.numpy(files=[f"{f}/large.npy"] * BATCH, roi_start=[900, 300], roi_shape=[32, 32]),
        ),
        Reading("FLAC, 1 s, decoded", _sounds, 16),
        Reading("160x128 JPEG, decoded", _images),
        Reading("webdataset, 160x128 JPEG, decoded", _webdataset_images, beside="jpg"),
    ]


# -- the data ----------------------------------------------------------------------------------------------------------


def write_data(folder: Path) -> None:
    """Write a small data set for each reader."""
    rng = np.random.default_rng(0)
    contents = [rng.integers(0, 256, _SIZE, np.uint8).tobytes() for _ in range(SAMPLES)]
    for kind in ("bin", "npy", "jpg", "flac"):
        (folder / kind).mkdir()
    for number, content in enumerate(contents):
        (folder / "bin" / f"{number:04}.bin").write_bytes(content)
        np.save(folder / "npy" / f"{number:04}.npy", rng.random((12, 24), np.float32))
        coarse = rng.integers(0, 256, (16, 20, 3), np.uint8)
        Image.fromarray(coarse).resize((160, 128)).save(folder / "jpg" / f"{number:04}.jpg", quality=85)
    np.save(folder / "large.npy", rng.random((2000, 1000), np.float32))
    _write_archive(folder, "bin")
    _write_archive(folder, "jpg")
    _write_records(folder / "a.tfrecord", map(_example, range(SAMPLES), contents), sizes=True)
    _write_records(folder / "a.rec", map(_recordio, range(SAMPLES), contents), sizes=False)
    _write_database(folder / "lmdb", contents)
    _write_sounds(folder / "flac")


def _write_archive(folder: Path, kind: str) -> None:
    contents = [path.read_bytes() for path in sorted((folder / kind).iterdir())]
    lines = [f"v1.2 {len(contents)}"]
    with tarfile.open(folder / f"{kind}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for number, content in enumerate(contents):
            parts = []
            for extension, data in ((kind, content), ("cls", str(number).encode())):
                member = tarfile.TarInfo(f"{number:04}.{extension}")
                member.size = len(data)
                parts.append(f"{extension} {archive.offset + tarfile.BLOCKSIZE} {len(data)} {member.name}")
                archive.addfile(member, io.BytesIO(data))
            lines.append(" ".join(parts))
    (folder / f"{kind}.tar.idx").write_text("\n".join(lines) + "\n")


def _write_records(path: Path, records: Any, sizes: bool) -> None:
    start, lines = 0, []
    with path.open("wb") as file:
        for number, record in enumerate(records):
            lines.append(f"{start} {len(record)}" if sizes else f"{number}\t{start}")
            file.write(record)
            start += len(record)
    Path(f"{path}.idx").write_text("\n".join(lines) + "\n")


def _varint(number: int) -> bytes:
    low = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([part | 128 for part in low[:-1]] + low[-1:])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _example(number: int, content: bytes) -> bytes:
    features = {"image": _field(1, _field(1, content)), "label": _field(3, _field(1, _varint(number)))}
    entries = [_field(1, _field(1, name.encode()) + _field(2, value)) for name, value in features.items()]
    message = _field(1, b"".join(entries))
    return struct.pack("<QI", len(message), 0) + message + bytes(4)


def _recordio(number: int, content: bytes) -> bytes:
    body = struct.pack("<IfQQ", 0, number, number, 0) + content
    return struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4)


def _write_database(folder: Path, contents: Sequence[bytes]) -> None:
    import lmdb

    folder.mkdir()
    with lmdb.open(str(folder), map_size=1 << 28) as database, database.begin(write=True) as transaction:
        for number, content in enumerate(contents):
            datum = _field(4, content) + _varint(5 << 3) + _varint(number)
            transaction.put(f"{number:08}".encode(), datum)


def _write_sounds(folder: Path) -> None:
    import soundfile

    rng = np.random.default_rng(1)
    for number in range(64):
        tones = np.sin(np.arange(16_000) * rng.uniform(0.01, 0.3)) * 0.5 + rng.normal(0, 0.01, 16_000)
        soundfile.write(folder / f"{number:04}.flac", tones, 16_000)


# -- measuring ---------------------------------------------------------------------------------------------------------


def _running(module: Any, reading: Reading, folder: str) -> Callable[[], Any]:
    @module.pipeline_def(batch_size=reading.batch, num_threads=_THREADS, device_id=None, prefetch_queue_depth=2)
    def define() -> Any:
        return reading.define(module, folder)

    pipeline = define()
    pipeline.build()
    return pipeline.run


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    heads = ("reader", "DALI, CPU ms", "Penstock", "ratio", "DALI, ms", "Penstock", "ratio", "samples/s")
    table = Table(*heads, *(f"{name}, CPU ms" for name in LOADERS), title="one batch")
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        for reading in readings():
            if options.filter not in reading.name:
                continue
            candidates: dict[str, Run] = {name: _running(module, reading, folder) for name, module in MODULES.items()}
            if reading.beside:
                candidates |= {name: make(folder, reading.beside, reading.batch) for name, make in LOADERS.items()}
            for _ in range(_BEFORE):
                candidates["Penstock"]()
            cpu = in_turns(candidates, cpu_ms, options.rounds, options.seconds)
            ms = in_turns(candidates, wall_ms, options.rounds, options.seconds)
            kept.append({"work": reading.name, "samples": reading.batch, "cpu_ms": cpu, "ms": ms})
            measured = [
                f"{times['DALI']:.3f} {times['Penstock']:.3f} {_ratio(times):.2f}".split() for times in (cpu, ms)
            ]
            others = [f"{cpu[name]:.2f}" if name in cpu else "" for name in LOADERS]
            speed = f"{reading.batch / ms['Penstock'] * 1e3:.0f}"
            table.add_row(reading.name, *measured[0], *measured[1], speed, *others)
            del candidates
    console.print(table)
    keep("readers", kept, options.json)


def _ratio(times: dict[str, float]) -> float:
    return times["DALI"] / times["Penstock"]


if __name__ == "__main__":
    main()
