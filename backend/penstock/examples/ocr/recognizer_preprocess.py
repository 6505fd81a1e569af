"""Encoded page and the boxes of its lines to the input of PP-OCR's text recognizer.

Inputs:

- ``encoded_image``: one encoded image of any size (UINT8, 1-D).
- ``boxes``: FLOAT, (lines, 4): left, top, right, bottom in pixels.

Outputs:

- ``line``: FLOAT, CHW, (3, 48, 960) for each line, blue first, from -1 to 1: as large as fits, grey on the right.
- ``counts``: INT32: the lines of the page.
"""

from penstock import DataNode, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

HEIGHT, WIDTH = 48, 960


@autoserialize
@pipeline_def(batch_size=8)
def ocr_recognizer_preprocess(device: str = "cpu") -> tuple[DataNode, DataNode]:
    """The pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    boxes = fn.external_source(name="boxes", dtype=types.FLOAT, ndim=2)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.BGR)
    lines, counts = fn.crop_boxes(images, boxes)
    lines = fn.resize(lines, size=(HEIGHT, WIDTH), mode="not_larger")
    lines = fn.crop_mirror_normalize(
        lines,
        crop=(HEIGHT, WIDTH),
        crop_pos_x=0.0,
        crop_pos_y=0.0,
        out_of_bounds_policy="pad",
        fill_values=[0.0],
        mean=[127.5],
        std=[127.5],
        dtype=types.FLOAT,
        output_layout="CHW",
        name="line",
    )
    return lines, fn.copy(counts, name="counts")
