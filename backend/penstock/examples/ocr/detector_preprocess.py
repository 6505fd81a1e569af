"""Encoded page to the input of PP-OCR's text detector.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Outputs:

- ``image``: FLOAT, CHW, (3, height, width), blue first, normalized: the longer side at most 960, both sides multiples of 32.
- ``size``: INT64, (2,), (height, width) of the image that was sent.
"""

from penstock import DataNode, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

MAX_SIDE = 960
# In the order of the channels, blue first, as in PaddleOCR.
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


@autoserialize
@pipeline_def(batch_size=8)
def ocr_detector_preprocess(device: str = "cpu") -> tuple[DataNode, DataNode]:
    """The pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.BGR)
    size, _ = fn.fitted_size(images, rule="pp-ocr", most=MAX_SIDE, canvases=[4 * MAX_SIDE, 4 * MAX_SIDE])
    images = fn.resize(images, size=size, reference="opencv", interpolation="linear")
    values = fn.rescale_normalize(images, mean=MEAN, std=STD, name="image")
    return values, fn.copy(fn.peek_image_shape(encoded)[:2], name="size")
