"""Observes which models a server has loaded, whoever requested it, so that a new server can load the same models."""

from __future__ import annotations

import base64
import json
import shutil
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.serving.control import Configuration, Control
from penstock.serving.model_records import ModelRecords
from penstock.serving.stubs import Stub

_CONFIGURATIONS_PER_REFRESH = 5
"""The largest number of configurations that each refresh requests again, to limit the work for a server with many models."""

Parameters = dict[str, str]


class Loading(Protocol):
    """The attributes of a server that the observation of its models needs."""

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def clients_load(self) -> bool:
        """Whether clients may load models, with uploaded files and configurations."""

    @property
    def repositories(self) -> list[Path]:
        """The folders of the server's repositories."""

    @property
    def model_records(self) -> ModelRecords:
        """The records of the models in the server's process."""

    def stubs(self) -> list[Stub]:
        """Return the server's living processes that run models."""


@dataclass(frozen=True)
class Restoration:
    """How to load the same models into a new server.

    Attributes:
        listed: the models to load from the repositories.
        configurations: the configurations of those of these models whose configurations clients may have changed.
        sent: the parameters with which to load models whose files clients sent.
        lost: the models that cannot be loaded, as their files are gone.
    """

    listed: list[str]
    configurations: dict[str, Configuration]
    sent: dict[str, Parameters]
    lost: list[str]


class LoadedModels:
    """Observes which models are loaded, and with which configurations.

    Args:
        server: the server to observe, which has only loaded the models it was started with.

    Attributes:
        names: the names of the models that should currently be loaded.
    """

    def __init__(self, server: Loading) -> None:
        self.names: list[str] = []
        self._server = server
        self._current: dict[str, Configuration] = {}
        self._unlisted: set[str] = set()
        self._uploaded: dict[str, Path] = {}
        # The parameters of models that a restarted server has not loaded yet, by name.
        self._restoring: dict[str, Parameters] = {}
        self._to_check: deque[str] = deque()

    def refresh(self, under_repair: Collection[str] = ()) -> None:
        """Request the names of the loaded models from the server, and update the records.

        Args:
            under_repair: models that count as loaded while they are being repaired.

        Raises:
            ServerError: the server does not answer.
        """
        listed = self._server.control.models()
        loaded = {model.name for model in listed if model.ready}
        if self._server.clients_load:
            loaded |= set(self._server.control.loaded())
            self._unlisted = loaded - {model.name for model in listed}
            self._observe_configurations(loaded)
            self._observe_folders()
        self._restoring = {name: files for name, files in self._restoring.items() if name not in loaded}
        self.names = sorted(loaded | set(under_repair) | self._restoring.keys())

    def _observe_configurations(self, loaded: set[str]) -> None:
        new = [name for name in loaded if name not in self._current]
        self._to_check = deque(name for name in self._to_check if name in loaded) or deque(sorted(loaded))
        again = [self._to_check.popleft() for _ in range(min(len(self._to_check), _CONFIGURATIONS_PER_REFRESH))]
        for name in dict.fromkeys([*new, *again]):
            configuration = self._server.control.configuration(name)
            if configuration is not None:
                self._current[name] = configuration

    def _observe_folders(self) -> None:
        """Find the folders of models whose files clients sent, which are not in a repository."""
        groups = {
            group["name"]: name
            for name, configuration in self._current.items()
            for group in configuration.get("instance_group", ())
        }
        folders = self._server.model_records.folders()
        folders |= {groups[stub.group]: stub.model_folder for stub in self._server.stubs() if stub.group in groups}
        repositories = self._server.repositories
        self._uploaded = {
            name: folder
            for name, folder in folders.items()
            if name in self._current and not any(folder.is_relative_to(repository) for repository in repositories)
        }

    def remove_sent_files(self) -> None:
        """Remove the files that clients sent to the server; call this after the server has died."""
        for folder in self._uploaded.values():
            remove_sent_files(folder)

    def restoration(self) -> Restoration:
        """After the server has died, return how to load the same models into a new one; remove the files that clients sent."""
        if not self._server.clients_load:
            return Restoration(self.names, {}, {}, [])
        restoration = Restoration([], {}, {}, [])
        for name in self.names:
            folder = self._uploaded.get(name)
            if name in self._restoring:
                restoration.sent[name] = self._restoring[name]
            elif folder is not None or name in self._unlisted:
                try:
                    restoration.sent[name] = client_parameters(self._current.get(name), _existing(folder))
                except OSError:
                    restoration.lost.append(name)
            else:
                restoration.listed.append(name)
                if name in self._current:
                    restoration.configurations[name] = self._current[name]
        self.remove_sent_files()
        self._restoring = restoration.sent
        return restoration


def client_parameters(configuration: Configuration | None, folder: Path | None) -> Parameters:
    """Return the parameters with which a client may have loaded a model.

    Args:
        configuration: the model's configuration; None: the one in the repository.
        folder: the folder of the files that the client sent, if any.
    """
    parameters = {} if configuration is None else {"config": json.dumps(configuration)}
    if folder is None:
        return parameters
    for path in folder.rglob("*"):
        # `config.pbtxt` is left out: Triton writes the configuration of these models to this folder, too.
        if path.is_file() and "__pycache__" not in path.parts and path != folder / "config.pbtxt":
            parameters[f"file:{path.relative_to(folder)}"] = base64.b64encode(path.read_bytes()).decode()
    return parameters


def _existing(folder: Path | None) -> Path:
    """Return the folder; raise FileNotFoundError if there is none."""
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(folder)
    return folder


# Triton stores files that clients send in this folder, whatever TMPDIR is, and does not remove them if it is killed.
_UPLOADED_FILES_FOLDER = Path("/tmp")
_UPLOADED_FILES_PREFIX = "folder"


def remove_sent_files(folder: Path) -> None:
    """Remove a folder of files that a client sent to a server, after the server has died."""
    if folder.parent == _UPLOADED_FILES_FOLDER and folder.name.startswith(_UPLOADED_FILES_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
