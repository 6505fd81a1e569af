"""The base class of readers that read one file without a label for each sample, from paths, a file list, or a folder."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from penstock.operators.readers._reader import Reader
from penstock.schema import Argument
from penstock.storage import join


def path_arguments(file_filter: str) -> tuple[Argument, ...]:
    """Return the arguments that select files; ``file_filter`` is the default of the pattern for files in a folder."""
    return (
        Argument("file_filter", "string", file_filter, "Pattern of the files to read from `file_root`."),
        Argument("file_list", "string", None, "A text file with a path in each line.", path=True),
        Argument(
            "file_root", "string", None, "The folder that holds the files, or that paths are relative to.", path=True
        ),
        Argument("files", "string[]", None, "Paths of the files.", path=True),
    )


def check_places(arguments: Mapping[str, object]) -> None:
    """Raise ValueError if a reader's arguments select files both by `files` and by `file_list`, or in no way."""
    if arguments["files"] is not None and arguments["file_list"] is not None:
        raise ValueError("File paths can be provided through `files` or `file_list` but not both")
    if arguments["files"] is None and arguments["file_list"] is None and arguments["file_root"] is None:
        raise ValueError("The `file_root` argument is required when not using `files` or `file_list`")


class PathReader(Reader):
    """Base class of readers whose items are paths."""

    def setup(self) -> None:
        check_places(self.args)
        self._root = self.args["file_root"] or ""
        super().setup()

    def list_items(self) -> Sequence[str]:
        if self.args["files"] is not None:
            return self.args["files"]
        if self.args["file_list"] is not None:
            path = self.args["file_list"]
            self._root = self._root or path.rpartition("/")[0]
            return [line.strip() for line in self.files.read_text(path).splitlines() if line.strip()]
        files, folders = self.files.list_folder(self._root)
        nested = [
            f"{folder}/{name}" for folder in folders for name in self.files.list_folder(join(self._root, folder))[0]
        ]
        return [path for path in [*(f"./{name}" for name in files), *nested] if self._matches(path)]

    def _matches(self, path: str) -> bool:
        return fnmatch.fnmatchcase(path.rpartition("/")[2], self.args["file_filter"])

    def path(self, item: str) -> str:
        """Return the full path of an item."""
        return join(self._root, item)

    def source_info(self, item: str, output: int) -> str:
        return item
