"""The whole system: sends encoded digits to Triton over HTTP and gRPC, and checks the predictions.

    python client_examples/demo.py

Starts Triton with this project's model repository, sends the held-out digits as PNG and JPEG in several sizes, shows a
few predictions, the accuracy, latency and throughput over each protocol, and stops the server.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import local
from types import ModuleType

import numpy as np
import tritonclient.grpc
import tritonclient.http
from rich.console import Console
from rich.table import Table

from penstock.errors import PenstockError
from penstock.serving.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "training"))

from digits_data import Look, encode, load_split  # noqa: E402  (lies beside the training script)

MODEL = "digits"
LOOKS = [Look(side, kind, colour=kind == "JPEG") for side in (16, 28, 64, 100, 224) for kind in ("PNG", "JPEG")]
CLIENTS = 8
WARM_UP = 20


@dataclass(frozen=True)
class Sent:
    """One image that is sent: its file, how it looks, and the digit that it shows."""

    content: bytes
    look: Look
    label: int


@dataclass(frozen=True)
class Outcome:
    """What came of sending all images over one protocol.

    Attributes:
        labels: predicted, one for each image.
        scores: of the predicted labels.
        latencies: seconds for each request, sent one after the other.
        throughput: requests a second with several clients at once.
    """

    labels: np.ndarray
    scores: np.ndarray
    latencies: np.ndarray
    throughput: float

    def accuracy(self, images: list[Sent]) -> float:
        """The part of the images whose digit was recognized."""
        return float(np.mean(self.labels == [image.label for image in images]))


def held_out_images() -> list[Sent]:
    """The digits that the network was not trained on, encoded in all looks by turns."""
    split = load_split()
    return [
        Sent(encode(digit, look), look, int(label))
        for digit, label, look in zip(split.held_out_digits, split.held_out_labels, cycle(LOOKS))
    ]


def send_all(protocol: ModuleType, url: str, images: list[Sent]) -> Outcome:
    """Sends each image as one request: first one after the other, then from several clients at once."""
    client = protocol.InferenceServerClient(url)
    for image in images[:WARM_UP]:
        ask(protocol, client, image)
    answers, latencies = [], []
    for image in images:
        start = time.perf_counter()
        answers.append(ask(protocol, client, image))
        latencies.append(time.perf_counter() - start)
    client.close()
    labels, scores = (np.array(column) for column in zip(*answers))
    return Outcome(labels, scores, np.array(latencies), throughput(protocol, url, images))


def ask(protocol: ModuleType, client: object, image: Sent) -> tuple[int, float]:
    """One request: the label and its score."""
    tensor = protocol.InferInput("encoded_image", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[image.content]], dtype=np.object_))
    result = client.infer(MODEL, [tensor])  # type: ignore[attr-defined]
    label = int(result.as_numpy("label")[0, 0])
    return label, float(result.as_numpy("scores")[0, label])


def throughput(protocol: ModuleType, url: str, images: list[Sent]) -> float:
    """Requests a second, with a client in each of several threads."""
    mine = local()

    def connect() -> None:
        mine.client = protocol.InferenceServerClient(url)

    with ThreadPoolExecutor(CLIENTS, initializer=connect) as pool:
        list(pool.map(lambda image: ask(protocol, mine.client, image), images[:WARM_UP]))
        start = time.perf_counter()
        list(pool.map(lambda image: ask(protocol, mine.client, image), images))
        return len(images) / (time.perf_counter() - start)


def show(console: Console, images: list[Sent], outcomes: dict[str, Outcome]) -> None:
    """Two tables: a few predictions, and how each protocol did."""
    predictions = Table(title="A few predictions")
    for heading in ("image", "bytes", "digit", *(f"over {name}" for name in outcomes)):
        predictions.add_column(heading, justify="left" if heading == "image" else "right")
    for index in range(len(LOOKS)):
        image = images[index]
        look = f"{image.look.encoding} {image.look.side}x{image.look.side} {'colour' if image.look.colour else 'grey'}"
        answers = [
            f"[{'green' if outcome.labels[index] == image.label else 'red'}]{outcome.labels[index]}[/] "
            f"({outcome.scores[index]:.2f})"
            for outcome in outcomes.values()
        ]
        predictions.add_row(look, str(len(image.content)), str(image.label), *answers)
    console.print(predictions)

    protocols = Table(title=f"{len(images)} images over each protocol")
    for heading in ("protocol", "accuracy", "p50", "p99", f"throughput, {CLIENTS} clients"):
        protocols.add_column(heading, justify="left" if heading == "protocol" else "right")
    for name, outcome in outcomes.items():
        p50, p99 = np.percentile(outcome.latencies, [50, 99]) * 1000
        protocols.add_row(
            name,
            f"{outcome.accuracy(images):.3f}",
            f"{p50:.1f} ms",
            f"{p99:.1f} ms",
            f"{outcome.throughput:.0f} images/s",
        )
    console.print(protocols)


def devices(url: str) -> str:
    """On what the pre-processing runs, as the server's configuration tells."""
    client = tritonclient.http.InferenceServerClient(url)
    groups = client.get_model_config("digits_preprocess")["instance_group"]
    client.close()
    return ", ".join(f"{group['count']} on {group['kind'].removeprefix('KIND_')}" for group in groups)


def main() -> None:
    """The demonstration; its last line is for those who only read that."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=ROOT / "model_repository", help="folder of models")
    parser.add_argument("--python-env", type=Path, help="serving environment (default: found as by `penstock serve`)")
    options = parser.parse_args()
    console = Console(highlight=False)
    images = held_out_images()
    protocols: dict[str, tuple[ModuleType, Callable[[LocalServer], str]]] = {
        "http": (tritonclient.http, lambda server: server.http_url),
        "grpc": (tritonclient.grpc, lambda server: server.grpc_url),
    }
    console.print("starting Triton (the first time, kernels are compiled) ...")
    with LocalServer(options.repository, environment=options.python_env) as server:
        models = ", ".join(model.name for model in server.models())
        console.print(f"Triton serves {models}")
        console.print(f"at http://{server.http_url} and grpc {server.grpc_url}")
        console.print(f"instances of digits_preprocess: {devices(server.http_url)}\n")
        outcomes = {name: send_all(module, url(server), images) for name, (module, url) in protocols.items()}
        show(console, images, outcomes)
    console.print("the server is stopped")
    accuracies = ", ".join(f"{name} accuracy {outcome.accuracy(images):.3f}" for name, outcome in outcomes.items())
    print(f"demo: {accuracies} over {len(images)} images")


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        sys.exit(f"demo: {error}")
