"""Permissions of models: the server's operator grants them, and a model's folder can only restrict them.

Authors of model folders with saved pipelines (``model.json``, ``model.dali``) are not trusted, and neither are clients that load models.
A Python file is code that the operator has put into the repository, so it is trusted.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.serialize.readable_format import is_within
from penstock.serving.config_text import parameter_values, values
from penstock.serving.control import ServerError
from penstock.serving.fetching import allows
from penstock.serving.isolation import stub_backend
from penstock.serving.settings import ConfigurationError, ModelConfig, Settings, server_settings, settings_of
from penstock.storage import Files, is_remote
from penstock.storage.paths import without_file_protocol

if TYPE_CHECKING:
    from penstock.pipeline import Pipeline

REPOSITORIES = "PENSTOCK_REPOSITORIES"
"""The environment variable with the folders of the server's repositories, as JSON; models may be loaded only from these folders. It is
set if clients may load models, but not upload their files."""

MAX_INSTANCES = 1024
"""The largest number of instances of a model on a server. Each instance has a pipeline and, with isolation, a process."""

NO_UPLOADS = (
    "Invalid argument: the model's files were uploaded by a client, and they would run here as code. `penstock serve "
    "--allow-model-upload` permits that; otherwise load models from the server's repositories"
)


def check_trust(config: ModelConfig, version_folder: Path, original: Path, settings: Settings) -> None:
    """Raise ConfigurationError if a model requires more permissions than the server's operator has granted.

    Args:
        config: the model's configuration from Triton. It may differ from that in the model's folder, if a client loaded the model
            with another one.
        version_folder: the path of the version's folder that Triton passes.
        original: the path of the version's folder in the repository, which differs if ``version_folder`` is in a mirror.
        settings: the model's settings.
    """
    if is_uploaded(version_folder):
        raise ConfigurationError(NO_UPLOADS.removeprefix("Invalid argument: "))
    server = server_settings()
    model_folder = original.parent
    _check_grant("allowed_modules", _wider_modules(settings, server), model_folder, server)
    _check_grant("allowed_paths", _wider_paths(settings, server, original), model_folder, server)
    wider_models = {name: name for name in settings.allowed_models if name not in server.allowed_models}
    _check_grant("allowed_models", wider_models, model_folder, server)
    wider_hosts = {host: host for host in settings.allowed_hosts if not allows(server.allowed_hosts, host)}
    _check_grant("allowed_hosts", wider_hosts, model_folder, server)
    _check_instances(config)
    _check_warmup_files(config, model_folder)


def check_called_models(pipeline: Pipeline, name: str, settings: Settings) -> None:
    """Raise ConfigurationError if a pipeline calls a model of the server that it may not call.

    Args:
        pipeline: the model's pipeline.
        name: the model's name.
        settings: the model's settings.
    """
    for op in pipeline.graph.operators:
        if op.schema.name != "TritonModel":
            continue
        called = op.arguments["model"]
        if called == name:
            raise ConfigurationError(f"the pipeline calls its own model '{name}', which would wait for itself")
        if pipeline.settings.files.confined and called not in settings.allowed_models:
            raise ConfigurationError(
                f"the pipeline calls the model '{called}', and saved pipelines may call only models that the server grants: "
                f"`penstock serve --allow-model {called}`"
            )


def check_native_code(repositories: Iterable[Path], backends: Collection[str], model: str | None = None) -> None:
    """Raise ServerError if a model's folder has a library that Triton would load instead of the backend's.

    Args:
        repositories: the folders of models.
        backends: the names of our backend in configurations.
        model: the name of the model to check; by default all models.
    """
    names = {f"libtriton_{name}.so" for backend in backends for name in (backend, stub_backend(backend))}
    for repository in repositories:
        folders = [repository / model] if model else sorted(repository.iterdir()) if repository.is_dir() else []
        for path in itertools.chain.from_iterable(map(_libraries_and_configurations, folders)):
            if path.name in names or (path.suffix == ".pbtxt" and any(values(_text_of(path), "runtime"))):
                raise ServerError(
                    f"'{path}' makes Triton run a library from the model's folder as its backend: remove the library, or `runtime` from the "
                    "configuration. `penstock serve --trust-repository` permits it"
                )


def _libraries_and_configurations(model_folder: Path) -> Iterator[Path]:
    yield from (*model_folder.glob("libtriton_*.so"), *model_folder.glob("*/libtriton_*.so"))
    yield from _configurations(model_folder)


def is_uploaded(version_folder: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a client has sent the files of a model, although the server only loads models from its repositories."""
    text = environment.get(REPOSITORIES)
    folder = os.path.abspath(version_folder)
    return text is not None and not any(folder.startswith(f"{repository}/") for repository in json.loads(text))


def check_repositories(repositories: Iterable[Path]) -> None:
    """Raise ServerError for a repository whose models cannot be distinguished from models that clients upload."""
    for repository in repositories:
        if ":/" in str(repository):
            raise ServerError(
                f"Triton copies the models of '{repository}' to temporary folders, like those that clients upload, so uploads cannot be "
                "refused: leave out --model-control-mode=explicit, or accept uploads with --allow-model-upload"
            )


def repositories_variable(repositories: Iterable[Path]) -> dict[str, str]:
    """Return the environment variable for :func:`is_uploaded`."""
    return {REPOSITORIES: json.dumps([os.path.abspath(repository) for repository in repositories])}


# -- grants --------------------------------------------------------------------------------------------------------------


def _wider_modules(settings: Settings, server: Settings) -> dict[str, str]:
    """Return the modules that a model names and the server does not grant, each with the value of the option that would grant it."""
    return {name: name for name in settings.allowed_modules if not is_within(name, server.allowed_modules)}


def _wider_paths(settings: Settings, server: Settings, original: Path) -> dict[str, str]:
    """Return the paths that a model names outside its folder and that the server does not grant, like :func:`_wider_modules`."""
    granted = Files([str(original.parent), *absolute_paths(server.allowed_paths, original)])
    named = dict(zip(settings.allowed_paths, absolute_paths(settings.allowed_paths, original)))
    return {
        path: absolute if is_remote(absolute) else os.path.normpath(absolute)
        for path, absolute in named.items()
        if not granted.includes(absolute)
    }


def absolute_paths(paths: Iterable[str], version_folder: Path) -> list[str]:
    """Return the values of ``allowed_paths`` as absolute paths; relative ones start from the version's folder."""
    named = map(without_file_protocol, paths)
    return [path if is_remote(path) else os.path.join(version_folder, path) for path in named]


def _check_grant(name: str, wider: Mapping[str, str], model_folder: Path, server: Settings) -> None:
    """Raise ConfigurationError if a parameter requests more than the server grants, unless repositories are trusted and the
    model's configuration file contains the request.
    """
    written = _written_values(model_folder, name) if server.trust_repository else set[str]()
    refused = {requested: value for requested, value in wider.items() if requested not in written}
    if not refused:
        return
    granted = ", ".join(getattr(server, name)) or "nothing"
    option = f"--{name.removesuffix('s').replace('allowed_', 'allow-')}"
    raise ConfigurationError(
        f"the parameter '{name}' asks for {', '.join(map(repr, refused))}, and the server grants {granted}: a model can only name "
        f"less. Start the server with `penstock serve {option} {next(iter(refused.values()))}`, or with --trust-repository if you "
        "trust every config.pbtxt in its repositories"
    )


def _written_values(model_folder: Path, name: str) -> set[str]:
    """Return the values of a parameter in the model's configuration files, without those that a client has sent."""
    texts = map(_text_of, _configurations(model_folder))
    return {item.strip() for text in texts for value in parameter_values(text, name) for item in value.split(",")}


def _configurations(model_folder: Path) -> list[Path]:
    return [*model_folder.glob("config.pbtxt"), *sorted(model_folder.glob("configs/*.pbtxt"))]


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


# -- the rest of a configuration -----------------------------------------------------------------------------------------


def check_response_cache(config: ModelConfig) -> None:
    """Raise ConfigurationError if a model in Triton's Python stub requests the response cache.

    For models that Triton hosts, failed requests are kept out of the cache (``native/request.cc``).
    """
    if (config.get("response_cache") or {}).get("enable") and not server_settings().unsafe_response_cache:
        raise ConfigurationError(
            "response_cache: from Triton's Python stub, Triton also keeps the answers to requests that failed or were cancelled, and "
            "repeats them as successes without outputs. Remove it from the configuration, run the model without isolation, or start "
            "the server with `penstock serve --unsafe-response-cache`"
        )


def check_response_parameters(config: ModelConfig) -> None:
    """Raise ConfigurationError if a model in Triton's Python stub requests parameters of responses, which the stub cannot send."""
    if settings_of(config).response_parameters:
        raise ConfigurationError(
            "response_parameters: models in Triton's Python stub send none. Run the model without isolation, in Triton's own process"
        )


def _check_instances(config: ModelConfig) -> None:
    groups = config.get("instance_group") or ()
    count = sum(int(group.get("count") or 1) * max(1, len(group.get("gpus") or ())) for group in groups)
    if count > MAX_INSTANCES:
        raise ConfigurationError(
            f"instance_group asks for {count} instances of the model: at most {MAX_INSTANCES} are supported"
        )


def _check_warmup_files(config: ModelConfig, model_folder: Path) -> None:
    """Raise ConfigurationError if a warm-up request would read a file outside of the model's folder."""
    for warmup in config.get("model_warmup") or ():
        for name, data in (warmup.get("inputs") or {}).items():
            data_file = data.get("input_data_file") or ""
            if not (model_folder / "warmup" / data_file).resolve().is_relative_to(model_folder.resolve()):
                raise ConfigurationError(
                    f"model_warmup reads the input '{name}' from '{data_file}', which is outside of the model's folder"
                )
