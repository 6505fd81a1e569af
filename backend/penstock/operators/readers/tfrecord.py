"""`readers.tfrecord`: reads features of records in TFRecord files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.data_types import UINT8, from_numpy_dtype
from penstock.kernels.codecs.tfrecord import INT64, STRING, Feature, has_values, parse_example, record_data, take
from penstock.operators.readers._block_reading import Contents
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader, Sources
from penstock.operators.readers._records import Record, RecordTable
from penstock.schema import Alias, Argument, OutputSpec, Schema, Workspace, register_operator
from penstock.schema.libraries import PROTOBUF
from penstock.storage import Files
from penstock.tensors import TensorListCPU


def read_index(files: Files, index_path: str) -> np.ndarray:
    """Return the starts and sizes in bytes of a file's records, int64 of shape (n, 2), from an index with one record per line."""
    records = []
    for number, line in enumerate(files.read_text(index_path).splitlines(), 1):
        try:
            start, size = map(int, line.split()[:2])
        except ValueError:
            raise ValueError(f"Line {number} of '{index_path}' is not a record's start and size: {line!r}") from None
        records.append((start, size))
    try:
        return np.array(records, np.int64).reshape(-1, 2)
    except OverflowError:
        raise ValueError(f"'{index_path}' names a record beyond 2^63 bytes") from None


def index_lines(files: Files, path: str) -> Iterator[str]:
    """Yield the lines of a file's index in the format of :func:`read_index`.

    Source: TensorFlow's record format: length, checksum, data, checksum.

    Raises:
        ValueError: a record is truncated.
    """
    data = files.read(path)
    start = 0
    while start < data.size:
        # If the file is truncated within the length, the result is wrong, but the record is found to be cut off anyway.
        length = int.from_bytes(data[start : start + 8].tobytes(), "little")
        size = 8 + 4 + length + 4
        if start + size > data.size:
            raise ValueError(f"'{path}' is not a TFRecord file: the record at byte {start} is cut off")
        yield f"{start} {size}"
        start += size


def _count_features(arguments: dict[str, Any]) -> int:
    return len(arguments.get("features") or ())


_FILES = (
    Argument(
        "index_path",
        "string[]",
        doc="Paths of the indices: a record's start and size in each line.",
        required=True,
        path=True,
    ),
    Argument("path", "string[]", doc="Paths of the TFRecord files.", required=True, path=True),
    Argument("use_o_direct", "bool", False, "Accepted for compatibility."),
)


@register_operator
class TFRecord(Reader):
    """Returns the selected features of ``tf.train.Example`` records, one output for each feature.

    ``fn.readers.tfrecord`` takes ``features`` as a dictionary, and returns a dictionary of outputs with the same keys.
    """

    shuffles_list = False
    shuffles_both_ways = True
    nothing_to_read = "Content of index files should not be empty"

    schema = Schema(
        name="readers___TFRecord",
        devices=("cpu",),
        needs=(PROTOBUF,),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            *_FILES,
            Argument("feature_names", "string[]", doc="Names of the features.", required=True),
            Argument("features", "tfrecord.Feature[]", doc="The features, in the order of these names.", required=True),
        ),
        outputs=_count_features,
        random=True,
        stateful=True,
        hidden=True,
        aliases=(Alias("_TFRecordReader", "1.0"),),
    )

    def named_features(self) -> list[tuple[str, Any]]:
        """Return the names and declarations of the features to read."""
        names, features = self.args["feature_names"], self.args["features"]
        if len(names) != len(features):
            raise ValueError(f"{len(names)} names are given for {len(features)} features")
        return list(zip(names, features))

    def setup(self) -> None:
        args = self.args
        if len(args["path"]) != len(args["index_path"]):
            raise ValueError(
                "Number of index files needs to match the number of data files: "
                f"{len(args['index_path'])} and {len(args['path'])}"
            )
        if args["skip_cached_images"]:
            raise RuntimeError("TFRecordReader doesn't support `skip_cached_images` option")
        self._features: list[tuple[str, Feature]] = [
            (
                name,
                Feature(
                    declared.kind, declared.shape, declared.default_value, getattr(declared, "partial_shape", None)
                ),
            )
            for name, declared in self.named_features()
        ]
        names = [name.encode() for name, _ in self._features]
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._name_ends = np.cumsum(list(map(len, names)), dtype=np.int64)
        super().setup()

    def list_items(self) -> RecordTable:
        paths = self.args["path"]
        spans = [read_index(self.files, index) for index in self.args["index_path"]]
        self._counts = tuple(map(len, spans))
        starts, sizes = np.concatenate([np.empty((0, 2), np.int64), *spans]).T
        self._records = RecordTable(paths, np.repeat(np.arange(len(paths)), self._counts), starts, sizes)
        return self._records

    def groups(self) -> tuple[int, ...]:
        return self._counts

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(from_numpy_dtype(feature.dtype), "", feature.ndim) for _, feature in self._features]

    def read(self, item: Record) -> list[np.ndarray]:
        record = self.files.read_range(item.path, item.start, item.size, self.memory.take)
        found = parse_example(record_data(record))
        return [
            take(feature, name, found) if has_values(name, found) else _placeholder(feature)
            for name, feature in self._features
        ]

    def aligned(self, column: list[np.ndarray | None], output: int) -> list[np.ndarray | None]:
        """Return one output. If only some records have the feature, the placeholders of the others get the same rank. If no record has
        it, all placeholders remain scalars.
        """
        found = next((sample for sample in column if sample is not None and sample.ndim), None)
        if found is None:
            return column
        name, feature = self._features[output]
        lacking = take(feature, name, {})
        return [lacking if sample is not None and not sample.ndim else sample for sample in column]

    def source_info(self, item: Record, output: int) -> str:
        return str(item)

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        from penstock.operators.readers._records_cpu import find_features

        read = self._records.read(self.files, indices, workspace.pool)
        found = np.empty((len(indices), len(self._features), 4), np.int64)
        if read is None:
            return None
        if not find_features(read.block, read.places, read.sizes, self._names, self._name_ends, found):
            return None
        infos = Sources(self._records, indices)
        batches = [_values(feature, read, found[:, i], infos) for i, (_, feature) in enumerate(self._features)]
        usual = [batch for batch in batches if batch is not None]
        return usual if len(usual) == len(batches) else None


def _values(feature: Feature, read: Contents, found: np.ndarray, infos: Sources) -> TensorListCPU | None:
    """Return a feature of all records of a batch; None unless all records have it in the declared type and shape.

    Args:
        feature: the feature.
        read: the batch's records.
        found: the columns that :func:`find_features` found for this feature, int64 of shape (records, 4).
        infos: the samples' sources.
    """
    from penstock.operators.readers._files_cpu import gather
    from penstock.operators.readers._records_cpu import decode_integers

    kinds, starts, sizes, counts = found.T
    if (kinds != feature.kind).any():
        return None
    if feature.kind == STRING:
        wanted = feature.shape is not None and feature.count <= 1 and counts.all()
        return read.of_parts(UINT8, starts, sizes, infos) if wanted else None
    shapes: list[tuple[int, ...]]
    if feature.shape is not None:
        if (counts != feature.count).any():
            return None
        shapes = [tuple(feature.shape)] * len(counts)
    elif feature.partial_shape:
        return None
    else:
        shapes = list(zip(counts.tolist()))
    values = np.empty(counts.sum(), feature.dtype)
    if feature.kind == INT64:
        decode_integers(read.block, starts, sizes, values)
    else:
        gather(read.block, starts, sizes, values.view(np.uint8))
    batch = TensorListCPU.of_elements(values, shapes, ndim=feature.ndim)
    batch.source_infos = infos
    return batch


def _placeholder(feature: Feature) -> np.ndarray:
    """Return a scalar for a record without the feature; :meth:`TFRecord.aligned` replaces it once the rest of the batch is known."""
    value = feature.default_value if feature.kind != STRING else 0
    return np.array(value).astype(feature.dtype)


@register_operator
class TFRecordByName(TFRecord):
    """Returns the selected features of ``tf.train.Example`` records, as a dictionary by name.

    >>> features = {"image": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    >>> inputs = fn.readers.tfrecord(path="a.tfrecord", index_path="a.idx", features=features)  # doctest: +SKIP
    >>> images = fn.decoders.image(inputs["image"])  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__TFRecord",
        devices=("cpu",),
        needs=(PROTOBUF,),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            *_FILES,
            Argument("features", "dict[str,tfrecord.Feature]", doc="The features to read, by name.", required=True),
        ),
        outputs=_count_features,
        random=True,
        stateful=True,
        aliases=(Alias("TFRecordReader", "1.0", fn="tfrecord_reader"),),
        fn="readers.tfrecord",
    )

    def named_features(self) -> list[tuple[str, Any]]:
        return list(self.args["features"].items())
