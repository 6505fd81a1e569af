"""The base class of the readers of video files, which chooses sequences of frames and reads them."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.data_types import FLOAT, FLOAT64, INT32, RGB, UINT8, DALIDataType, DALIImageType, numpy_dtype
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.kernels.codecs.video import Video, fill_frames, fill_sound, sound_rate, sound_shape
from penstock.kernels.codecs.video_frames import PADDINGS, frames_at_rate, padded
from penstock.kernels.codecs.video_pixels import channels_of, check_image_type
from penstock.operators.readers._open_videos import OpenVideos
from penstock.operators.readers._reader import Reader, sample_batch
from penstock.schema import OutputSpec, Sample, Workspace
from penstock.storage import join
from penstock.tensors import TensorListGPU

# On a GPU, one thread for each 100,000 pixels of a frame, and at least two. More threads would wait for the GIL: Python code takes up
# to 0.1 ms for each frame, and an engine takes 0.2 ms for a small frame.
_PIXELS_PER_THREAD: Final = 100_000
_MIN_THREADS: Final = 2
# Times that differ by less than this, in seconds or in frames, count as equal.
_TIME_TOLERANCE: Final = 1e-6
FRAME_NUMBERS = ("none", "scalar", "sequence")
# Whether the start of a clip is rounded up, and whether its end is; otherwise they are rounded down.
ROUNDINGS = {
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}


class _Source(NamedTuple):
    """A file, its label, and the start and end of the part to read, as text from the file list; None: read the whole file."""

    path: str
    label: int
    span: tuple[str, str] | None


class Clip(NamedTuple):
    """A sequence of frames of a file, with the file's label and the numbers of the frames."""

    path: str
    label: int
    frames: list[int]


@dataclass(frozen=True)
class Choices:
    """How a reader of videos chooses and returns frames; see the arguments of `experimental.readers.video`.

    Attributes:
        numbers: which frame numbers to return, one of :data:`FRAME_NUMBERS`.
        span_format: the unit of starts and ends in file lists: `timestamps` or `frames`.
        rounding: how to round starts and ends, one of :data:`ROUNDINGS`.
        factor: the factor by which pixels are multiplied if ``dtype`` is FLOAT.
    """

    pad_mode: str
    numbers: str
    span_format: str
    rounding: str
    fill: list[int]
    fps: float = 0.0
    uniform: bool = False
    image_type: DALIImageType = RGB
    dtype: DALIDataType = UINT8
    factor: float = 1.0


def frame_numbers(arguments: dict[str, Any]) -> str:
    """Return the argument `enable_frame_num` as one of :data:`FRAME_NUMBERS`: True means `scalar`, False `none`."""
    value = arguments.get("enable_frame_num", "none")
    if isinstance(value, bool) or value in ("True", "False"):
        return "scalar" if str(value) == "True" else "none"
    return value or "none"


def has_labels(arguments: dict[str, Any]) -> bool:
    """Return whether labels are among the outputs."""
    return arguments.get("labels") is not None or bool(arguments.get("file_list") or arguments.get("file_root"))


def count_outputs(arguments: dict[str, Any]) -> int:
    """Return the number of outputs: the frames, and all outputs that the arguments request."""
    more = frame_numbers(arguments) != "none", arguments.get("enable_timestamps")
    return 1 + has_labels(arguments) + sum(map(bool, more)) + 2 * bool(arguments.get("enable_audio"))


class VideoReader(Reader):
    """Base class of the readers of video files. A concrete class maps its arguments to :class:`Choices`."""

    nothing_to_read = "The number of input samples: 0, needs to be at least equal to the requested number of shards"
    decodes = True

    @abstractmethod
    def choices(self) -> Choices:
        """Return how to choose and return frames, from the reader's arguments."""

    def setup(self) -> None:
        args = self.args
        if sum(bool(args[name]) for name in ("filenames", "file_list", "file_root")) != 1:
            raise ValueError("One of `filenames`, `file_list` and `file_root` must be given, and no more")
        if args["labels"] and len(args["labels"]) != len(args["filenames"]):
            raise ValueError(
                "Number of provided files and labels should match. Provided "
                f"{len(args['filenames'])} files and {len(args['labels'])} labels."
            )
        if args["sequence_length"] < 1 or args["stride"] < 1:
            raise ValueError(
                f"Sequence length and stride must be positive, got {args['sequence_length']} and {args['stride']}"
            )
        numbers = frame_numbers({"enable_frame_num": args["enable_frame_num"]})
        if numbers not in FRAME_NUMBERS:
            raise ValueError(f"Invalid enable_frame_num: {numbers}. Use one of {', '.join(FRAME_NUMBERS)}")
        self._choices = self.choices()
        check_image_type(self._choices.image_type)
        self._labelled = has_labels({name: args[name] for name in ("labels", "file_list", "file_root")})
        super().setup()

    # -- sequences ---------------------------------------------------------------------------------------------

    def list_items(self) -> Sequence[Clip]:
        self._videos = OpenVideos(self.files)
        return [item for source in self._sources() for item in self._sequences(source)]

    def _sources(self) -> Iterator[_Source]:
        args = self.args
        if args["filenames"]:
            # With an empty list of labels, the label of a file is its position in the list of files.
            labels = [0] * len(args["filenames"]) if args["labels"] is None else args["labels"]
            numbered = labels or range(len(args["filenames"]))
            yield from (_Source(path, label, None) for path, label in zip(args["filenames"], numbered))
        elif args["file_root"]:
            for label, folder in enumerate(self.files.list_folder(args["file_root"])[1]):
                for name in self.files.list_folder(join(args["file_root"], folder))[0]:
                    yield _Source(join(args["file_root"], f"{folder}/{name}"), label, None)
        else:
            for number, line in enumerate(self.files.read_text(args["file_list"]).splitlines(), 1):
                if line.strip():
                    yield _listed(line.split(), f"'{args['file_list']}':{number}")

    def _sequences(self, source: _Source) -> Iterator[Clip]:
        length, stride, step = (self.args[name] for name in ("sequence_length", "stride", "step"))
        choices = self._choices
        index = self._videos.index(source.path)
        start, end = _part(source.span, index.times, choices.span_format, choices.rounding)
        shown = np.arange(start, end)
        if choices.fps > 0 and end > start:
            shown = start + frames_at_rate(index.times[start:end], choices.fps)
        if choices.uniform:
            if shown.size:
                places = np.floor(np.linspace(0, shown.size - 1, length) + 0.5).astype(int)
                yield Clip(source.path, source.label, shown[places].tolist())
            return
        reach = (length - 1) * stride + 1
        padding = PADDINGS[choices.pad_mode] is not None
        count = shown.size if padding else shown.size - reach + 1
        for first in range(0, count, step if step > 0 else length * stride):
            wanted = padded(range(first, first + length * stride, stride), shown.size, choices.pad_mode)
            frames = [int(shown[place]) if place >= 0 else place for place in wanted]
            yield Clip(source.path, source.label, frames)

    def grouped(self, items: Sequence[Clip]) -> list[list[int]]:
        """Return the positions of sequences in groups, each for one decoder. Sequences of a file form a group if decoding for the second
        would start before the end of the first, so that a separate decoder would decode the same frames again.
        """
        groups: list[list[int]] = []
        last: Clip | None = None
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

    def _shared(self, groups: Sequence[Sequence[int]], items: Sequence[Clip], threads: int) -> list[list[int]]:
        """Split groups so that all threads have work, since one thread cannot keep all engines of a GPU busy.

        A group is split where a thread's share of frames is reached, but only if the second part has to decode at most as many frames
        again.
        """
        share = sum(len(item.frames) for item in items) / threads
        cut: list[list[int]] = []
        for group in groups:
            done = share
            for position in group:
                first = max(items[position].frames[0], 0)
                again = first - self._videos.key_before(items[position].path, first)
                if position == group[0] or (done >= share and again <= share):
                    cut.append([])
                    done = 0
                cut[-1].append(position)
                done += len(items[position].frames)
        return cut

    # -- reading -----------------------------------------------------------------------------------------------

    def output_specs(self) -> list[OutputSpec]:
        specs = [OutputSpec(self._choices.dtype, "FHWC", 4)]
        if self._labelled:
            specs.append(OutputSpec(INT32, "", 1))
        if self._choices.numbers != "none":
            specs.append(OutputSpec(INT32, "", 1))
        if self.args["enable_timestamps"]:
            specs.append(OutputSpec(FLOAT64, "", 1))
        return [*specs, OutputSpec(FLOAT, "", 2), OutputSpec(FLOAT, "", 0)] if self.args["enable_audio"] else specs

    def read(self, item: Clip) -> list[np.ndarray]:
        return self._read(item, UNLIMITED)

    def read_sample(self, item: Clip, sample: Sample) -> list[np.ndarray]:
        return self._read(item, sample.workspace.decoding.limits)

    def _read(self, item: Clip, limits: Limits) -> list[np.ndarray]:
        with self._videos.lent(item.path, min(item.frames), limits) as video:
            shape = self._shape(item, limits)
            size = math.prod(shape)
            frames = self.memory.take(size).reshape(shape)
            fill_frames(video, item.frames, self._choices.fill, frames, self._choices.image_type)
            if self._choices.dtype == FLOAT:
                frames = frames * np.float32(self._choices.factor)
            return [frames, *self._beside(item, video, limits)]

    def _shape(self, item: Clip, limits: Limits) -> tuple[int, ...]:
        """Return the shape (F, H, W, C) of a sequence, after checking it against the limits."""
        height, width = self._videos.size(item.path)
        shape = height, width, channels_of(self._choices.image_type)
        limits.check_video(len(item.frames), shape)
        return len(item.frames), *shape

    def _beside(self, item: Clip, video: Video, limits: Limits) -> Iterator[np.ndarray]:
        """Yield the outputs of a sequence other than the frames."""
        numbers = self._choices.numbers
        if self._labelled:
            yield np.array([item.label], np.int32)
        if numbers != "none":
            yield np.array(item.frames if numbers == "sequence" else item.frames[:1], np.int32)
        if self.args["enable_timestamps"]:
            yield np.array([video.times[frame] if frame >= 0 else -1.0 for frame in item.frames])
        if self.args["enable_audio"]:
            heard = np.empty(sound_shape(video, item.frames, limits), np.float32)
            fill_sound(video, item.frames, heard)
            yield heard
            yield np.array(sound_rate(video), np.float32)

    def run(self, workspace: Workspace) -> None:
        items = self.items
        self._videos.most_open = max(self._videos.most_open, workspace.num_threads)
        if workspace.device == "cpu":
            super().run(workspace)
            return
        indices = self._open().take(workspace.batch_size).tolist()
        self._read_on_gpu([items[index] for index in indices], workspace)

    def _read_on_gpu(self, items: Sequence[Clip], workspace: Workspace) -> None:
        """Read a batch of sequences to the workspace's outputs; decode them on the GPU where possible."""
        from penstock.kernels.codecs.video_gpu import DecodingOnGpu, fill_on_gpu
        from penstock.kernels.cuda.launch import Located

        limits, choices = workspace.decoding.limits, self._choices
        specs = self.output_specs()
        shapes: list[tuple[int, ...]] = [(0, 0, 0, 0)] * len(items)
        for number, item in enumerate(items):
            try:
                shapes[number] = self._shape(item, limits)
            except Exception as error:
                workspace.fail(number, error)
        frames = TensorListGPU.allocate(shapes, choices.dtype, "FHWC")
        frames.source_infos = [item.path for item in items]
        places, kind = frames.pointers(), numpy_dtype(choices.dtype)
        beside: list[list[np.ndarray] | None] = [None] * len(items)
        decoding = DecodingOnGpu()
        threads = self._threads_for(items, shapes, workspace.num_threads)
        groups = self._shared(self.grouped(items), items, threads)
        # Threads take groups from a shared iterator, which is safe because taking the next element is atomic.
        left = iter(groups)

        def task(_: int) -> None:
            with decoding.on_thread():
                for number in itertools.chain.from_iterable(left):
                    if number not in workspace.failures:
                        try:
                            read(number)
                        except Exception as error:
                            workspace.fail(number, error)

        def read(number: int) -> None:
            item, output = items[number], Located(int(places[number]), shapes[number], kind, frames)
            with self._videos.lent(item.path, min(item.frames), limits, decoding.device) as video:
                fill_on_gpu(video, item.frames, choices.fill, output, choices.image_type, choices.factor)
                beside[number] = list(self._beside(item, video, limits))

        try:
            workspace.parallel(task, min(threads, len(groups)))
        finally:
            decoding.finish()
        workspace.outputs = [frames]
        for place, spec in enumerate(specs[1:]):
            column = [None if own is None else own[place] for own in beside]
            workspace.outputs.append(TensorListGPU.upload(sample_batch(column, spec, [""] * len(items))))

    def _threads_for(self, items: Sequence[Clip], shapes: Sequence[tuple[int, ...]], most: int) -> int:
        """Return a number of threads, at most ``most``, that keep a GPU's engines busy without waiting for each other."""
        if not all(self._videos.takes_engine(item.path) for item in items):
            return most
        largest = max((height * width for _, height, width, _ in shapes), default=0)
        return min(max(-(-largest // _PIXELS_PER_THREAD), _MIN_THREADS), most)

    def source_info(self, item: Clip, output: int) -> str:
        return item.path if output == 0 else ""


def _listed(words: list[str], place: str) -> _Source:
    if len(words) not in (2, 4):
        raise ValueError(
            f"Incorrect format of the list file {place}: expected a path, a label, and maybe start and end"
        )
    path, label, *span = words
    if "\0" in path or not _is_number(int, label) or not all(_is_number(float, bound) for bound in span):
        raise ValueError(f"The list file {place} has no path, label, start and end in: {' '.join(words)!r}")
    if int(label) < 0:
        raise ValueError(f"Label value should be >= 0 in the list file {place}, got {label}")
    return _Source(path, int(label), (span[0], span[1]) if span else None)


def _is_number(kind: type[int] | type[float], word: str) -> bool:
    try:
        return math.isfinite(kind(word))
    except (ValueError, OverflowError):
        return False


def _part(span: tuple[str, str] | None, times: np.ndarray, form: str, rounding: str) -> tuple[int, int]:
    """Return the range of frames, end exclusive, of the part of a video that the file list selects.

    Args:
        span: the start and end in the list; None: the whole video.
        times: the times of the video's frames, in seconds.
        form: the unit of start and end: ``timestamps`` or ``frames``.
        rounding: one of :data:`ROUNDINGS`.
    """
    count = len(times)
    if span is None:
        return 0, count
    if form == "frames":
        start, end = map(int, span)
    else:
        start, end = (_frame_at(float(time), times, up) for time, up in zip(span, ROUNDINGS[rounding]))
    start, end = (value + count if value < 0 else value for value in (start, end))
    return max(start, 0), min(end, count)


def _frame_at(time: float, times: np.ndarray, up: bool) -> int:
    """Return the number of the frame that starts at a time in seconds. If none does, return the next one (``up``) or the previous one.
    Negative times count from the end, and give negative numbers.
    """
    interval = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1.0
    if time < 0:
        return math.ceil(time / interval - _TIME_TOLERANCE) if up else math.floor(time / interval + _TIME_TOLERANCE)
    bounds = np.append(times, times[-1] + interval)
    return int(
        np.searchsorted(bounds, time - _TIME_TOLERANCE)
        if up
        else np.searchsorted(bounds, time + _TIME_TOLERANCE, "right") - 1
    )
