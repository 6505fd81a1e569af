"""The whole system: sends digits and photographs to Triton over HTTP and gRPC, and checks the answers.

    python client_examples/demo.py

Adds the example `imagenet` to this project's model repository, unless it is there, and starts Triton. Sends the held-out digits as
PNG and JPEG in several sizes, and photographs, shows the answers, the accuracy, latency and throughput over each protocol, writes
them to a page (build/demo.html), and stops the server.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import local
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np
import tritonclient.grpc
import tritonclient.http
from rich.console import Console
from rich.table import Table

from demo_page import Answer, Picture, Section, page
from penstock.errors import PenstockError
from penstock.examples import load_example
from penstock.serving.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "training"))

from digits_data import Look, encode, load_split  # noqa: E402  (lies beside the training script)

PHOTOGRAPHS = Path(__file__).resolve().parent / "photographs"
EXAMPLE = load_example("imagenet")
LOOKS = [Look(side, kind, colour=kind == "JPEG") for side in (16, 28, 64, 100, 224) for kind in ("PNG", "JPEG")]
CLIENTS = 8
WARM_UP = 20
# The photographs are sent this often for the throughput.
REPEATS = 10
BEST = 3

_Sent = TypeVar("_Sent", bound="Sent")


@dataclass(frozen=True)
class Sent:
    """One image that is sent.

    Attributes:
        content: its file.
        label: the object that it shows.
    """

    content: bytes
    label: str


@dataclass(frozen=True)
class Digit(Sent):
    """A digit in one of the looks."""

    look: Look


@dataclass(frozen=True)
class Outcome(Generic[_Sent]):
    """The outcome of sending all images over one protocol.

    Attributes:
        images: the images that were sent.
        answers: one for each image: labels and their probabilities, best first.
        latencies: seconds for each request, sent one after the other.
        throughput: requests a second with several clients at once.
    """

    images: Sequence[_Sent]
    answers: Sequence[Sequence[Answer]]
    latencies: np.ndarray
    throughput: float

    @property
    def accuracy(self) -> float:
        """Return the fraction of the images whose best answer is right."""
        return float(np.mean([answers[0].is_right for answers in self.answers]))


Ask = Callable[[ModuleType, Any, Sent], list[Answer]]


def held_out_digits() -> list[Digit]:
    """Return the digits that the network was not trained on, encoded in all looks by turns."""
    split = load_split()
    return [
        Digit(encode(digit, look), str(label), look)
        for digit, label, look in zip(split.held_out_digits, split.held_out_labels, cycle(LOOKS))
    ]


def photographs() -> list[Sent]:
    """Return the photographs, whose files are named after what they show."""
    return [Sent(path.read_bytes(), path.stem.replace("-", " ")) for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]


def add_example(repository: Path, console: Console) -> bool:
    """Add the example to the repository if it is not there, and return whether it is then."""
    if EXAMPLE.is_in(repository):
        return True
    console.print(f"adding the example {EXAMPLE.name} ...")
    try:
        EXAMPLE.add(repository, report=console.print)
    except (PenstockError, OSError) as error:
        # The digits need no network, and are shown wherever this runs.
        console.print(f"[yellow]left out: the photographs, as the example {EXAMPLE.name} cannot be added[/]: {error}")
        return False
    return True


def send_all(protocol: ModuleType, url: str, ask: Ask, images: Sequence[_Sent], repeats: int = 1) -> Outcome[_Sent]:
    """Send each image as one request: first one after the other, then all of them ``repeats`` times from several
    clients at once.
    """
    client = protocol.InferenceServerClient(url)
    for image in images[:WARM_UP]:
        ask(protocol, client, image)
    answers, latencies = [], []
    for image in images:
        start = time.perf_counter()
        answers.append(ask(protocol, client, image))
        latencies.append(time.perf_counter() - start)
    client.close()
    return Outcome(images, answers, np.array(latencies), throughput(protocol, url, ask, [*images] * repeats))


def ask_for_digit(protocol: ModuleType, client: Any, image: Sent) -> list[Answer]:
    """Send one request; return the digit and its score."""
    result = client.infer("digits", [encoded(protocol, image)])
    label = int(result.as_numpy("label")[0, 0])
    return [Answer(str(label), float(result.as_numpy("scores")[0, label]), str(label) == image.label)]


def ask_for_classes(protocol: ModuleType, client: Any, image: Sent) -> list[Answer]:
    """Send one request; return the best classes. Triton looks up their names, as the request is for classes instead of
    probabilities.
    """
    best = protocol.InferRequestedOutput("probabilities", class_count=BEST)
    result = client.infer(EXAMPLE.models[0], [encoded(protocol, image)], outputs=[best])
    answers = []
    for entry in result.as_numpy("probabilities")[0]:
        probability, _, label = entry.decode().split(":", 2)
        answers.append(Answer(label, float(probability), label.lower() == image.label))
    return answers


def encoded(protocol: ModuleType, image: Sent) -> object:
    """Return an image as the input of an ensemble."""
    tensor = protocol.InferInput("encoded_image", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[image.content]], dtype=np.object_))
    return tensor


def throughput(protocol: ModuleType, url: str, ask: Ask, images: Sequence[Sent]) -> float:
    """Return the requests per second, with a client in each of several threads."""
    mine = local()

    def connect() -> None:
        mine.client = protocol.InferenceServerClient(url)

    with ThreadPoolExecutor(CLIENTS, initializer=connect) as pool:
        list(pool.map(lambda image: ask(protocol, mine.client, image), images[:WARM_UP]))
        start = time.perf_counter()
        list(pool.map(lambda image: ask(protocol, mine.client, image), images))
        return len(images) / (time.perf_counter() - start)


def described(look: Look) -> str:
    """Return a digit's look in words."""
    return f"{look.encoding} {look.side}x{look.side} {'colour' if look.colour else 'grey'}"


def show_digits(console: Console, outcomes: dict[str, Outcome[Digit]]) -> None:
    """Print a few predictions."""
    predictions = Table(title="A few digits")
    for heading in ("image", "bytes", "digit", *(f"over {name}" for name in outcomes)):
        predictions.add_column(heading, justify="left" if heading == "image" else "right")
    first = next(iter(outcomes.values()))
    for index, image in enumerate(first.images[: len(LOOKS)]):
        answers = [coloured(outcome.answers[index][0]) for outcome in outcomes.values()]
        predictions.add_row(described(image.look), str(len(image.content)), image.label, *answers)
    console.print(predictions)


def show_photographs(console: Console, outcomes: dict[str, Outcome[Sent]]) -> None:
    """Print the best answers to each photograph."""
    predictions = Table(title="Photographs")
    for heading in ("photograph", "bytes", "best answers"):
        predictions.add_column(heading, justify="right" if heading == "bytes" else "left")
    first = next(iter(outcomes.values()))
    for image, answers in zip(first.images, first.answers):
        predictions.add_row(image.label, str(len(image.content)), ", ".join(map(coloured, answers)))
    console.print(predictions)


def coloured(answer: Answer) -> str:
    """Return an answer for the console, green if it is right."""
    return f"[{'green' if answer.is_right else 'red'}]{answer.label}[/] ({answer.probability:.2f})"


def figures(outcomes: dict[str, Outcome[Any]]) -> list[list[str]]:
    """Return each protocol's results: rows of a table, the first with headings."""
    rows = [["protocol", "accuracy", "p50", "p99", f"throughput, {CLIENTS} clients"]]
    for name, outcome in outcomes.items():
        p50, p99 = np.percentile(outcome.latencies, [50, 99]) * 1000
        rows.append(
            [name, f"{outcome.accuracy:.3f}", f"{p50:.1f} ms", f"{p99:.1f} ms", f"{outcome.throughput:.0f} images/s"]
        )
    return rows


def show_figures(console: Console, title: str, rows: list[list[str]]) -> None:
    """Print each protocol's results on the console."""
    table = Table(title=title)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "protocol" else "right")
    for row in rows[1:]:
        table.add_row(*row)
    console.print(table)


def digits_section(outcomes: dict[str, Outcome[Digit]]) -> Section:
    """Return the page's section on digits: one in each look."""
    first = next(iter(outcomes.values()))
    pictures = [
        Picture(
            f"{image.label}, {described(image.look)}", image.content, f"image/{image.look.encoding.lower()}", answers
        )
        for image, answers in list(zip(first.images, first.answers))[: len(LOOKS)]
    ]
    text = f"{len(first.images)} handwritten digits that the network was not trained on. Some of them:"
    return Section("Digits", text, pictures, figures(outcomes), 150, "1 / 1")


def photographs_section(outcomes: dict[str, Outcome[Sent]]) -> Section:
    """Return the page's section on photographs: all of them."""
    first = next(iter(outcomes.values()))
    pictures = [
        Picture(image.label, image.content, "image/jpeg", answers)
        for image, answers in zip(first.images, first.answers)
    ]
    text = (
        f"{len(first.images)} photographs and the {BEST} most probable of ImageNet's 1000 classes (MobileNetV2). "
        "Each is named after what it shows."
    )
    return Section("Photographs", text, pictures, figures(outcomes), 240, "4 / 3")


def write_page(path: Path, sections: Sequence[Section], console: Console) -> None:
    """Write the page, or print why it cannot be written."""
    text = "Encoded files were sent to Triton, which decoded and normalized them with Penstock, ran a network, and answered."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page("Penstock's demonstration", text, sections), encoding="utf-8")
    except OSError as error:
        console.print(f"[yellow]left out: the page[/]: {error}")
    else:
        console.print(f"pictures and answers are on the page {path}")


def devices(url: str) -> str:
    """Return the devices that preprocess, as the server's configuration states."""
    client = tritonclient.http.InferenceServerClient(url)
    groups = client.get_model_config("digits_preprocess")["instance_group"]
    client.close()
    return ", ".join(f"{group['count']} on {group['kind'].removeprefix('KIND_')}" for group in groups)


def main() -> None:
    """Run the demonstration; its last lines are for those who read only these."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=ROOT / "model_repository", help="folder of models")
    parser.add_argument("--page", type=Path, default=ROOT / "build" / "demo.html", help="the page to write")
    parser.add_argument("--python-env", type=Path, help="serving environment (default: found as by `penstock serve`)")
    options = parser.parse_args()
    console = Console(highlight=False)
    has_example = add_example(options.repository, console)
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
        clients = {name: (module, url(server)) for name, (module, url) in protocols.items()}
        images = held_out_digits()
        digits = {name: send_all(*client, ask_for_digit, images) for name, client in clients.items()}
        show_digits(console, digits)
        show_figures(console, f"{len(images)} digits over each protocol", figures(digits))
        sections = [digits_section(digits)]
        if has_example:
            photos = photographs()
            classes = {name: send_all(*client, ask_for_classes, photos, REPEATS) for name, client in clients.items()}
            show_photographs(console, classes)
            show_figures(console, f"{len(photos)} photographs over each protocol", figures(classes))
            sections.insert(0, photographs_section(classes))
    console.print("the server is stopped")
    write_page(options.page, sections, console)
    if has_example:
        print(f"demo: {accuracies(classes)} over {len(photos)} photographs")
    print(f"demo: {accuracies(digits)} over {len(images)} images")


def accuracies(outcomes: dict[str, Outcome[Any]]) -> str:
    """Return the accuracy over each protocol."""
    return ", ".join(f"{name} accuracy {outcome.accuracy:.3f}" for name, outcome in outcomes.items())


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        sys.exit(f"demo: {error}")
