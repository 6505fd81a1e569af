"""`experimental.readers.video`: reads sequences of frames from video files."""

from __future__ import annotations

from penstock.kernels.codecs.video_frames import PADDINGS
from penstock.operators.readers._video_arguments import COMMON_ARGUMENTS
from penstock.operators.readers._video_reader import ROUNDINGS, Choices, VideoReader, count_outputs, frame_numbers
from penstock.schema import Argument, Schema, register_operator
from penstock.schema.libraries import PYAV


@register_operator
class Video(VideoReader):
    """Returns sequences of frames (uint8, FHWC), then labels, frame numbers, timestamps and sound if requested.

    The CPU decodes any format that FFmpeg supports (DALI's CPU reader supports VP8, VP9 and MJPEG only). With a GPU, its video engine
    (NVDEC) decodes the files that it supports, the CPU all others. Needs PyAV: ``pip install penstock-triton[video]``.

    >>> clips = fn.experimental.readers.video(filenames=["a.mp4"], sequence_length=16, stride=2)  # doctest: +SKIP
    """

    schema = Schema(
        name="experimental__readers__Video",
        devices=("cpu", "gpu"),
        needs=(PYAV,),
        arguments=(
            *COMMON_ARGUMENTS,
            Argument(
                "enable_frame_num",
                "object",
                "none",
                "Return the number of the first frame (`scalar`), of all frames (`sequence`), or nothing (`none`).",
            ),
            Argument("file_list_format", "string", "timestamps", "Start and end are `timestamps` or `frames`."),
            Argument("file_list_include_end", "bool", True, "Accepted for compatibility: the end is excluded."),
            Argument(
                "file_list_rounding",
                "string",
                "start_down_end_up",
                "Rounding of times between frames: `start_down_end_up`, `start_up_end_down`, `all_up` or `all_down`.",
            ),
            Argument("fill_value", "int32[]", [0], 'Colour of frames past the end, with pad_mode="constant".'),
            Argument(
                "fps",
                "float",
                0.0,
                "Frames per second: frames are repeated or dropped according to their times, before sequences are "
                "formed; 0: as recorded. Not in DALI.",
            ),
            Argument("pad_mode", "string", "none", "How a video's last sequence is completed; see `decoders.video`."),
            Argument(
                "uniform_sample",
                "bool",
                False,
                "Return one sequence per video, with evenly spaced frames; `stride`, `step` and `pad_mode` have "
                "no effect.",
            ),
        ),
        outputs=count_outputs,
        random=True,
        stateful=True,
    )

    def choices(self) -> Choices:
        args = self.args
        if args["pad_mode"] not in PADDINGS:
            raise ValueError(f"Invalid pad_mode: {args['pad_mode']}. Use one of {', '.join(PADDINGS)}")
        for name, known in (("file_list_format", ("timestamps", "frames")), ("file_list_rounding", ROUNDINGS)):
            if args[name] not in known:
                raise ValueError(f"Invalid {name}: {args[name]}. Use one of {', '.join(known)}")
        return Choices(
            pad_mode=args["pad_mode"],
            numbers=frame_numbers({"enable_frame_num": args["enable_frame_num"]}),
            span_format=args["file_list_format"],
            rounding=args["file_list_rounding"],
            fill=args["fill_value"],
            fps=args["fps"],
            uniform=args["uniform_sample"],
            image_type=args["image_type"],
        )
