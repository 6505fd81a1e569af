"""After a server's death, the models that it had loaded are known from its earlier answers; without Triton."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.serving.control import ModelState
from penstock.serving.loaded_models import LoadedModels
from penstock.serving.model_records import ModelRecords
from penstock.serving.stubs import Stub


class Answers:
    """The recorded answers of a server with one model from a repository, and one whose files a client sent."""

    clients_load = True

    def __init__(self, repository: Path, sent: Path) -> None:
        self.repositories = [repository]
        records = sent.parent / f"{sent.name}-records"
        records.mkdir()
        self.model_records = ModelRecords(records)
        self.model_records.write("resize", repository / "resize")
        self.model_records.write("sent", sent)
        self.known: dict[str, dict[str, Any] | None] = {"resize": {"name": "resize", "max_batch_size": 4}, "sent": None}

    @property
    def control(self) -> Any:
        return self

    def models(self) -> list[ModelState]:
        return [ModelState("resize", "1", "READY", ""), ModelState("broken", "1", "UNAVAILABLE", "no file")]

    def loaded(self) -> list[str]:
        return ["resize", "sent"]

    def configuration(self, model: str) -> dict[str, Any] | None:
        return self.known[model]

    def stubs(self) -> list[Stub]:
        return []


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    # The folder in which Triton stores the files that clients send.
    with tempfile.TemporaryDirectory(prefix="folder", dir="/tmp", ignore_cleanup_errors=True) as sent:
        (Path(sent) / "1").mkdir()
        (Path(sent) / "1" / "pipeline.py").write_text("its code")
        made = Answers(tmp_path, Path(sent))
        made.known["sent"] = {"name": "sent"}
        yield made
        for record in Path(f"{sent}-records").iterdir():
            record.unlink()
        Path(f"{sent}-records").rmdir()


def test_models_of_the_repository_and_of_clients_come_back_as_they_were(answers: Answers) -> None:
    models = LoadedModels(answers)
    models.refresh()
    assert models.names == ["resize", "sent"]
    restoration = models.restoration()
    assert restoration.listed == ["resize"]
    assert restoration.configurations == {"resize": {"name": "resize", "max_batch_size": 4}}
    assert restoration.sent == {
        "sent": {"config": json.dumps({"name": "sent"}), "file:1/pipeline.py": base64.b64encode(b"its code").decode()}
    }
    assert restoration.lost == []


def test_a_configuration_that_cannot_be_read_again_stays_as_it_was(answers: Answers) -> None:
    models = LoadedModels(answers)
    models.refresh()
    answers.known["resize"] = None
    models.refresh()
    assert models.restoration().configurations == {"resize": {"name": "resize", "max_batch_size": 4}}


def test_files_of_clients_go_with_the_server(answers: Answers) -> None:
    models = LoadedModels(answers)
    models.refresh()
    (sent,) = (folder for name, folder in answers.model_records.folders().items() if name == "sent")
    assert sent.is_dir()
    models.remove_sent_files()
    assert not sent.exists()
    # A model whose files can no longer be read cannot be restored.
    assert models.restoration().lost == ["sent"]
