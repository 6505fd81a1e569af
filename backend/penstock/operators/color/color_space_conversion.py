"""`color_space_conversion`: converts between RGB, BGR, grey and YCbCr."""

from __future__ import annotations

import numpy as np

from penstock.data_types import ANY_DATA, BGR, GRAY, RGB, UINT8, DALIImageType, YCbCr, dtype_name
from penstock.kernels.colour import COARSE_LUMA, FROM_YCBCR, LUMA, TO_YCBCR, YCBCR_OFFSET
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo


@register_operator
class ColorSpaceConversion(Operator):
    """Converts between colour spaces; YCbCr is ITU-R BT.601 in studio range."""

    schema = Schema(
        name="ColorSpaceConversion",
        inputs=(
            Input(
                "input",
                ("FDHWC", "FHWC", "DHWC", "HWC"),
                doc="Images of uint8, channels last.",
            ),
        ),
        arguments=(
            Argument("image_type", "DALIImageType", doc="Colour space of the input.", required=True),
            Argument("output_type", "DALIImageType", doc="Colour space of the output.", required=True),
        ),
        volumetric=True,
        examples=(Example({"image_type": RGB, "output_type": YCbCr}),),
        shown=(
            on_photo(image_type=RGB, output_type=GRAY),
            on_photo(image_type=RGB, output_type=YCbCr),
        ),
        equivalents=(
            Equivalent(
                "cv2.cvtColor",
                "Its YCrCb has the full range and another order of channels; here YCbCr is in studio range.",
            ),
            Equivalent("PIL.Image.Image.convert", "Its YCbCr has the full range, as in JPEG files."),
            Equivalent(
                "torchvision.transforms.v2.functional.rgb_to_grayscale", "It drops fractions, which are rounded here."
            ),
        ),
    )

    def setup(self) -> None:
        for name in ("image_type", "output_type"):
            if self.args[name] == ANY_DATA:
                raise RuntimeError(f"`{name}` must be one of RGB, BGR, GRAY and YCbCr, got ANY_DATA")
        if self.args["image_type"] == self.args["output_type"]:
            raise RuntimeError(f"The conversion from {self.args['image_type'].name} to itself is not supported")
        self.matrix, self.offset = conversion(self.args["image_type"], self.args["output_type"])

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(
                f"Color space conversion is supported only for uint8 input, got {dtype_name(batch.dtype)}"
            )
        return [OutputSpec(UINT8, self.input_layout(workspace), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if shape[-1] != self.matrix.shape[1]:
            raise RuntimeError(
                f"Images of {self.args['image_type'].name} have channels. Expected {self.matrix.shape[1]}. Got {shape[-1]} in shape {list(shape)}"
            )
        return (*shape[:-1], self.matrix.shape[0])

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.colour import scale_add, to_grey, transform

        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not source.size:
            if YCbCr in (self.args["image_type"], self.args["output_type"]):
                return
            raise RuntimeError(f"Cannot convert an empty image of shape {list(source.shape)}")
        if self.args["output_type"] == GRAY and self.args["image_type"] != YCbCr:
            to_grey(source, COARSE_LUMA if self.args["image_type"] == RGB else COARSE_LUMA[::-1], target)
        elif self.args["image_type"] == BGR and self.args["output_type"] == YCbCr:
            # The order of channels is reversed, so that red is weighted first, as in DALI.
            transform(np.ascontiguousarray(source[..., ::-1]), self.matrix[:, ::-1], self.offset, target)
        elif self.matrix.shape[1] == 3:
            transform(source, self.matrix, self.offset, target)
        else:
            for channel in range(target.shape[-1]):
                plane = np.empty(source.shape, np.uint8)
                scale_add(source, float(self.matrix[channel, 0]), float(self.offset[channel]), plane)
                target[..., channel] = plane[..., 0]

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.colour import transform_colours
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        transform_colours([(source, self.matrix, self.offset, target) for source, target in zip(sources, targets)])


def conversion(source: DALIImageType, target: DALIImageType) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix (channels out, channels in) and the offset of a conversion."""
    to_rgb, rgb_offset = _to_rgb(source)
    from_rgb, offset = _from_rgb(target)
    if source == YCbCr and target == GRAY:
        return np.array([[255 / 219, 0, 0]]), np.array([-16 * 255 / 219])
    return from_rgb @ to_rgb, from_rgb @ rgb_offset + offset


def _to_rgb(source: DALIImageType) -> tuple[np.ndarray, np.ndarray]:
    if source == GRAY:
        return np.ones((3, 1)), np.zeros(3)
    if source == YCbCr:
        return FROM_YCBCR, -FROM_YCBCR @ YCBCR_OFFSET
    return (np.eye(3) if source == RGB else np.eye(3)[::-1]), np.zeros(3)


def _from_rgb(target: DALIImageType) -> tuple[np.ndarray, np.ndarray]:
    if target == GRAY:
        return LUMA[None], np.zeros(1)
    if target == YCbCr:
        return TO_YCBCR, YCBCR_OFFSET
    return (np.eye(3)[::-1] if target == BGR else np.eye(3)), np.zeros(3)
