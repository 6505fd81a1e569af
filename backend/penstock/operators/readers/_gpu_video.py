"""The arguments and outputs of DALI's two readers that decode videos on the GPU."""

from __future__ import annotations

from penstock.data_types import RGB, UINT8
from penstock.operators.readers._reader import READER_ARGUMENTS
from penstock.schema import Argument

VIDEO_ARGUMENTS = (
    *READER_ARGUMENTS,
    Argument("additional_decode_surfaces", "int32", 2, "Surfaces of the GPU's decoder in addition to the minimum."),
    Argument("channels", "int32", 3, "Channels of a frame."),
    Argument("dtype", "DALIDataType", UINT8, "Type of the frames: UINT8 or FLOAT."),
    Argument("enable_frame_num", "string", "none", "Return frame numbers."),
    Argument("enable_timestamps", "bool", False, "Return the frames' timestamps, in seconds."),
    Argument(
        "file_list", "string", "", "A text file: in each line a path, a label, and optionally start and end.", path=True
    ),
    Argument("file_list_frame_num", "bool", False, "Start and end are frame numbers, not times."),
    Argument(
        "file_list_include_preceding_frame", "bool", False, "A start between two frames selects the first of them."
    ),
    Argument("file_root", "string", "", "The folder whose folders are the classes.", path=True),
    Argument("filenames", "string[]", [], "Paths of the videos.", path=True),
    Argument("image_type", "DALIImageType", RGB, "Colour space of the frames: RGB or YCbCr."),
    Argument("labels", "int32[]", None, "Labels of `filenames`."),
    Argument("normalized", "bool", False, "Return frames in the range [0, 1]."),
    Argument("pad_sequences", "bool", False, "Pad a video's last sequence with black frames."),
    Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
    Argument("skip_vfr_check", "bool", False, "Do not check for a variable frame rate."),
    Argument("step", "int32", -1, "Distance between sequences; by default they do not overlap."),
    Argument("stride", "uint32", 1, "Distance between the frames of a sequence."),
)


def count_outputs(arguments: dict[str, object]) -> int:
    """The number of outputs: frames, and any further ones requested."""
    labels = arguments.get("labels") is not None or bool(arguments.get("file_list") or arguments.get("file_root"))
    numbers = str(arguments.get("enable_frame_num") or "none") not in ("none", "False")
    return 1 + labels + numbers + bool(arguments.get("enable_timestamps"))
