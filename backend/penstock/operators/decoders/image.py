"""`decoders.image`: decodes images."""

from __future__ import annotations

from penstock.data_types import GRAY
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import DECODER_ARGUMENTS, ENCODED_DOC, SCALE, ImageDecoder
from penstock.schema import Alias, Argument, Equivalent, Input, Schema, register_operator
from penstock.schema.example_data import Example, photo_files


@register_operator
class Image(ImageDecoder):
    """Decodes JPEG, PNG, TIFF, BMP, WebP, JPEG 2000, PNM, GIF, AVIF, ICO and (with pillow-heif) HEIC to images of layout HWC.

    The format is detected from the content. On the device ``mixed``, the GPU decodes JPEG, JPEG 2000 and TIFF, and the CPU all files that
    the GPU does not support.

    >>> images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Image",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=(
            *DECODER_ARGUMENTS,
            SCALE,
            Argument("cache_batch_copy", "bool", True, "Accepted for compatibility; cached images are not copied."),
            Argument("cache_debug", "bool", False, "Log the cache's contents when it is full."),
            Argument(
                "cache_size",
                "int32",
                0,
                "Megabytes of GPU memory for caching decoded images by file name (`mixed`); 0: none.",
            ),
            Argument(
                "cache_threshold", "int32", 0, "The size in bytes from which a decoded image is cached (`threshold`)."
            ),
            Argument(
                "cache_type",
                "string",
                "",
                "Which images are cached: `threshold`, those above a size, while there is room; `largest`, the largest.",
                choices=("threshold", "largest"),
            ),
        ),
        aliases=(Alias("ImageDecoder", "1.0"), Alias("experimental__decoders__Image", "2.2")),
        shown=(
            Example({}, (photo_files,)),
            Example({"output_type": GRAY}, (photo_files,)),
        ),
        equivalents=(
            Equivalent("PIL.Image.open", "It does not rotate images as their EXIF data says."),
            Equivalent("cv2.imdecode", "It gives BGR."),
            Equivalent("torchvision.io.decode_image", "It gives CHW."),
        ),
    )
