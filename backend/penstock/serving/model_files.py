"""Finds the file of a model version, and loads the pipeline in it.

A file that a configuration names must be in the model's folder, and pipelines of saved files can only access files in this folder,
unless the server's setting ``allowed_paths`` grants more. A model that is a Python file is code, to which these limits do not
apply.
"""

from __future__ import annotations

import inspect
import logging
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.errors import PenstockError, SerializationError
from penstock.pipeline import Pipeline
from penstock.pipeline.definition import is_autoserialize, is_definition
from penstock.serving.model_imports import import_file
from penstock.serving.settings import ConfigurationError
from penstock.serving.trust import absolute_paths

logger = logging.getLogger(__name__)

CANDIDATES = ("model.dali", "model.json", "pipeline.py", "dali.py")
_FALLBACK = "dali.py"
# The values that Triton reports if a configuration names no file.
_TRITON_DEFAULTS = ("", "model.py", "model.dali", "model.penstock")
_IN_NAMES = frozenset(string.ascii_letters + string.digits + "._-")


@dataclass(frozen=True)
class ModelFolder:
    """The folder of a model version.

    Args:
        version: the path of the version's folder, e.g. ``model_repository/preprocess/1``.
        named: ``default_model_filename`` in the model's configuration; an empty string if it is missing.
        allowed_modules: the modules from which Python operators of saved pipelines may be loaded.
        allowed_paths: folders and prefixes of remote paths, outside the model's folder, from which pipelines may read.
        confines_code: whether the pipelines of Python files are subject to the same limits on paths.
        as_dali: whether ``import nvidia.dali`` in Python files imports Penstock.
    """

    version: Path
    named: str = ""
    allowed_modules: Sequence[str] = ()
    allowed_paths: Sequence[str] = ()
    confines_code: bool = False
    as_dali: bool = False

    def files(self) -> list[Path]:
        """Return the files that may contain the pipeline, the most likely first: the configured file, or else files with the usual names.

        Raises:
            ConfigurationError: the configured name is invalid, or leads out of the model's folder.
            FileNotFoundError: there is no such file; the message says where it was expected.
        """
        _check_name(self.named)
        # The version's folder is checked, too, because a saved pipeline may read everything in it.
        self._checked_path(self.version)
        names = CANDIDATES if self.named in _TRITON_DEFAULTS else (self.named, _FALLBACK)
        found = [self._checked_path(self.version / name) for name in names if (self.version / name).is_file()]
        if found:
            return found
        wanted = "" if self.named in _TRITON_DEFAULTS else ", as the configuration names it as default_model_filename"
        raise FileNotFoundError(f"'{self.version}' holds no pipeline: put {' or '.join(names)} there{wanted}")

    def load(self, device: str = "cpu", **settings: object) -> Pipeline:
        """Return the pipeline, not built yet, from the first file, or from ``dali.py`` if the first file contains none.

        Args:
            device: the device on which the pipeline will run; passed to Python definitions with an argument ``device``.
            settings: the pipeline's settings; those that are not None override the settings in the file.

        Raises:
            SerializationError: no file contains a valid pipeline.
        """
        first, *others = self.files()
        try:
            return self._load(first, device, settings)
        except (PenstockError, UnicodeDecodeError) as error:
            fallback = next((path for path in others if path.name == _FALLBACK), None)
            if fallback is None or isinstance(error, ConfigurationError):
                raise
            logger.warning("'%s' holds no pipeline, so '%s' is used instead: %s", first, fallback, error)
            return self._load(fallback, device, settings)

    def _load(self, path: Path, device: str, settings: dict[str, object]) -> Pipeline:
        if self.confines_code or path.suffix != ".py":
            settings = settings | {"confined_to": self._roots()}
        return load_pipeline(path, self.allowed_modules, device, self.as_dali, **settings)

    def _roots(self) -> list[str]:
        """Return the paths that a confined pipeline may read; relative paths start from the version's folder."""
        return [str(self.version), str(self.version.parent), *absolute_paths(self.allowed_paths, self.version)]

    def _checked_path(self, path: Path) -> Path:
        model, real = self.version.parent.resolve(), path.resolve()
        if not real.is_relative_to(model):
            raise ConfigurationError(
                f"'{path}' leads to '{real}', which is outside of the model's folder '{model}': nothing is loaded from there"
            )
        return path


def load_pipeline(
    path: Path, allowed_modules: Sequence[str] = (), device: str = "cpu", as_dali: bool = False, **settings: object
) -> Pipeline:
    """Return the pipeline in a file, not built yet.

    Args:
        path: a Python file with a pipeline marked ``@autoserialize``, or a pipeline saved in either format.
        allowed_modules: the modules from which Python operators may be loaded.
        device: the device on which the pipeline will run; passed to Python definitions with an argument ``device``.
        as_dali: whether ``import nvidia.dali`` in a Python file imports Penstock.
        settings: the pipeline's settings; those that are not None override the settings in the file.

    Raises:
        SerializationError: the file contains no valid pipeline.
    """
    settings = {key: value for key, value in settings.items() if value is not None}
    if path.suffix == ".py":
        factory = find_definition(path, as_dali)
        if "device" in inspect.signature(factory).parameters:
            settings["device"] = device
        return factory(**settings)
    data = path.read_bytes()
    if data.lstrip()[:1] == b"{":
        return Pipeline.load(str(path), allowed_modules=allowed_modules, **settings)
    from penstock.serialize.dali_format import from_wire

    try:
        return from_wire(data, Pipeline, settings)
    except SerializationError as error:
        raise SerializationError(f"'{path}': {error}") from error


def _check_name(name: str) -> None:
    """Raise ConfigurationError unless a name is that of a file in the version's folder or in a subfolder."""
    parts = PurePosixPath(name).parts
    escapes = name.startswith("/") or ".." in parts
    strange = next((c for c in name if c not in _IN_NAMES and (c != "/" or escapes)), None)
    if strange is not None or escapes:
        raise ConfigurationError(
            f"the default_model_filename '{name}' contains an invalid character: '{strange or '.'}'. It names a file in the "
            "version's folder, or in a folder of that, with letters of ASCII, digits, '.', '_' and '-'"
        )


def find_definition(path: Path, as_dali: bool = False) -> Any:
    """Return the pipeline factory in a Python file: the one marked with ``@autoserialize``, or else the only one.

    Args:
        path: the file's path.
        as_dali: whether ``import nvidia.dali`` in the file imports Penstock.

    Raises:
        SerializationError: the file raises an error, or it is unclear which pipeline is meant.
    """
    if as_dali:
        from penstock import compat

        compat.install()
    module = import_file(path)
    factories = {id(v): v for v in vars(module).values() if is_definition(v)}
    marked = [factory for factory in factories.values() if is_autoserialize(factory)]
    chosen = marked or list(factories.values())
    if len(chosen) != 1:
        raise SerializationError(
            f"'{path}' must mark exactly one pipeline with @autoserialize (from penstock.plugin.triton); "
            f"it has {len(factories)} pipelines, {len(marked)} of them marked"
        )
    return chosen[0]
