"""Records of the folders from which Triton loads models into its process, for the process that supervises it."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path

MODEL_RECORDS = "PENSTOCK_MODEL_RECORDS"
"""The environment variable with the folder of the records."""


class ModelRecords:
    """Records of models.

    Args:
        folder: the folder of the records, one file per record; None: nothing is recorded.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._folders: dict[str, Path] = {}

    @classmethod
    def of_server(cls) -> ModelRecords:
        """Return the records of this process's server."""
        folder = os.environ.get(MODEL_RECORDS)
        return cls(Path(folder) if folder else None)

    def write(self, model: str, folder: Path) -> None:
        """Record a loaded model. If the disk is full, the model cannot be restored after the server has died."""
        if self._folder is None:
            return
        path = self._folder / uuid.uuid4().hex
        beside = path.with_suffix(".new")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps([model, str(folder)]))
            beside.rename(path)

    def folders(self) -> dict[str, Path]:
        """Return the last recorded folder of each model."""
        paths = [] if self._folder is None else [path for path in self._folder.iterdir() if not path.suffix]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
            model, folder = json.loads(path.read_text())
            self._folders[model] = Path(folder)
            path.unlink()
        return dict(self._folders)
