# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `decoders`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType

@_overload
def image(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    cache_batch_copy: bool | None = True,
    cache_debug: bool | None = False,
    cache_size: int | None = 0,
    cache_threshold: int | None = 0,
    cache_type: str | None = "",
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    use_fast_idct: bool | None = False,
) -> DataNode:
    """Decodes JPEG, PNG, TIFF, BMP, WebP, JPEG 2000, PNM, GIF, AVIF and ICO to images of layout HWC.

    The bytes tell the format. On the device ``mixed``, JPEG, JPEG 2000 and TIFF are decoded on the GPU, and what it
    does not take on the CPU.

    >>> images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)  # doctest: +SKIP

    Runs on: cpu, mixed.

    Args:
        input: Encoded images: the bytes of files, uint8 of shape (n,); zeros behind an image are ignored.

    Keyword args:
        adjust_orientation (bool, default True): Turn images upright as their EXIF data (or TIFF tag) say.
        affine (bool, default True): Accepted for compatibility; threads are bound by the pipeline's settings.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        cache_batch_copy (bool, default True): Accepted for compatibility; cached images are not copied.
        cache_debug (bool, default False): Log what the cache holds when it is full.
        cache_size (int, default 0): Megabytes of GPU memory that keep decoded images, by their files' names (`mixed`); 0: none.
        cache_threshold (int, default 0): Bytes from which on a decoded image is kept (`threshold`).
        cache_type (str, default ''): Which are kept: `threshold`, those from a size on while there is room; `largest`, the largest.
        device_memory_padding (int, default 16777216): Bytes that nvJPEG's device buffers begin with (`mixed`).
        device_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output. Values are scaled to its range: integers to their maximum, floating point to [0, 1].
        host_memory_padding (int, default 8388608): Bytes that nvJPEG's host buffers begin with (`mixed`).
        host_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        hw_decoder_load (float, default 0.65): The part of a batch's JPEGs that the GPU's JPEG engine takes, from 0 to 1 (`mixed`); adapted to what is quickest.
        hybrid_huffman_threshold (int, default 1000000): JPEGs of more pixels are entropy-decoded on the GPU, smaller ones on the CPU (`mixed`).
        jpeg_fancy_upsampling (bool, default False): Smooth upsampling of JPEG's chroma on the GPU; the CPU always does it.
        memory_stats (bool, default False):
        output_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the output: RGB, BGR, GRAY, YCbCr (BT.601, studio range), or ANY_DATA: as stored.
        preallocate_height_hint (int, default 0): Height for which the JPEG engine's buffers are made ready.
        preallocate_width_hint (int, default 0): Width for which the JPEG engine's buffers are made ready.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        split_stages (bool, default False):
        use_chunk_allocator (bool, default False):
        use_fast_idct (bool, default False): A faster, less accurate inverse DCT for JPEG on the CPU.
    """
    ...
@_overload
def image(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    cache_batch_copy: bool | None = True,
    cache_debug: bool | None = False,
    cache_size: int | None = 0,
    cache_threshold: int | None = 0,
    cache_type: str | None = "",
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    use_fast_idct: bool | None = False,
) -> list[DataNode]: ...

@_overload
def image_crop(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
    crop_d: float | DataNode | _ndarray | None = 0.0,
    crop_h: float | DataNode | _ndarray | None = 0.0,
    crop_pos_x: float | DataNode | _ndarray | None = 0.5,
    crop_pos_y: float | DataNode | _ndarray | None = 0.5,
    crop_pos_z: float | DataNode | _ndarray | None = 0.5,
    crop_w: float | DataNode | _ndarray | None = 0.0,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    rounding: str | None = "round",
    use_fast_idct: bool | None = False,
) -> DataNode:
    """Decodes a window of each image: what ``crop`` would take of the whole, for less work.

    >>> images = fn.decoders.image_crop(encoded, crop=(224, 224))  # doctest: +SKIP

    Runs on: cpu, mixed.

    Args:
        input: Encoded images: the bytes of files, uint8 of shape (n,); zeros behind an image are ignored.

    Keyword args:
        adjust_orientation (bool, default True): Turn images upright as their EXIF data (or TIFF tag) say.
        affine (bool, default True): Accepted for compatibility; threads are bound by the pipeline's settings.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop (float | Sequence[float] | DataNode): Extents of the window: (height, width).
        crop_d (float | DataNode, default 0.0): Accepted for compatibility; images have no depth.
        crop_h (float | DataNode, default 0.0): Height of the window; 0: all.
        crop_pos_x (float | DataNode, default 0.5): Horizontal place of the window, from 0 (left) to 1 (right).
        crop_pos_y (float | DataNode, default 0.5): Vertical place of the window, from 0 (top) to 1 (bottom).
        crop_pos_z (float | DataNode, default 0.5): Accepted for compatibility; images have no depth.
        crop_w (float | DataNode, default 0.0): Width of the window; 0: all.
        device_memory_padding (int, default 16777216): Bytes that nvJPEG's device buffers begin with (`mixed`).
        device_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output. Values are scaled to its range: integers to their maximum, floating point to [0, 1].
        host_memory_padding (int, default 8388608): Bytes that nvJPEG's host buffers begin with (`mixed`).
        host_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        hw_decoder_load (float, default 0.65): The part of a batch's JPEGs that the GPU's JPEG engine takes, from 0 to 1 (`mixed`); adapted to what is quickest.
        hybrid_huffman_threshold (int, default 1000000): JPEGs of more pixels are entropy-decoded on the GPU, smaller ones on the CPU (`mixed`).
        jpeg_fancy_upsampling (bool, default False): Smooth upsampling of JPEG's chroma on the GPU; the CPU always does it.
        memory_stats (bool, default False):
        output_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the output: RGB, BGR, GRAY, YCbCr (BT.601, studio range), or ANY_DATA: as stored.
        preallocate_height_hint (int, default 0): Height for which the JPEG engine's buffers are made ready.
        preallocate_width_hint (int, default 0): Width for which the JPEG engine's buffers are made ready.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rounding (str, default 'round'): How the window's start is made an integer: `round` or `truncate`.
        split_stages (bool, default False):
        use_chunk_allocator (bool, default False):
        use_fast_idct (bool, default False): A faster, less accurate inverse DCT for JPEG on the CPU.
    """
    ...
@_overload
def image_crop(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
    crop_d: float | DataNode | _ndarray | None = 0.0,
    crop_h: float | DataNode | _ndarray | None = 0.0,
    crop_pos_x: float | DataNode | _ndarray | None = 0.5,
    crop_pos_y: float | DataNode | _ndarray | None = 0.5,
    crop_pos_z: float | DataNode | _ndarray | None = 0.5,
    crop_w: float | DataNode | _ndarray | None = 0.0,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    rounding: str | None = "round",
    use_fast_idct: bool | None = False,
) -> list[DataNode]: ...

@_overload
def image_random_crop(
    input: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    num_attempts: int | None = 10,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    random_area: float | _Sequence[float] | _ndarray | None = ...,
    random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
    seed: int | None = -1,
    use_fast_idct: bool | None = False,
) -> DataNode:
    """Decodes a random window of each image, with an area and an aspect ratio drawn from ranges.

    >>> images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])  # doctest: +SKIP

    Runs on: cpu, mixed.

    Args:
        input: Encoded images: the bytes of files, uint8 of shape (n,); zeros behind an image are ignored.

    Keyword args:
        adjust_orientation (bool, default True): Turn images upright as their EXIF data (or TIFF tag) say.
        affine (bool, default True): Accepted for compatibility; threads are bound by the pipeline's settings.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        device_memory_padding (int, default 16777216): Bytes that nvJPEG's device buffers begin with (`mixed`).
        device_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output. Values are scaled to its range: integers to their maximum, floating point to [0, 1].
        host_memory_padding (int, default 8388608): Bytes that nvJPEG's host buffers begin with (`mixed`).
        host_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        hw_decoder_load (float, default 0.65): The part of a batch's JPEGs that the GPU's JPEG engine takes, from 0 to 1 (`mixed`); adapted to what is quickest.
        hybrid_huffman_threshold (int, default 1000000): JPEGs of more pixels are entropy-decoded on the GPU, smaller ones on the CPU (`mixed`).
        jpeg_fancy_upsampling (bool, default False): Smooth upsampling of JPEG's chroma on the GPU; the CPU always does it.
        memory_stats (bool, default False):
        num_attempts (int, default 10): Windows that are drawn at most until one fits into the image.
        output_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the output: RGB, BGR, GRAY, YCbCr (BT.601, studio range), or ANY_DATA: as stored.
        preallocate_height_hint (int, default 0): Height for which the JPEG engine's buffers are made ready.
        preallocate_width_hint (int, default 0): Width for which the JPEG engine's buffers are made ready.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_area (float | Sequence[float], default [0.08, 1.0]): Range of the window's area as a part of the image's.
        random_aspect_ratio (float | Sequence[float], default [0.75, 1.3333333333333333]): Range of the window's width / height.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        split_stages (bool, default False):
        use_chunk_allocator (bool, default False):
        use_fast_idct (bool, default False): A faster, less accurate inverse DCT for JPEG on the CPU.
    """
    ...
@_overload
def image_random_crop(
    input: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    num_attempts: int | None = 10,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    random_area: float | _Sequence[float] | _ndarray | None = ...,
    random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
    seed: int | None = -1,
    use_fast_idct: bool | None = False,
) -> list[DataNode]: ...

@_overload
def image_slice(
    data: DataNode | _TensorLike,
    anchor: DataNode | _TensorLike | None = ...,
    shape_input: DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    axes: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    axis_names: str | None = "WH",
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    end: int | _Sequence[int] | DataNode | _ndarray | None = None,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    normalized_anchor: bool | None = True,
    normalized_shape: bool | None = True,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    rel_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
    rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
    rel_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
    shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    start: int | _Sequence[int] | DataNode | _ndarray | None = None,
    use_fast_idct: bool | None = False,
) -> DataNode:
    """Decodes a box of each image: what ``slice`` would take of the whole, for less work.

    The box is given as for ``slice``, and must lie within the image.

    >>> images = fn.decoders.image_slice(encoded, rel_start=[0.1, 0.2], rel_shape=[0.5, 0.5])  # doctest: +SKIP

    Runs on: cpu, mixed.

    Args:
        data: Encoded images: the bytes of files, uint8 of shape (n,); zeros behind an image are ignored.
        anchor: Where the box begins: 1-D, of numbers.
        shape_input: How far the box reaches: 1-D, of numbers.

    Keyword args:
        adjust_orientation (bool, default True): Turn images upright as their EXIF data (or TIFF tag) say.
        affine (bool, default True): Accepted for compatibility; threads are bound by the pipeline's settings.
        axes (int | Sequence[int] | DataNode, default [1, 0]): Indices (of H, W) of the dimensions that the box speaks of.
        axis_names (str, default 'WH'): Letters of the dimensions that the box speaks of.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        device_memory_padding (int, default 16777216): Bytes that nvJPEG's device buffers begin with (`mixed`).
        device_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output. Values are scaled to its range: integers to their maximum, floating point to [0, 1].
        end (int | Sequence[int] | DataNode): End of the box in pixels.
        host_memory_padding (int, default 8388608): Bytes that nvJPEG's host buffers begin with (`mixed`).
        host_memory_padding_jpeg2k (int, default 0): The same for nvJPEG2000.
        hw_decoder_load (float, default 0.65): The part of a batch's JPEGs that the GPU's JPEG engine takes, from 0 to 1 (`mixed`); adapted to what is quickest.
        hybrid_huffman_threshold (int, default 1000000): JPEGs of more pixels are entropy-decoded on the GPU, smaller ones on the CPU (`mixed`).
        jpeg_fancy_upsampling (bool, default False): Smooth upsampling of JPEG's chroma on the GPU; the CPU always does it.
        memory_stats (bool, default False):
        normalized_anchor (bool, default True): The positional anchor is a fraction of the image's extent.
        normalized_shape (bool, default True): The positional shape is a fraction of the image's extent.
        output_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the output: RGB, BGR, GRAY, YCbCr (BT.601, studio range), or ANY_DATA: as stored.
        preallocate_height_hint (int, default 0): Height for which the JPEG engine's buffers are made ready.
        preallocate_width_hint (int, default 0): Width for which the JPEG engine's buffers are made ready.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rel_end (float | Sequence[float] | DataNode): End of the box as a fraction of the image's extent.
        rel_shape (float | Sequence[float] | DataNode): Extents as fractions of the image's.
        rel_start (float | Sequence[float] | DataNode): Start of the box as a fraction of the image's.
        shape (int | Sequence[int] | DataNode): Extents of the box in pixels.
        split_stages (bool, default False):
        start (int | Sequence[int] | DataNode): Start of the box in pixels.
        use_chunk_allocator (bool, default False):
        use_fast_idct (bool, default False): A faster, less accurate inverse DCT for JPEG on the CPU.
    """
    ...
@_overload
def image_slice(
    data: list[DataNode],
    anchor: list[DataNode] | DataNode | _TensorLike | None = ...,
    shape_input: list[DataNode] | DataNode | _TensorLike | None = ...,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    adjust_orientation: bool | None = True,
    affine: bool | None = True,
    axes: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    axis_names: str | None = "WH",
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    device_memory_padding: int | None = 16777216,
    device_memory_padding_jpeg2k: int | None = 0,
    dtype: DALIDataType | None = DALIDataType.UINT8,
    end: int | _Sequence[int] | DataNode | _ndarray | None = None,
    host_memory_padding: int | None = 8388608,
    host_memory_padding_jpeg2k: int | None = 0,
    hw_decoder_load: float | None = 0.65,
    hybrid_huffman_threshold: int | None = 1000000,
    jpeg_fancy_upsampling: bool | None = False,
    normalized_anchor: bool | None = True,
    normalized_shape: bool | None = True,
    output_type: DALIImageType | None = DALIImageType.RGB,
    preallocate_height_hint: int | None = 0,
    preallocate_width_hint: int | None = 0,
    preserve: bool | None = False,
    rel_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
    rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
    rel_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
    shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    start: int | _Sequence[int] | DataNode | _ndarray | None = None,
    use_fast_idct: bool | None = False,
) -> list[DataNode]: ...

@_overload
def video(
    encoded: DataNode | _TensorLike,
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    affine: bool | None = True,
    build_index: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    end_frame: int | DataNode | _ndarray | None = None,
    fill_value: int | _Sequence[int] | _ndarray | None = ...,
    frames: int | _Sequence[int] | DataNode | _ndarray | None = None,
    pad_mode: str | None = "constant",
    preserve: bool | None = False,
    sequence_length: int | DataNode | _ndarray | None = None,
    start_frame: int | DataNode | _ndarray | None = None,
    stride: int | DataNode | _ndarray | None = None,
) -> DataNode:
    """Decodes videos to sequences of frames: uint8, layout FHWC, RGB.

    Any format that FFmpeg reads is decoded on the CPU (DALI does so with VP8, VP9 and MJPEG alone). It needs PyAV:
    ``pip install penstock[video]``.

    >>> clips = fn.decoders.video(encoded, start_frame=10, sequence_length=16, stride=2)  # doctest: +SKIP

    Runs on: cpu, mixed.

    Args:
        encoded: Contents of video files: uint8 of shape (n,).

    Keyword args:
        affine (bool, default True): Accepted for compatibility.
        build_index (bool, default True): Accepted for compatibility; there always is an index.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        end_frame (int | DataNode): The number of the frame behind the last one.
        fill_value (int | Sequence[int], default [0]): Colour of frames behind the end, with pad_mode="constant".
        frames (int | Sequence[int] | DataNode): Numbers of the wanted frames, in any order.
        pad_mode (str, default 'constant'): What stands for frames behind the end: `none` (nothing), `constant`, `edge` (the last frame), `symmetric` or `reflect_1001`, `reflect` or `reflect_101`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        sequence_length (int | DataNode): Number of frames; by default all up to the end.
        start_frame (int | DataNode): The number of the first frame; by default 0.
        stride (int | DataNode): From one frame to the next; by default 1.
    """
    ...
@_overload
def video(
    encoded: list[DataNode],
    /,
    *,
    device: str | None = None,
    name: str | None = None,
    affine: bool | None = True,
    build_index: bool | None = True,
    bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
    end_frame: int | DataNode | _ndarray | None = None,
    fill_value: int | _Sequence[int] | _ndarray | None = ...,
    frames: int | _Sequence[int] | DataNode | _ndarray | None = None,
    pad_mode: str | None = "constant",
    preserve: bool | None = False,
    sequence_length: int | DataNode | _ndarray | None = None,
    start_frame: int | DataNode | _ndarray | None = None,
    stride: int | DataNode | _ndarray | None = None,
) -> list[DataNode]: ...
