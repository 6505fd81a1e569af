"""`resize`: images, volumes and sequences of images in another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.image._resizing import ResizingOperator
from penstock.schema import (
    Alias,
    Argument,
    Deprecation,
    Input,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.types import INT32, INTERP_LINEAR


@register_operator
class Resize(ResizingOperator):
    """Resamples images to another size with a separable filter.

    The middle of output pixel j lies at ``(j + 0.5) * scale - 0.5`` in the input; beyond the border the nearest pixel
    is taken.
    """

    schema = Schema(
        name="Resize",
        inputs=(
            Input(
                "input",
                ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW"),
                doc="Images of uint8, int16, uint16 or float.",
            ),
        ),
        arguments=(
            Argument("antialias", "bool", True, "Widen the filter when an axis shrinks, so that nothing is skipped."),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "image_type",
                "DALIImageType",
                None,
                "Colour space of the input.",
                deprecated=Deprecation("0.25", removed=True),
            ),
            Argument(
                "interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking.", tensor=True
            ),
            Argument("mag_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that grow.", tensor=True),
            Argument(
                "max_size",
                "float[]",
                None,
                "The most that each axis may have: one value, or one for each axis (D, H, W order).",
            ),
            Argument("min_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that shrink.", tensor=True),
            Argument("minibatch_size", "int32", 32, "Accepted for compatibility."),
            Argument(
                "mode",
                "string",
                "default",
                "How sizes that are not given follow: `default` (same scale), `stretch` (unchanged), `not_larger` (fits inside), "
                "`not_smaller` (covers).",
            ),
            Argument("resize_longer", "float", 0.0, "Extent of the longer axis; the other follows.", tensor=True),
            Argument("resize_shorter", "float", 0.0, "Extent of the shorter axis; the other follows.", tensor=True),
            Argument(
                "resize_x",
                "float",
                0.0,
                "Output width in pixels; 0: follows from the rest; negative: mirrored.",
                tensor=True,
            ),
            Argument(
                "resize_y",
                "float",
                0.0,
                "Output height in pixels; 0: follows from the rest; negative: mirrored.",
                tensor=True,
            ),
            Argument(
                "resize_z",
                "float",
                0.0,
                "Output depth in pixels; 0: follows from the rest; negative: mirrored.",
                tensor=True,
            ),
            Argument(
                "roi_end",
                "float[]",
                None,
                "End of the region to resize, in D, H, W order; before the start: mirrored.",
                tensor=True,
            ),
            Argument("roi_relative", "bool", False, "The region is given in fractions of the input's extents."),
            Argument("roi_start", "float[]", None, "Start of the region to resize, in D, H, W order.", tensor=True),
            Argument("save_attrs", "bool", False, "A second output holds the input's extents (INT32: D, H, W)."),
            Argument(
                "size",
                "float[]",
                None,
                "Output extents in D, H, W order: one value, or one for each axis.",
                tensor=True,
            ),
            Argument(
                "subpixel_scale",
                "bool",
                True,
                "When an extent is rounded, adjust the region so that the true scale is kept.",
            ),
            Argument("temp_buffer_hint", "int32", 0, "Accepted for compatibility."),
        ),
        outputs=lambda arguments: 2 if arguments.get("save_attrs") else 1,
        volumetric=True,
        aliases=(Alias("experimental__Resize"),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        specs = super().describe(workspace)
        return [*specs, OutputSpec(INT32, "", 1)] if self.args["save_attrs"] else specs

    def infer(self, sample: Sample) -> Any:
        shape = super().infer(sample)
        return [shape, (sample.workspace.state[1],)] if self.args["save_attrs"] else shape

    def compute(self, sample: Sample) -> None:
        super().compute(sample)
        if self.args["save_attrs"]:
            sample.outputs[1][...] = self._extents(sample)

    def compute_batch(self, workspace: Workspace) -> None:
        super().compute_batch(workspace)
        if self.args["save_attrs"]:
            for sample in workspace.live:
                sample.outputs[1].set(self._extents(sample))

    def _extents(self, sample: Sample) -> np.ndarray:
        first, count = sample.workspace.state
        return np.array(sample.shapes[0][first : first + count], np.int32)
