"""`readers.mxnet`: images and labels from MXNet's RecordIO files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from penstock.data_types import FLOAT, UINT8
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader, Sources
from penstock.operators.readers._records import Record, RecordTable
from penstock.schema import Alias, Argument, OutputSpec, Schema, Workspace, register_operator
from penstock.storage import Files
from penstock.tensors import TensorListCPU

_MAGIC = 0xCED7230A
_FRAME = struct.Struct("<II")
# The number of labels after the header (0: the label in the header applies), a label, and two numbers that identify the image.
_HEADER = struct.Struct("<IfQQ")


def index_lines(files: Files, path: str) -> Iterator[str]:
    """Yield the lines of a file's index. Each contains the number of a record and the record's position in bytes.

    Raises:
        ValueError: the file contains something other than records, or is truncated.
    """
    data = files.read(path)
    start = count = 0
    while start < data.size:
        magic, length = _FRAME.unpack_from(data.data, start) if start + _FRAME.size <= data.size else (0, 0)
        part, length = length >> 29, length & (1 << 29) - 1
        end = start + _FRAME.size + length
        if magic != _MAGIC or end > data.size:
            raise ValueError(f"'{path}' is not a RecordIO file: there is no whole record at byte {start}")
        # 0 marks a whole record, 1 the first part of a split record; other values mark later parts, which have no line.
        if part < 2:
            yield f"{count}\t{start}"
            count += 1
        start = end + -length % 4


@register_operator
class MXNet(Reader):
    """Returns each record's encoded image, and its labels as float32.

    Source: MXNet's ``recordio`` and ``image_recordio``.

    >>> images, labels = fn.readers.mxnet(path="train.rec", index_path="train.idx")  # doctest: +SKIP
    """

    shuffles_list = False
    shuffles_both_ways = True
    nothing_to_read = "RecordIO index file doesn't contain any indices"

    schema = Schema(
        name="readers__MXNet",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument(
                "index_path",
                "string[]",
                doc="Path of the index: a number and a record's start in each line.",
                required=True,
                path=True,
            ),
            Argument(
                "path",
                "string[]",
                doc="Paths of the RecordIO files; the index counts through them as if they were one.",
                required=True,
                path=True,
            ),
        ),
        outputs=2,
        random=True,
        stateful=True,
        aliases=(Alias("MXNetReader", "1.0", fn="mxnet_reader"),),
        fn="readers.mxnet",
    )

    def list_items(self) -> RecordTable:
        paths, indices = self.args["path"], self.args["index_path"]
        if len(indices) != 1:
            raise ValueError(f"RecordIOReader supports only a single index file, got {len(indices)}")
        try:
            starts = {int(line.split()[1]) for line in self.files.read_text(indices[0]).splitlines() if line.strip()}
        except (IndexError, ValueError):
            raise ValueError(f"'{indices[0]}' does not hold a number and a record's start in each line") from None
        try:
            begins = np.array(sorted(starts), np.int64)
        except OverflowError:
            raise ValueError(f"'{indices[0]}' names a record beyond 2^63 bytes") from None
        self.count = len(begins)
        self._records = self._located(paths, begins)
        return self._records

    def _located(self, paths: list[str], begins: np.ndarray) -> RecordTable:
        """Return the records that begin at these positions (sorted) in the concatenated contents of the files."""
        sizes = np.array([self.files.size(path) for path in paths], np.int64)
        ends = np.cumsum(sizes)
        files = np.minimum(np.searchsorted(ends, begins, "right"), len(paths) - 1)
        stops = np.minimum(np.append(begins[1:], ends[-1]), ends[files])
        return RecordTable(paths, files, begins - (ends - sizes)[files], stops - begins)

    def groups(self) -> tuple[int, ...]:
        return (self.count,)

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(UINT8, "", 1), OutputSpec(FLOAT, "", 1)]

    def read(self, item: Record) -> tuple[np.ndarray, np.ndarray]:
        record = self.files.read_range(item.path, item.start, item.size, self.memory.take)
        magic, length = _FRAME.unpack_from(record.data) if record.size >= _FRAME.size else (0, 0)
        # The upper 3 bits are 0 unless the record is split into parts.
        if magic != _MAGIC or length >> 29 or _FRAME.size + length > record.size:
            raise ValueError(
                f"Invalid RecordIO: wrong magic number, or no whole record, at byte {item.start} of '{item.path}'"
            )
        body = record[_FRAME.size : _FRAME.size + length]
        count, label, _, _ = _HEADER.unpack_from(body.data) if length >= _HEADER.size else (length, 0, 0, 0)
        rest = body[_HEADER.size :]
        if 4 * count > rest.size:
            raise ValueError(f"Invalid RecordIO: no whole labels at byte {item.start} of '{item.path}'")
        if not count:
            return rest, np.array([label], np.float32)
        return rest[4 * count :], np.array(rest[: 4 * count]).view("<f4")

    def source_info(self, item: Record, output: int) -> str:
        return str(item) if output == 0 else ""

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        from penstock.operators.readers._records_cpu import find_images

        read = self._records.read(self.files, indices, workspace.pool)
        images, labels = np.empty((2, 2, len(indices)), np.int64)
        if read is None or not find_images(read.block, read.places, read.sizes, images, labels):
            return None
        return [
            read.of_parts(UINT8, images[0], images[1], Sources(self._records, indices)),
            read.of_parts(FLOAT, labels[0], labels[1]),
        ]
