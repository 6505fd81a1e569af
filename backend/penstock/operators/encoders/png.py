"""`encoders.png`: images as PNG files."""

from __future__ import annotations

from penstock.operators.encoders._images import IMAGES, ImageEncoder, check_range
from penstock.schema import Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.libraries import OPENCV


@register_operator
class PngEncoder(ImageEncoder):
    """Encodes images as PNG files, without loss.

    Returns the bytes of each file: UINT8 of shape (bytes,), an input for `decoders.image`. OpenCV encodes on the CPU; with GPU inputs,
    images are copied to the host and files back.

    >>> files = fn.encoders.png(masks)
    """

    schema = Schema(
        name="encoders__Png",
        inputs=(IMAGES,),
        arguments=(Argument("compression", "int32", 1, "From 0 (fast) to 9 (small).", tensor=True, example=6),),
        needs=(OPENCV,),
        equivalents=(Equivalent("cv2.imencode", "Images are BGR."),),
    )

    suffix = ".png"
    channels = (1, 3, 4)
    max_extent = 65500

    def parameters(self, sample: Sample) -> list[int]:
        from penstock.kernels.cpu.opencv import opencv

        return [opencv().IMWRITE_PNG_COMPRESSION, check_range("compression", sample["compression"], 0, 9)]
