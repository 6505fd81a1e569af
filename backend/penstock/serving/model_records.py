"""Records of the folders from which Triton has loaded models into its process; the process that supervises Triton reads them."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path

MODEL_RECORDS = "PENSTOCK_MODEL_RECORDS"
"""The environment variable with the folder of the records."""


class ModelRecords:
    """Records of the folders of loaded models.

    Args:
        folder: the folder for the records, with one file for each; None: nothing is recorded.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._folders: dict[str, Path] = {}

    @classmethod
    def of_server(cls) -> ModelRecords:
        """Return the records of the server in this process."""
        folder = os.environ.get(MODEL_RECORDS)
        return cls(Path(folder) if folder else None)

    def write(self, model: str, folder: Path) -> None:
        """Record a loaded model. If the disk is full, nothing is recorded, so the model cannot be restored if the server dies."""
        if self._folder is None:
            return
        path = self._folder / uuid.uuid4().hex
        beside = path.with_suffix(".new")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps([model, str(folder)]))
            beside.rename(path)

    def folders(self) -> dict[str, Path]:
        """Return the folder that was last recorded for each model."""
        paths = [] if self._folder is None else [path for path in self._folder.iterdir() if not path.suffix]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
            model, folder = json.loads(path.read_text())
            self._folders[model] = Path(folder)
            path.unlink()
        return dict(self._folders)
