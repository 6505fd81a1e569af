"""A pipeline that takes an encoded image and returns a blank one, which shows the cost of transferring both."""

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=64)
def blank():
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    image = fn.constant(fdata=[0.0], shape=[3, 224, 224], dtype=types.FLOAT, name="image")
    return image, fn.copy(fn.shapes(encoded, dtype=types.INT64), name="size")
