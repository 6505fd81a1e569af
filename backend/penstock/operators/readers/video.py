"""`experimental.readers.video`: sequences of frames from video files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.data_types import FLOAT64, INT32, RGB, UINT8
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.kernels.codecs.video import PADDINGS, fill_frames, frames_at_rate, padded
from penstock.operators.readers._open_videos import OpenVideos
from penstock.operators.readers._reader import READER_ARGUMENTS, Reader
from penstock.schema import Argument, OutputSpec, Sample, Schema, register_operator
from penstock.schema.libraries import PYAV
from penstock.storage import join

# In seconds, and in frames: less is no difference.
_SAME = 1e-6
_FRAME_NUMBERS = ("none", "scalar", "sequence")
# Whether the start and end of a clip are rounded up.
_ROUNDINGS = {
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}


class _Source(NamedTuple):
    """A file, its label, and the part of it to read, as listed."""

    path: str
    label: int
    span: tuple[str, str] | None


class _Item(NamedTuple):
    path: str
    label: int
    frames: list[int]


def _frame_numbers(arguments: dict[str, Any]) -> str:
    """`enable_frame_num` as one of its names; booleans select the first."""
    value = arguments.get("enable_frame_num", "none")
    if isinstance(value, bool) or value in ("True", "False"):
        return "scalar" if str(value) == "True" else "none"
    return value or "none"


def _has_labels(arguments: dict[str, object]) -> bool:
    return arguments.get("labels") is not None or bool(arguments.get("file_list") or arguments.get("file_root"))


def _count_outputs(arguments: dict[str, object]) -> int:
    numbers = _frame_numbers(arguments) != "none"
    return 1 + _has_labels(arguments) + numbers + bool(arguments.get("enable_timestamps"))


@register_operator
class Video(Reader):
    """Returns sequences of frames (uint8, FHWC, RGB), then labels, frame numbers and timestamps if asked for.

    Any format that FFmpeg reads is decoded on the CPU (DALI's CPU reader takes VP8, VP9 and MJPEG only). Needs PyAV:
    ``pip install penstock[video]``.

    >>> clips = fn.experimental.readers.video(filenames=["a.mp4"], sequence_length=16, stride=2)  # doctest: +SKIP
    """

    nothing_to_read = "The number of input samples: 0, needs to be at least equal to the requested number of shards"

    schema = Schema(
        name="experimental__readers__Video",
        devices=("cpu", "gpu"),
        needs=(PYAV,),
        arguments=(
            *READER_ARGUMENTS,
            Argument(
                "enable_frame_num",
                "object",
                "none",
                "Return the number of the first frame (`scalar`), of all frames (`sequence`), or nothing (`none`).",
            ),
            Argument("enable_timestamps", "bool", False, "Return the frames' timestamps, in seconds."),
            Argument(
                "file_list",
                "string",
                "",
                "A text file: in each line a path, a label, and optionally start and end.",
                path=True,
            ),
            Argument("file_list_format", "string", "timestamps", "Start and end are `timestamps` or `frames`."),
            Argument("file_list_include_end", "bool", True, "Accepted for compatibility: the end is excluded."),
            Argument(
                "file_list_rounding",
                "string",
                "start_down_end_up",
                "Rounding of times between frames: `start_down_end_up`, `start_up_end_down`, `all_up` or `all_down`.",
            ),
            Argument("file_root", "string", "", "The folder whose folders are the classes.", path=True),
            Argument("filenames", "string[]", [], "Paths of the videos.", path=True),
            Argument("fill_value", "int32[]", [0], 'Colour of frames past the end, with pad_mode="constant".'),
            Argument(
                "fps",
                "float",
                0.0,
                "Frames per second: frames are repeated and left out, as their times tell, before sequences are "
                "formed; 0: as recorded. Not in DALI.",
            ),
            Argument("image_type", "DALIImageType", RGB, "RGB; other colour spaces are not supported yet."),
            Argument("labels", "int32[]", None, "Labels of `filenames`."),
            Argument("pad_mode", "string", "none", "How a video's last sequence is completed; see `decoders.video`."),
            Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
            Argument("step", "int32", -1, "Distance between sequences; by default they do not overlap."),
            Argument("stride", "uint32", 1, "Distance between the frames of a sequence."),
            Argument(
                "uniform_sample",
                "bool",
                False,
                "Return one sequence per video, with evenly spaced frames; `stride`, `step` and `pad_mode` have "
                "no effect.",
            ),
        ),
        outputs=_count_outputs,
        random=True,
        stateful=True,
    )

    decodes = True

    def setup(self) -> None:
        args = self.args
        if sum(bool(args[name]) for name in ("filenames", "file_list", "file_root")) != 1:
            raise ValueError("One of `filenames`, `file_list` and `file_root` must be given, and no more")
        if args["labels"] is not None and len(args["labels"]) != len(args["filenames"]):
            raise ValueError(
                "Number of provided files and labels should match. Provided "
                f"{len(args['filenames'])} files and {len(args['labels'])} labels."
            )
        if args["sequence_length"] < 1 or args["stride"] < 1:
            raise ValueError(
                f"Sequence length and stride must be positive, got {args['sequence_length']} and {args['stride']}"
            )
        if args["pad_mode"] not in PADDINGS:
            raise ValueError(f"Invalid pad_mode: {args['pad_mode']}. Use one of {', '.join(PADDINGS)}")
        if args["image_type"] != RGB:
            raise ValueError("Videos are decoded to RGB: use `color_space_conversion` after the reader")
        self._numbers = _frame_numbers({"enable_frame_num": args["enable_frame_num"]})
        if self._numbers not in _FRAME_NUMBERS:
            raise ValueError(f"Invalid enable_frame_num: {self._numbers}. Use one of {', '.join(_FRAME_NUMBERS)}")
        for name, known in (("file_list_format", ("timestamps", "frames")), ("file_list_rounding", _ROUNDINGS)):
            if args[name] not in known:
                raise ValueError(f"Invalid {name}: {args[name]}. Use one of {', '.join(known)}")
        self._labelled = _has_labels({name: args[name] for name in ("labels", "file_list", "file_root")})
        super().setup()

    def list_items(self) -> Sequence[_Item]:
        self._videos = OpenVideos(self.files)
        return [item for source in self._sources() for item in self._sequences(source)]

    def _sources(self) -> Iterator[_Source]:
        args = self.args
        if args["filenames"]:
            labels = args["labels"] or [0] * len(args["filenames"])
            yield from (_Source(path, label, None) for path, label in zip(args["filenames"], labels))
        elif args["file_root"]:
            for label, folder in enumerate(self.files.list_folder(args["file_root"])[1]):
                for name in self.files.list_folder(join(args["file_root"], folder))[0]:
                    yield _Source(join(args["file_root"], f"{folder}/{name}"), label, None)
        else:
            for number, line in enumerate(self.files.read_text(args["file_list"]).splitlines(), 1):
                if line.strip():
                    yield _listed(line.split(), f"'{args['file_list']}':{number}")

    def _sequences(self, source: _Source) -> Iterator[_Item]:
        length, stride, step = (self.args[name] for name in ("sequence_length", "stride", "step"))
        index = self._videos.index(source.path)
        start, end = _part(source.span, index.times, self.args["file_list_format"], self.args["file_list_rounding"])
        shown = np.arange(start, end)
        if self.args["fps"] > 0 and end > start:
            shown = start + frames_at_rate(index.times[start:end], self.args["fps"])
        if self.args["uniform_sample"]:
            if shown.size:
                places = np.floor(np.linspace(0, shown.size - 1, length) + 0.5).astype(int)
                yield _Item(source.path, source.label, shown[places].tolist())
            return
        reach = (length - 1) * stride + 1
        padding = PADDINGS[self.args["pad_mode"]] is not None
        count = shown.size if padding else shown.size - reach + 1
        for first in range(0, count, step if step > 0 else length * stride):
            wanted = padded(range(first, first + length * stride, stride), shown.size, self.args["pad_mode"])
            frames = [int(shown[place]) if place >= 0 else place for place in wanted]
            yield _Item(source.path, source.label, frames)

    def grouped(self, items: Sequence[_Item]) -> list[list[int]]:
        """Sequences that continue others, in one file: a second decoder would have to decode what lies between."""
        groups: list[list[int]] = []
        last: _Item | None = None
        for position in sorted(range(len(items)), key=lambda position: (items[position].path, items[position].frames)):
            item = items[position]
            if last is not None and last.path == item.path:
                continues = self._videos.key_before(item.path, max(item.frames[0], 0)) <= max(last.frames)
            else:
                continues = False
            if continues:
                groups[-1].append(position)
            else:
                groups.append([position])
            last = item
        return groups

    def output_specs(self) -> list[OutputSpec]:
        specs = [OutputSpec(UINT8, "FHWC", 4)]
        if self._labelled:
            specs.append(OutputSpec(INT32, "", 1))
        if self._numbers != "none":
            specs.append(OutputSpec(INT32, "", 1))
        return [*specs, OutputSpec(FLOAT64, "", 1)] if self.args["enable_timestamps"] else specs

    def read(self, item: _Item) -> list[np.ndarray]:
        return self._read(item, UNLIMITED)

    def read_sample(self, item: _Item, sample: Sample) -> list[np.ndarray]:
        return self._read(item, sample.workspace.decoding.limits)

    def _read(self, item: _Item, limits: Limits) -> list[np.ndarray]:
        with self._videos.lent(item.path, min(item.frames), limits) as video:
            limits.check_video(len(item.frames), video.shape)
            shape = len(item.frames), *video.shape
            frames = self.memory.take(math.prod(shape)).reshape(shape)
            fill_frames(video, item.frames, self.args["fill_value"], frames)
            times = video.times
        outputs = [frames]
        if self._labelled:
            outputs.append(np.array([item.label], np.int32))
        if self._numbers != "none":
            outputs.append(np.array(item.frames if self._numbers == "sequence" else item.frames[:1], np.int32))
        if self.args["enable_timestamps"]:
            outputs.append(np.array([times[frame] if frame >= 0 else -1.0 for frame in item.frames]))
        return outputs

    def source_info(self, item: _Item, output: int) -> str:
        return item.path if output == 0 else ""


def _listed(words: list[str], place: str) -> _Source:
    if len(words) not in (2, 4):
        raise ValueError(
            f"Incorrect format of the list file {place}: expected a path, a label, and maybe start and end"
        )
    if int(words[1]) < 0:
        raise ValueError(f"Label value should be >= 0 in the list file {place}, got {words[1]}")
    return _Source(words[0], int(words[1]), (words[2], words[3]) if len(words) == 4 else None)


def _part(span: tuple[str, str] | None, times: np.ndarray, form: str, rounding: str) -> tuple[int, int]:
    """The first frame of the listed part of a video, and the one after the last."""
    count = len(times)
    if span is None:
        return 0, count
    if form == "frames":
        start, end = map(int, span)
    else:
        start, end = (_frame_at(float(time), times, up) for time, up in zip(span, _ROUNDINGS[rounding]))
    start, end = (value + count if value < 0 else value for value in (start, end))
    return max(start, 0), min(end, count)


def _frame_at(time: float, times: np.ndarray, up: bool) -> int:
    """The frame that is shown from a time in seconds on, or the next or previous one; negative: from the end."""
    interval = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1.0
    if time < 0:
        return math.ceil(time / interval - _SAME) if up else math.floor(time / interval + _SAME)
    bounds = np.append(times, times[-1] + interval)
    return int(np.searchsorted(bounds, time - _SAME) if up else np.searchsorted(bounds, time + _SAME, "right") - 1)
