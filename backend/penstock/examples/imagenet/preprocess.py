"""Prepares encoded images for torchvision's classifiers, with the same pixels as torchvision.

Input ``encoded_image``: one encoded image of any size (UINT8, 1-D).
Output ``image``: FLOAT, CHW, (3, 224, 224): the shorter side resized to 256, cropped at the centre, RGB, normalized with the mean
and standard deviation of ImageNet.
"""

from penstock import DataNode, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


@autoserialize
@pipeline_def(batch_size=32)
def mobilenet_v2_preprocess(device: str = "cpu") -> DataNode:
    """Return the pipeline; ``device``: where to decode and compute, "cpu" or "gpu"."""
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256, reference="torchvision")
    images = fn.crop(images, crop=(224, 224), rounding="torchvision")
    return fn.rescale_normalize(images, mean=MEAN, std=STD, name="image")
