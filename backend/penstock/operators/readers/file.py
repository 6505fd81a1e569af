"""`readers.file`: the contents of files, with labels."""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.data_types import INT32, UINT8
from penstock.operators.readers._block_reading import PathTable
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


class _Item(NamedTuple):
    path: str
    label: int

    def __str__(self) -> str:
        return self.path


@register_operator
class File(Reader):
    """Returns each file's bytes, and its label as a vector of one number.

    The files are given by ``files`` (with ``labels``); by ``file_list``, a text file with a path and a label in each
    line; or by ``file_root``, whose folders are the classes, numbered from 0 by name.

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
        if args["files"] is not None and args["file_list"] is not None:
            raise ValueError("File paths can be provided through `files` or `file_list` but not both")
        if args["files"] is None and args["file_list"] is None and args["file_root"] is None:
            raise ValueError("The `file_root` argument is required when not using `files` or `file_list`")
        if args["labels"] is not None and args["files"] is None:
            raise ValueError("The argument `labels` is valid only when file paths are provided as `files`")
        for name in ("file_filters", "dir_filters"):
            if args[name] is not None and not args[name]:
                raise ValueError(f"The `{name}` list cannot be empty: no file would be taken")
        self._root = args["file_root"] or ""
        super().setup()

    def list_items(self) -> Sequence[_Item]:
        if self.args["files"] is not None:
            return self._from_files(self.args["files"], self.args["labels"])
        if self.args["file_list"] is not None:
            return self._from_list(self.args["file_list"])
        return list(self._from_folders())

    @staticmethod
    def _from_files(files: list[str], labels: list[int] | None) -> list[_Item]:
        if not files:
            raise ValueError("`files` specified an empty list")
        if labels is not None and len(labels) != len(files):
            raise ValueError(f"Provided {len(labels)} labels for {len(files)} files.")
        return [_Item(path, label) for path, label in zip(files, labels if labels is not None else range(len(files)))]

    def _from_list(self, path: str) -> list[_Item]:
        if not self._root:
            self._root = path.rpartition("/")[0] if "://" in path else os.path.dirname(path)
        items = []
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
            items.append(_Item(name.rstrip(), int(label)))
        return items

    def _from_folders(self) -> Iterator[_Item]:
        folders = [
            name for name in self.files.list_folder(self._root)[1] if self._matches(name, self.args["dir_filters"])
        ]
        for label, folder in enumerate(folders):
            for name in self.files.list_folder(join(self._root, folder))[0]:
                if self._matches(name, self.args["file_filters"]):
                    yield _Item(f"{folder}/{name}", label)

    def _matches(self, name: str, patterns: list[str] | None) -> bool:
        if patterns is None:
            return True
        if self.args["case_sensitive_filter"]:
            return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)

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
        return [contents, TensorListCPU.of_elements(self._labels[indices], [(1,)] * len(indices))]

    @functools.cached_property
    def _table(self) -> PathTable | None:
        return PathTable.of(self.files, [join(self._root, item.path) for item in self.items])

    @functools.cached_property
    def _labels(self) -> np.ndarray:
        return np.array([item.label for item in self.items], np.int32)
