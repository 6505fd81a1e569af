"""The arguments of operators that resize: sizes, regions and filters."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.data_types import INTERP_LINEAR
from penstock.schema import Argument
from penstock.schema.example_data import Example

IMAGE_LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW")


VOLUME_LAYOUTS = ("DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


FILTER_ARGUMENTS = (
    Argument("antialias", "bool", True, "Widen the filter when an axis shrinks, so that nothing is skipped."),
    Argument("dtype", "DALIDataType", None, "Type of the output: that of the input (the default), or FLOAT."),
    Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking.", tensor=True),
    Argument("mag_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that grow.", tensor=True),
    Argument("min_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that shrink.", tensor=True),
    Argument("minibatch_size", "int32", 32, "Accepted for compatibility."),
    Argument("temp_buffer_hint", "int32", 0, "Accepted for compatibility."),
)


SIZE_ARGUMENTS = (
    Argument(
        "max_size",
        "float[]",
        None,
        "The maximum extent of each axis: one value, or one for each axis (D, H, W order).",
        example=[13.0],
    ),
    Argument(
        "mode",
        "string",
        "default",
        "How missing extents are derived: `default` (the scale of the others), `stretch` (unchanged), "
        "`not_larger` (fits inside), `not_smaller` (covers).",
        choices=("default", "stretch", "not_larger", "not_smaller"),
    ),
    Argument("resize_longer", "float", 0.0, "Extent of the longer axis; the other follows.", tensor=True),
    Argument("resize_shorter", "float", 0.0, "Extent of the shorter axis; the other follows.", tensor=True),
    Argument(
        "resize_x", "float", 0.0, "Output width in pixels; 0: follows from the rest; negative: mirrored.", tensor=True
    ),
    Argument(
        "resize_y", "float", 0.0, "Output height in pixels; 0: follows from the rest; negative: mirrored.", tensor=True
    ),
    Argument(
        "resize_z",
        "float",
        0.0,
        "Output depth in pixels; 0: follows from the rest; negative: mirrored. Of volumes only.",
        tensor=True,
    ),
    Argument(
        "roi_end",
        "float[]",
        None,
        "End of the region to resize, in D, H, W order; before the start: mirrored.",
        tensor=True,
        uniform=True,
    ),
    Argument("roi_relative", "bool", False, "The region is given in fractions of the input's extents."),
    Argument(
        "roi_start", "float[]", None, "Start of the region to resize, in D, H, W order.", tensor=True, uniform=True
    ),
    Argument(
        "size",
        "float[]",
        None,
        "Output extents in D, H, W order: one value, or one for each axis.",
        tensor=True,
        uniform=True,
    ),
    Argument(
        "subpixel_scale", "bool", True, "When an extent is rounded, adjust the region so that the true scale is kept."
    ),
)


_SIZED: Mapping[str, object] = {"resize_x": 20.0, "resize_y": 14.0}


SIZE_EXAMPLES = (
    Example({"size": [14.0, 20.0]}),
    Example({"resize_shorter": 12.0}),
    Example({"resize_longer": 30.0}),
    Example({**_SIZED, "roi_start": [2.0, 3.0], "roi_end": [12.0, 14.0]}),
    Example({**_SIZED, "roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True}),
)
