"""Encoded image to the input of an ImageNet classifier: the usual evaluation crop.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Output ``image``: FLOAT, CHW, (3, 224, 224): shorter side resized to 256, centre cropped, RGB with the mean and
standard deviation of ImageNet taken out.
"""

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@autoserialize
@pipeline_def(batch_size=64)
def imagenet_preprocess(device="cpu"):
    """Return the pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(
        images, crop=(224, 224), mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW", name="image"
    )
