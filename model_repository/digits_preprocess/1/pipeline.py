"""Encoded image of a handwritten digit to the input of `digits_classifier`: grey, 32x32, from -1 to 1.

Input ``encoded_image``: one encoded image, grey or colour, of any size (UINT8, 1-D).
Output ``image``: FLOAT, CHW, (1, 32, 32), ``(x / 255 - 0.5) / 0.5``.
"""

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize


def network_input(images):
    """Return grey images in the form that the network takes; training ends with the same steps
    (training/digits_pipeline.py).
    """
    images = fn.resize(images, size=(32, 32))
    return fn.crop_mirror_normalize(
        images, mean=[127.5], std=[127.5], dtype=types.FLOAT, output_layout="CHW", name="image"
    )


@autoserialize
@pipeline_def(batch_size=64)
def digits_preprocess(device="cpu"):
    """Return the pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    return network_input(
        fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.GRAY)
    )
