# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `readers`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from penstock.ops import OperatorFace

class Fits(OperatorFace):
    """Gives the image of each wanted header-data unit: decompressed, and scaled where its header says so.

    >>> images = fn.experimental.readers.fits(file_root="sky", hdu_indices=[1])  # doctest: +SKIP

    Runs on: cpu, gpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        dtypes (DALIDataType | Sequence[DALIDataType]): Types of the outputs; by default those of the files.
        file_filter (str, default '*.fits'): Pattern of the files that are taken from `file_root`.
        file_list (str): A text file with a path in each line.
        file_root (str): The folder that holds the files, or to which paths relate.
        files (str | Sequence[str]): Paths of the files.
        hdu_indices (int | Sequence[int], default [2]): The units to read, one for each output; the first is 1.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        shuffle_after_epoch (bool, default False): Shuffle all samples before each epoch; excludes `random_shuffle` and `stick_to_shard`.
        shuffle_after_epoch_seed (int): Seed of that shuffle; it must be the same for all shards.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        dtypes: DALIDataType | _Sequence[DALIDataType] | _ndarray | None = None,
        file_filter: str | None = "*.fits",
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        hdu_indices: int | _Sequence[int] | _ndarray | None = ...,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        dtypes: DALIDataType | _Sequence[DALIDataType] | _ndarray | None = None,
        file_filter: str | None = "*.fits",
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        hdu_indices: int | _Sequence[int] | _ndarray | None = ...,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class Video(OperatorFace):
    """Gives sequences of frames (uint8, FHWC, RGB); then labels, frames' numbers and times where they are asked for.

    Any format that FFmpeg reads is decoded on the CPU (DALI does so with VP8, VP9 and MJPEG alone). It needs PyAV:
    ``pip install penstock[video]``.

    >>> clips = fn.experimental.readers.video(filenames=["a.mp4"], sequence_length=16, stride=2)  # doctest: +SKIP

    Runs on: cpu, gpu.

    Keyword args:
        sequence_length (int, required): Frames in a sequence.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        enable_frame_num (Any, default 'none'): Give the number of the first frame (`scalar`) or of all frames (`sequence`), or nothing (`none`).
        enable_timestamps (bool, default False): Give the times of the frames, in seconds.
        file_list (str, default ''): A text file: in each line a path, a label, and maybe start and end.
        file_list_format (str, default 'timestamps'): Start and end are `timestamps` or `frames`.
        file_list_include_end (bool, default True): Accepted for compatibility: the end is excluded.
        file_list_rounding (str, default 'start_down_end_up'): Times between frames: `start_down_end_up`, `start_up_end_down`, `all_up` or `all_down`.
        file_root (str, default ''): The folder whose folders are classes of videos.
        filenames (str | Sequence[str], default []): Paths of the videos.
        fill_value (int | Sequence[int], default [0]): Colour of frames behind the end, with pad_mode="constant".
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): RGB; no other colour space is given yet.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        labels (int | Sequence[int]): Labels of `filenames`.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        pad_mode (str, default 'none'): What completes a video's last sequence; see `decoders.video`.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        step (int, default -1): From one sequence to the next; by default they do not overlap.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        stride (int, default 1): From one frame of a sequence to the next.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
        uniform_sample (bool, default False): One sequence for each video, its frames evenly spread; `stride`, `step` and `pad_mode` have no effect.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        enable_frame_num: Any | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_format: str | None = "timestamps",
        file_list_include_end: bool | None = True,
        file_list_rounding: str | None = "start_down_end_up",
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        fill_value: int | _Sequence[int] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_mode: str | None = "none",
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
        uniform_sample: bool | None = False,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        enable_frame_num: Any | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_format: str | None = "timestamps",
        file_list_include_end: bool | None = True,
        file_list_rounding: str | None = "start_down_end_up",
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        fill_value: int | _Sequence[int] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_mode: str | None = "none",
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
        uniform_sample: bool | None = False,
    ) -> Any: ...
