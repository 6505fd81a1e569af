"""The arguments that all readers of videos have."""

from __future__ import annotations

from penstock.data_types import RGB
from penstock.operators.readers._reader import READER_ARGUMENTS
from penstock.schema import Argument

AUDIO = Argument(
    "enable_audio",
    "bool",
    False,
    "Also return the sound from the start of the first frame to the end of the last: float32 of shape (time, channels), from -1 "
    "to 1, and its rate in Hz. Without a sound track: shape (0, 1), and rate 0. Not in DALI.",
)
IMAGE_TYPE = Argument(
    "image_type", "DALIImageType", RGB, "Colour space of the frames: RGB, GRAY (not in DALI), or YCbCr in studio range."
)
COMMON_ARGUMENTS = (
    *READER_ARGUMENTS,
    AUDIO,
    Argument("enable_timestamps", "bool", False, "Return the frames' timestamps, in seconds."),
    Argument(
        "file_list", "string", "", "A text file: in each line a path, a label, and optionally start and end.", path=True
    ),
    Argument("file_root", "string", "", "The folder whose folders are the classes.", path=True),
    Argument("filenames", "string[]", [], "Paths of the videos.", path=True),
    IMAGE_TYPE,
    Argument("labels", "int32[]", None, "Labels of `filenames`; an empty list: their numbers."),
    Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
    Argument("step", "int32", -1, "Distance between sequences; by default they do not overlap."),
    Argument("stride", "uint32", 1, "Distance between the frames of a sequence."),
)
