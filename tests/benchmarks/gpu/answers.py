"""Steps around networks on a GPU, compared with CV-CUDA and torchvision, or with CuPy where they lack a step.

    PYTHONPATH=backend python tests/benchmarks/gpu/answers.py [--filter nms]

Penstock and the other library take turns in rounds, on the same data, which is on the GPU; neither computes a batch twice. A round ends
when the GPU is done. CV-CUDA's Python functions take boxes to draw or cut out from the host, so they are there already. "times" is the
other library's median of the rounds divided by Penstock's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from penstock import Pipeline, fn, pipeline_def
from penstock.data_types import from_numpy_dtype

WARM_UP, ROUNDS, BATCHES = 4, 5, 6
# The number of batches; two more than are measured, because a pipeline may read ahead.
BATCH_COUNT = WARM_UP + ROUNDS * BATCHES + 2
RNG = np.random.default_rng(17)


@dataclass
class Row:
    """One row of the table: what Penstock and the other library compute.

    Attributes:
        name: the row's name.
        peer: the other library.
        batches: the inputs of each batch, by name: GPU arrays, or NumPy arrays; those whose names end with ``_peer`` are the peer's only.
        layouts: the layouts of the inputs that are images, by name.
        define: makes the nodes of the outputs from those of the inputs.
        theirs: computes a batch with the peer.
        differs: says from both results, as lists of arrays, by how much they differ; None: results are not compared.
    """

    name: str
    peer: str
    batches: list[dict[str, Any]]
    layouts: dict[str, str]
    define: Callable[..., Any]
    theirs: Callable[..., Any]
    differs: Callable[[Any, Any], str] | None = None


def rows() -> Iterator[Callable[[], Row]]:
    """Yield functions that make the rows."""
    yield decoded_offsets
    yield lambda: decoded_offsets(ragged=True)
    yield suppressed
    yield lambda: suppressed(boxes=8400)
    yield suppressed_as_torchvision
    yield lambda: suppressed_as_torchvision(boxes=8400)
    yield pasted
    yield drawn
    yield cut_boxes
    yield cut_quadrilaterals
    yield resized


def photographs(count: int, height: int, width: int) -> list[Any]:
    """Return ``count`` images of different sizes, on the GPU."""
    made = []
    for _ in range(count):
        high, wide = height - int(RNG.integers(64)), width - int(RNG.integers(64))
        made.append(cupy.random.randint(0, 256, (high, wide, 3), dtype=cupy.uint8))
    return made


def corners(count: int, height: int = 1000, width: int = 1800, low: int = 24, high: int = 200) -> np.ndarray:
    """Return ``count`` random boxes with integer coordinates."""
    first = RNG.integers(0, (width - high, height - high), (count, 2))
    return np.hstack([first, first + RNG.integers(low, high, (count, 2))]).astype(np.float32)


# -- rows --------------------------------------------------------------------------------------------------------------


def decoded_offsets(ragged: bool = False) -> Row:
    """Return the row of decoding offsets from anchors, for 32 images with 8400 boxes each, or 4200 to 8400."""
    counts = [RNG.integers(4200, 8401, 32) if ragged else np.full(32, 8400) for _ in range(BATCH_COUNT)]
    batches = []
    for own in counts:
        total = int(own.sum())
        ends = np.cumsum(own)[:-1].tolist()
        predicted = cupy.asarray(RNG.normal(0, 0.5, (total, 4)).astype(np.float32))
        anchors = cupy.asarray(corners(total))
        batches.append({"predicted": cupy.split(predicted, ends), "anchors": cupy.split(anchors, ends)})

    def theirs(predicted: Any, anchors: Any) -> Any:
        results = []
        given = zip(predicted, anchors) if ragged else [(cupy.stack(predicted), cupy.stack(anchors))]
        for own, base in given:
            extents = base[..., 2:] - base[..., :2]
            centres = own[..., :2] * extents + (base[..., :2] + 0.5 * extents)
            half = cupy.exp(cupy.minimum(own[..., 2:], np.float32(4.135))) * extents * np.float32(0.5)
            results.append(cupy.concatenate([centres - half, centres + half], axis=-1))
        return results

    name = "decode_boxes, anchors, 32 x 4200 to 8400" if ragged else "decode_boxes, anchors, 32 x 8400"

    def define(predicted: Any, anchors: Any) -> Any:
        return fn.decode_boxes(predicted, anchors, form="anchors")

    return Row(name, "CuPy", batches, {}, define, theirs)


def suppressed(boxes: int = 1000) -> Row:
    """Return the row of NMS for 32 images with ``boxes`` boxes each, all of one class; CV-CUDA takes int16 and returns a mask."""
    import cvcuda

    batches = []
    for _ in range(BATCH_COUNT):
        own = [corners(boxes) for _ in range(32)]
        scores = [RNG.permutation(boxes).astype(np.float32) / boxes for _ in range(32)]
        stacked = np.stack(own).astype(np.int16)
        stacked[..., 2:] -= stacked[..., :2]
        batches.append(
            {
                "boxes": [cupy.asarray(one) for one in own],
                "scores": [cupy.asarray(one) for one in scores],
                "stacked_peer": (cupy.asarray(stacked), cupy.asarray(np.stack(scores))),
            }
        )

    def theirs(boxes: Any, scores: Any, stacked_peer: Any) -> Any:
        both = cvcuda.as_tensor(stacked_peer[0], "NCW"), cvcuda.as_tensor(stacked_peer[1], "NW")
        return cvcuda.nms(*both, 0.3, 0.5)

    def differs(ours: Any, peer: Any) -> str:
        masks = cupy.asarray(peer.cuda()).reshape(32, -1).get()
        kept = [set(np.flatnonzero(mask).tolist()) for mask in masks]
        return f"{sum(len(own ^ set(one.get().tolist())) for own, one in zip(kept, ours))} boxes kept by one only"

    def define(boxes: Any, scores: Any) -> Any:
        return fn.nms(boxes, scores, score_threshold=0.3, iou_threshold=0.5)[3]

    return Row(f"nms, 32 x {boxes}", "CV-CUDA", batches, {}, define, theirs, differs)


def suppressed_as_torchvision(boxes: int = 1000) -> Row:
    """Return the row of NMS for 32 images with ``boxes`` boxes each, of five classes; torchvision gets them as the boxes of one image."""
    import torch
    import torchvision

    batches = []
    for _ in range(BATCH_COUNT):
        own = [corners(boxes) for _ in range(32)]
        scores = [RNG.permutation(boxes).astype(np.float32) / boxes for _ in range(32)]
        labels = [RNG.integers(0, 5, boxes).astype(np.int32) for _ in range(32)]
        groups = np.concatenate([5 * number + one for number, one in enumerate(labels)]).astype(np.int64)
        together = [np.concatenate(own), np.concatenate(scores), groups]
        arrays = {"boxes": own, "scores": scores, "labels": labels}
        batch: dict[str, Any] = {name: [cupy.asarray(one) for one in arrays[name]] for name in arrays}
        batches.append(batch | {"together_peer": [torch.from_numpy(one).cuda() for one in together]})

    def theirs(boxes: Any, scores: Any, labels: Any, together_peer: Any) -> Any:
        own, likely, groups = together_peer
        rows = (likely > 0.3).nonzero()[:, 0]
        return rows[torchvision.ops.batched_nms(own[rows], likely[rows], groups[rows], 0.5)]

    def define(boxes: Any, scores: Any, labels: Any) -> Any:
        return fn.nms(boxes, scores, labels, score_threshold=0.3, iou_threshold=0.5)[3]

    def differs(ours: Any, peer: Any) -> str:
        own = {number * boxes + row for number, one in enumerate(ours) for row in one.get().tolist()}
        return f"{len(own ^ set(peer.tolist()))} of {len(own)} boxes kept by one only"

    return Row(f"nms by class, 32 x {boxes}", "torchvision", batches, {}, define, theirs, differs)


def pasted() -> Row:
    """Return the row of pasting 20 masks of 28 x 28 pixels into each of 8 images of 720p; the pasted masks are probabilities."""
    import torch
    from torchvision.models.detection.roi_heads import paste_masks_in_image

    batches = []
    for _ in range(BATCH_COUNT):
        masks = [cupy.asarray(RNG.random((20, 28, 28), np.float32)) for _ in range(8)]
        boxes = [cupy.asarray(corners(20, 720, 1280)) for _ in range(8)]
        peer = [(torch.from_dlpack(one)[:, None], torch.from_dlpack(other)) for one, other in zip(masks, boxes)]
        batches.append({"masks": masks, "boxes": boxes, "both_peer": peer})

    def theirs(masks: Any, boxes: Any, both_peer: Any) -> Any:
        return [paste_masks_in_image(*own, (720, 1280)) for own in both_peer]

    def define(masks: Any, boxes: Any) -> Any:
        return fn.paste_masks(masks, boxes, size=[720, 1280])

    def differs(ours: Any, peer: Any) -> str:
        pairs = [(torch.from_dlpack(one), other[:, 0]) for one, other in zip(ours, peer)]
        return f"probabilities differ by up to {max(float((one - other).abs().max()) for one, other in pairs):.0e}"

    return Row("paste_masks, 8 x 20, 720p", "torchvision", batches, {}, define, theirs, differs)


def drawn() -> Row:
    """Return the row of drawing the outlines of 20 boxes on each of 16 images of 1080p."""
    import cvcuda

    batches = []
    for _ in range(BATCH_COUNT):
        images = cupy.random.randint(0, 256, (16, 1080, 1920, 3), dtype=cupy.uint8)
        boxes = [corners(20) for _ in range(16)]
        batches.append(
            {"images": list(images), "boxes": [cupy.asarray(b) for b in boxes], "both_peer": (images, boxes)}
        )

    def theirs(images: Any, boxes: Any, both_peer: Any) -> Any:
        stacked, given = both_peer
        shapes = [
            [
                cvcuda.BndBoxI((left, top, right - left, bottom - top), 2, (255, 0, 0, 255), (0, 0, 0, 0))
                for left, top, right, bottom in own.astype(int).tolist()
            ]
            for own in given
        ]
        return cvcuda.bndbox(cvcuda.as_tensor(stacked, "NHWC"), cvcuda.BndBoxesI(boxes=shapes))

    return Row(
        "draw_boxes, 16 x 1080p, 20 boxes",
        "CV-CUDA",
        batches,
        {"images": "HWC"},
        lambda images, boxes: fn.draw_boxes(images, boxes),
        theirs,
    )


def cut_boxes() -> Row:
    """Return the row of cutting 20 boxes out of each of 16 images and resizing them to 256 x 128, by linear interpolation."""
    import cvcuda

    batches = []
    for _ in range(BATCH_COUNT):
        boxes = [corners(20) for _ in range(16)]
        batches.append({"images": photographs(16, 1080, 1920), "boxes": boxes})

    def define(images: Any, boxes: Any) -> Any:
        crops, _ = fn.crop_boxes(images, boxes)
        return fn.resize(crops, size=[256, 128], antialias=False)

    def theirs(images: Any, boxes: Any) -> Any:
        views = [
            image[top:bottom, left:right]
            for image, own in zip(images, boxes)
            for left, top, right, bottom in own.astype(int).tolist()
        ]
        batch = cvcuda.as_images(views, cvcuda.Format.RGB8)
        return cvcuda.resize(batch, [(128, 256)] * len(views), cvcuda.Interp.LINEAR)

    return Row(
        "crop_boxes, resize to 256 x 128, 16 x 20", "CV-CUDA", batches, {"images": "HWC"}, define, theirs, _pixels
    )


def cut_quadrilaterals() -> Row:
    """Return the row of cutting 20 quadrilaterals out of each of 16 images, as 32 x 100 pixels."""
    import cv2
    import cvcuda

    size, edges = (100, 32), np.array([[0, 0], [100, 0], [100, 32], [0, 32]], np.float32)
    batches = []
    for _ in range(BATCH_COUNT):
        boxes = [corners(20) for _ in range(16)]
        shaken = [own[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2) + RNG.uniform(-4, 4, (20, 4, 2)) for own in boxes]
        quadrilaterals = [np.ascontiguousarray(own, np.float32) for own in shaken]
        batches.append({"images": photographs(16, 1080, 1920), "quadrilaterals": quadrilaterals})

    def theirs(images: Any, quadrilaterals: Any) -> Any:
        half = np.float32(0.5)
        matrices = [
            cv2.invert(cv2.getPerspectiveTransform(own - half, edges - half))[1]
            for each in quadrilaterals
            for own in each
        ]
        sources = cvcuda.as_images([image for image in images for _ in range(20)], cvcuda.Format.RGB8)
        targets = cvcuda.ImageBatchVarShape(len(matrices))
        targets.pushback([cvcuda.Image(size, cvcuda.Format.RGB8) for _ in matrices])
        xform = cvcuda.as_tensor(cupy.asarray(np.array(matrices, np.float32).reshape(-1, 9)), "NW")
        flags = int(cvcuda.Interp.LINEAR) | int(cvcuda.Interp.WARP_INVERSE_MAP)
        return cvcuda.warp_perspective_into(
            targets, sources, xform, flags, border_mode=cvcuda.Border.REPLICATE, border_value=np.zeros(4, np.float32)
        )

    def define(images: Any, quadrilaterals: Any) -> Any:
        return fn.perspective_crops(images, quadrilaterals, size=[32, 100])[0]

    return Row("perspective_crops to 32 x 100, 16 x 20", "CV-CUDA", batches, {"images": "HWC"}, define, theirs, _pixels)


def resized() -> Row:
    """Return the row of resizing 32 images of different sizes to 224 x 224 pixels, by linear interpolation."""
    import cvcuda

    batches = [{"images": photographs(32, 1080, 1920)} for _ in range(BATCH_COUNT)]

    def theirs(images: Any) -> Any:
        return cvcuda.resize(
            cvcuda.as_images(images, cvcuda.Format.RGB8), [(224, 224)] * len(images), cvcuda.Interp.LINEAR
        )

    def define(images: Any) -> Any:
        return fn.resize(images, size=[224, 224], antialias=False)

    return Row("resize to 224, 32 x 1080p", "CV-CUDA", batches, {"images": "HWC"}, define, theirs, _pixels)


def _pixels(ours: Any, peer: Any) -> str:
    """Return the largest difference between pixels, as text."""
    worst = 0
    for one, other in zip(ours, peer):
        worst = max(worst, int(abs(one.get().astype(int) - cupy.asarray(other.cuda()).get().astype(int)).max()))
    return f"pixels differ by up to {worst}"


# -- measurement -------------------------------------------------------------------------------------------------------


def built(row: Row) -> Pipeline:
    """Return Penstock's pipeline, which reads the batches in turn."""
    names = [name for name in row.batches[0] if not name.endswith("_peer")]
    places = {name: "cpu" if isinstance(row.batches[0][name][0], np.ndarray) else "gpu" for name in names}
    batch_size = len(row.batches[0][names[0]])
    numbers = {name: iter(range(len(row.batches))) for name in names}

    def reader(name: str) -> Callable[[], Any]:
        return lambda: row.batches[next(numbers[name])][name]

    @pipeline_def(batch_size=batch_size, num_threads=4, device_id=0, prefetch_queue_depth=1)
    def definition() -> Any:
        nodes = {}
        for name in names:
            dtype = from_numpy_dtype(row.batches[0][name][0].dtype)
            ndim = row.batches[0][name][0].ndim
            nodes[name] = fn.external_source(
                reader(name),
                device=places[name],
                dtype=dtype,
                ndim=ndim,
                layout=row.layouts.get(name, ""),
                no_copy=True,
            )
        return row.define(**nodes)

    pipeline = definition()
    pipeline.build()
    return pipeline


def measured(row: Row) -> str:
    """Measure a row; return its line of the table."""
    pipeline, given, note = built(row), iter(row.batches), ""
    stream = pipeline.executor.stream
    for number in range(WARM_UP):
        (ours,), theirs = pipeline.run(), row.theirs(**next(given))
        stream.synchronize()
        cupy.cuda.Device().synchronize()
        if row.differs is not None and number == 0:
            note = row.differs(list(ours.samples), theirs)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(BATCHES):
            pipeline.run()
        stream.synchronize()
        times["ours"].append((time.perf_counter() - began) / BATCHES * 1e3)
        began = time.perf_counter()
        for _ in range(BATCHES):
            row.theirs(**next(given))
        cupy.cuda.Device().synchronize()
        times["theirs"].append((time.perf_counter() - began) / BATCHES * 1e3)
    pipeline.close()
    own, other = statistics.median(times["ours"]), statistics.median(times["theirs"])
    return f"| {row.name} | {row.peer} | {own:.3f} | {other:.3f} | {other / own:.2f} | {note} |"


def main() -> int:
    """Run the benchmark, print the table, and return 1 if a row failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only rows whose names contain this")
    options = parser.parse_args()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; medians of {ROUNDS} rounds of {BATCHES} batches, each of them new; ms for a batch\n")
    print("| | beside | penstock | other | times | results |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    failed = 0
    for make in rows():
        try:
            row = make()
            if options.filter in row.name:
                print(measured(row), flush=True)
        except Exception as error:
            failed = 1
            print(f"failed: {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
