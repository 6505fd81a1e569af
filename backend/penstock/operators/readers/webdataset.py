"""`readers.webdataset`: samples that are stored as groups of files in tar archives."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from penstock.kernels.storage import is_remote, read_file, read_range, read_text
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader
from penstock.schema import Argument, OutputSpec, Schema, register_operator
from penstock.types import UINT8, numpy_dtype


class Component(NamedTuple):
    """A file in an archive."""

    archive: str
    name: str
    start: int
    size: int

    @property
    def stem(self) -> str:
        """The path up to the first dot of the file's name: what the files of a sample have in common."""
        folder, slash, name = self.name.rpartition("/")
        return folder + slash + name.partition(".")[0]

    @property
    def extension(self) -> str:
        return self.name.rpartition("/")[2].partition(".")[2]


Sample = tuple["Component | None", ...]


def list_archive(path: str) -> Iterator[list[Component]]:
    """The samples of an archive: runs of files whose names differ only behind the first dot."""
    source: Any = {"fileobj": io.BytesIO(read_file(path).tobytes())} if is_remote(path) else {"name": path}
    with tarfile.open(mode="r:", **source) as archive:
        files = [Component(path, member.name, member.offset_data, member.size) for member in archive if member.isfile()]
    for _, components in groupby(files, lambda component: component.stem):
        yield list(components)


def read_index(path: str, index_path: str) -> Iterator[list[Component]]:
    """The samples of an archive from its index: per line the extension, start, size (and name) of each file.

    Source: the index that DALI's ``wds2idx`` writes, versions 1.1 and 1.2.
    """
    lines = read_text(index_path).splitlines()
    version, *_ = lines[0].split() if lines else ("",)
    if version not in ("v1.1", "v1.2"):
        raise ValueError(f"'{index_path}' is no index of version 1.1 or 1.2: it begins with {version!r}")
    width = 4 if version == "v1.2" else 3
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words or len(words) % width:
            raise ValueError(f"Line {number} of '{index_path}' is not made of groups of {width} words: {line!r}")
        yield [
            Component(path, words[i + 3] if width == 4 else f".{words[i]}", int(words[i + 1]), int(words[i + 2]))
            for i in range(0, len(words), width)
        ]


@register_operator
class Webdataset(Reader):
    """Gives the wanted files of each sample, one output for each entry of ``ext``.

    A sample is a run of files in an archive whose names differ only in their extensions: all that is behind the first
    dot. An entry of ``ext`` may name several extensions, divided by semicolons: the first file with one of them is
    taken.

    >>> images, labels = fn.readers.webdataset(  # doctest: +SKIP
    ...     paths=["train.tar"], ext=["jpg;png", "cls"], dtypes=[types.UINT8, types.INT32]
    ... )
    """

    shuffles_list = False
    shuffles_both_ways = True

    schema = Schema(
        name="readers__Webdataset",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument("case_sensitive_extensions", "bool", True, "Extensions tell small from capital letters."),
            Argument("dtypes", "DALIDataType[]", None, "Types of the outputs; by default all are bytes."),
            Argument(
                "ext", "string[]", doc="Extensions of the wanted files, one entry for each output.", required=True
            ),
            Argument("index_paths", "string[]", None, "Indices of the archives; by default the archives are scanned."),
            Argument(
                "missing_component_behavior",
                "string",
                "",
                "Samples that lack a file: `empty` (the default) gives it without contents, `skip` leaves the sample out, "
                "`error` fails.",
            ),
            Argument("paths", "string[]", doc="Paths of the tar archives.", required=True),
        ),
        outputs=lambda arguments: len(arguments.get("ext") or ()),
        random=True,
        stateful=True,
    )

    def setup(self) -> None:
        args = self.args
        self._missing = args["missing_component_behavior"] or "empty"
        if self._missing not in ("empty", "skip", "error"):
            raise ValueError(f"Unknown missing_component_behavior '{self._missing}': use `empty`, `skip` or `error`")
        self._dtypes = args["dtypes"] if args["dtypes"] is not None else [UINT8] * len(args["ext"])
        if len(self._dtypes) != len(args["ext"]):
            raise ValueError(f"{len(self._dtypes)} types are given for {len(args['ext'])} extensions")
        if args["index_paths"] and len(args["index_paths"]) != len(args["paths"]):
            raise ValueError(f"{len(args['index_paths'])} indices are given for {len(args['paths'])} archives")
        self._wanted = [self._spelling(entry).split(";") for entry in args["ext"]]
        super().setup()

    def _spelling(self, extension: str) -> str:
        return extension if self.args["case_sensitive_extensions"] else extension.lower()

    def list_items(self) -> Sequence[Sample]:
        indices = self.args["index_paths"]
        if indices:
            archives = [read_index(path, index) for path, index in zip(self.args["paths"], indices)]
        else:
            archives = [list_archive(path) for path in self.args["paths"]]
        self._archives = [list(self._complete(archive)) for archive in archives]
        return [sample for archive in self._archives for sample in archive]

    def _complete(self, archive: Iterator[list[Component]]) -> Iterator[Sample]:
        """The wanted components of the samples, without those to be skipped."""
        for components in archive:
            sample = tuple(self._find(components, extensions) for extensions in self._wanted)
            for component, dtype in zip(sample, self._dtypes):
                if component is not None and component.size % numpy_dtype(dtype).itemsize:
                    raise ValueError(f"'{component.name}' has {component.size} bytes: no whole number of {dtype.name}")
            if None not in sample or self._missing == "empty":
                yield sample
            elif self._missing == "error":
                raise ValueError(f"The sample '{components[0].stem}' in '{components[0].archive}' lacks a file")

    def _find(self, components: Sequence[Component], extensions: Sequence[str]) -> Component | None:
        return next((c for c in components if self._spelling(c.extension) in extensions), None)

    def groups(self) -> tuple[int, ...]:
        return tuple(map(len, self._archives))

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(dtype, "", 1) for dtype in self._dtypes]

    def read(self, item: Sample) -> list[np.ndarray]:
        return [_contents(component, numpy_dtype(dtype)) for component, dtype in zip(item, self._dtypes)]

    def source_info(self, item: Sample, output: int) -> str:
        component = item[output]
        return "" if component is None else f"{component.archive}:{component.start}:{component.name}"


def _contents(component: Component | None, dtype: np.dtype) -> np.ndarray:
    if component is None:
        return np.empty(0, dtype)
    return read_range(component.archive, component.start, component.size).view(dtype)
