"""`readers.webdataset`: reads samples that are stored as groups of files in tar archives."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from penstock.data_types import (
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    dtype_name,
    numpy_dtype,
)
from penstock.operators.readers._block_reading import read_ranges
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader, Sources
from penstock.schema import Argument, OutputSpec, Schema, Workspace, register_operator
from penstock.storage import Files, is_remote
from penstock.tensors import TensorListCPU


class Component(NamedTuple):
    """A file in an archive."""

    archive: str
    name: str
    start: int
    size: int
    listed_extension: str = ""

    @property
    def stem(self) -> str:
        """The path up to the first dot of the file name; all files of a sample have the same."""
        folder, slash, name = self.name.rpartition("/")
        return folder + slash + name.partition(".")[0]

    @property
    def extension(self) -> str:
        return self.listed_extension or self.name.rpartition("/")[2].partition(".")[2]


Sample = tuple["Component | None", ...]
# A sample's files are read in one piece if that reads at most this many bytes that are not requested.
_MAX_GAP_BYTES = 1 << 14
# The greatest accepted size of an archive, and the greatest size that fits the eleven octal digits of a file's header; in bytes.
_MAX_ARCHIVE_BYTES, _MAX_SIZE_IN_HEADER = 1 << 62, (1 << 33) - 1


def list_archive(files: Files, path: str) -> Iterator[list[Component]]:
    """Yield the samples of an archive: lists of consecutive files whose names differ only after the first dot.

    Files whose name begins with a dot are skipped. For an archive without other files, yield one sample without files.
    """
    try:
        with files.open(path) as file, tarfile.open(mode="r:", fileobj=file) as archive:
            listed = [
                Component(path, member.name, member.offset_data, member.size) for member in archive if member.isfile()
            ]
    except tarfile.ReadError as error:
        raise ValueError(f"Corrupted tar file at '{path}': {error}") from error
    named = [file for file in listed if file.stem]
    if not named:
        yield []
    for _, components in groupby(named, lambda component: component.stem):
        yield list(components)


def read_index(files: Files, path: str, index_path: str) -> Iterator[list[Component]]:
    """Yield the samples of an archive from its index. A line describes a sample: the extension, start, size (and, in version 1.2, the
    name) of each file.

    Source: the index that DALI's ``wds2idx`` writes, versions 1.1 and 1.2.

    Raises:
        ValueError: the index is malformed, or belongs to another archive.
    """
    lines = files.read_text(index_path).splitlines()
    head = lines[0].split() if lines else []
    named = _names_files(head, index_path)
    count = _sample_count(head, index_path)
    extent = None if is_remote(path) else files.size(path)
    # To notice that an index belongs to another archive, check the positions and sizes of the first and last samples' files.
    checked = () if extent is None else (1, count)
    for number in range(1, count + 1):
        words = lines[number].split() if number < len(lines) else []
        if not words:
            raise _malformed(index_path, number, "no extensions provided for the sample")
        sample = list(_components(path, words, named, index_path, number))
        for component in sample:
            if component.start % tarfile.BLOCKSIZE:
                raise _malformed(
                    index_path, number, f"tar offset is not a multiple of tar block size ({tarfile.BLOCKSIZE})"
                )
            last = _MAX_ARCHIVE_BYTES if extent is None else extent - 1
            if not 0 <= component.start <= last or not 0 <= component.size <= _MAX_ARCHIVE_BYTES:
                raise _malformed(index_path, number, f"offset is outside of the archive file '{path}'")
            if number in checked and not _is_in_archive(files, component):
                raise _malformed(index_path, number, f"'{path}' has no file of {component.size} bytes there")
        yield sample


def _is_in_archive(files: Files, component: Component) -> bool:
    """Return whether the archive has a tar header before the component's start that states the component's size."""
    if component.start < tarfile.BLOCKSIZE:
        return False
    block = files.read_range(component.archive, component.start - tarfile.BLOCKSIZE, tarfile.BLOCKSIZE)
    try:
        header = tarfile.TarInfo.frombuf(block.tobytes(), tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        return False
    # A size that does not fit the header is stored elsewhere, and is not checked.
    return header.size == component.size or component.size > _MAX_SIZE_IN_HEADER


def index_lines(files: Files, path: str) -> Iterator[str]:
    """Yield the lines of an archive's index in the format of :func:`read_index`, version 1.2.

    Raises:
        ValueError: the archive is corrupt, has no files with extensions, or has a file with a space in its name.
    """
    listed = ([file for file in sample if file.extension] for sample in list_archive(files, path))
    samples = [sample for sample in listed if sample]
    if not samples:
        raise ValueError(f"The archive '{path}' holds no files with extensions")
    yield f"v1.2 {len(samples)}"
    for sample in samples:
        for file in sample:
            if len(file.name.split()) != 1:
                raise ValueError(f"An index cannot hold names with spaces: '{file.name}' in '{path}'")
        yield " ".join(f"{file.extension} {file.start} {file.size} {file.name}" for file in sample)


def _names_files(head: list[str], index_path: str) -> bool:
    """Return whether an index with this first line contains file names; raise ValueError if the line is malformed."""
    if not head:
        raise _malformed(index_path, 0, "no version signature found")
    if head[0] not in ("v1.1", "v1.2"):
        raise _malformed(index_path, 0, f"Unsupported version of the index file ({head[0]}).")
    return head[0] == "v1.2"


def _sample_count(head: list[str], index_path: str) -> int:
    try:
        count = int(head[1])
    except (IndexError, ValueError):
        raise _malformed(index_path, 0, "no sample count found") from None
    if count <= 0:
        raise _malformed(index_path, 0, f"sample count must be positive, got {count}")
    return count


def _components(path: str, words: list[str], named: bool, index_path: str, number: int) -> Iterator[Component]:
    """Yield the files that one line of an index describes.

    Args:
        path: the archive's path.
        words: the words of the line.
        named: whether the index contains file names.
        index_path, number: the index and the number of the line, for messages.
    """
    width = 4 if named else 3
    for i in range(0, len(words), width):
        try:
            extension, start, size, *name = words[i : i + width]
            if len(name) != width - 3:
                raise ValueError
            yield Component(path, "".join(name), int(start), int(size), extension)
        except ValueError:
            parameters = "offset, size or filename" if named else "offset or size"
            raise _malformed(
                index_path, number, f"Could not find all necessary component parameters ({parameters})"
            ) from None


def _malformed(index_path: str, line: int, fault: str) -> ValueError:
    return ValueError(f"Malformed index file at '{index_path}' line {line} - {fault}")


# The types as which the bytes of files can be returned.
_DTYPES = (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FLOAT16, FLOAT, FLOAT64)


@register_operator
class Webdataset(Reader):
    """Returns the selected files of each sample, one output for each entry of ``ext``.

    A sample consists of consecutive files in an archive whose names differ only in the extension, which is everything after the first
    dot. An entry of ``ext`` may list several extensions, separated by semicolons: the sample's first file with one of them is used.

    >>> images, labels = fn.readers.webdataset(  # doctest: +SKIP
    ...     paths=["train.tar"], ext=["jpg;png", "cls"], dtypes=[types.UINT8, types.INT32]
    ... )
    """

    shuffles_list = False
    shuffles_both_ways = True
    nothing_to_read = "The number of input samples: 0, needs to be at least equal to the requested number of shards"

    schema = Schema(
        name="readers__Webdataset",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument("case_sensitive_extensions", "bool", True, "Extensions are case sensitive."),
            Argument("dtypes", "DALIDataType[]", None, "Types of the outputs; by default all are bytes."),
            Argument(
                "ext", "string[]", doc="Extensions of the files to return, one entry for each output.", required=True
            ),
            Argument(
                "index_paths",
                "string[]",
                None,
                "Indices of the archives; by default the archives are scanned.",
                path=True,
            ),
            Argument(
                "missing_component_behavior",
                "string",
                "",
                "For samples that lack a file: `empty` (the default) returns an empty one, `skip` skips the "
                "sample, `error` fails.",
            ),
            Argument("paths", "string[]", doc="Paths of the tar archives.", required=True, path=True),
        ),
        outputs=lambda arguments: len(arguments.get("ext") or ()),
        random=True,
        stateful=True,
    )

    def setup(self) -> None:
        args = self.args
        self._missing = args["missing_component_behavior"].lower() or "empty"
        if self._missing not in ("empty", "skip", "error"):
            raise ValueError(
                f"Invalid value for missing_component_behavior '{args['missing_component_behavior']}', "
                "possible values are: skip, error, empty"
            )
        self._dtypes = args["dtypes"] if args["dtypes"] is not None else [UINT8] * len(args["ext"])
        for dtype in self._dtypes:
            if dtype not in _DTYPES:
                supported = ", ".join(map(dtype_name, _DTYPES))
                raise ValueError(f"Unsupported output dtype {dtype_name(dtype)}. Supported types are: {supported}")
        if len(self._dtypes) != len(args["ext"]):
            raise ValueError(
                "Number of extensions does not match the number of provided types: "
                f"{len(args['ext'])} and {len(self._dtypes)}"
            )
        if not args["paths"]:
            raise ValueError("No webdataset archives provided")
        if args["index_paths"] and len(args["index_paths"]) != len(args["paths"]):
            raise ValueError(
                "The number of index files, if any, must match the number of archives in the dataset: "
                f"{len(args['index_paths'])} and {len(args['paths'])}"
            )
        self._numpy_dtypes = list(map(numpy_dtype, self._dtypes))
        self._wanted = [self._spelling(entry).split(";") for entry in args["ext"]]
        super().setup()

    def _spelling(self, extension: str) -> str:
        return extension if self.args["case_sensitive_extensions"] else extension.lower()

    def list_items(self) -> Sequence[Sample]:
        indices = self.args["index_paths"]
        if indices:
            archives = [read_index(self.files, path, index) for path, index in zip(self.args["paths"], indices)]
        else:
            archives = [list_archive(self.files, path) for path in self.args["paths"]]
        self._archives = [list(self._complete(archive)) for archive in archives]
        samples = [sample for archive in self._archives for sample in archive]
        self._spans = _Spans(samples, len(self._wanted), list(map(len, self._archives)))
        return samples

    def _complete(self, archive: Iterator[list[Component]]) -> Iterator[Sample]:
        """Yield the selected files of each sample, without samples that are skipped because a file is missing.

        Raises:
            ValueError: a file is missing and missing files are errors, or a file's size is no multiple of its type's size.
        """
        for components in archive:
            sample = tuple(self._find(components, extensions) for extensions in self._wanted)
            for component, dtype in zip(sample, self._dtypes):
                if component is not None and component.size % numpy_dtype(dtype).itemsize:
                    raise ValueError(
                        f"'{component.name}' in '{component.archive}': component size and dtype incompatible: "
                        f"{component.size} bytes are not a whole number of {dtype_name(dtype)}"
                    )
            if None not in sample or self._missing == "empty":
                yield sample
            elif self._missing == "error":
                found = ", ".join(f"'{c.name or c.extension}' in '{c.archive}'" for c in components) or "nothing"
                raise ValueError(f"Underful sample detected at {found}: a requested file is missing")

    def _find(self, components: Sequence[Component], extensions: Sequence[str]) -> Component | None:
        return next((c for c in components if c.extension and self._spelling(c.extension) in extensions), None)

    def groups(self) -> tuple[int, ...]:
        return tuple(map(len, self._archives))

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(dtype, "", 1) for dtype in self._dtypes]

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        self._open()
        spans = self._spans
        if spans.scattered[indices].any():
            return None
        files, starts, sizes = spans.files[indices], spans.starts[indices], spans.sizes[indices]
        read = read_ranges(self.files, self.args["paths"], files, starts, sizes, workspace.pool)
        if read is None:
            return None
        return [
            read.of_parts(
                dtype,
                read.places + spans.offsets[indices, number],
                spans.lengths[indices, number],
                Sources(self.items, indices, partial(self.source_info, output=number)),
            )
            for number, dtype in enumerate(self._dtypes)
        ]

    def read(self, item: Sample) -> list[np.ndarray]:
        found = [component for component in item if component is not None]
        if not found:
            return [np.empty(0, dtype) for dtype in self._numpy_dtypes]
        # The files of a sample are adjacent in the archive, so one read can get all of them.
        archive, first = found[0].archive, min(component.start for component in found)
        last = max(component.start + component.size for component in found)
        if last - first > sum(component.size for component in found) + _MAX_GAP_BYTES:
            return [self._contents(component, dtype) for component, dtype in zip(item, self._numpy_dtypes)]
        span = self.files.read_range(archive, first, last - first, self.memory.take)
        empty = span[:0]
        parts = [empty if c is None else span[c.start - first : c.start - first + c.size] for c in item]
        return [part if dtype == np.uint8 else part.view(dtype) for part, dtype in zip(parts, self._numpy_dtypes)]

    def _contents(self, component: Component | None, dtype: np.dtype) -> np.ndarray:
        if component is None:
            return np.empty(0, dtype)
        return self.files.read_range(component.archive, component.start, component.size, self.memory.take).view(dtype)

    def source_info(self, item: Sample, output: int) -> str:
        component = item[output]
        return "" if component is None else f"{component.archive}:{component.start}:{component.name}"


class _Spans:
    """The positions of all samples' files, in arrays.

    Attributes:
        files: the number of each sample's archive: int64.
        starts, sizes: the start and the size in bytes of the span of the archive that contains the sample's files: int64.
        scattered: whether the span also contains many bytes that are not requested.
        offsets, lengths: the start of each file in the span, and its size, in bytes: int64 of shape (samples, outputs).
    """

    def __init__(self, samples: Sequence[Sample], outputs: int, counts: Sequence[int]) -> None:
        missing = np.array([[c is None for c in sample] for sample in samples], bool).reshape(len(samples), outputs)
        found = [[(0, 0) if c is None else (c.start, c.size) for c in sample] for sample in samples]
        starts, self.lengths = np.moveaxis(np.array(found, np.int64).reshape(len(samples), outputs, 2), 2, 0)
        ends = starts + self.lengths
        self.files = np.repeat(np.arange(len(counts)), counts)
        self.starts = np.where(missing, ends.max(1, keepdims=True), starts).min(1)
        self.sizes = ends.max(1) - self.starts
        self.scattered = self.sizes > self.lengths.sum(1) + _MAX_GAP_BYTES
        self.offsets = np.where(missing, 0, starts - self.starts[:, None])
