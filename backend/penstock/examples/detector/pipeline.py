"""Finds the regions of an encoded page: detection, decoding of boxes, suppression of overlapping ones.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Outputs, with one sample for each region, highest score first:

- ``labels``: UINT8, the bytes of a string: text, title, figure, figure_caption, table, table_caption, header, footer,
reference or equation;
- ``scores``: FLOAT, the network's confidence in the region, from 0 to 1;
- ``boxes``: FLOAT, (4,): left, top, right, bottom, in pixels of the page;

and for each page ``counts``, INT32: the number of its regions.
"""

from pathlib import Path

from penstock import DataNode, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

HERE = Path(__file__).parent
DETECTOR = str(HERE / "detector.onnx")
HEIGHT, WIDTH, STRIDES = 800, 608, [8, 16, 32, 64]  # the size of the detector's input, and the strides of its grids
# In the order of the channels: blue first, as in PaddleDetection.
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
MIN_SCORE, MAX_OVERLAP, MAX_REGIONS = 0.4, 0.5, 100


@autoserialize
@pipeline_def(batch_size=8)
def detector() -> tuple[DataNode, ...]:
    """Return the pipeline, on the CPU."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    boxes, scores, labels = detect(fn.decoders.image(encoded, output_type=types.BGR))
    each, counts = fn.expand(boxes)
    # One string in each row; the zeros that pad the strings of a page to the same length are dropped.
    names = fn.expand_dims(fn.expand(labels)[0], axes=[0])
    outputs = {"labels": names, "scores": fn.expand(scores)[0], "boxes": each, "counts": counts}
    return tuple(fn.copy(output, name=name) for name, output in outputs.items())


def detect(pages: DataNode) -> tuple[DataNode, DataNode, DataNode]:
    """Return the regions of each page: the boxes, the scores and the names of the classes."""
    images = fn.resize(pages, size=[HEIGHT, WIDTH], reference="opencv", interpolation="linear")
    images = fn.rescale_normalize(images, mean=MEAN, std=STD)
    scores, distances = fn.model(images, path=DETECTOR, output_names=["scores", "distances"])
    page = pages.shape(dtype=types.FLOAT)
    size = fn.stack(page[1], page[0])
    boxes = fn.decode_boxes(
        distances,
        form="distances",
        size=[HEIGHT, WIDTH],
        strides=STRIDES,
        scale=size / fn.constant(fdata=[WIDTH, HEIGHT]),
        clip=size,
    )
    boxes, scores, _, _, labels = fn.nms(
        boxes,
        scores,
        score_threshold=MIN_SCORE,
        iou_threshold=MAX_OVERLAP,
        max_boxes=MAX_REGIONS,
        names=(HERE / "names.txt").read_text(encoding="utf-8").split("\n"),
    )
    return boxes, scores, labels
