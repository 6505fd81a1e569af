"""`decoders.on_white`: transparent images on a white background."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels.codecs.transparency import decode_on_white, may_be_transparent
from penstock.operators.decoders._examples import encoded_images
from penstock.schema import Equivalent, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures


@register_operator
class OnWhite(Operator):
    """Puts transparent images (PNG, WebP, GIF) on a white background; all others stay as they were decoded.

    Decoders return the colours that a file stores for transparent pixels. Image processors of `transformers`, which this
    operator follows, show such images as a browser does on a white page. The rest of the batch is not copied.

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
            if index in workspace.failures or not may_be_transparent(file):
                return
            image = np.empty(batch.shapes[index], np.uint8)
            if decode_on_white(file, image, workspace.decoding):
                shown[index] = image

        workspace.parallel(show, len(batch), [file.size for file in files.samples])
        if not shown:
            workspace.outputs = [batch]
            return
        samples = [shown.get(index, sample) for index, sample in enumerate(batch.samples)]
        workspace.outputs = [type(batch).of_samples(samples, batch.layout(), batch.dtype, batch.ndim())]
