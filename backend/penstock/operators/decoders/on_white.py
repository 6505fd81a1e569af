"""`decoders.on_white`: transparent images upon white."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels.codecs.image_header import reading_with_pillow
from penstock.operators.decoders._examples import encoded_images
from penstock.schema import Equivalent, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures

_PNG, _RIFF, _WEBP, _GIF = b"\x89PNG\r\n\x1a\n", b"RIFF", b"WEBP", b"GIF8"


@register_operator
class OnWhite(Operator):
    """Lays images that may be transparent (PNG, WebP, GIF) upon white; all others stay as they were decoded.

    Decoders leave the colours that a file has where nothing is to be seen. Processors of `transformers`, which this follows,
    show such images as a page in a browser would. The rest of the batch is not copied.

    >>> images = fn.decoders.on_white(fn.decoders.image(files), files)
    """

    schema = Schema(
        name="decoders__OnWhite",
        devices=("cpu",),
        inputs=(
            Input("images", ("HWC",), doc="As decoded from the files, RGB of uint8.", example=pictures),
            Input("encoded", doc="The files.", example=encoded_images),
        ),
        equivalents=(Equivalent("PIL.Image.alpha_composite"),),
        unswept="its inputs belong together",
    )

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        batch, files = workspace.inputs
        if len(batch) and batch.dtype != UINT8:
            raise RuntimeError(f"Images must be of uint8. Got: {dtype_name(batch.dtype)}")
        shown: dict[int, np.ndarray] = {}

        def show(index: int) -> None:
            file = files.samples[index]
            if index in workspace.failures or not _may_be_transparent(file[:16].tobytes()):
                return
            image = _on_white(file, batch.shapes[index])
            if image is not None:
                shown[index] = image

        workspace.parallel(show, len(batch), [file.size for file in files.samples])
        if not shown:
            workspace.outputs = [batch]
            return
        samples = [shown.get(index, sample) for index, sample in enumerate(batch.samples)]
        workspace.outputs = [type(batch).of_samples(samples, batch.layout(), batch.dtype, batch.ndim())]


def _may_be_transparent(start: bytes) -> bool:
    return start.startswith((_PNG, _GIF)) or (start[:4] == _RIFF and start[8:12] == _WEBP)


def _on_white(file: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """The image in a file upon white; None if no part of it can be transparent, or it was not decoded as it is stored.

    The file has been decoded before, so that its header is sound and its size allowed.
    """
    from PIL import Image, ImageOps

    with reading_with_pillow(file.data) as image:
        if "A" not in image.getbands() and image.info.get("transparency") is None:
            return None
        turned = ImageOps.exif_transpose(image).convert("RGBA")
        page = Image.new("RGBA", turned.size, "white")
        pixels = np.asarray(Image.alpha_composite(page, turned).convert("RGB"))
    return pixels if pixels.shape == shape else None
