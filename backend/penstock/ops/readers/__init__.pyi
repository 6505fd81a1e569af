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

class COCO(OperatorFace):
    """Gives each image's bytes, its objects' boxes (float32, (n, 4)) and labels (int32, (n,)).

    With ``polygon_masks``, polygons (int32, (m, 3): object, first and last vertex) and vertices (float32, (k, 2))
    follow; with ``pixelwise_masks``, the label of each pixel (int32, HWC); with ``image_ids``, the image's number.

    >>> images, boxes, labels = fn.readers.coco(  # doctest: +SKIP
    ...     file_root="val2017", annotations_file="instances_val2017.json", ltrb=True, ratio=True
    ... )

    Runs on: cpu.

    Keyword args:
        annotations_file (str, default ''): The annotations, as COCO's JSON.
        avoid_class_remapping (bool, default False): Labels are the file's numbers of categories, not 1, 2, 3 ...
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        dump_meta_files (bool, default False): Old name of `save_preprocessed_annotations`.
        dump_meta_files_path (str, default ''): Old name of `save_preprocessed_annotations_dir`.
        file_root (str): The folder that holds the images.
        image_ids (bool, default False): Give the images' numbers, too.
        images (str | Sequence[str]): Names of the images to read, in this order; by default all.
        include_iscrowd (bool, default True): Take objects that stand for crowds.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        ltrb (bool, default False): Boxes are left, top, right, bottom; else left, top, width, height.
        masks (bool, default False): Like `polygon_masks`, but polygons tell their first and last coordinates, two of which make a vertex.
        meta_files_path (str, default ''): Old name of `preprocessed_annotations`.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        pixelwise_masks (bool, default False): Give masks of labels, too.
        polygon_masks (bool, default False): Give the objects' outlines, too.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preprocessed_annotations (str, default ''): A folder of preprocessed annotations.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        ratio (bool, default False): Coordinates are fractions of the image's extents.
        read_ahead (bool, default False): Accepted for compatibility.
        save_img_ids (bool, default False): Old name of `image_ids`.
        save_preprocessed_annotations (bool, default False): Save the annotations for faster loading.
        save_preprocessed_annotations_dir (str, default ''): The folder to save them in.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        shuffle_after_epoch (bool, default False): Shuffle all samples before each epoch; excludes `random_shuffle` and `stick_to_shard`.
        shuffle_after_epoch_seed (int): Seed of that shuffle; it must be the same for all shards.
        size_threshold (float, default 0.1): Objects of less width or height (in pixels) are left out.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        skip_empty (bool, default False): Images without objects are left out.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        annotations_file: str | None = "",
        avoid_class_remapping: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        file_root: str | None = None,
        image_ids: bool | None = False,
        images: str | _Sequence[str] | _ndarray | None = None,
        include_iscrowd: bool | None = True,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        ltrb: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pixelwise_masks: bool | None = False,
        polygon_masks: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preprocessed_annotations: str | None = "",
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        ratio: bool | None = False,
        read_ahead: bool | None = False,
        save_preprocessed_annotations: bool | None = False,
        save_preprocessed_annotations_dir: str | None = "",
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        size_threshold: float | None = 0.1,
        skip_cached_images: bool | None = False,
        skip_empty: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        annotations_file: str | None = "",
        avoid_class_remapping: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        file_root: str | None = None,
        image_ids: bool | None = False,
        images: str | _Sequence[str] | _ndarray | None = None,
        include_iscrowd: bool | None = True,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        ltrb: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pixelwise_masks: bool | None = False,
        polygon_masks: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preprocessed_annotations: str | None = "",
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        ratio: bool | None = False,
        read_ahead: bool | None = False,
        save_preprocessed_annotations: bool | None = False,
        save_preprocessed_annotations_dir: str | None = "",
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        size_threshold: float | None = 0.1,
        skip_cached_images: bool | None = False,
        skip_empty: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class Caffe(OperatorFace):
    """Gives each record's image (encoded, or pixels plane by plane: its bytes as stored) and its label.

    >>> images, labels = fn.readers.caffe(path="train_lmdb")  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        path (str | Sequence[str], required): Paths of the databases' folders.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        image_available (bool, default True): Records hold images.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        label_available (bool, default True): Records hold labels.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
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
        image_available: bool | None = True,
        initial_fill: int | None = 1024,
        label_available: bool | None = True,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
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
        image_available: bool | None = True,
        initial_fill: int | None = 1024,
        label_available: bool | None = True,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class Caffe2(OperatorFace):
    """Gives each record's image (encoded bytes, or pixels), its labels, further tensors, and a box.

    Labels: one number (``label_type`` 0); for each of ``num_labels`` whether it is listed (1) or the listed number (2);
    the weight of each listed one (3); none (4).

    >>> images, labels = fn.readers.caffe2(path="train_lmdb")  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        path (str | Sequence[str], required): Paths of the databases' folders.
        additional_inputs (int, default 0): Further tensors in each record.
        bbox (bool, default False): Records hold a box as their last tensor.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        image_available (bool, default True): Records hold images.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        label_type (int, default 0): The kind of labels, from 0 to 4.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        num_labels (int, default 1): The number of labels where a record has several.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_inputs: int | None = 0,
        bbox: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        image_available: bool | None = True,
        initial_fill: int | None = 1024,
        label_type: int | None = 0,
        lazy_init: bool | None = False,
        num_labels: int | None = 1,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_inputs: int | None = 0,
        bbox: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        image_available: bool | None = True,
        initial_fill: int | None = 1024,
        label_type: int | None = 0,
        lazy_init: bool | None = False,
        num_labels: int | None = 1,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class File(OperatorFace):
    """Gives each file's bytes, and its label as a vector of one number.

    The files are given in one of three ways: by ``files`` (with ``labels``); by ``file_list``, a text file with a path
    and a label in each line; or by ``file_root``, whose folders are the classes, numbered from 0 in order of name.

    >>> encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        case_sensitive_filter (bool, default False): Filters tell small from capital letters.
        dir_filters (str | Sequence[str]): Patterns of the folders that are classes; by default all are.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        file_filters (str | Sequence[str], default ['*.jpg', '*.jpeg', '*.png', '*.bmp', '*.tif', '*.tiff', '*.pnm', '*.ppm', '*.pgm', '*.pbm', '*.jp2', '*.webp', '*.flac', '*.ogg', '*.wav']): Patterns of the files that are taken from folders.
        file_list (str): A text file with a path and a label in each line.
        file_root (str): The folder that holds the classes' folders, or to which paths relate.
        files (str | Sequence[str]): Paths of the files.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        labels (int | Sequence[int]): Labels of `files`; by default their positions.
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
        case_sensitive_filter: bool | None = False,
        dir_filters: str | _Sequence[str] | _ndarray | None = None,
        dont_use_mmap: bool | None = False,
        file_filters: str | _Sequence[str] | _ndarray | None = ...,
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
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
        case_sensitive_filter: bool | None = False,
        dir_filters: str | _Sequence[str] | _ndarray | None = None,
        dont_use_mmap: bool | None = False,
        file_filters: str | _Sequence[str] | _ndarray | None = ...,
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
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
    ) -> list[DataNode]: ...

class MXNet(OperatorFace):
    """Gives each record's encoded image, and its labels as float32.

    Source: MXNet's ``recordio`` and ``image_recordio``.

    >>> images, labels = fn.readers.mxnet(path="train.rec", index_path="train.idx")  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        index_path (str | Sequence[str], required): Path of the index: a number and a record's start in each line.
        path (str | Sequence[str], required): Path of the RecordIO file.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
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
        index_path: str | _Sequence[str] | _ndarray = ...,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
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
        index_path: str | _Sequence[str] | _ndarray = ...,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        path: str | _Sequence[str] | _ndarray = ...,
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
    ) -> list[DataNode]: ...

class NemoAsr(OperatorFace):
    """Gives each recording, its own sample rate (a float), its transcript (UTF-8 bytes) and its number in the manifest.

    Recordings are (time), or (time, channels) without ``downmix``. A manifest holds a JSON object in each line, with
    ``audio_filepath`` and, where they are known, ``offset`` and ``duration`` in seconds, and ``text``; other lines are skipped,
    with a logged warning.

    >>> audio, rate, text = fn.readers.nemo_asr(manifest_filepaths=["train.json"])  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        manifest_filepaths (str | Sequence[str], required): Paths of the manifests.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        downmix (bool, default True): Replace the channels by their mean.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the recordings: FLOAT, INT16 or INT32.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        max_duration (float, default 0.0): Longer recordings (in seconds) are left out; 0: none are.
        min_duration (float, default 0.0): Shorter recordings (in seconds) are left out.
        normalize_text (bool):
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        quality (float, default 50.0): Quality of resampling, from 0 to 100.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        read_idxs (bool, default False): Give the recordings' numbers.
        read_sample_rate (bool, default True): Give the recordings' sample rates.
        read_text (bool, default True): Give the transcripts.
        sample_rate (float, default -1.0): Resample to this rate in Hz; negative: as recorded.
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
        downmix: bool | None = True,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        manifest_filepaths: str | _Sequence[str] | _ndarray = ...,
        max_duration: float | None = 0.0,
        min_duration: float | None = 0.0,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        read_idxs: bool | None = False,
        read_sample_rate: bool | None = True,
        read_text: bool | None = True,
        sample_rate: float | None = -1.0,
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
        downmix: bool | None = True,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        manifest_filepaths: str | _Sequence[str] | _ndarray = ...,
        max_duration: float | None = 0.0,
        min_duration: float | None = 0.0,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        read_idxs: bool | None = False,
        read_sample_rate: bool | None = True,
        read_text: bool | None = True,
        sample_rate: float | None = -1.0,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class Numpy(OperatorFace):
    """Reads arrays, or regions of them; all arrays of a batch must be of one type and rank.

    The files are given by ``files``, by ``file_list`` (a text file with a path in each line), or by
    ``file_root``: those in that folder and in the folders there.

    >>> arrays = fn.readers.numpy(file_root="arrays", roi_start=[0, 0], roi_shape=[64, 64])  # doctest: +SKIP

    Runs on: cpu, gpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        cache_header_information (bool, default False): Accepted for compatibility; headers are read in place.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        file_filter (str, default '*.npy'): Pattern of the files that are taken from `file_root`.
        file_list (str): A text file with a path in each line.
        file_root (str): The folder that holds the files, or to which paths relate.
        files (str | Sequence[str]): Paths of the files.
        fill_value (float, default 0.0): What is outside of an array, with out_of_bounds_policy="pad".
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        num_shards (int, default 1): Number of parts into which the samples are divided.
        out_of_bounds_policy (str, default 'error'): A region that reaches outside: `error`, `pad` or `trim_to_shape`.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        register_buffers (bool, default True): Accepted for compatibility.
        rel_roi_end (float | Sequence[float] | DataNode): End of the region as a fraction of the extents.
        rel_roi_shape (float | Sequence[float] | DataNode): Extents of the region as fractions.
        rel_roi_start (float | Sequence[float] | DataNode): Start of the region as a fraction of the extents.
        roi_axes (int | Sequence[int], default []): Dimensions that the region speaks of; by default all.
        roi_end (int | Sequence[int] | DataNode): End of the region.
        roi_shape (int | Sequence[int] | DataNode): Extents of the region.
        roi_start (int | Sequence[int] | DataNode): Start of the region.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        shuffle_after_epoch (bool, default False): Shuffle all samples before each epoch; excludes `random_shuffle` and `stick_to_shard`.
        shuffle_after_epoch_seed (int): Seed of that shuffle; it must be the same for all shards.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
        use_o_direct (bool, default False): Accepted for compatibility.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        cache_header_information: bool | None = False,
        dont_use_mmap: bool | None = False,
        file_filter: str | None = "*.npy",
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        fill_value: float | None = 0.0,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        out_of_bounds_policy: str | None = "error",
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        register_buffers: bool | None = True,
        rel_roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_roi_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_axes: int | _Sequence[int] | _ndarray | None = ...,
        roi_end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_start: int | _Sequence[int] | DataNode | _ndarray | None = None,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
        use_o_direct: bool | None = False,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        cache_header_information: bool | None = False,
        dont_use_mmap: bool | None = False,
        file_filter: str | None = "*.npy",
        file_list: str | None = None,
        file_root: str | None = None,
        files: str | _Sequence[str] | _ndarray | None = None,
        fill_value: float | None = 0.0,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        out_of_bounds_policy: str | None = "error",
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        register_buffers: bool | None = True,
        rel_roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_roi_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_axes: int | _Sequence[int] | _ndarray | None = ...,
        roi_end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_start: int | _Sequence[int] | DataNode | _ndarray | None = None,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
        use_o_direct: bool | None = False,
    ) -> DataNode: ...

class Sequence(OperatorFace):
    """Gives sequences of decoded frames of uint8, layout FHWC; each folder in ``file_root`` is a stream of frames.

    >>> frames = fn.readers.sequence(file_root="streams", sequence_length=8, step=8)  # doctest: +SKIP

    Runs on: cpu.

    Keyword args:
        file_root (str, required): The folder that holds the streams' folders.
        sequence_length (int, required): Frames in a sequence.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the frames.
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
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        step (int, default 1): Frames from the start of a sequence to that of the next.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        stride (int, default 1): Frames from one frame of a sequence to the next.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        file_root: str = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        step: int | None = 1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        file_root: str = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        step: int | None = 1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
    ) -> DataNode: ...

from penstock.tfrecord import TFRecord as TFRecord

class Video(OperatorFace):
    """Refuses to run: use `experimental.readers.video`, which gives the same sequences of frames, decoded on the CPU.

    DALI decodes here on the GPU's video engine.

    Runs on: gpu.

    Keyword args:
        sequence_length (int, required): Frames in a sequence.
        additional_decode_surfaces (int, default 2): Surfaces that the GPU's decoder has beside the fewest it needs.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        channels (int, default 3): Channels of a frame.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the frames: UINT8 or FLOAT.
        enable_frame_num (str, default 'none'): Give the numbers of frames.
        enable_timestamps (bool, default False): Give the times of the frames, in seconds.
        file_list (str, default ''): A text file: in each line a path, a label, and maybe start and end.
        file_list_frame_num (bool, default False): Start and end are numbers of frames, not times.
        file_list_include_preceding_frame (bool, default False): A start between two frames means the first of them.
        file_root (str, default ''): The folder whose folders are classes of videos.
        filenames (str | Sequence[str], default []): Paths of the videos.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the frames: RGB or YCbCr.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        labels (int | Sequence[int]): Labels of `filenames`.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        normalized (bool, default False): Give frames in the range [0, 1].
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        pad_sequences (bool, default False): Complete a video's last sequence with black frames.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        skip_vfr_check (bool, default False): Do not look for a variable frame rate.
        step (int, default -1): From one sequence to the next; by default they do not overlap.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        stride (int, default 1): From one frame of a sequence to the next.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_decode_surfaces: int | None = 2,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        channels: int | None = 3,
        dont_use_mmap: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        enable_frame_num: str | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        normalized: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_decode_surfaces: int | None = 2,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        channels: int | None = 3,
        dont_use_mmap: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        enable_frame_num: str | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        normalized: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        skip_cached_images: bool | None = False,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class VideoResize(OperatorFace):
    """Refuses to run: use `experimental.readers.video`, and `resize` behind it.

    DALI decodes here on the GPU's video engine.

    Runs on: gpu.

    Keyword args:
        sequence_length (int, required): Frames in a sequence.
        additional_decode_surfaces (int, default 2): Surfaces that the GPU's decoder has beside the fewest it needs.
        antialias (bool, default True): Widen the filter when an axis shrinks, so that nothing is skipped.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        channels (int, default 3): Channels of a frame.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the frames: UINT8 or FLOAT.
        enable_frame_num (str, default 'none'): Give the numbers of frames.
        enable_timestamps (bool, default False): Give the times of the frames, in seconds.
        file_list (str, default ''): A text file: in each line a path, a label, and maybe start and end.
        file_list_frame_num (bool, default False): Start and end are numbers of frames, not times.
        file_list_include_preceding_frame (bool, default False): A start between two frames means the first of them.
        file_root (str, default ''): The folder whose folders are classes of videos.
        filenames (str | Sequence[str], default []): Paths of the videos.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the frames: RGB or YCbCr.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        labels (int | Sequence[int]): Labels of `filenames`.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        max_size (float | Sequence[float]): The most that each axis may have: one value, or one for each axis (D, H, W order).
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        mode (str, default 'default'): How sizes that are not given follow: `default` (same scale as those given), `stretch` (unchanged), `not_larger` (fits inside), `not_smaller` (covers).
        normalized (bool, default False): Give frames in the range [0, 1].
        num_shards (int, default 1): Number of parts into which the samples are divided.
        pad_last_batch (bool, default False): Fill up a shard's last batch with its last sample; without it, batches run on into the next epoch.
        pad_sequences (bool, default False): Complete a video's last sequence with black frames.
        prefetch_queue_depth (int, default 1): Accepted for compatibility; the pipeline prefetches.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_shuffle (bool, default False): Give the samples in random order.
        read_ahead (bool, default False): Accepted for compatibility.
        resize_longer (float | DataNode, default 0.0): Extent of the longer axis; the other follows.
        resize_shorter (float | DataNode, default 0.0): Extent of the shorter axis; the other follows.
        resize_x (float | DataNode, default 0.0): Output width in pixels; 0: follows from the rest; negative: mirrored.
        resize_y (float | DataNode, default 0.0): Output height in pixels; 0: follows from the rest; negative: mirrored.
        resize_z (float | DataNode, default 0.0): Output depth in pixels; 0: follows from the rest; negative: mirrored. Of volumes only.
        roi_end (float | Sequence[float] | DataNode): End of the region to resize, in D, H, W order; before the start: mirrored.
        roi_relative (bool, default False): The region is given in fractions of the input's extents.
        roi_start (float | Sequence[float] | DataNode): Start of the region to resize, in D, H, W order.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shard_id (int, default 0): The part that is read, from 0 to `num_shards` - 1.
        size (float | Sequence[float] | DataNode): Output extents in D, H, W order: one value, or one for each axis.
        skip_cached_images (bool, default False): Accepted for compatibility; a cached image's file is read too.
        skip_vfr_check (bool, default False): Do not look for a variable frame rate.
        step (int, default -1): From one sequence to the next; by default they do not overlap.
        stick_to_shard (bool, default False): Read the same part in each epoch; else the parts in turn.
        stride (int, default 1): From one frame of a sequence to the next.
        subpixel_scale (bool, default True): When an extent is rounded, adjust the region so that the true scale is kept.
        temp_buffer_hint (int, default 0): Accepted for compatibility.
        tensor_init_bytes (int, default 1048576): Accepted for compatibility; buffers have the files' sizes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_decode_surfaces: int | None = 2,
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        channels: int | None = 3,
        dont_use_mmap: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        enable_frame_num: str | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        normalized: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        resize_longer: float | DataNode | _ndarray | None = 0.0,
        resize_shorter: float | DataNode | _ndarray | None = 0.0,
        resize_x: float | DataNode | _ndarray | None = 0.0,
        resize_y: float | DataNode | _ndarray | None = 0.0,
        resize_z: float | DataNode | _ndarray | None = 0.0,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        skip_cached_images: bool | None = False,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
        tensor_init_bytes: int | None = 1048576,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        additional_decode_surfaces: int | None = 2,
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        channels: int | None = 3,
        dont_use_mmap: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        enable_frame_num: str | None = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: str | _Sequence[str] | _ndarray | None = ...,
        image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        labels: int | _Sequence[int] | _ndarray | None = None,
        lazy_init: bool | None = False,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        normalized: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        preserve: bool | None = False,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        resize_longer: float | DataNode | _ndarray | None = 0.0,
        resize_shorter: float | DataNode | _ndarray | None = 0.0,
        resize_x: float | DataNode | _ndarray | None = 0.0,
        resize_y: float | DataNode | _ndarray | None = 0.0,
        resize_z: float | DataNode | _ndarray | None = 0.0,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        seed: int | None = -1,
        sequence_length: int = ...,
        shard_id: int | None = 0,
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        skip_cached_images: bool | None = False,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stick_to_shard: bool | None = False,
        stride: int | None = 1,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
        tensor_init_bytes: int | None = 1048576,
    ) -> Any: ...

class Webdataset(OperatorFace):
    """Gives the wanted files of each sample, one output for each entry of ``ext``.

    A sample is a run of files in an archive whose names differ only in their extensions: all that is behind the first
    dot. An entry of ``ext`` may name several extensions, divided by semicolons: the first file with one of them is
    taken.

    >>> images, labels = fn.readers.webdataset(  # doctest: +SKIP
    ...     paths=["train.tar"], ext=["jpg;png", "cls"], dtypes=[types.UINT8, types.INT32]
    ... )

    Runs on: cpu.

    Keyword args:
        ext (str | Sequence[str], required): Extensions of the wanted files, one entry for each output.
        paths (str | Sequence[str], required): Paths of the tar archives.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        case_sensitive_extensions (bool, default True): Extensions tell small from capital letters.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        dtypes (DALIDataType | Sequence[DALIDataType]): Types of the outputs; by default all are bytes.
        index_paths (str | Sequence[str]): Indices of the archives; by default the archives are scanned.
        initial_fill (int, default 1024): Samples in the buffer from which `random_shuffle` picks.
        lazy_init (bool, default False): List the samples at the first run, not when the pipeline is built.
        missing_component_behavior (str, default ''): Samples that lack a file: `empty` (the default) gives it without contents, `skip` leaves the sample out, `error` fails.
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
        case_sensitive_extensions: bool | None = True,
        dont_use_mmap: bool | None = False,
        dtypes: DALIDataType | _Sequence[DALIDataType] | _ndarray | None = None,
        ext: str | _Sequence[str] | _ndarray = ...,
        index_paths: str | _Sequence[str] | _ndarray | None = None,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        missing_component_behavior: str | None = "",
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        paths: str | _Sequence[str] | _ndarray = ...,
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
        case_sensitive_extensions: bool | None = True,
        dont_use_mmap: bool | None = False,
        dtypes: DALIDataType | _Sequence[DALIDataType] | _ndarray | None = None,
        ext: str | _Sequence[str] | _ndarray = ...,
        index_paths: str | _Sequence[str] | _ndarray | None = None,
        initial_fill: int | None = 1024,
        lazy_init: bool | None = False,
        missing_component_behavior: str | None = "",
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        paths: str | _Sequence[str] | _ndarray = ...,
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
