"""`encoders.jpeg`: images as JPEG files."""

from __future__ import annotations

from penstock.operators.encoders._images import IMAGES, ImageEncoder, check_range
from penstock.schema import Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.libraries import OPENCV


@register_operator
class JpegEncoder(ImageEncoder):
    """Encodes images as JPEG files.

    Returns the bytes of each file: UINT8 of shape (bytes,), an input for `decoders.image`. OpenCV encodes on the CPU; with GPU inputs,
    images are copied to the host and files back.

    >>> files = fn.encoders.jpeg(images, quality=90)
    """

    schema = Schema(
        name="encoders__Jpeg",
        inputs=(IMAGES,),
        arguments=(Argument("quality", "int32", 95, "From 1 to 100.", tensor=True),),
        needs=(OPENCV,),
        equivalents=(Equivalent("cv2.imencode", "Images are BGR."),),
    )

    suffix = ".jpg"
    channels = (1, 3)
    max_extent = 65500

    def parameters(self, sample: Sample) -> list[int]:
        from penstock.kernels.cpu.opencv import opencv

        return [opencv().IMWRITE_JPEG_QUALITY, check_range("quality", sample["quality"], 1, 100)]
