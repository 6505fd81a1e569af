"""What DALI's two readers of videos that the GPU decodes have in common: their arguments and the number of their outputs."""

from __future__ import annotations

from penstock.data_types import RGB, UINT8
from penstock.operators.readers._reader import READER_ARGUMENTS
from penstock.schema import Argument

VIDEO_ARGUMENTS = (
    *READER_ARGUMENTS,
    Argument(
        "additional_decode_surfaces", "int32", 2, "Surfaces that the GPU's decoder has beside the fewest it needs."
    ),
    Argument("channels", "int32", 3, "Channels of a frame."),
    Argument("dtype", "DALIDataType", UINT8, "Type of the frames: UINT8 or FLOAT."),
    Argument("enable_frame_num", "string", "none", "Give the numbers of frames."),
    Argument("enable_timestamps", "bool", False, "Give the times of the frames, in seconds."),
    Argument(
        "file_list", "string", "", "A text file: in each line a path, a label, and maybe start and end.", path=True
    ),
    Argument("file_list_frame_num", "bool", False, "Start and end are numbers of frames, not times."),
    Argument("file_list_include_preceding_frame", "bool", False, "A start between two frames means the first of them."),
    Argument("file_root", "string", "", "The folder whose folders are classes of videos.", path=True),
    Argument("filenames", "string[]", [], "Paths of the videos.", path=True),
    Argument("image_type", "DALIImageType", RGB, "Colour space of the frames: RGB or YCbCr."),
    Argument("labels", "int32[]", None, "Labels of `filenames`."),
    Argument("normalized", "bool", False, "Give frames in the range [0, 1]."),
    Argument("pad_sequences", "bool", False, "Complete a video's last sequence with black frames."),
    Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
    Argument("skip_vfr_check", "bool", False, "Do not look for a variable frame rate."),
    Argument("step", "int32", -1, "From one sequence to the next; by default they do not overlap."),
    Argument("stride", "uint32", 1, "From one frame of a sequence to the next."),
)


def count_outputs(arguments: dict[str, object]) -> int:
    """Frames, and what is asked for beside them."""
    labels = arguments.get("labels") is not None or bool(arguments.get("file_list") or arguments.get("file_root"))
    numbers = str(arguments.get("enable_frame_num") or "none") not in ("none", "False")
    return 1 + labels + numbers + bool(arguments.get("enable_timestamps"))
