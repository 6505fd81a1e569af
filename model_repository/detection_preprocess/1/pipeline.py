"""From encoded images to an object detector's input: letterboxed to 640x640, with scale and offset to map boxes back.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Outputs:

- ``image``: FLOAT, CHW, (3, 640, 640), RGB from 0 to 1: the image, as large as fits, amid a grey border (114 / 255).
- ``scale``: FLOAT, (1,), by how much it was enlarged.
- ``offset``: FLOAT, (2,), (x, y) of its upper left corner in the letterbox, in pixels.

A point of the letterbox lies at ``(point - offset) / scale`` in the image that was sent.
"""

from penstock import fn, math, pipeline_def, types
from penstock.plugin.triton import autoserialize

SIDE = 640
BORDER = 114


@autoserialize
@pipeline_def(batch_size=32)
def detection_preprocess(device="cpu"):
    """Return the pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    images = fn.resize(images, size=(SIDE, SIDE), mode="not_larger")
    images = fn.crop_mirror_normalize(
        images,
        crop=(SIDE, SIDE),
        out_of_bounds_policy="pad",
        fill_values=[BORDER / 255],
        mean=[0.0],
        std=[255.0],
        dtype=types.FLOAT,
        output_layout="CHW",
        name="image",
    )
    size = fn.peek_image_shape(encoded)[1::-1]  # (width, height)
    scale = float(SIDE) / math.max(size[0], size[1])
    # Resize rounds the extents to whole pixels but keeps the scale exact about the centre; so the image begins where
    # its centre says, half a rounding beside its first pixel.
    exact = size * scale
    resized = math.max(math.floor(exact + 0.5), 1.0)
    border = math.floor((SIDE - resized + 1.0) / 2.0)  # the crop's anchor is rounded half away from zero
    offset = border + (resized - exact) / 2.0
    return images, fn.reshape(scale, shape=[1], name="scale"), fn.reshape(offset, shape=[2], name="offset")
