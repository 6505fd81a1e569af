"""`dump_image`: writes images to files for debugging."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator


@register_operator
class DumpImage(Operator):
    """Writes each image to ``<index in the batch>-<suffix>-0.ppm`` in the current folder, and returns it unchanged.

    Each batch overwrites the files of the previous one.
    """

    schema = Schema(
        name="DumpImage",
        inputs=(Input("input", doc="Images of uint8 in HWC order, of 1 or 3 channels."),),
        arguments=(
            Argument("input_layout", "layout", "HWC", "Layout of the images; only HWC is supported."),
            Argument("suffix", "string", "", "Part of the files' names.", path=True),
        ),
    )

    def setup(self) -> None:
        if self.args["input_layout"] != "HWC":
            raise RuntimeError(f"`input_layout` may only be HWC, got '{self.args['input_layout']}'")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Only uint8 images can be written, got {dtype_name(batch.dtype)}")
        if batch.ndim() != 3:
            raise RuntimeError(f"Input images must have three dimensions, got input with {batch.ndim()} dimensions")
        for index, image in enumerate(batch.as_cpu().samples):
            if index in workspace.failures:
                continue
            try:
                Path(self.files.path(f"{index}-{self.args['suffix']}-0.ppm")).write_text(_portable_map(image))
            except Exception as error:
                workspace.fail(index, error)
        workspace.outputs = [batch]


def _portable_map(image: np.ndarray) -> str:
    """Return the image as the text of a Netpbm file."""
    height, width, channels = image.shape
    kind = {1: "P2", 3: "P3"}.get(channels)
    if kind is None:
        raise RuntimeError(f"Only images of 1 or 3 channels can be written, got {channels}")
    rows = "".join(" ".join(map(str, row.reshape(-1).tolist())) + " \n" for row in image)
    return f"{kind}\n{width} {height}\n255\n{rows}"
