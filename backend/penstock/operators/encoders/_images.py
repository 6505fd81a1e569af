"""The base class of the image encoders."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.encoders._files import FileEncoder
from penstock.operators.postprocessing._rows import Rows, Tables
from penstock.schema import Input, OutputSpec, Sample, Workspace

_reordered = ThreadBuffers()
IMAGES = Input("images", ("HWC",), doc="Images of uint8: RGB, gray (1 channel) or, where the format has it, RGBA.")


class ImageEncoder(FileEncoder):
    """Base class of encoders that encode each image with OpenCV.

    Attributes:
        suffix: the suffix of the format's files, by which OpenCV chooses the format.
        channels: the supported numbers of channels.
        max_extent: the greatest height and width, in pixels.
    """

    suffix: ClassVar[str]
    channels: ClassVar[tuple[int, ...]]
    max_extent: ClassVar[int]

    def parameters(self, sample: Sample) -> list[int]:
        """Return OpenCV's parameters for a sample: a list of flags, each followed by its value."""
        raise NotImplementedError(f"{type(self).__name__} must implement `parameters`")

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8, got {dtype_name(batch.dtype)}: scale and cast them first")
        return [OutputSpec(UINT8, "", 1)]

    def encode(self, sample: Sample) -> np.ndarray:
        """Encode an image; return the file's bytes, uint8 of shape (bytes,).

        Raises:
            ValueError: the image is empty, or the format does not support its shape.
            RuntimeError: OpenCV failed.
        """
        from penstock.kernels.cpu.opencv import opencv

        image, parameters, cv2 = sample.inputs[0], self.parameters(sample), opencv()
        height, width, channels = image.shape
        if channels not in self.channels or not 1 <= min(height, width) <= max(height, width) <= self.max_extent:
            raise ValueError(
                f"Images must have {' or '.join(map(str, self.channels))} channels, and from 1 to {self.max_extent} pixels along each "
                f"side. Got the shape: {list(image.shape)}"
            )
        pixels = np.ascontiguousarray(image)
        if channels > 1:
            order = cv2.COLOR_RGB2BGR if channels == 3 else cv2.COLOR_RGBA2BGRA
            pixels = cv2.cvtColor(pixels, order, dst=_reordered.array(pixels.shape, pixels.dtype))
        done, file = cv2.imencode(self.suffix, pixels, parameters)
        if not done:
            raise RuntimeError(f"OpenCV cannot encode an image of shape {list(image.shape)} as {self.suffix}")
        return file.reshape(-1)


def check_range(name: str, value: int, least: int, most: int) -> int:
    """Return the value; raise ValueError, which names the argument, unless the value is from ``least`` to ``most``."""
    if not least <= value <= most:
        raise ValueError(f"`{name}` must be from {least} to {most}. Got: {value}")
    return value
