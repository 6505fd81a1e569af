"""Encoded image to the input of torchvision's classifiers, with torchvision's pixels.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Output ``image``: FLOAT, CHW, (3, 224, 224): shorter side resized to 256, centre cropped, RGB with the mean and
standard deviation of ImageNet taken out.
"""

from penstock import DataNode, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


@autoserialize
@pipeline_def(batch_size=32)
def mobilenet_v2_preprocess(device: str = "cpu") -> DataNode:
    """Return the pipeline; ``device`` "gpu" decodes and computes there."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256, reference="torchvision")
    images = fn.crop(images, crop=(224, 224), rounding="torchvision")
    return fn.rescale_normalize(images, mean=MEAN, std=STD, name="image")
