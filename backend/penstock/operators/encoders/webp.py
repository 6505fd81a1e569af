"""`encoders.webp`: images as WebP files."""

from __future__ import annotations

from penstock.operators.encoders._images import IMAGES, ImageEncoder, check_range
from penstock.schema import Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.libraries import OPENCV

# In OpenCV, a quality above 100 means lossless.
_LOSSLESS = 101


@register_operator
class WebpEncoder(ImageEncoder):
    """Encodes images as WebP files.

    Returns the bytes of each file: UINT8 of shape (bytes,), an input for `decoders.image`. OpenCV encodes on the CPU; with GPU inputs,
    images are copied to the host and files back.

    >>> files = fn.encoders.webp(images, quality=80)
    """

    schema = Schema(
        name="encoders__Webp",
        inputs=(IMAGES,),
        arguments=(
            Argument("lossless", "bool", False, "Without loss; the quality has no effect then."),
            Argument("quality", "int32", 90, "From 1 to 100.", tensor=True),
        ),
        needs=(OPENCV,),
        equivalents=(Equivalent("cv2.imencode", "Images are BGR."),),
    )

    suffix = ".webp"
    channels = (1, 3, 4)
    max_extent = 16383

    def parameters(self, sample: Sample) -> list[int]:
        from penstock.kernels.cpu.opencv import opencv

        quality = check_range("quality", sample["quality"], 1, 100)
        return [opencv().IMWRITE_WEBP_QUALITY, _LOSSLESS if self.args["lossless"] else quality]
