from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=16)
def letterbox():
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.resize(images, size=(64, 64), mode="not_larger")
    images = fn.crop_mirror_normalize(
        images, crop=(64, 64), out_of_bounds_policy="pad", fill_values=[114.0], std=[255.0], output_layout="CHW"
    )
    unused = images * 2
    return images
