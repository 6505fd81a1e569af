"""`readers.file`: returns the contents of files, with labels."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

from penstock.data_types import INT32, UINT8
from penstock.operators.readers._block_reading import PathTable
from penstock.operators.readers._paths import check_places
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader, Sources
from penstock.schema import Alias, Argument, Equivalent, OutputSpec, Schema, Workspace, register_operator
from penstock.storage import join
from penstock.tensors import TensorListCPU

_IMAGES = [
    "*.jpg",
    "*.jpeg",
    "*.png",
    "*.bmp",
    "*.tif",
    "*.tiff",
    "*.pnm",
    "*.ppm",
    "*.pgm",
    "*.pbm",
    "*.jp2",
    "*.webp",
]
_LARGEST_LABEL = 2**31 - 1
_KNOWN_FILES = [*_IMAGES, "*.flac", "*.ogg", "*.wav"]
# Matches patterns such as `*.jpg`, which prescribe only the ending of a name.
_ENDING = re.compile(r"\*[^*?\[]+")


class _Item(NamedTuple):
    path: str
    label: int

    def __str__(self) -> str:
        return self.path


class _Items(Sequence[_Item]):
    """The files of a data set and their labels.

    Stored as a list of paths and an array, because Python's garbage collector would traverse a million tuples again and again.
    """

    def __init__(self, paths: list[str], labels: Sequence[int]) -> None:
        self.paths, self.labels = paths, np.array(labels, np.int32)

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Item]: ...

    def __getitem__(self, index: int | slice) -> _Item | list[_Item]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return _Item(self.paths[index], int(self.labels[index]))


@register_operator
class File(Reader):
    """Returns the bytes of each file, and the file's label as a vector of one number.

    Select the files by ``files`` (with ``labels``); by ``file_list``, a text file with a path and a label in each line;
    or by ``file_root``, whose subfolders are the classes, numbered from 0 in the order of their names.

    >>> encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__File",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument("case_sensitive_filter", "bool", False, "Filters are case sensitive."),
            Argument("dir_filters", "string[]", None, "Patterns of the folders to use as classes; by default all."),
            Argument("file_filters", "string[]", _KNOWN_FILES, "Patterns of the files to read from folders."),
            Argument("file_list", "string", None, "A text file with a path and a label in each line.", path=True),
            Argument(
                "file_root",
                "string",
                None,
                "The folder that holds the classes' folders, or that paths are relative to.",
                path=True,
            ),
            Argument("files", "string[]", None, "Paths of the files.", path=True),
            Argument("labels", "int32[]", None, "Labels of `files`; by default their positions."),
        ),
        outputs=2,
        random=True,
        stateful=True,
        aliases=(Alias("FileReader", "1.0"),),
        equivalents=(Equivalent("torchvision.datasets.ImageFolder", "It decodes the images, too."),),
    )

    def setup(self) -> None:
        args = self.args
        check_places(args)
        if args["labels"] is not None and args["files"] is None:
            raise ValueError("The argument `labels` is valid only when file paths are provided as `files`")
        for name in ("file_filters", "dir_filters"):
            if args[name] is not None and not args[name]:
                raise ValueError(f"The `{name}` list cannot be empty: no file would be taken")
        self._root = args["file_root"] or ""
        super().setup()

    def list_items(self) -> _Items:
        if self.args["files"] is not None:
            self._listed = self._from_files(self.args["files"], self.args["labels"])
        elif self.args["file_list"] is not None:
            self._listed = self._from_list(self.args["file_list"])
        else:
            self._listed = self._from_folders()
        return self._listed

    @staticmethod
    def _from_files(files: list[str], labels: list[int] | None) -> _Items:
        if not files:
            raise ValueError("`files` specified an empty list")
        if labels is not None and len(labels) != len(files):
            raise ValueError(f"Provided {len(labels)} labels for {len(files)} files.")
        return _Items(files, range(len(files)) if labels is None else labels)

    def _from_list(self, path: str) -> _Items:
        if not self._root:
            self._root = path.rpartition("/")[0] if "://" in path else os.path.dirname(path)
        paths, labels = [], []
        for number, line in enumerate(self.files.read_text(path).splitlines(), 1):
            if not line.strip():
                continue
            name, _, label = line.rstrip().replace("\t", " ").rpartition(" ")
            known = "\0" not in name and label.isascii() and label.isdigit() and int(label) <= _LARGEST_LABEL
            if not name.strip() or not known:
                raise ValueError(
                    f"Incorrect format of the list file '{path}':{number}: expected file name followed by a label, "
                    f"got: {line}"
                )
            paths.append(name.rstrip())
            labels.append(int(label))
        return _Items(paths, labels)

    def _from_folders(self) -> _Items:
        paths: list[str] = []
        labels: list[int] = []
        folders = self._matching(self.files.list_folder(self._root)[1], self.args["dir_filters"])
        for label, folder in enumerate(folders):
            names = self.files.list_folder(join(self._root, folder))[0]
            paths += [f"{folder}/{name}" for name in self._matching(names, self.args["file_filters"])]
            labels += [label] * (len(paths) - len(labels))
        return _Items(paths, labels)

    def _matching(self, names: list[str], patterns: list[str] | None) -> list[str]:
        """Return the names that match one of the patterns; all names if ``patterns`` is None."""
        if patterns is None:
            return names
        spelled = names
        if not self.args["case_sensitive_filter"]:
            spelled, patterns = [name.lower() for name in names], [pattern.lower() for pattern in patterns]
        # Most patterns are extensions; comparing endings takes a third of the time of matching patterns.
        endings = tuple(pattern[1:] for pattern in patterns if _ENDING.fullmatch(pattern))
        others = [pattern for pattern in patterns if not _ENDING.fullmatch(pattern)]
        return [
            name
            for name, spelling in zip(names, spelled)
            if spelling.endswith(endings) or any(fnmatch.fnmatchcase(spelling, pattern) for pattern in others)
        ]

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(UINT8, "", 1), OutputSpec(INT32, "", 1)]

    def read(self, item: _Item) -> tuple[np.ndarray, np.ndarray]:
        return self.files.read(join(self._root, item.path), self.memory.take), np.array([item.label], np.int32)

    def source_info(self, item: _Item, output: int) -> str:
        return str(item) if output == 0 else ""

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        read = None if self._table is None else self._table.read(indices, workspace.pool)
        if read is None:
            return None
        contents = TensorListCPU.of_elements(read.block, list(zip(read.sizes.tolist())))
        contents.source_infos = Sources(self.items, indices)
        return [contents, TensorListCPU.of_elements(self._listed.labels[indices], [(1,)] * len(indices))]

    @functools.cached_property
    def _table(self) -> PathTable | None:
        return PathTable.of(self.files, [join(self._root, path) for path in self._listed.paths])
