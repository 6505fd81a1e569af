"""The arguments of DALI's readers that decode videos on a GPU, and their meaning."""

from __future__ import annotations

from penstock.data_types import FLOAT, UINT8
from penstock.operators.readers._video_arguments import COMMON_ARGUMENTS
from penstock.operators.readers._video_reader import Choices, VideoReader, frame_numbers
from penstock.schema import Argument

GPU_VIDEO_ARGUMENTS = (
    *COMMON_ARGUMENTS,
    Argument("additional_decode_surfaces", "int32", 2, "Accepted for compatibility: frames are copied where needed."),
    Argument("channels", "int32", 3, "Accepted for compatibility: `image_type` decides."),
    Argument(
        "dtype",
        "DALIDataType",
        UINT8,
        "Type of the frames: UINT8 or FLOAT, which on a GPU is neither rounded nor limited to 0 to 255.",
    ),
    Argument(
        "enable_frame_num",
        "string",
        "none",
        "Return the number of the first frame (`scalar`), of all frames (`sequence`), or nothing (`none`).",
    ),
    Argument("file_list_frame_num", "bool", False, "Start and end are frame numbers, not times."),
    Argument(
        "file_list_include_preceding_frame", "bool", False, "A start between two frames selects the first of them."
    ),
    Argument("normalized", "bool", False, "Return frames in the range [0, 1]; needs FLOAT."),
    Argument("pad_sequences", "bool", False, "Complete a video's last sequence with black frames."),
    Argument("skip_vfr_check", "bool", False, "Accepted for compatibility: frames may be of any length."),
)


class GpuVideoReader(VideoReader):
    """Base class of `readers.video` and `readers.video_resize`."""

    def choices(self) -> Choices:
        args = self.args
        if args["dtype"] not in (UINT8, FLOAT):
            raise ValueError(f"Unsupported output type: {args['dtype']}. Frames can be of UINT8 or FLOAT")
        if args["normalized"] and args["dtype"] != FLOAT:
            raise ValueError("Frames in the range [0, 1] need dtype=FLOAT")
        return Choices(
            pad_mode="constant" if args["pad_sequences"] else "none",
            numbers=frame_numbers({"enable_frame_num": args["enable_frame_num"]}),
            span_format="frames" if args["file_list_frame_num"] else "timestamps",
            rounding="start_down_end_up" if args["file_list_include_preceding_frame"] else "start_up_end_down",
            fill=[0],
            image_type=args["image_type"],
            dtype=args["dtype"],
            factor=1 / 255 if args["normalized"] else 1.0,
        )
