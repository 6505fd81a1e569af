"""Exports a pipeline to a model folder of a Triton repository."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from penstock.errors import PenstockError
from penstock.graph import OpNode
from penstock.presets import preset, read_configuration
from penstock.serving.completion import ModelConfiguration, TensorConfiguration, expected_configuration
from penstock.serving.entries import BYTES
from penstock.serving.installation import BACKEND
from penstock.serving.model_files import CANDIDATES, ModelFolder, find_definition, load_pipeline

FILES = {"json": "model.json", "dali": "model.dali", "python": "pipeline.py"}
"""The file names under which the backend finds each form of a pipeline."""
_PRESET_BATCH_SIZE = 32
# The heights and widths of the images with which presets are tried: small and large, wide and high.
_TRIAL_IMAGE_SIZES = ((224, 224), (300, 900), (900, 280), (1100, 1500), (64, 50))


class ExportError(PenstockError):
    """Raised if a pipeline cannot be exported as a model."""


def export_model(
    source: str | Path,
    model: str | Path,
    *,
    form: str | None = None,
    device: str = "cpu",
    batch_size: int | None = None,
    version: int = 1,
    as_bytes: bool = True,
) -> list[Path]:
    """Write a model folder: the pipeline in a version folder, and the model's configuration.

    Args:
        source: a Python file with a pipeline definition, or a pipeline saved in either format.
        model: the folder to write, e.g. ``model_repository/preprocess``; its name is the name of the model.
        form: ``json``, ``dali`` or ``python`` (a copy of the source). By default, a definition with an argument
            ``device`` is copied, so that the server decides about the device, and anything else is saved as json.
        device: the device for which such a definition is saved if it is not copied.
        batch_size: the model's largest batch size; by default the pipeline's.
        version: the model's version.
        as_bytes: whether inputs for encoded data, that is, 1-D UINT8 of any length, are declared as BYTES, so that a request can
            contain several files of different lengths.

    Returns:
        The paths of the files written.

    Raises:
        ExportError: the form does not fit the source, or the pipeline has no batch size.
        SerializationError: the source contains no pipeline, or one that cannot be saved.

    Example:
        >>> export_model("pipelines/imagenet_preprocess.py", "model_repository/imagenet_preprocess")
    """
    source = Path(source)
    return _write_model(source, Path(model), form or _suitable_form(source), device, batch_size, version, as_bytes)


def _write_model(
    source: Path,
    model: Path,
    form: str,
    device: str,
    batch_size: int | None,
    version: int,
    as_bytes: bool,
    split: tuple[str, ...] = (),
    dims: Mapping[str, tuple[int, ...]] | None = None,
) -> list[Path]:
    """Write a model folder; see :func:`export_model`.

    Args:
        split: the names of outputs whose samples are split along their first dimension, so that a request gets one tensor with the
            parts of all its samples.
        dims: the dimensions of the samples of outputs, if more is known about them than a trial run shows.
    """
    if form == "python" and source.suffix != ".py":
        raise ExportError(f"'{source}' is not Python source, so it cannot be exported as one")
    saved, size, networks = _saved(source, form, device, batch_size)
    # A second pipeline for the trial run, because the number of threads used here must not be saved.
    pipeline = load_pipeline(source, device=device, batch_size=size, num_threads=1, prefetch_queue_depth=1)
    try:
        configuration = _with_dims(expected_configuration(pipeline, size, split), dims or {})
    finally:
        pipeline.close()
    folder = model / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    for other in CANDIDATES:
        # A pipeline file in another form would be loaded instead of the new one, or remain beside it.
        if other != FILES[form]:
            (folder / other).unlink(missing_ok=True)
    path = folder / FILES[form]
    copies = [folder / name for name in networks]
    for network, copy in zip(networks.values(), copies):
        if network.resolve() != copy.resolve():
            shutil.copyfile(network, copy)
    if saved is not None:
        path.write_bytes(saved)
    elif source.resolve() != path.resolve():
        shutil.copyfile(source, path)
    config = model / "config.pbtxt"
    config.write_text(configuration_text(_with_bytes(configuration) if as_bytes else configuration))
    return [path, *copies, config]


def export_preset(
    configuration: str | Path,
    model: str | Path,
    *,
    form: str | None = None,
    device: str = "cpu",
    batch_size: int | None = None,
    version: int = 1,
    as_bytes: bool = True,
    drop_alpha: bool = False,
) -> list[Path]:
    """Write a model folder from a model's `preprocessor_config.json`. For other arguments and the result, see
    :func:`export_model`.

    Args:
        drop_alpha: see :func:`penstock.presets.preset`.

    Raises:
        PresetError: no preset supports the configuration.
    """
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / FILES["json"]
        size = batch_size or _PRESET_BATCH_SIZE
        preset(configuration, batch_size=size, device=device, drop_alpha=drop_alpha).save(str(saved))
        family = read_configuration(configuration)
        dims = _preset_dims(configuration) if family.kind == "images" else {}
        return _write_model(
            saved, Path(model), form or "json", device, batch_size, version, as_bytes, family.concatenated, dims
        )


def _preset_dims(configuration: str | Path) -> dict[str, tuple[int, ...]]:
    """Return the extents of a preset's outputs; -1: they differ between images."""
    pipeline = preset(configuration, batch_size=1, encoded=False)
    try:
        results = [pipeline.run(images=[np.zeros((*size, 3), np.uint8)]) for size in _TRIAL_IMAGE_SIZES]
        shapes = [[batch.shapes[0] for batch in result] for result in results]
    finally:
        pipeline.close()
    names = [node.name for node in pipeline.graph.outputs]
    return {
        name: tuple(extents[0] if len(set(extents)) == 1 else -1 for extents in zip(*seen))
        for name, seen in zip(names, zip(*shapes))
    }


def _with_dims(configuration: ModelConfiguration, dims: Mapping[str, tuple[int, ...]]) -> ModelConfiguration:
    """Return the configuration with these extents of outputs."""

    def known(tensor: TensorConfiguration) -> TensorConfiguration:
        sample_dims = dims.get(tensor.name, ())[tensor.name in configuration.split :]
        return replace(tensor, dims=sample_dims) if sample_dims else tensor

    return replace(configuration, outputs=tuple(map(known, configuration.outputs)))


def model_file(path: str | Path) -> Path:
    """Return the path of a pipeline's file; ``path`` is this file, a version folder, or a model folder, of which the latest
    version is used.

    Raises:
        FileNotFoundError: the folder contains no pipeline.
    """
    path = Path(path)
    if path.is_file():
        return path
    versions = [folder for folder in path.iterdir() if folder.is_dir() and folder.name.isdigit()]
    return ModelFolder(max(versions, key=lambda folder: int(folder.name)) if versions else path).files()[0]


def configuration_text(configuration: ModelConfiguration) -> str:
    """Return a configuration as the text of a ``config.pbtxt``.

    >>> print(configuration_text(ModelConfiguration(8, (), ())))
    backend: "penstock"
    max_batch_size: 8
    dynamic_batching { }
    <BLANKLINE>
    """
    lines = [f'backend: "{BACKEND}"', f"max_batch_size: {configuration.max_batch_size}"]
    for kind, tensors in (("input", configuration.inputs), ("output", configuration.outputs)):
        lines += [f"{kind} [ {_tensor_text(tensor)} ]" for tensor in tensors]
    if configuration.split:
        value = f'{{ string_value: "{":".join(configuration.split)}" }}'
        lines.append(f'parameters [ {{ key: "split_along_outer_axis" value: {value} }} ]')
    return "\n".join([*lines, "dynamic_batching { }"]) + "\n"


def _tensor_text(tensor: TensorConfiguration) -> str:
    ragged = " allow_ragged_batch: true" if tensor.ragged else ""
    return f'{{ name: "{tensor.name}" data_type: {tensor.data_type} dims: {list(tensor.dims)}{ragged} }}'


def _suitable_form(source: Path) -> str:
    if source.suffix == ".py" and "device" in inspect.signature(find_definition(source)).parameters:
        return "python"
    return "json"


def _saved(
    source: Path, form: str, device: str, batch_size: int | None
) -> tuple[bytes | None, int, Mapping[str, Path]]:
    """Return the content of the model's file (None: the source is copied), the model's batch size, and the paths of the
    networks that the pipeline runs, by their names in the model's folder.
    """
    pipeline = load_pipeline(source, device=device, batch_size=batch_size)
    try:
        size = pipeline.max_batch_size
        if not size:
            raise ExportError(f"'{source}' does not set its batch size: set one with --batch-size")
        networks = _move_networks(pipeline.graph.operators, source.parent)
        if form == "json":
            from penstock.serialize.readable_format import to_text

            return to_text(pipeline.graph, pipeline.settings).encode(), size, networks
        return (pipeline.serialize() if form == "dali" else None), size, networks
    finally:
        pipeline.close()


def _move_networks(operators: Sequence[OpNode], origin: Path) -> dict[str, Path]:
    """Change the paths of operators' networks to names in the model's folder; return the current paths by these names.

    Args:
        operators: a pipeline's operators.
        origin: the folder of the pipeline's file; relative paths in a saved pipeline start from it.
    """
    networks: dict[str, Path] = {}
    for op in operators:
        if op.schema.name == "Model":
            path = Path(op.arguments["path"])
            path = origin / path if not path.is_file() else path
            if networks.setdefault(path.name, path) != path:
                raise ExportError(
                    f"'{networks[path.name]}' and '{path}' cannot both be '{path.name}' in the model's folder"
                )
            op.arguments["path"] = path.name
    return networks


def _with_bytes(configuration: ModelConfiguration) -> ModelConfiguration:
    def changed(tensor: TensorConfiguration) -> TensorConfiguration:
        encoded = tensor.data_type == "TYPE_UINT8" and tensor.dims == (-1,)
        return replace(tensor, data_type=BYTES, dims=(1,), ragged=False) if encoded else tensor

    return replace(configuration, inputs=tuple(changed(tensor) for tensor in configuration.inputs))
