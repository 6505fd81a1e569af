"""Photographed pages that two networks read: called by a pipeline in one request, by clients, or by a Python model (BLS).

    python tests/benchmarks/serving/read_pages.py

One Triton serves the networks of the example `ocr`, with ONNX Runtime: as many instances as there are cores, with one thread each. Clients
and the Python model prepare images with OpenCV, and call the recognizer for each line, or once for all lines of a page, padded to the
widest line. Clients are separate processes on the same cores; no client sends a page twice. "networks alone" is the limit: both
networks, in as many processes as there are cores, on images and lines that were prepared before.

The candidates take turns; each number is the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from candidates import CORES, Answer, Ways, serving, show, take_turns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ANSWERS = ROOT / "tests" / "answers"
sys.path.insert(0, str(ANSWERS))
PAGES_PER_CLIENT = 24

_INSTANCES = f"""instance_group [ {{ count: {CORES} kind: KIND_CPU }} ]
parameters {{ key: "num_threads" value {{ string_value: "1" }} }}
"""
_NETWORKS = {
    "detector": (
        'fn.model(x, path=str(Path(__file__).with_name("detector.onnx")))[0]',
        'input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]\n'
        'output [ { name: "likely" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]\n',
        ("image", "likely"),
    ),
    "recognizer": (
        'fn.model(x, path=str(Path(__file__).with_name("recognizer.onnx")), output_names=["characters"])',
        'input [ { name: "line" data_type: TYPE_FP32 dims: [ 3, 48, -1 ] } ]\n'
        'output [ { name: "characters" data_type: TYPE_INT64 dims: [ -1 ] } ]\n',
        ("line", "characters"),
    ),
}
_NETWORK_PIPELINE = """
from pathlib import Path
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=32)
def network():
    x = fn.external_source(name="{source}", dtype=types.FLOAT, ndim=3)
    return fn.copy({call}, name="{output}")
"""
_BLS_CONFIG = f"""backend: "python"
max_batch_size: 8
input [ {{ name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: "text" data_type: TYPE_STRING dims: [ 1 ] }} ]
instance_group [ {{ count: {CORES} kind: KIND_CPU }} ]
"""


def write_models(repository: Path) -> None:
    """Write the pipeline, both networks as models, and the Python model that calls them."""
    from penstock.examples import load_example

    load_example("ocr").add(repository)
    ocr = repository / "ocr"
    with (ocr / "config.pbtxt").open("a") as config:
        config.write(_INSTANCES)
    for name, (call, tensors, (source, output)) in _NETWORKS.items():
        version = repository / name / "1"
        version.mkdir(parents=True)
        shutil.copyfile(ocr / "1" / f"{name}.onnx", version / f"{name}.onnx")
        (version / "pipeline.py").write_text(_NETWORK_PIPELINE.format(source=source, call=call, output=output))
        (version.parent / "config.pbtxt").write_text(
            f'backend: "penstock"\nmax_batch_size: 32\n{tensors}dynamic_batching {{ }}\n{_INSTANCES}'
        )
    version = repository / "bls" / "1"
    version.mkdir(parents=True)
    shutil.copyfile(HERE / "models" / "read_page.py", version / "model.py")
    shutil.copyfile(ANSWERS / "paddle_ocr.py", version / "paddle_ocr.py")
    shutil.copyfile(ocr / "1" / "characters.txt", version / "characters.txt")
    (version.parent / "config.pbtxt").write_text(_BLS_CONFIG)


# -- clients -----------------------------------------------------------------------------------------------------------


def whole_page(address: str, model: str) -> Answer:
    """Return a client that sends pages to a model that reads them."""
    import tritonclient.http as triton

    client = triton.InferenceServerClient(address, network_timeout=600)
    wanted = [triton.InferRequestedOutput("text")]

    def read(content: bytes) -> list[str]:
        page = triton.InferInput("encoded_image", [1, 1], "BYTES")
        page.set_data_from_numpy(np.array([[content]], np.object_))
        return [line.decode() for line in client.infer(model, [page], outputs=wanted).as_numpy("text").ravel()]

    return read


def two_models(address: str, folder: Path, together: bool) -> Answer:
    """Return a client that calls both networks; see :class:`PageReader` for ``together``."""
    import cv2
    import tritonclient.http as triton
    from paddle_ocr import PageReader
    from pages import characters

    cv2.setNumThreads(1)
    client = triton.InferenceServerClient(address, network_timeout=600)

    def call(model: str, name: str, output: str, values: np.ndarray) -> np.ndarray:
        tensor = triton.InferInput(name, list(values.shape), "FP32")
        tensor.set_data_from_numpy(values)
        found: np.ndarray = client.infer(model, [tensor]).as_numpy(output)
        return found

    return PageReader(
        lambda image: call("detector", "image", "likely", image)[0],
        lambda lines: call("recognizer", "line", "characters", lines),
        characters(folder),
        together=together,
    ).read


def networks_alone(folder: Path, pages: Sequence[bytes]) -> Answer:
    """Return a function that runs both networks on images and lines that were prepared before."""
    import cv2
    import onnxruntime
    from paddle_ocr import PageReader
    from pages import characters

    cv2.setNumThreads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    runs: list[tuple[onnxruntime.InferenceSession, np.ndarray]] = []

    def run(network: onnxruntime.InferenceSession, outputs: list[str] | None, values: np.ndarray) -> np.ndarray:
        runs.append((network, values))
        found: np.ndarray = network.run(outputs, {network.get_inputs()[0].name: values})[0]
        return found

    detector, recognizer = (
        onnxruntime.InferenceSession(str(folder / "1" / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
        for name in ("detector", "recognizer")
    )
    reader = PageReader(
        lambda image: run(detector, None, image)[0, 0],
        lambda lines: run(recognizer, ["characters"], lines),
        characters(folder),
    )
    prepared = {}
    for page in pages:
        runs = []
        prepared[page] = (reader.read(page), runs)

    def read(content: bytes) -> list[str]:
        text, calls = prepared[content]
        for network, values in calls:
            network.run(["characters"] if network is recognizer else None, {network.get_inputs()[0].name: values})
        return text

    return read


WAYS = {
    "penstock, one request": lambda address, folder, pages: whole_page(address, "ocr"),
    "client, a call for each line": lambda address, folder, pages: two_models(address, folder, together=False),
    "client, two calls": lambda address, folder, pages: two_models(address, folder, together=True),
    "Python model with BLS": lambda address, folder, pages: whole_page(address, "bls"),
    "networks alone": lambda address, folder, pages: networks_alone(folder, pages),
}
OURS, LIMIT = "penstock, one request", "networks alone"


# -- the command -------------------------------------------------------------------------------------------------------


def photographed_pages(clients: int, lines: int, scale: float) -> list[list[bytes]]:
    """Return pages for each client, all different."""
    import io

    from pages import pages
    from PIL import Image

    made = []
    for page in pages(clients * PAGES_PER_CLIENT, photographed=True, lines_per_page=lines):
        image = Image.open(io.BytesIO(page.content))
        stream = io.BytesIO()
        image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BICUBIC).save(
            stream, "JPEG", quality=90
        )
        made.append(stream.getvalue())
    return [made[client::clients] for client in range(clients)]


def main() -> None:
    """Run the benchmark and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of a round (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=8, help="of a page (default: %(default)s)")
    parser.add_argument(
        "--scale", type=float, default=2.0, help="of pages of 660 to 1430 pixels (default: %(default)s)"
    )
    options = parser.parse_args()
    pages = photographed_pages(options.clients, options.lines, options.scale)
    print(f"date      {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {CORES} cores, load {os.getloadavg()[0]:.1f}")
    size = statistics.mean(len(page) for own in pages for page in own)
    print(f"pages     {sum(map(len, pages))} of {options.lines} lines, {size / 1e3:.0f} kB on average")
    print(f"clients   {options.clients}; networks alone: {CORES}\n")
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        write_models(repository)
        with serving(repository) as server:
            ways = Ways("read_pages", tuple(WAYS), OURS, LIMIT)
            found = take_turns(ways, server, repository / "ocr", pages, options.rounds, options.seconds)
    show(found, ways)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
