"""Decodes video frames on NVIDIA's video engine (NVDEC), through FFmpeg, and converts their colours on the GPU.

The engine decodes H.264, HEVC, VP8, VP9, AV1, MPEG-1, 2 and 4, VC-1 and MJPEG in the profiles that it supports; FFmpeg decodes other files
on the CPU, and the planes are uploaded. In both cases, the same kernel converts planes to pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from penstock.data_types import GRAY, RGB, DALIImageType, YCbCr
from penstock.kernels.codecs.video import Clip, Video
from penstock.kernels.codecs.video_frames import sides
from penstock.kernels.codecs.video_pixels import (
    channels_of,
    has_halved_planes,
    is_full_range,
    planes_of,
    unit_of,
    write_pixels,
)
from penstock.kernels.cuda.launch import Located, upload
from penstock.kernels.cuda.video import Colours, Planes, convert_frames
from penstock.tensors.cuda import require_cupy

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

_COLOURS: Final = {RGB: Colours.RGB, GRAY: Colours.GREY, YCbCr: Colours.YCBCR}
# The engine's formats: the type of the planes' values (of 16 bits, the upper ones are used), whether u and v alternate in one
# plane, and whether chroma is halved.
_SURFACES: Final[dict[str, tuple[np.dtype, bool, bool]]] = {
    "nv12": (np.dtype(np.uint8), True, True),
    "p010le": (np.dtype(np.uint16), True, True),
    "p016le": (np.dtype(np.uint16), True, True),
    "yuv444p": (np.dtype(np.uint8), False, False),
    "yuv444p16le": (np.dtype(np.uint16), False, False),
}
# The number of frames that are converted by one launch; they stay in memory until then.
_FRAMES_PER_LAUNCH: Final = 16


class DecodingOnGpu:
    """The stream on which worker threads decode and convert frames, after a pipeline's earlier and before its later work.

    FFmpeg works on the device's default stream, so frames are converted on that stream, too: the memory of a frame may then be released as
    soon as the conversion is launched.

    Create an instance while the device and the pipeline's stream are the current ones.

    Attributes:
        device: number of the GPU.
    """

    def __init__(self) -> None:
        cuda = require_cupy("decoding of videos").cuda
        self._cuda = cuda
        self.device: int = cuda.Device().id
        self._outer = cuda.get_current_stream()
        # Outputs may be in memory that the pipeline's earlier work still uses, so decoding waits for that work.
        cuda.Stream.null.wait_event(self._recorded(self._outer))

    def _recorded(self, stream: Any) -> Any:
        return stream.record(self._cuda.Event(disable_timing=True))

    @contextmanager
    def on_thread(self) -> Iterator[None]:
        """Make the device and the stream the current ones of a worker thread inside the context."""
        with self._cuda.Device(self.device), self._cuda.Stream.null:
            yield

    def finish(self) -> None:
        """Make the pipeline's stream wait for all launches."""
        self._outer.wait_event(self._recorded(self._cuda.Stream.null))


def fill_on_gpu(
    video: Clip,
    frames: list[int],
    fill: list[int],
    output: Located,
    image_type: DALIImageType = RGB,
    factor: float = 1.0,
) -> None:
    """Decode frames to GPU memory, on the current stream.

    Args:
        video: a video that was opened for this device or in a worker process.
        frames: the numbers of the frames, as returned by ``padded``.
        fill: the colour of frames outside the video.
        output: the array to fill, of shape (n, H, W, C), uint8 or float32.
        image_type: one of :data:`penstock.kernels.codecs.video_pixels.IMAGE_TYPES`.
        factor: the factor that float32 values are multiplied by.
    """
    inside, outside = sides(frames)
    wanted = [frames[place] for place in inside]
    if isinstance(video, Video):
        batch = _Conversion(output, image_type, factor)
        for places, frame in video.decoded(wanted):
            batch.add(frame, [inside[place] for place in places])
        batch.launch()
    elif inside:
        array = output.array()
        pixels = video.frames(wanted, image_type)
        values = pixels if output.dtype == np.uint8 else pixels * np.float32(factor)
        array[inside] = require_cupy().asarray(values)
    if outside:
        colour = np.broadcast_to(np.asarray(fill, np.float32) * np.float32(factor), output.shape[-1])
        output.array()[outside] = require_cupy().asarray(colour.astype(output.dtype))


class _Conversion:
    """Frames that are collected to be converted together.

    Args:
        output, image_type, factor: see :func:`fill_on_gpu`.
    """

    def __init__(self, output: Located, image_type: DALIImageType, factor: float) -> None:
        self._output, self._image_type, self._factor = output, image_type, factor
        self._frames: list[tuple[VideoFrame, list[int]]] = []

    def add(self, frame: VideoFrame, places: list[int]) -> None:
        """Add a frame, and its positions in the output."""
        self._frames.append((frame, places))
        if len(self._frames) >= _FRAMES_PER_LAUNCH:
            self.launch()

    def launch(self) -> None:
        """Convert the frames added so far."""
        frames, self._frames = self._frames, []
        described: dict[np.dtype, list[Planes]] = {}
        held = []
        for frame, places in frames:
            found = _on_engine(frame, self._factor) or _uploaded(frame, self._factor)
            if found is None:
                self._write(frame, places)
                continue
            stored, planes, owner = found
            held.append(owner)
            described.setdefault(stored, []).extend(
                planes._replace(target=self._target(place).address) for place in places
            )
        for stored, all_planes in described.items():
            convert_frames(all_planes, _COLOURS[self._image_type], stored, self._output.dtype)

    def _target(self, place: int) -> Located:
        """Return one frame of the output."""
        shape, kind = self._output.shape[1:], self._output.dtype
        return Located(self._output.address + place * math.prod(shape) * kind.itemsize, shape, kind, self._output)

    def _write(self, frame: VideoFrame, places: Sequence[int]) -> None:
        """Convert a frame of any format on the CPU, and copy it to these positions of the output."""
        pixels = np.empty((frame.height, frame.width, channels_of(self._image_type)), np.uint8)
        write_pixels(frame, self._image_type, pixels)
        values = pixels if self._output.dtype == np.uint8 else pixels * np.float32(self._factor)
        for place in places:
            self._target(place).array()[...] = require_cupy().asarray(values)


# The type of a frame's values, the planes without a target, and the owner of their memory.
_Found = tuple[np.dtype, Planes, object]


def _on_engine(frame: VideoFrame, factor: float) -> _Found | None:
    """Return the planes of a frame that is in the engine's memory; None for other frames."""
    if frame.format.name != "cuda" or (sw_format := frame.sw_format) is None or sw_format.name not in _SURFACES:
        return None
    stored, alternates, halved = _SURFACES[sw_format.name]
    luma, u, *others = frame.planes
    chroma = u.buffer_ptr
    return (
        stored,
        Planes(
            luma=luma.buffer_ptr,
            u=chroma,
            v=chroma + stored.itemsize if alternates else others[0].buffer_ptr,
            target=0,
            luma_pitch=luma.line_size,
            chroma_pitch=u.line_size,
            height=frame.height,
            width=frame.width,
            step=1 + alternates,
            halved=int(halved),
            full_range=is_full_range(frame),
            unit=1.0 if stored.itemsize == 1 else 1 / 256,
            factor=factor,
        ),
        frame,
    )


def _uploaded(frame: VideoFrame, factor: float) -> _Found | None:
    """Copy the planes of a frame from host memory to the GPU and return them; None for other pixel formats."""
    if not has_halved_planes(frame):
        return None
    luma, u, v = upload(planes_of(frame))
    size = luma.dtype.itemsize
    return (
        luma.dtype,
        Planes(
            luma=luma.address,
            u=u.address,
            v=v.address,
            target=0,
            luma_pitch=luma.shape[1] * size,
            chroma_pitch=u.shape[1] * size,
            height=frame.height,
            width=frame.width,
            step=1,
            halved=1,
            full_range=is_full_range(frame),
            unit=unit_of(frame),
            factor=factor,
        ),
        luma,
    )
