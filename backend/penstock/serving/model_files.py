"""The file of a model version, and the pipeline in it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import SerializationError
from penstock.pipeline import Pipeline
from penstock.serving.model_imports import import_file

CANDIDATES = ("model.dali", "model.json", "pipeline.py", "dali.py")


def find_model_file(version_folder: Path, named: str = "") -> Path:
    """The file that holds a model version's pipeline.

    Args:
        version_folder: e.g. ``model_repository/preprocess/1``.
        named: ``default_model_filename`` of the model's configuration, or empty.

    Raises:
        FileNotFoundError: there is none; the message says where it was looked for.
    """
    if named and named != "model.py":
        path = version_folder / named
        if path.is_file():
            return path
        raise FileNotFoundError(f"'{path}', which the configuration names as default_model_filename, does not exist")
    for candidate in CANDIDATES:
        if (version_folder / candidate).is_file():
            return version_folder / candidate
    raise FileNotFoundError(f"'{version_folder}' holds no pipeline: put one of {', '.join(CANDIDATES)} there")


def load_pipeline(path: Path, allowed_modules: Sequence[str] = (), device: str = "cpu", **settings: Any) -> Pipeline:
    """The pipeline of a file, not built yet.

    Args:
        path: a Python file with a pipeline marked ``@autoserialize``, or a pipeline saved in either format.
        allowed_modules: modules from which Python operators may be loaded.
        device: where it will run; handed to Python definitions that take a ``device``.
        settings: of the pipeline; those that are not None override what the file says.

    Raises:
        SerializationError: the file holds no pipeline, or one that does not make sense.
    """
    settings = {key: value for key, value in settings.items() if value is not None}
    if path.suffix == ".py":
        factory = find_definition(path)
        if "device" in inspect.signature(factory).parameters:
            settings["device"] = device
        return factory(**settings)
    data = path.read_bytes()
    if data.lstrip()[:1] == b"{":
        return Pipeline.load(str(path), allowed_modules=allowed_modules, **settings)
    from penstock.serialize.dali_format import from_wire

    return from_wire(data, Pipeline, settings)


def find_definition(path: Path) -> Any:
    """The pipeline factory that a Python file marks with ``@autoserialize``, or the only one that it has.

    Raises:
        SerializationError: the file raises, or does not tell which pipeline is meant.
    """
    module = import_file(path)
    factories = {id(v): v for v in vars(module).values() if getattr(v, "_is_pipeline_def", False)}
    marked = [factory for factory in factories.values() if getattr(factory, "_is_autoserialize", False)]
    chosen = marked or list(factories.values())
    if len(chosen) != 1:
        raise SerializationError(
            f"'{path}' must mark exactly one pipeline with @autoserialize (from penstock.plugin.triton); "
            f"it has {len(factories)} pipelines, {len(marked)} of them marked"
        )
    return chosen[0]
