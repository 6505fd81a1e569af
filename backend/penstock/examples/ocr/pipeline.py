"""Reads the lines of text on an encoded page: detection, cropping, recognition, decoding.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Outputs, with one sample for each line, in reading order:

- ``text``: UINT8, a string;
- ``scores``: FLOAT, how probable the text is: the mean of the probabilities of its characters;
- ``corners``: FLOAT, (4, 2): x and y of each corner in pixels of the page, clockwise from the upper left;

and for each page ``counts``, INT32: the number of its lines.
"""

from pathlib import Path

from penstock import DataNode, fn, math, pipeline_def, types
from penstock.plugin.triton import autoserialize

HERE = Path(__file__).parent
DETECTOR, RECOGNIZER = str(HERE / "detector.onnx"), str(HERE / "recognizer.onnx")
MAX_SIDE = 960  # the largest side of the detector's input, in pixels
# In the order of the channels: blue first, as in PaddleOCR.
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
# The threshold for text pixels, the lowest score of a line, the shortest side of a line in pixels, and by how much the region that
# the detector marks is enlarged.
MIN_TEXT, MIN_LINE, MIN_SIDE, GROW = 0.3, 0.6, 3, 1.6
LINE_HEIGHT, MIN_LINE_WIDTH = 48, 320  # the recognizer's input, in pixels


@autoserialize
@pipeline_def(batch_size=8)
def ocr() -> tuple[DataNode, ...]:
    """Return the pipeline, on the CPU."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    pages = fn.decoders.image(encoded, output_type=types.BGR)
    corners = detect(pages)
    lines, counts = fn.perspective_crops(
        pages, corners, rotate_tall=1.5, pixel_origin="center", interp_type=types.INTERP_CUBIC
    )
    text, scores = recognize(lines)
    each, _ = fn.expand(corners)
    outputs = {"text": text, "scores": scores, "corners": each, "counts": counts}
    return tuple(fn.copy(output, name=name) for name, output in outputs.items())


def detect(pages: DataNode) -> DataNode:
    """Return the corners of the lines on each page."""
    size, _ = fn.fitted_size(pages, rule="pp-ocr", most=MAX_SIDE, canvases=[4 * MAX_SIDE, 4 * MAX_SIDE])
    images = fn.resize(pages, size=size, reference="opencv", interpolation="linear")
    likely = fn.model(fn.rescale_normalize(images, mean=MEAN, std=STD), path=DETECTOR, output_layouts="CHW")[0]
    polygons, vertices = fn.find_contours(likely > MIN_TEXT)
    corners, _, _ = fn.min_area_boxes(
        polygons, vertices, likely, min_side=MIN_SIDE, min_score=MIN_LINE, grow=GROW, order="reading"
    )
    page, seen = pages.shape(dtype=types.FLOAT), likely.shape(dtype=types.FLOAT)
    return corners * fn.stack(page[1] / seen[1], page[0] / seen[0])


def recognize(lines: DataNode) -> tuple[DataNode, DataNode]:
    """Return the text of each line and its score."""
    extents = lines.shape(dtype=types.FLOAT)
    size = fn.stack(0 * extents[0] + LINE_HEIGHT, math.ceil(LINE_HEIGHT * extents[1] / extents[0]))
    lines = fn.resize(lines, size=size, reference="opencv", interpolation="linear")
    lines = fn.crop_mirror_normalize(lines, mean=[127.5], std=[127.5], dtype=types.FLOAT, output_layout="CHW")
    lines = fn.pad(lines, axis_names="W", shape=[MIN_LINE_WIDTH])
    best, likely = fn.model(lines, path=RECOGNIZER, output_names=["characters", "scores"])
    vocabulary = (HERE / "characters.txt").read_text(encoding="utf-8").split("\n")
    text, _, _, logarithms = fn.ctc_decode(best, likely, vocabulary=vocabulary)
    return text, math.exp(logarithms / best.shape(dtype=types.FLOAT))
