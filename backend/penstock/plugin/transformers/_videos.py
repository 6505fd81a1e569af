"""The processor for videos."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.plugin.transformers._features import Features
from penstock.plugin.transformers._images import as_pixels
from penstock.plugin.transformers._processor import Processor
from penstock.presets import PresetError
from penstock.presets.videos import SampledFamily, VideoLength

_VIDEO_NDIM = 4


class VideoProcessor(Processor):
    """A video processor made from a model's configuration; for the arguments, see :class:`ImageProcessor`."""

    _input = "videos"

    def __call__(
        self,
        videos: object,
        *,
        video_metadata: object = None,
        return_tensors: object = None,
        input_data_format: object = None,
        data_format: object = None,
        device: object = None,
        **settings: object,
    ) -> Features:
        """Return the model's inputs for one video or several.

        Args:
            videos: a video, a list of videos, or a list with a list of videos for each conversation. A video is a list of images, or an
                array or tensor of uint8, of shape (F, H, W, 3) or (F, 3, H, W).
            video_metadata: for each video, a `VideoMetadata` or a mapping with `total_num_frames`, `fps` and `duration`; or a list of these
                for each conversation.
            return_tensors, input_data_format, data_format, device: see :class:`ImageProcessor`.
            settings: settings that override those of the configuration in this call: `do_sample_frames`, `fps`, `num_frames`,
                `size` and others.

        Raises:
            PresetError: a setting is not supported, or unknown.
            ValueError: a video has another type or shape, or requested frames are missing.
        """
        if device is not None and str(device) != "cpu":
            raise ValueError(f"`device` must be 'cpu': for a GPU, use `presets.preset(device='gpu')`. Got: {device}")
        self._assign_changed()
        plain = self._plain_settings(settings)
        family = self._followed(plain)[0]
        if not isinstance(family, SampledFamily):
            raise PresetError("The configuration is not for videos")
        items = _several(videos)
        metadata = _metadata_of(video_metadata, len(items))
        frames = [_frames(video, number, input_data_format) for number, video in enumerate(items)]
        if family.do_sample_frames:
            if metadata is None:
                raise ValueError("`video_metadata` is needed to sample frames of a video")
            frames = [video[family.sampled(_length(about))] for video, about in zip(frames, metadata)]
        kind = None if return_tensors is None else str(getattr(return_tensors, "value", return_tensors))
        return self._features([frames], kind, plain)

    preprocess = __call__

    def _plain_settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        return {key: 0 if value is None and key in ("fps", "num_frames") else value for key, value in settings.items()}


def _several(videos: object) -> list[object]:
    """Return all videos as one list, including those in nested lists; a list of images is one video."""
    if getattr(videos, "ndim", 0) == _VIDEO_NDIM + 1:
        return list(videos)  # type: ignore[call-overload]
    if not isinstance(videos, (list, tuple)):
        return [videos]
    if not videos:
        raise ValueError("There is no video to process")
    first = videos[0]
    if not isinstance(first, (list, tuple)) and getattr(first, "ndim", 0) != _VIDEO_NDIM:
        return [videos]
    return [
        video for each in videos for video in (_several(each) if isinstance(each, (list, tuple)) and each else [each])
    ]


def _metadata_of(metadata: object, count: int) -> list[Mapping[str, float]] | None:
    """Return each video's metadata, or None if there is none."""
    if metadata is None:
        return None
    entries: list[object] = metadata if isinstance(metadata, list) else [metadata]
    # Chat templates pass a list for each conversation.
    entries = [one for each in entries for one in (each if isinstance(each, list) else [each])]
    found = [each if isinstance(each, Mapping) else vars(each) for each in entries]
    if len(found) != count:
        raise ValueError(f"`video_metadata` has {len(found)} entries for {count} videos")
    return found


def _length(metadata: Mapping[str, float]) -> VideoLength:
    """Return the length of a video from its metadata."""
    return VideoLength(int(metadata["total_num_frames"]), metadata.get("fps"), metadata.get("duration"))


def _frames(video: object, number: int, form: object) -> np.ndarray:
    """Return a video as a uint8 array of shape (F, H, W, 3)."""
    if isinstance(video, str):
        raise ValueError(f"Video {number} is an address or a path, {video!r}: nothing is fetched or read here")
    images = list(video) if isinstance(video, (list, tuple)) else [*np.asarray(video)]
    if not images:
        raise ValueError(f"Video {number} has no frame")
    frames = [as_pixels(image, index, form) for index, image in enumerate(images)]
    if len({frame.shape for frame in frames}) > 1:
        raise ValueError(f"Video {number} has frames of several sizes")
    return np.stack(frames)
