# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `experimental`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from . import decoders as decoders
from . import inputs as inputs
from . import readers as readers
from penstock.ops import OperatorFace

class AudioResample(OperatorFace):
    """Resamples signals with a windowed sinc filter.

    The factor is given by the sample rates, as such, or by the length of the output. Integers stand for numbers
    between -1 and 1.

    >>> audio = fn.audio_resample(audio, in_rate=44100.0, out_rate=16000.0)

    Runs on: cpu, gpu.

    Args:
        input: Signals: (time) or (time, channels); float32 or integers up to 32 bits.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        in_rate (float | DataNode): Sample rate of the input; goes with `out_rate`.
        out_length (int | DataNode): Length of the output.
        out_rate (float | DataNode): Sample rate of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        quality (float, default 50.0): From 0 to 100: how wide the filter is; at 50, 16 lobes to each side.
        scale (float | DataNode): How many times as many samples the output has.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_rate: float | DataNode | _ndarray | None = None,
        out_length: int | DataNode | _ndarray | None = None,
        out_rate: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        scale: float | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_rate: float | DataNode | _ndarray | None = None,
        out_length: int | DataNode | _ndarray | None = None,
        out_rate: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        scale: float | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_rate: float | DataNode | _ndarray | None = None,
        out_length: int | DataNode | _ndarray | None = None,
        out_rate: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        scale: float | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Debayer(OperatorFace):
    """RGB images from those that a sensor took through a mosaic of colour filters (Bayer's).

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8 or uint16 of a single channel. Layouts: HW, HWC, FHW, FHWC.

    Keyword args:
        blue_position (int | Sequence[int] | DataNode, required): Row and column of blue in the 2x2 tile that begins in the second row and column of the image.
        algorithm (str): How colours are interpolated. On CPU: `bilinear_ocv` (default), `edgeaware_ocv`, `vng_ocv` (uint8 only), or `gray_ocv`, which gives grey images. On GPU: `default_npp`, which is the same as `bilinear_ocv`.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = None,
        blue_position: int | _Sequence[int] | DataNode | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = None,
        blue_position: int | _Sequence[int] | DataNode | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = None,
        blue_position: int | _Sequence[int] | DataNode | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Dilate(OperatorFace):
    """Each pixel becomes the greatest of those under a rectangular mask.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HW, HWC, FHWC, CHW, FCHW.

    Keyword args:
        anchor (int | Sequence[int] | DataNode, default [-1, -1]): The mask's element (x, y) that lies on the output's position; -1: the middle.
        border_mode (str, default 'constant'): Beyond the border: `constant` (what does not change the result), `replicate` (aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc) or `wrap` (bc|abc).
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        iterations (int, default 1): How many times the operation is repeated.
        mask_size (int | Sequence[int] | DataNode, default [3, 3]): Width and height of the mask.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Equalize(OperatorFace):
    """Spreads each channel's values so that its histogram is as flat as can be.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8. Layouts: HW, HWC, CHW, FHW, FHWC, FCHW.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Erode(OperatorFace):
    """Each pixel becomes the least of those under a rectangular mask.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HW, HWC, FHWC, CHW, FCHW.

    Keyword args:
        anchor (int | Sequence[int] | DataNode, default [-1, -1]): The mask's element (x, y) that lies on the output's position; -1: the middle.
        border_mode (str, default 'constant'): Beyond the border: `constant` (what does not change the result), `replicate` (aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc) or `wrap` (bc|abc).
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        iterations (int, default 1): How many times the operation is repeated.
        mask_size (int | Sequence[int] | DataNode, default [3, 3]): Width and height of the mask.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        iterations: int | None = 1,
        mask_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Filter(OperatorFace):
    """Correlates images with a filter; integers are rounded to the nearest, ties to even, and saturate.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        data: Images of uint8, int16, uint16 or float; channels first, last or absent.
        filter: The filter of each sample, float, two-dimensional.
        fill_value: What lies beyond a constant border: a scalar of the data's type; 0 where it is not given.

    Keyword args:
        anchor (int | Sequence[int] | DataNode, default [-1]): The filter's element that lies on the output's position, one value for each of its dimensions; -1: the middle.
        border (str, default 'reflect_101'): Beyond the border: `reflect_101` (cb|abc), `reflect_1001` (ba|abc), `clamp` (aa|abc), `wrap` (bc|abc) or `constant`.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output: FLOAT, or by default that of the data.
        mode (str, default 'same'): `same`: the output is as large as the input; `valid`: without border.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border: str | None = "reflect_101",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mode: str | None = "same",
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        filter: DataNode | _TensorLike,
        fill_value: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border: str | None = "reflect_101",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mode: str | None = "same",
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        filter: list[DataNode] | DataNode | _TensorLike,
        fill_value: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        border: str | None = "reflect_101",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mode: str | None = "same",
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Inflate(OperatorFace):
    """Decompresses LZ4 blocks (without a frame around them) to arrays of a known shape.

    A sample is one block; or, with ``chunk_offsets`` or ``chunk_sizes``, a sequence of blocks of one shape each, which
    become the outermost dimension. The CPU decompresses, on the pool's threads, also for GPU data.

    >>> frames = fn.decoders.inflate(packed, shape=[480, 640], layout="HW", chunk_sizes=sizes)  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: LZ4 blocks: uint8 of shape (n,).

    Keyword args:
        shape (int | Sequence[int] | DataNode, required): Shape of an inflated block.
        algorithm (str, default 'LZ4'): The compression: LZ4.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        check_output_size (bool, default False): Refuse blocks that inflate to less than `shape` instead of filling the rest with zeros.
        chunk_offsets (int | Sequence[int] | DataNode): Where the blocks begin; by default one follows the other.
        chunk_sizes (int | Sequence[int] | DataNode): Bytes of the blocks; by default up to the next one.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output.
        layout (str, default ''): Layout of an inflated block.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        sequence_axis_name (str, default 'F'): Letter of the dimension that the blocks of a sample form.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = "LZ4",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        check_output_size: bool | None = False,
        chunk_offsets: int | _Sequence[int] | DataNode | _ndarray | None = None,
        chunk_sizes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        layout: str | None = "",
        preserve: bool | None = False,
        sequence_axis_name: str | None = "F",
        shape: int | _Sequence[int] | DataNode | _ndarray = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = "LZ4",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        check_output_size: bool | None = False,
        chunk_offsets: int | _Sequence[int] | DataNode | _ndarray | None = None,
        chunk_sizes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        layout: str | None = "",
        preserve: bool | None = False,
        sequence_axis_name: str | None = "F",
        shape: int | _Sequence[int] | DataNode | _ndarray = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        algorithm: str | None = "LZ4",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        check_output_size: bool | None = False,
        chunk_offsets: int | _Sequence[int] | DataNode | _ndarray | None = None,
        chunk_sizes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        layout: str | None = "",
        preserve: bool | None = False,
        sequence_axis_name: str | None = "F",
        shape: int | _Sequence[int] | DataNode | _ndarray = ...,
    ) -> list[DataNode]: ...

class MedianBlur(OperatorFace):
    """Each value becomes the median of those in a window around it; beyond the border, the edge is repeated.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, uint16, int32 or float. Layouts: HW, HWC, FHWC, CHW, FCHW.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        window_size (int | Sequence[int] | DataNode, default [3, 3]): Width and height of the window, odd.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        window_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        window_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        window_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class PeekImageShape(OperatorFace):
    """Tells the shape (height, width, channels) of the decoded image without decoding it.

    >>> shapes = fn.peek_image_shape(encoded)  # doctest: +SKIP

    Runs on: cpu.

    Args:
        input: Encoded images: the bytes of files, uint8 of shape (n,); zeros behind an image are ignored.

    Keyword args:
        adjust_orientation (bool, default True): Tell the shape after turning the image upright.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.INT64: 7>): Type of the output.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space to which the image would be decoded.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        adjust_orientation: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT64,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        adjust_orientation: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT64,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        adjust_orientation: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT64,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Remap(OperatorFace):
    """``output(x, y) = input(mapx(x, y), mapy(x, y))``; what lies beyond the border is 0.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HWC, FHWC.
        mapx: The x coordinate of each output pixel, float of shape (H, W) or (H, W, 1). Layouts: HWC, HW, FHWC, FHW, F***, F**.
        mapy: The y coordinates, of the same shape. Layouts: HWC, HW, FHWC, FHW, F***, F**.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        interp (DALIInterpType, default <DALIInterpType.INTERP_LINEAR: 1>): INTERP_NN or INTERP_LINEAR.
        pixel_origin (str, default 'corner'): Where pixel (0, 0) has its origin: `corner`, or `center` as in OpenCV.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        interp: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        mapx: DataNode | _TensorLike,
        mapy: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        interp: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        mapx: list[DataNode] | DataNode | _TensorLike,
        mapy: list[DataNode] | DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        interp: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Resize(OperatorFace):
    """Resamples images to another size with a separable filter.

    The middle of output pixel j lies at ``(j + 0.5) * scale - 0.5`` in the input; beyond the border the nearest pixel
    is taken.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HWC, FHWC, CHW, FCHW, CFHW, DHWC, FDHWC, CDHW, FCDHW, CFDHW.

    Keyword args:
        antialias (bool, default True): Widen the filter when an axis shrinks, so that nothing is skipped.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output: that of the input (the default), or FLOAT.
        image_type (DALIImageType): Colour space of the input.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        max_size (float | Sequence[float]): The most that each axis may have: one value, or one for each axis (D, H, W order).
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        mode (str, default 'default'): How sizes that are not given follow: `default` (same scale as those given), `stretch` (unchanged), `not_larger` (fits inside), `not_smaller` (covers).
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        resize_longer (float | DataNode, default 0.0): Extent of the longer axis; the other follows.
        resize_shorter (float | DataNode, default 0.0): Extent of the shorter axis; the other follows.
        resize_x (float | DataNode, default 0.0): Output width in pixels; 0: follows from the rest; negative: mirrored.
        resize_y (float | DataNode, default 0.0): Output height in pixels; 0: follows from the rest; negative: mirrored.
        resize_z (float | DataNode, default 0.0): Output depth in pixels; 0: follows from the rest; negative: mirrored. Of volumes only.
        roi_end (float | Sequence[float] | DataNode): End of the region to resize, in D, H, W order; before the start: mirrored.
        roi_relative (bool, default False): The region is given in fractions of the input's extents.
        roi_start (float | Sequence[float] | DataNode): Start of the region to resize, in D, H, W order.
        save_attrs (bool, default False): A second output holds the input's extents (INT32: D, H, W).
        size (float | Sequence[float] | DataNode): Output extents in D, H, W order: one value, or one for each axis.
        subpixel_scale (bool, default True): When an extent is rounded, adjust the region so that the true scale is kept.
        temp_buffer_hint (int, default 0): Accepted for compatibility.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        preserve: bool | None = False,
        resize_longer: float | DataNode | _ndarray | None = 0.0,
        resize_shorter: float | DataNode | _ndarray | None = 0.0,
        resize_x: float | DataNode | _ndarray | None = 0.0,
        resize_y: float | DataNode | _ndarray | None = 0.0,
        resize_z: float | DataNode | _ndarray | None = 0.0,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        save_attrs: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> None: ...
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        preserve: bool | None = False,
        resize_longer: float | DataNode | _ndarray | None = 0.0,
        resize_shorter: float | DataNode | _ndarray | None = 0.0,
        resize_x: float | DataNode | _ndarray | None = 0.0,
        resize_y: float | DataNode | _ndarray | None = 0.0,
        resize_z: float | DataNode | _ndarray | None = 0.0,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        save_attrs: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> Any: ...

class TensorResize(OperatorFace):
    """Resamples chosen dimensions of tensors with a separable filter; layouts do not matter.

    The dimensions, and those between them, may be three at most.

    >>> fn.tensor_resize(volumes, sizes=[64, 128], axes=[1, 2])

    Runs on: cpu, gpu.

    Args:
        input: Data of uint8, int16, uint16 or float, of any shape.

    Keyword args:
        alignment (float | Sequence[float] | DataNode, default [0.5]): The point of each region that stays where it is when `subpixel_scale` adjusts it: 0 start, 1 end.
        antialias (bool, default True): Widen the filter when an axis shrinks, so that nothing is skipped.
        axes (int | Sequence[int]): Indices of the dimensions to resize; by default all.
        axis_names (str): Letters of the dimensions to resize, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output: FLOAT or, by default, that of the input.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        max_size (float | Sequence[float]): The most that each axis may have: one value, or one for each axis.
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        mode (str, default 'default'): How sizes of 0 follow: `default` (same scale as the others), `stretch` (unchanged), `not_larger` (fits inside), `not_smaller` (covers).
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        roi_end (float | Sequence[float] | DataNode): End of the region to resize; before the start: mirrored.
        roi_relative (bool, default False): The region is given in fractions of the input's extents.
        roi_start (float | Sequence[float] | DataNode): Start of the region to resize, in the order of the axes.
        scales (float | Sequence[float] | DataNode): Output extents over input extents: one, or one for each axis.
        size_rounding (str, default 'round'): How extents become whole: `round`, `truncate` or `ceil`.
        sizes (float | Sequence[float] | DataNode): Output extents: one, or one for each axis; negative: mirrored.
        subpixel_scale (bool, default True): When an extent is rounded, adjust the region so that the true scale is kept.
        temp_buffer_hint (int, default 0): Accepted for compatibility.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        alignment: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        antialias: bool | None = True,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        preserve: bool | None = False,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        scales: float | _Sequence[float] | DataNode | _ndarray | None = None,
        size_rounding: str | None = "round",
        sizes: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        alignment: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        antialias: bool | None = True,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        preserve: bool | None = False,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        scales: float | _Sequence[float] | DataNode | _ndarray | None = None,
        size_rounding: str | None = "round",
        sizes: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        alignment: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        antialias: bool | None = True,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mode: str | None = "default",
        preserve: bool | None = False,
        roi_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        roi_relative: bool | None = False,
        roi_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        scales: float | _Sequence[float] | DataNode | _ndarray | None = None,
        size_rounding: str | None = "round",
        sizes: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> list[DataNode]: ...

class WarpPerspective(OperatorFace):
    """Moves pixels by a homography, which maps output to input coordinates unless ``inverse_map=False``.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, uint16 or float, of up to 4 channels. Layouts: HW, HWC, FHWC, CHW, FCHW.
        matrix_input: The 3x3 matrix of float, where it is no argument.

    Keyword args:
        border_mode (str, default 'constant'): Beyond the border: `constant`, `replicate` (aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc) or `wrap` (bc|abc).
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        fill_value (float | Sequence[float], default []): What lies beyond a constant border: one value, or one a channel.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_LINEAR: 1>): INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        inverse_map (bool, default True): The matrix maps output to input coordinates; False: input to output.
        matrix (float | Sequence[float] | DataNode, default []): 3x3 matrix in x, y, row by row.
        pixel_origin (str, default 'corner'): Where pixel (0, 0) has its origin: `corner`, or `center` as in OpenCV.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        size (float | Sequence[float] | DataNode, default []): Output extents (height, width); default: the input's.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | _Sequence[float] | _ndarray | None = ...,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        matrix_input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | _Sequence[float] | _ndarray | None = ...,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        matrix_input: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        border_mode: str | None = "constant",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | _Sequence[float] | _ndarray | None = ...,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        pixel_origin: str | None = "corner",
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...
