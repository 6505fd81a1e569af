# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators as classes: ``ops.Resize(size=(224, 224))(images)``; one for each operator that is registered."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from . import decoders as decoders
from . import experimental as experimental
from . import io as io
from . import noise as noise
from . import random as random
from . import readers as readers
from . import reductions as reductions
from . import segmentation as segmentation
from . import transforms as transforms
from collections.abc import Sequence
from typing import Any
from penstock.external_source import ExternalSource as ExternalSource
from penstock.schema import Schema

class OperatorFace:
    """An operator whose arguments are given at construction, to be called on inputs any number of times.

    Args:
        device: ``cpu``, ``gpu`` or ``mixed``.
        name: of the instance.
        arguments: of the operator; more can be given at the call.
    """
    schema: Schema

    def __init__(self, *, device: str='cpu', name: str | None=None, **arguments: Any) -> None:
        ...

    @property
    def device(self) -> str:
        """Where it runs."""
        ...

    @property
    def schema_name(self) -> str:
        """The operator's name in saved pipelines."""
        ...

    @property
    def preserve(self) -> bool:
        """Whether it stays even if no output depends on it."""
        ...

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """The operator's outputs for ``inputs``.

        Raises:
            ValueError: an argument was given at construction already; RuntimeError for one from the graph.
        """
        ...

def Compose(op_list: Sequence[Any]) -> Any:
    """Several operators as one that calls them one after the other; of one operator that operator itself.

    Args:
        op_list: operators (or functions of nodes); each gets the outputs of the one before. Of none the inputs come back.
    """
    ...

def cpu_ops() -> set[str]:
    """The names of operators that run on CPU."""
    ...

def gpu_ops() -> set[str]:
    """The names of operators that run on GPU."""
    ...

def mixed_ops() -> set[str]:
    """The names of operators that take data on CPU and give it on GPU."""
    ...

class ArithmeticGenericOp(OperatorFace):
    """One function of inputs and constants, element by element; shapes are broadcast as numpy does.

    Runs on: cpu, gpu.

    Args:
        input_0: Operands, of any shapes that broadcast.

    Keyword args:
        expression_desc (str, required): The function and its operands, e.g. `add(&0 $0:int32)`.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        integer_constants (int | Sequence[int]): Constants of integer types, in the order in which operands number them.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        real_constants (float | Sequence[float]): Constants of floating point types, in the order in which operands number them.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        expression_desc: str = ...,
        integer_constants: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        real_constants: float | _Sequence[float] | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input_0: DataNode | _TensorLike,
        /,
        *inputs: DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        expression_desc: str = ...,
        integer_constants: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        real_constants: float | _Sequence[float] | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input_0: list[DataNode],
        /,
        *inputs: list[DataNode] | DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        expression_desc: str = ...,
        integer_constants: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        real_constants: float | _Sequence[float] | _ndarray | None = None,
    ) -> list[DataNode]: ...

class AudioDecoder(OperatorFace):
    """Decodes audio files of any format that libsndfile reads: WAV, FLAC, Ogg, MP3, AIFF and others.

    The first output is (time, channels), or (time) with `downmix`; the second the sample rate in Hz. Files that hold
    floating point numbers are not scaled when integers are asked for.

    >>> audio, rate = fn.decoders.audio(encoded, sample_rate=16000.0, downmix=True)

    Runs on: cpu.

    Args:
        input: Contents of audio files: 1-D, uint8.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        downmix (bool, default False): Replace the channels by their mean.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output: FLOAT, INT16 or INT32.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        quality (float, default 50.0): Quality of resampling, from 0 to 100.
        sample_rate (float | DataNode, default 0.0): Sample rate of the output, in Hz; 0: that of the file.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        downmix: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        sample_rate: float | DataNode | _ndarray | None = 0.0,
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
        downmix: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        sample_rate: float | DataNode | _ndarray | None = 0.0,
    ) -> list[DataNode]: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        downmix: bool | None = False,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preserve: bool | None = False,
        quality: float | None = 50.0,
        sample_rate: float | DataNode | _ndarray | None = 0.0,
    ) -> list[list[DataNode]]: ...

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

class BBoxPaste(OperatorFace):
    """Moves and scales boxes as ``paste`` moves and scales the image that they lie in.

    >>> images = fn.paste(images, fill_value=0, ratio=2.0, paste_x=x, paste_y=y)
    >>> boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=x, paste_y=y)

    Runs on: cpu.

    Args:
        input: Boxes of shape (n, 4) in fractions of the image: x, y, width, height. FLOAT.

    Keyword args:
        ratio (float | DataNode, required): Extents of the canvas over those of the image.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        ltrb (bool, default False): Boxes are given as left, top, right, bottom.
        paste_x (float | DataNode, default 0.5): Where the image lies on the canvas: 0 left, 1 right.
        paste_y (float | DataNode, default 0.5): Where the image lies on the canvas: 0 top, 1 bottom.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        ltrb: bool | None = False,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
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
        ltrb: bool | None = False,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
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
        ltrb: bool | None = False,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
    ) -> list[DataNode]: ...

class BBoxRotate(OperatorFace):
    """Turns bounding boxes as `rotate` turns their image; boxes that leave the canvas are cut or removed.

    Runs on: cpu.

    Args:
        bboxes: Boxes of float, of shape (boxes, 4).
        labels: A label for each box, int32 of shape (boxes,) or (boxes, 1); goes where its box goes.

    Keyword args:
        angle (float | DataNode, required): In degrees, counter-clockwise.
        input_shape (int | Sequence[int] | DataNode, required): Shape of the image before its rotation, as `shape_layout` names it.
        bbox_layout (str, default 'xyXY'): `xyXY`: corners; `xyWH`: the upper left corner, width and height.
        bbox_normalized (bool, default True): Coordinates are fractions of the image's extents, not pixels.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        keep_size (bool, default False): The image keeps its size.
        mode (str, default 'expand'): Size of the new boxes: `expand`: that holds the turned box; `fixed`: that of the old one; `halfway`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        remove_threshold (float, default 0.1): Boxes of which less than this fraction is on the canvas are removed.
        shape_layout (str, default 'HW'): What the entries of `input_shape` are.
        size (float | Sequence[float] | DataNode, default []): Extents (height, width) that the image gets.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray = ...,
        bbox_layout: str | None = "xyXY",
        bbox_normalized: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        input_shape: int | _Sequence[int] | DataNode | _ndarray = ...,
        keep_size: bool | None = False,
        mode: str | None = "expand",
        preserve: bool | None = False,
        remove_threshold: float | None = 0.1,
        shape_layout: str | None = "HW",
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    def __call__(
        self,
        bboxes: DataNode | _TensorLike,
        labels: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray = ...,
        bbox_layout: str | None = "xyXY",
        bbox_normalized: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        input_shape: int | _Sequence[int] | DataNode | _ndarray = ...,
        keep_size: bool | None = False,
        mode: str | None = "expand",
        preserve: bool | None = False,
        remove_threshold: float | None = 0.1,
        shape_layout: str | None = "HW",
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> Any: ...

class BatchPermutation(OperatorFace):
    """Gives each sample the index of a sample of its batch, as :func:`fn.permute_batch` takes it.

    >>> others = fn.permute_batch(images, indices=fn.batch_permutation())

    Runs on: cpu.

    Keyword args:
        allow_repetitions (bool, default False): Each sample's index is drawn on its own, so that some may repeat.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        no_fixed_points (bool, default False): No sample gets its own index, unless the batch has but one sample.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        allow_repetitions: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        no_fixed_points: bool | None = False,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        allow_repetitions: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        no_fixed_points: bool | None = False,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> DataNode: ...

class BbFlip(OperatorFace):
    """Mirrors bounding boxes whose coordinates are fractions of the image's extents.

    Runs on: cpu, gpu.

    Args:
        input: Boxes of float, four numbers each: x, y, width, height.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        horizontal (int | DataNode, default 1): Not 0: mirrored horizontally.
        ltrb (bool, default False): Boxes are given by left, top, right, bottom.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        vertical (int | DataNode, default 0): Not 0: mirrored vertically.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        horizontal: int | DataNode | _ndarray | None = 1,
        ltrb: bool | None = False,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
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
        horizontal: int | DataNode | _ndarray | None = 1,
        ltrb: bool | None = False,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
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
        horizontal: int | DataNode | _ndarray | None = 1,
        ltrb: bool | None = False,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
    ) -> list[DataNode]: ...

class BoxEncoder(OperatorFace):
    """Matches boxes to anchors (default boxes) and gives each anchor the box and label to learn.

    An anchor is matched to the box that it overlaps most, if the intersection over union is above ``criteria``; and
    each box is matched to the anchor that it overlaps most. The boxes come out as x and y of the centre, width, height;
    anchors without a box keep themselves and label 0 (background). With ``offset``, differences from the anchor come
    out instead, and zeros for anchors without a box. The method is that of SSD (Liu et al., 2016).

    >>> boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors, offset=True, scale=300.0)

    Runs on: cpu, gpu.

    Args:
        boxes: FLOAT, of shape (n, 4): left, top, right, bottom in fractions of the image.
        labels: INT32, n of them, from 1.

    Keyword args:
        anchors (float | Sequence[float], required): Left, top, right, bottom of each anchor, one after the other.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        criteria (float, default 0.5): The intersection over union above which an anchor is matched, 0 to 1.
        means (float | Sequence[float], default [0.0, 0.0, 0.0, 0.0]): Subtracted from the offsets: x, y, width, height.
        offset (bool, default False): Give normalized offsets from the anchor.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        scale (float, default 1.0): Boxes and anchors are multiplied with it before offsets are taken.
        stds (float | Sequence[float], default [1.0, 1.0, 1.0, 1.0]): Offsets are divided by them: x, y, width, height.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        anchors: float | _Sequence[float] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        criteria: float | None = 0.5,
        means: float | _Sequence[float] | _ndarray | None = ...,
        offset: bool | None = False,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        stds: float | _Sequence[float] | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        boxes: DataNode | _TensorLike,
        labels: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchors: float | _Sequence[float] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        criteria: float | None = 0.5,
        means: float | _Sequence[float] | _ndarray | None = ...,
        offset: bool | None = False,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        stds: float | _Sequence[float] | _ndarray | None = ...,
    ) -> list[DataNode]: ...
    @_overload
    def __call__(
        self,
        boxes: list[DataNode],
        labels: list[DataNode] | DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchors: float | _Sequence[float] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        criteria: float | None = 0.5,
        means: float | _Sequence[float] | _ndarray | None = ...,
        offset: bool | None = False,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        stds: float | _Sequence[float] | _ndarray | None = ...,
    ) -> list[list[DataNode]]: ...

class Brightness(OperatorFace):
    """Changes brightness: ``shift * range + brightness * x``.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, int32 or float. Layouts: FHWC, DHWC, HWC.

    Keyword args:
        brightness (float | DataNode, default 1.0): Factor; 1 changes nothing.
        brightness_shift (float | DataNode, default 0.0): Added, as a fraction of the output type's range.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
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
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
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
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class BrightnessContrast(OperatorFace):
    """Changes brightness and contrast: ``shift * range + brightness * (center + contrast * (x - center))``.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, int32 or float. Layouts: FHWC, DHWC, HWC.

    Keyword args:
        brightness (float | DataNode, default 1.0): Factor; 1 changes nothing.
        brightness_shift (float | DataNode, default 0.0): Added, as a fraction of the output type's range.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        contrast (float | DataNode, default 1.0): Factor of the distance from `contrast_center`; 1 changes nothing.
        contrast_center (float | DataNode, default 0.5): The value that contrast does not change; by default the middle of the input type's range (128 for uint8, 0.5 for float).
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
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
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
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
        brightness: float | DataNode | _ndarray | None = 1.0,
        brightness_shift: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class COCOReader(OperatorFace):
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

class Caffe2Reader(OperatorFace):
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

class CaffeReader(OperatorFace):
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

class Cast(OperatorFace):
    """The same values in another type: integers are rounded half away from zero and saturate.

    Runs on: cpu, gpu.

    Args:
        input: Data of any type and shape.

    Keyword args:
        dtype (DALIDataType, required): Type of the output.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType = ...,
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
        dtype: DALIDataType = ...,
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
        dtype: DALIDataType = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class CastLike(OperatorFace):
    """The first input's values in the second's type: integers are rounded half away from zero and saturate.

    Runs on: cpu, gpu.

    Args:
        input_0: Data of any type and shape.
        input_1: Its type is taken.

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
        input_0: DataNode | _TensorLike,
        input_1: DataNode | _TensorLike,
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
        input_0: list[DataNode],
        input_1: list[DataNode] | DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Cat(OperatorFace):
    """Joins the samples of all inputs along a dimension in which alone they may differ.

    Runs on: cpu, gpu.

    Args:
        input_0: Data of one type and rank.

    Keyword args:
        axis (int, default 0): The dimension along which inputs are joined; negative: from the end.
        axis_name (str): The letter of that dimension.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input_0: DataNode | _TensorLike,
        /,
        *inputs: DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input_0: list[DataNode],
        /,
        *inputs: list[DataNode] | DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Clahe(OperatorFace):
    """Equalizes the histograms of tiles and blends between them, limiting the contrast that this adds.

    Zuiderveld, "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, grey or RGB. Layouts: HWC.

    Keyword args:
        clip_limit (float, required): How much higher than their mean a histogram's bins may be; 0 or less: no limit.
        tiles_x (int, required): Number of tiles across the width.
        tiles_y (int, required): Number of tiles across the height.
        bins (int, default 256): Accepted for compatibility: there is one bin for each value.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        luma_only (bool, default True): Equalize the lightness of RGB images (L of CIE L*a*b*), not each channel.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bins: int | None = 256,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        clip_limit: float = ...,
        luma_only: bool | None = True,
        preserve: bool | None = False,
        tiles_x: int = ...,
        tiles_y: int = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bins: int | None = 256,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        clip_limit: float = ...,
        luma_only: bool | None = True,
        preserve: bool | None = False,
        tiles_x: int = ...,
        tiles_y: int = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bins: int | None = 256,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        clip_limit: float = ...,
        luma_only: bool | None = True,
        preserve: bool | None = False,
        tiles_x: int = ...,
        tiles_y: int = ...,
    ) -> list[DataNode]: ...

class CoinFlip(OperatorFace):
    """1 with the given probability, else 0.

    >>> flipped = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        probability (float | DataNode, default 0.5): Probability of a 1, from 0 to 1.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        probability: float | DataNode | _ndarray | None = 0.5,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class ColorSpaceConversion(OperatorFace):
    """Converts between colour spaces; YCbCr is that of ITU-R BT.601 in studio range.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, channels last. Layouts: FDHWC, FHWC, DHWC, HWC.

    Keyword args:
        image_type (DALIImageType, required): Colour space of the input.
        output_type (DALIImageType, required): Colour space of the output.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        image_type: DALIImageType = ...,
        output_type: DALIImageType = ...,
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
        image_type: DALIImageType = ...,
        output_type: DALIImageType = ...,
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
        image_type: DALIImageType = ...,
        output_type: DALIImageType = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class ColorTwist(OperatorFace):
    """``brightness * (contrast * M x + (1 - contrast) * center)``, M turning the hue and scaling the saturation.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of three channels. Layouts: HWC, FHWC, DHWC.

    Keyword args:
        brightness (float | DataNode, default 1.0): Factor; 1 changes nothing.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        contrast (float | DataNode, default 1.0): Factor of the distance from `contrast_center`; 1 changes nothing.
        dtype (DALIDataType): Type of the output; by default that of the input.
        hue (float | DataNode, default 0.0): Change of hue, in degrees.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        saturation (float | DataNode, default 1.0): Factor of saturation; 0 gives grey.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        brightness: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        brightness: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        brightness: float | DataNode | _ndarray | None = 1.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class Constant(OperatorFace):
    """Gives a tensor that is known when the pipeline is built; all samples share its memory.

    Runs on: cpu, gpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; not FLOAT64.
        fdata (float | Sequence[float]): Values, for floating point types.
        idata (int | Sequence[int]): Values, for integer types.
        layout (str, default ''): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (int | Sequence[int]): Extents of the output.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fdata: float | _Sequence[float] | _ndarray | None = None,
        idata: int | _Sequence[int] | _ndarray | None = None,
        layout: str | None = "",
        preserve: bool | None = False,
        shape: int | _Sequence[int] | _ndarray | None = None,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fdata: float | _Sequence[float] | _ndarray | None = None,
        idata: int | _Sequence[int] | _ndarray | None = None,
        layout: str | None = "",
        preserve: bool | None = False,
        shape: int | _Sequence[int] | _ndarray | None = None,
    ) -> DataNode: ...

class Contrast(OperatorFace):
    """Changes contrast: ``center + contrast * (x - center)``.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, int32 or float. Layouts: FHWC, DHWC, HWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        contrast (float | DataNode, default 1.0): Factor of the distance from `contrast_center`; 1 changes nothing.
        contrast_center (float | DataNode, default 0.5): The value that contrast does not change; by default the middle of the input type's range.
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
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
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
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
        contrast: float | DataNode | _ndarray | None = 1.0,
        contrast_center: float | DataNode | _ndarray | None = 0.5,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class CoordFlip(OperatorFace):
    """Mirrors points: each coordinate c that is flipped becomes ``2 * center - c``.

    Runs on: cpu, gpu.

    Args:
        input: Points of float, of shape (points, coordinates), up to three coordinates.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        center_x (float | DataNode, default 0.5): Where x is mirrored.
        center_y (float | DataNode, default 0.5): Where y is mirrored.
        center_z (float | DataNode, default 0.5): Where z is mirrored.
        flip_x (int | DataNode, default 1): Not 0: mirror x.
        flip_y (int | DataNode, default 0): Not 0: mirror y.
        flip_z (int | DataNode, default 0): Not 0: mirror z.
        layout (str, default ''): Order of the coordinates; by default x, xy or xyz.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        center_x: float | DataNode | _ndarray | None = 0.5,
        center_y: float | DataNode | _ndarray | None = 0.5,
        center_z: float | DataNode | _ndarray | None = 0.5,
        flip_x: int | DataNode | _ndarray | None = 1,
        flip_y: int | DataNode | _ndarray | None = 0,
        flip_z: int | DataNode | _ndarray | None = 0,
        layout: str | None = "",
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
        center_x: float | DataNode | _ndarray | None = 0.5,
        center_y: float | DataNode | _ndarray | None = 0.5,
        center_z: float | DataNode | _ndarray | None = 0.5,
        flip_x: int | DataNode | _ndarray | None = 1,
        flip_y: int | DataNode | _ndarray | None = 0,
        flip_z: int | DataNode | _ndarray | None = 0,
        layout: str | None = "",
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
        center_x: float | DataNode | _ndarray | None = 0.5,
        center_y: float | DataNode | _ndarray | None = 0.5,
        center_z: float | DataNode | _ndarray | None = 0.5,
        flip_x: int | DataNode | _ndarray | None = 1,
        flip_y: int | DataNode | _ndarray | None = 0,
        flip_z: int | DataNode | _ndarray | None = 0,
        layout: str | None = "",
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class CoordTransform(OperatorFace):
    """``M x + T`` for each point x: the innermost dimension of the input holds the points' coordinates.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Points: any number of dimensions, the last of which is of n coordinates.

    Keyword args:
        M (float | Sequence[float] | DataNode): The matrix, m x n, row by row; one value is that multiple of the identity. Default: the identity.
        MT (float | Sequence[float] | DataNode): M and T as one matrix [M|T], m x (n + 1).
        T (float | Sequence[float] | DataNode): The translation, of m values or one for all. Default: none.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output: FLOAT or that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        M: float | _Sequence[float] | DataNode | _ndarray | None = None,
        MT: float | _Sequence[float] | DataNode | _ndarray | None = None,
        T: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
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
        M: float | _Sequence[float] | DataNode | _ndarray | None = None,
        MT: float | _Sequence[float] | DataNode | _ndarray | None = None,
        T: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
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
        M: float | _Sequence[float] | DataNode | _ndarray | None = None,
        MT: float | _Sequence[float] | DataNode | _ndarray | None = None,
        T: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Copy(OperatorFace):
    """A copy of each sample, on the device where the operator runs.

    Runs on: cpu, gpu, mixed.

    Args:
        input: Data of any kind.

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

class Crop(OperatorFace):
    """Takes a window of the given extents, placed by its relative position.

    Runs on: cpu, gpu.

    Args:
        input: Images of any type. Layouts: HWC, CHW, DHWC, CDHW, FHWC, FCHW, CFHW, FDHWC, FCDHW, CFDHW.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop (float | Sequence[float] | DataNode): Extents of the window: (height, width) or (depth, height, width).
        crop_d (float | DataNode, default 0.0): Depth of the window; 0: all.
        crop_h (float | DataNode, default 0.0): Height of the window; 0: all.
        crop_pos_x (float | DataNode, default 0.5): Horizontal place of the window, from 0 (left) to 1 (right).
        crop_pos_y (float | DataNode, default 0.5): Vertical place of the window, from 0 (top) to 1 (bottom).
        crop_pos_z (float | DataNode, default 0.5): Place of the window in depth, from 0 (front) to 1 (back).
        crop_w (float | DataNode, default 0.0): Width of the window; 0: all.
        dtype (DALIDataType): Type of the output; by default that of the input.
        fill_values (float | Sequence[float], default [0.0]): What pixels outside of the input are, with out_of_bounds_policy="pad": one value, or one for each channel.
        image_type (DALIImageType): Colour space of the input.
        out_of_bounds_policy (str, default 'error'): A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`.
        output_dtype (DALIDataType): Old name of `dtype`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rounding (str, default 'round'): How the window's start is made an integer: `round` (half away from zero) or `truncate`.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rounding: str | None = "round",
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
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rounding: str | None = "round",
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
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rounding: str | None = "round",
    ) -> list[DataNode]: ...

class CropMirrorNormalize(OperatorFace):
    """Takes a window, mirrors it, computes ``(x - mean) / std * scale + shift``, converts and transposes it.

    Runs on: cpu, gpu.

    Args:
        input: Images of any type. Layouts: HWC, CHW, DHWC, CDHW, FHWC, FCHW, CFHW, FDHWC, FCDHW, CFDHW.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop (float | Sequence[float] | DataNode): Extents of the window: (height, width) or (depth, height, width).
        crop_d (float | DataNode, default 0.0): Depth of the window; 0: all.
        crop_h (float | DataNode, default 0.0): Height of the window; 0: all.
        crop_pos_x (float | DataNode, default 0.5): Horizontal place of the window, from 0 (left) to 1 (right).
        crop_pos_y (float | DataNode, default 0.5): Vertical place of the window, from 0 (top) to 1 (bottom).
        crop_pos_z (float | DataNode, default 0.5): Place of the window in depth, from 0 (front) to 1 (back).
        crop_w (float | DataNode, default 0.0): Width of the window; 0: all.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output.
        fill_values (float | Sequence[float], default [0.0]): What pixels outside of the input are, with out_of_bounds_policy="pad": one value, or one for each channel.
        image_type (DALIImageType): Colour space of the input.
        mean (float | Sequence[float] | DataNode, default [0.0]): Subtracted from each channel.
        mirror (int | DataNode, default 0): Not 0: mirrored horizontally.
        out_of_bounds_policy (str, default 'error'): A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`.
        output_dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Old name of `dtype`.
        output_layout (str, default 'CHW'): Layout of the output.
        pad_output (bool, default False): Add channels up to the next power of two.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rounding (str, default 'round'): How the window's start is made an integer: `round` (half away from zero) or `truncate`.
        scale (float, default 1.0): Multiplied with the normalized value.
        shift (float, default 0.0): Added last.
        std (float | Sequence[float] | DataNode, default [1.0]): Each channel is divided by it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        mean: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        mirror: int | DataNode | _ndarray | None = 0,
        out_of_bounds_policy: str | None = "error",
        output_layout: str | None = "CHW",
        pad_output: bool | None = False,
        preserve: bool | None = False,
        rounding: str | None = "round",
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        std: float | _Sequence[float] | DataNode | _ndarray | None = ...,
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
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        mean: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        mirror: int | DataNode | _ndarray | None = 0,
        out_of_bounds_policy: str | None = "error",
        output_layout: str | None = "CHW",
        pad_output: bool | None = False,
        preserve: bool | None = False,
        rounding: str | None = "round",
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        std: float | _Sequence[float] | DataNode | _ndarray | None = ...,
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
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        mean: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        mirror: int | DataNode | _ndarray | None = 0,
        out_of_bounds_policy: str | None = "error",
        output_layout: str | None = "CHW",
        pad_output: bool | None = False,
        preserve: bool | None = False,
        rounding: str | None = "round",
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        std: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

from penstock.python_function import DLTensorPythonFunction as DLTensorPythonFunction

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

class DumpImage(OperatorFace):
    """Writes each image to ``<index in the batch>-<suffix>-0.ppm`` in the current folder, and passes it on.

    Each batch overwrites the files of the one before. Meant for debugging.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8 in HWC order, of 1 or 3 channels.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        input_layout (str, default 'HWC'): Layout of the images; only HWC is supported.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        suffix (str, default ''): Part of the files' names.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        input_layout: str | None = "HWC",
        preserve: bool | None = False,
        suffix: str | None = "",
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
        input_layout: str | None = "HWC",
        preserve: bool | None = False,
        suffix: str | None = "",
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
        input_layout: str | None = "HWC",
        preserve: bool | None = False,
        suffix: str | None = "",
    ) -> list[DataNode]: ...

class ElementExtract(OperatorFace):
    """Output i is frame ``element_map[i]`` of each sequence; nothing is copied.

    >>> first, third = fn.element_extract(sequences, element_map=[0, 2])

    Runs on: cpu, gpu.

    Args:
        input: Sequences: at least two dimensions, the first of which is F or unnamed.

    Keyword args:
        element_map (int | Sequence[int], required): Indices of the frames, from 0.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        element_map: int | _Sequence[int] | _ndarray = ...,
        preserve: bool | None = False,
    ) -> None: ...
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        element_map: int | _Sequence[int] | _ndarray = ...,
        preserve: bool | None = False,
    ) -> Any: ...

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

class Erase(OperatorFace):
    """Fills boxes of each sample with a value.

    A box reaches from ``anchor`` to ``anchor + shape``, both cut off to whole elements; what of it lies outside of the
    data is ignored. Several boxes are given one after the other.

    >>> images = fn.erase(images, anchor=[10.0, 20.0], shape=[30.0, 40.0], axis_names="HW")  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Data of any numeric type but float64, and of any shape.

    Keyword args:
        anchor (float | Sequence[float] | DataNode, default []): Where each box begins, in the order of the axes.
        axes (int | Sequence[int], default [1, 0]): Indices of the dimensions that the boxes are in.
        axis_names (str, default 'HW'): Letters of the dimensions that the boxes are in; by default all of the layout but C.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        centered_anchor (bool, default False): The anchors are the middles of the boxes.
        fill_value (float | Sequence[float] | DataNode, default [0.0]): What is filled in: one value, or one for each channel.
        normalized (bool, default False): Anchors and shapes are fractions of the input's extents.
        normalized_anchor (bool, default False): Anchors are fractions of the input's extents.
        normalized_shape (bool, default False): Shapes are fractions of the input's extents.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (float | Sequence[float] | DataNode, default []): How far each box reaches, in the order of the axes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        axes: int | _Sequence[int] | _ndarray | None = ...,
        axis_names: str | None = "HW",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        centered_anchor: bool | None = False,
        fill_value: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        normalized: bool | None = False,
        normalized_anchor: bool | None = False,
        normalized_shape: bool | None = False,
        preserve: bool | None = False,
        shape: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        axes: int | _Sequence[int] | _ndarray | None = ...,
        axis_names: str | None = "HW",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        centered_anchor: bool | None = False,
        fill_value: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        normalized: bool | None = False,
        normalized_anchor: bool | None = False,
        normalized_shape: bool | None = False,
        preserve: bool | None = False,
        shape: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        anchor: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        axes: int | _Sequence[int] | _ndarray | None = ...,
        axis_names: str | None = "HW",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        centered_anchor: bool | None = False,
        fill_value: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        normalized: bool | None = False,
        normalized_anchor: bool | None = False,
        normalized_shape: bool | None = False,
        preserve: bool | None = False,
        shape: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class ExpandDims(OperatorFace):
    """Inserts dimensions of extent 1; nothing is copied.

    Runs on: cpu, gpu.

    Args:
        data: Data of any type and shape.

    Keyword args:
        axes (int | Sequence[int], required): Where new dimensions of extent 1 are in the output.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        new_axis_names (str): Letters of the new dimensions.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        new_axis_names: str | None = None,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        new_axis_names: str | None = None,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray = ...,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        new_axis_names: str | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

from penstock.external_source import ExternalSource as ExternalSource

class FastResizeCropMirror(OperatorFace):
    """Resizes images, takes a window of the result and mirrors it.

    The same as ``resize``, ``crop`` and ``flip``, but that only what is kept is computed, and that a window may reach
    outside of the resized image: there the image goes on as its edge does.

    The bits of ``mirror`` name the axes where the layout begins with them (HWC, DHWC). Where other dimensions stand
    before, the bits count from the layout's end as in DALI: with CHW and FHWC, 1 mirrors H, and W is never mirrored;
    with FCHW, neither is.

    >>> images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224], mirror=fn.random.coin_flip())  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HWC, FHWC, CHW, FCHW, CFHW, DHWC, FDHWC, CDHW, FCDHW, CFDHW.

    Keyword args:
        antialias (bool, default False): Widen the filter when an axis shrinks.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop (float | Sequence[float] | DataNode): Extents of the window: (height, width) or (depth, height, width).
        crop_d (float | DataNode, default 0.0): Depth of the window; 0: all.
        crop_h (float | DataNode, default 0.0): Height of the window; 0: all.
        crop_pos_x (float | DataNode, default 0.5): Horizontal place of the window, from 0 (left) to 1 (right).
        crop_pos_y (float | DataNode, default 0.5): Vertical place of the window, from 0 (top) to 1 (bottom).
        crop_pos_z (float | DataNode, default 0.5): Place of the window in depth, from 0 (front) to 1 (back).
        crop_w (float | DataNode, default 0.0): Width of the window; 0: all.
        dtype (DALIDataType): Type of the output: that of the input (the default), or FLOAT.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        max_size (float | Sequence[float]): The most that each axis may have: one value, or one for each axis (D, H, W order).
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        mirror (int | DataNode, default 0): Bits that tell which axes are mirrored: 1: W (horizontally), 2: H (vertically), 4: D; shifted by one for each dimension that the layout has before them.
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
        rounding (str, default 'round'): How the window's start is made an integer: `round` (half away from zero) or `truncate`.
        size (float | Sequence[float] | DataNode): Output extents in D, H, W order: one value, or one for each axis.
        subpixel_scale (bool, default True): When an extent is rounded, adjust the region so that the true scale is kept.
        temp_buffer_hint (int, default 0): Accepted for compatibility.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        antialias: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
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
        antialias: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
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
        antialias: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> list[DataNode]: ...

class FileReader(OperatorFace):
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

class Flip(OperatorFace):
    """Mirrors images horizontally, vertically or in depth.

    Runs on: cpu, gpu.

    Args:
        input: Images of any type; on the CPU neither bool nor float16. Layouts: FDHWC, FHWC, DHWC, HWC, FCDHW, FCHW, CDHW, CHW.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        depthwise (int | DataNode, default 0): Not 0: mirrored in depth.
        horizontal (int | DataNode, default 1): Not 0: mirrored horizontally.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        vertical (int | DataNode, default 0): Not 0: mirrored vertically.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        depthwise: int | DataNode | _ndarray | None = 0,
        horizontal: int | DataNode | _ndarray | None = 1,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
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
        depthwise: int | DataNode | _ndarray | None = 0,
        horizontal: int | DataNode | _ndarray | None = 1,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
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
        depthwise: int | DataNode | _ndarray | None = 0,
        horizontal: int | DataNode | _ndarray | None = 1,
        preserve: bool | None = False,
        vertical: int | DataNode | _ndarray | None = 0,
    ) -> list[DataNode]: ...

class Full(OperatorFace):
    """A tensor for each sample that holds a value throughout, or a smaller tensor broadcast.

    >>> fn.full(fn.random.uniform(), shape=[2, 3])

    Runs on: cpu.

    Args:
        fill_value: A number, or a tensor that broadcasts to the output's shape.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        layout (str): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (int | Sequence[int] | DataNode): Extents of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        fill_value: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        fill_value: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class FullLike(OperatorFace):
    """A tensor of the shape, layout and type of the first input that holds the second, broadcast.

    Runs on: cpu.

    Args:
        data_like: Data whose shapes are taken; its contents do not matter.
        fill_value: A number, or a tensor that broadcasts to the output's shape.

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
        data_like: DataNode | _TensorLike,
        fill_value: DataNode | _TensorLike,
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
        data_like: list[DataNode],
        fill_value: list[DataNode] | DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class GaussianBlur(OperatorFace):
    """Blurs with a Gaussian along all dimensions but channels; reflected at the border without repeating the edge.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of any numeric type; channels first, last or absent.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        sigma (float | Sequence[float] | DataNode, default [0.0]): Standard deviation of the Gaussian, in pixels: one value, or one for each axis in the layout's order.
        window_size (int | Sequence[int] | DataNode, default [0]): Diameter of the window, odd: one value, or one for each axis in the layout's order; 0: follows from sigma.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        sigma: float | _Sequence[float] | DataNode | _ndarray | None = ...,
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
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        sigma: float | _Sequence[float] | DataNode | _ndarray | None = ...,
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
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        sigma: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        window_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class GetProperty(OperatorFace):
    """A property of each sample, as a 1-D tensor of UINT8 characters: ``layout``, or ``source_info`` (a file's name).

    Runs on: cpu, gpu.

    Args:
        input: Data of any kind, on CPU or GPU.

    Keyword args:
        key (str, required): `layout` or `source_info`.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        key: str = ...,
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
        key: str = ...,
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
        key: str = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class GridMask(OperatorFace):
    """Sets squares on a regular grid to zero; Chen et al., "GridMask data augmentation", 2020.

    A pixel (x, y) is erased where both ``x * cos(angle) - y * sin(angle) - shift_x`` and
    ``x * sin(angle) + y * cos(angle) - shift_y`` lie in the first ``ratio`` of a tile.

    >>> images = fn.grid_mask(images, tile=100, ratio=0.4, angle=0.3)  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Images of three dimensions: height, width and channels.

    Keyword args:
        angle (float | DataNode, default 0.0): Of the grid, in radians.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        ratio (float | DataNode, default 0.5): Side of the erased squares, as a part of the tile.
        shift_x (float | DataNode, default 0.0): Where the grid begins along its x axis, in pixels.
        shift_y (float | DataNode, default 0.0): Where the grid begins along its y axis, in pixels.
        tile (int | DataNode, default 100): Side of a tile, in pixels.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray | None = 0.5,
        shift_x: float | DataNode | _ndarray | None = 0.0,
        shift_y: float | DataNode | _ndarray | None = 0.0,
        tile: int | DataNode | _ndarray | None = 100,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray | None = 0.5,
        shift_x: float | DataNode | _ndarray | None = 0.0,
        shift_y: float | DataNode | _ndarray | None = 0.0,
        tile: int | DataNode | _ndarray | None = 100,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray | None = 0.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray | None = 0.5,
        shift_x: float | DataNode | _ndarray | None = 0.0,
        shift_y: float | DataNode | _ndarray | None = 0.0,
        tile: int | DataNode | _ndarray | None = 100,
    ) -> list[DataNode]: ...

class Hsv(OperatorFace):
    """Turns the hue, and scales saturation and value.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of three channels. Layouts: HWC, FHWC, DHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.UINT8: 0>): Type of the output.
        hue (float | DataNode, default 0.0): Change of hue, in degrees.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        saturation (float | DataNode, default 1.0): Factor of saturation; 0 gives grey.
        value (float | DataNode, default 1.0): Factor of brightness.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.UINT8,
        hue: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
        value: float | DataNode | _ndarray | None = 1.0,
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
        dtype: DALIDataType | None = DALIDataType.UINT8,
        hue: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
        value: float | DataNode | _ndarray | None = 1.0,
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
        dtype: DALIDataType | None = DALIDataType.UINT8,
        hue: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
        value: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class Hue(OperatorFace):
    """Turns the hue.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of three channels. Layouts: HWC, FHWC, DHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        hue (float | DataNode, default 0.0): Change of hue, in degrees.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
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
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
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
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        hue: float | DataNode | _ndarray | None = 0.0,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class ImageDecoder(OperatorFace):
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

    def __init__(
        self,
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

class ImageDecoderCrop(OperatorFace):
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

    def __init__(
        self,
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

class ImageDecoderRandomCrop(OperatorFace):
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

    def __init__(
        self,
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

class ImageDecoderSlice(OperatorFace):
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

    def __init__(
        self,
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
    ) -> None: ...
    @_overload
    def __call__(
        self,
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
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
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

class Jitter(OperatorFace):
    """Takes each pixel from a place up to ``nDegree / 2`` pixels away in x and in y, drawn evenly.

    Displacements are whole pixels, so both interpolations give the same. The numbers are those of the operator's own
    random streams, not those of DALI, which draws them on the GPU.

    >>> images = fn.jitter(images, nDegree=4)  # doctest: +SKIP

    Runs on: gpu.

    Args:
        input: Images of uint8 or float. Layouts: HWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        fill_value (float, default 0.0): What lies outside of the input.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_NN: 0>): INTERP_NN or INTERP_LINEAR.
        mask (int | DataNode, default 1): Computed in the graph, 0 leaves a sample as it is. A constant has no effect.
        nDegree (int, default 2): Twice the greatest displacement, in pixels.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        nDegree: int | None = 2,
        preserve: bool | None = False,
        seed: int | None = -1,
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
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        nDegree: int | None = 2,
        preserve: bool | None = False,
        seed: int | None = -1,
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
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        nDegree: int | None = 2,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> list[DataNode]: ...

class JpegCompressionDistortion(OperatorFace):
    """Encodes images as JPEG and decodes them again, for the artefacts that this leaves.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: RGB images of uint8. Layouts: HWC, FHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        quality (int | DataNode, default 50): From 1 (worst) to 100 (best); others are clamped.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        quality: int | DataNode | _ndarray | None = 50,
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
        quality: int | DataNode | _ndarray | None = 50,
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
        quality: int | DataNode | _ndarray | None = 50,
    ) -> list[DataNode]: ...

class Laplacian(OperatorFace):
    """The sum of the second derivatives along all dimensions but channels, each smoothed along the other dimensions.

    Beyond the border the data is reflected without repeating the edge.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images or volumes of any numeric type but double; channels first, last or absent.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output: FLOAT, or by default that of the input.
        normalized_kernel (bool, default False): Scale each derivative by 2^(n + 2 - s), s being the sum of its windows' sizes in n dimensions.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        scale (float | Sequence[float] | DataNode, default [1.0]): Factor of each derivative: one value, or one for each axis.
        smoothing_size (int | Sequence[int] | DataNode): Size of the smoothing windows, odd, from 1 (none) to 31: one value, or one for each axis. By default that of the derivative's window.
        window_size (int | Sequence[int] | DataNode, default [3]): Size of the derivatives' windows, odd, from 3 to 31: one value, or one for each axis.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        normalized_kernel: bool | None = False,
        preserve: bool | None = False,
        scale: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        smoothing_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
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
        dtype: DALIDataType | None = None,
        normalized_kernel: bool | None = False,
        preserve: bool | None = False,
        scale: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        smoothing_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
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
        dtype: DALIDataType | None = None,
        normalized_kernel: bool | None = False,
        preserve: bool | None = False,
        scale: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        smoothing_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
        window_size: int | _Sequence[int] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class LookupTable(OperatorFace):
    """Each element becomes the value whose key it is; elements that are no key become ``default_value``.

    >>> fn.lookup_table(labels, keys=[1, 3], values=[10, 30], dtype=types.INT32)

    Runs on: cpu, gpu.

    Args:
        input: Integers of any shape.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        default_value (float, default 0.0): Value of elements that are no key.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output; integers are rounded and saturated.
        keys (int | Sequence[int], default []): The keys, from 0 to 65535; of equal ones, the last counts.
        output_dtype (DALIDataType, default <DALIDataType.FLOAT: 9>):
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        values (float | Sequence[float], default []): The value of each key.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        default_value: float | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        keys: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        values: float | _Sequence[float] | _ndarray | None = ...,
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
        default_value: float | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        keys: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        values: float | _Sequence[float] | _ndarray | None = ...,
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
        default_value: float | None = 0.0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        keys: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        values: float | _Sequence[float] | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class MFCC(OperatorFace):
    """The first coefficients of the discrete cosine transform along one axis, optionally liftered.

    The transform is not scaled (a constant 1 of N elements gives N), unless `normalize` makes it orthonormal.

    >>> coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13)

    Runs on: cpu, gpu.

    Args:
        input: Mel spectrograms in decibels: float32, of at least 2 dimensions.

    Keyword args:
        axis (int, default 0): The axis of the bands.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dct_type (int, default 2): Type of the cosine transform: 1, 2, 3 or 4.
        lifter (float, default 0.0): L: coefficient k is multiplied with 1 + L/2 sin(pi (k+1) / L); 0: not.
        n_mfcc (int, default 20): Number of coefficients.
        normalize (bool, default False): Make the transform orthonormal; not for type 1.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dct_type: int | None = 2,
        lifter: float | None = 0.0,
        n_mfcc: int | None = 20,
        normalize: bool | None = False,
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
        axis: int | None = 0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dct_type: int | None = 2,
        lifter: float | None = 0.0,
        n_mfcc: int | None = 20,
        normalize: bool | None = False,
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
        axis: int | None = 0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dct_type: int | None = 2,
        lifter: float | None = 0.0,
        n_mfcc: int | None = 20,
        normalize: bool | None = False,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class MXNetReader(OperatorFace):
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

class MakeContiguous(OperatorFace):
    """A copy of each sample, on the device where the operator runs.

    Runs on: cpu, gpu, mixed.

    Args:
        input: Data of any kind.

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

class MelFilterBank(OperatorFace):
    """Sums the power in triangular bands that are evenly spaced on the mel scale.

    The frequency axis is `f` of the layout; without a layout, the last but one.

    >>> mel = fn.mel_filter_bank(fn.spectrogram(audio), sample_rate=16000.0, nfilter=80)

    Runs on: cpu, gpu.

    Args:
        input: Spectrograms: float32; frequencies from 0 to half the sample rate.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        freq_high (float, default 0.0): Highest frequency, in Hz; 0: half the sample rate.
        freq_low (float, default 0.0): Lowest frequency, in Hz.
        mel_formula (str, default 'slaney'): The mel scale: `slaney` (linear below 1 kHz) or `htk`.
        nfilter (int, default 128): Number of bands.
        normalize (bool, default True): Divide each band's weights by half its width.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        sample_rate (float, default 44100.0): Sample rate of the signal, in Hz.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        freq_high: float | None = 0.0,
        freq_low: float | None = 0.0,
        mel_formula: str | None = "slaney",
        nfilter: int | None = 128,
        normalize: bool | None = True,
        preserve: bool | None = False,
        sample_rate: float | None = 44100.0,
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
        freq_high: float | None = 0.0,
        freq_low: float | None = 0.0,
        mel_formula: str | None = "slaney",
        nfilter: int | None = 128,
        normalize: bool | None = True,
        preserve: bool | None = False,
        sample_rate: float | None = 44100.0,
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
        freq_high: float | None = 0.0,
        freq_low: float | None = 0.0,
        mel_formula: str | None = "slaney",
        nfilter: int | None = 128,
        normalize: bool | None = True,
        preserve: bool | None = False,
        sample_rate: float | None = 44100.0,
    ) -> list[DataNode]: ...

class MultiPaste(OperatorFace):
    """Makes each output of regions of the inputs, one pasted over the other on a ground of zeros.

    Given one input and ``in_ids``, the regions are of the samples of that batch that ``in_ids`` names; else there is one
    region of the same sample of each input. The other arguments have one row (y, x) for each region.

    >>> mosaics = fn.multi_paste(images, in_ids=ids, output_size=(300, 300), out_anchors=anchors)  # doctest: +SKIP

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of uint8, int16, int32 or float. Layouts: HWC, FHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        in_anchors (int | DataNode): Where regions begin in their inputs: (n, 2).
        in_anchors_rel (float | DataNode): Where regions begin, in fractions of their inputs' extents: (n, 2).
        in_ids (int | Sequence[int] | DataNode): Indices in the batch of the samples that are pasted: (n,).
        out_anchors (int | DataNode): Where regions begin in the output: (n, 2).
        out_anchors_rel (float | DataNode): Where regions begin, in fractions of the output's extents: (n, 2).
        output_size (int | Sequence[int] | DataNode): (height, width); by default that of the inputs.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shapes (int | DataNode): Extents of the regions: (n, 2); by default they reach to the end.
        shapes_rel (float | DataNode): Extents of the regions, in fractions of their inputs' extents: (n, 2).
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_anchors: int | DataNode | _ndarray | None = None,
        in_anchors_rel: float | DataNode | _ndarray | None = None,
        in_ids: int | _Sequence[int] | DataNode | _ndarray | None = None,
        out_anchors: int | DataNode | _ndarray | None = None,
        out_anchors_rel: float | DataNode | _ndarray | None = None,
        output_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        shapes: int | DataNode | _ndarray | None = None,
        shapes_rel: float | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *inputs: DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_anchors: int | DataNode | _ndarray | None = None,
        in_anchors_rel: float | DataNode | _ndarray | None = None,
        in_ids: int | _Sequence[int] | DataNode | _ndarray | None = None,
        out_anchors: int | DataNode | _ndarray | None = None,
        out_anchors_rel: float | DataNode | _ndarray | None = None,
        output_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        shapes: int | DataNode | _ndarray | None = None,
        shapes_rel: float | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *inputs: list[DataNode] | DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        in_anchors: int | DataNode | _ndarray | None = None,
        in_anchors_rel: float | DataNode | _ndarray | None = None,
        in_ids: int | _Sequence[int] | DataNode | _ndarray | None = None,
        out_anchors: int | DataNode | _ndarray | None = None,
        out_anchors_rel: float | DataNode | _ndarray | None = None,
        output_size: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        shapes: int | DataNode | _ndarray | None = None,
        shapes_rel: float | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class NemoAsrReader(OperatorFace):
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

class NonsilentRegion(OperatorFace):
    """The start and the length of the part between the first and the last time when the power, averaged over a window,
    comes up to the threshold.

    >>> start, length = fn.nonsilent_region(audio, cutoff_db=-40.0)

    Runs on: cpu, gpu.

    Args:
        input: Signals: 1-D, float32 or integers.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        cutoff_db (float, default -60.0): The threshold, in dB relative to the reference.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reference_power (float, default 0.0): The power at 0 dB; by default the highest of the signal.
        reset_interval (int, default 8192): Elements after which the running average is computed anew; a multiple of the window, or -1: never.
        window_length (int, default 2048): Length of the window, in samples.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        cutoff_db: float | None = -60.0,
        preserve: bool | None = False,
        reference_power: float | None = 0.0,
        reset_interval: int | None = 8192,
        window_length: int | None = 2048,
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
        cutoff_db: float | None = -60.0,
        preserve: bool | None = False,
        reference_power: float | None = 0.0,
        reset_interval: int | None = 8192,
        window_length: int | None = 2048,
    ) -> list[DataNode]: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        cutoff_db: float | None = -60.0,
        preserve: bool | None = False,
        reference_power: float | None = 0.0,
        reset_interval: int | None = 8192,
        window_length: int | None = 2048,
    ) -> list[list[DataNode]]: ...

class NormalDistribution(OperatorFace):
    """Normally distributed numbers. For integer types they are rounded and saturate.

    >>> jitter = fn.random.normal(mean=1.0, stddev=0.1)

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        mean (float | DataNode, default 0.0): Mean of the distribution.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
        stddev (float | DataNode, default 1.0): Standard deviation of the distribution.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        mean: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        stddev: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class Normalize(OperatorFace):
    """``(input - mean) / sqrt(variance + epsilon) * scale + shift``, the mean and variance taken over some dimensions.

    Where the variance is 0, the result is ``shift``. With a mean of the sample's own shape and no deviation, each element
    is divided by its distance from the first mean.

    Runs on: cpu, gpu.

    Args:
        input: float32 or integers of at most 32 bits, of any shape.

    Keyword args:
        axes (int | Sequence[int]): Indices of the dimensions that the other arguments speak of.
        axis_names (str): Letters of the dimensions that the other arguments speak of, as in the layout.
        batch (bool, default False): Compute mean and deviation over the whole batch.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        ddof (int, default 0): Subtracted from the number of elements in the variance's denominator.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output: float32 or integers of at most 32 bits.
        epsilon (float, default 0.0): Added to the variance.
        mean (float | DataNode): The mean to subtract, of extent 1 along the normalized axes; by default computed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        scale (float, default 1.0): Multiplied with the normalized value.
        shift (float, default 0.0): Added last.
        stddev (float | DataNode): The standard deviation to divide by; by default computed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        batch: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        ddof: int | None = 0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        epsilon: float | None = 0.0,
        mean: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        stddev: float | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        batch: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        ddof: int | None = 0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        epsilon: float | None = 0.0,
        mean: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        stddev: float | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | _ndarray | None = None,
        axis_names: str | None = None,
        batch: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        ddof: int | None = 0,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        epsilon: float | None = 0.0,
        mean: float | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        stddev: float | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

from penstock.python_function import NumbaFunction as NumbaFunction

class NumpyReader(OperatorFace):
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

class OneHot(OperatorFace):
    """A new dimension of ``num_classes`` entries: ``on_value`` at the class's position, ``off_value`` elsewhere.

    Samples of a single element count as scalars and give vectors, unless ``axis`` says where the dimension goes. A class
    outside of the range gives ``off_value`` throughout.

    Runs on: cpu, gpu.

    Args:
        input: Numbers of classes, of any shape; fractions are cut off.

    Keyword args:
        axis (int, default -1): Where the new dimension goes; -1: last.
        axis_name (str): Letter of the new dimension in the output's layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output.
        num_classes (int, default 0): Extent of the new dimension.
        off_value (float, default 0.0): Value of the other entries, truncated to the output's type.
        on_value (float, default 1.0): Value at the class's position, truncated to the output's type.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = -1,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        num_classes: int | None = 0,
        off_value: float | None = 0.0,
        on_value: float | None = 1.0,
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
        axis: int | None = -1,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        num_classes: int | None = 0,
        off_value: float | None = 0.0,
        on_value: float | None = 1.0,
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
        axis: int | None = -1,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        num_classes: int | None = 0,
        off_value: float | None = 0.0,
        on_value: float | None = 1.0,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Ones(OperatorFace):
    """A tensor of ones for each sample.

    >>> fn.ones(shape=[2, 3], dtype=types.FLOAT)

    Runs on: cpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.INT32: 6>): Type of the output.
        layout (str): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (int | Sequence[int] | DataNode): Extents of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT32,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT32,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...

class OnesLike(OperatorFace):
    """A tensor of ones for each sample, of the shape, layout and, unless told otherwise, type of the input.

    Runs on: cpu.

    Args:
        data_like: Data whose shapes are taken; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data_like: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class OpticalFlow(OperatorFace):
    """Refuses to run: NVIDIA's optical flow engine has no Python interface. `python_function` can call OpenCV's instead.

    Runs on: gpu.

    Args:
        input_0: Frames, FHWC. Layouts: FHWC.
        input_1: Hints of the motion. Layouts: FHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        enable_external_hints (bool, default False): Hints come as the second input.
        enable_temporal_hints (bool, default False): The frame before gives hints.
        hint_grid (int, default 4): Pixels between two hints.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the frames.
        output_format (int, default 4): Old name of `output_grid`.
        output_grid (int, default 4): Pixels between two vectors of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        preset (float, default 0.0): From 0.0, slow and exact, to 1.0, fast.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        enable_external_hints: bool | None = False,
        enable_temporal_hints: bool | None = False,
        hint_grid: int | None = 4,
        image_type: DALIImageType | None = DALIImageType.RGB,
        output_grid: int | None = 4,
        preserve: bool | None = False,
        preset: float | None = 0.0,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input_0: DataNode | _TensorLike,
        input_1: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        enable_external_hints: bool | None = False,
        enable_temporal_hints: bool | None = False,
        hint_grid: int | None = 4,
        image_type: DALIImageType | None = DALIImageType.RGB,
        output_grid: int | None = 4,
        preserve: bool | None = False,
        preset: float | None = 0.0,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input_0: list[DataNode],
        input_1: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        enable_external_hints: bool | None = False,
        enable_temporal_hints: bool | None = False,
        hint_grid: int | None = 4,
        image_type: DALIImageType | None = DALIImageType.RGB,
        output_grid: int | None = 4,
        preserve: bool | None = False,
        preset: float | None = 0.0,
    ) -> list[DataNode]: ...

class Pad(OperatorFace):
    """Adds elements at the end of dimensions: up to the greatest extent in the batch, to ``shape``, to a multiple of ``align``.

    Runs on: cpu, gpu.

    Args:
        input: Data of any type but float64, of any shape.

    Keyword args:
        align (int | Sequence[int] | DataNode): Extents are rounded up to a multiple of it: one value, or one for each axis.
        axes (int | Sequence[int] | DataNode): Indices of the dimensions that the other arguments speak of.
        axis_names (str): Letters of the dimensions that the other arguments speak of, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        fill_value (float | DataNode, default 0.0): What the new elements are; integers lose its fraction, and wrap around.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (int | Sequence[int] | DataNode): The least extents of the output; 0 or less: the greatest of the batch.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        align: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        align: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        align: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | DataNode | _ndarray | None = 0.0,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Paste(OperatorFace):
    """Puts each image on a canvas that is ``ratio`` times as large.

    >>> images = fn.paste(images, ratio=2.0, fill_value=[255, 255, 255])  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8. Layouts: HWC.

    Keyword args:
        fill_value (int | Sequence[int], required): Of the canvas: one value, or one for each channel.
        ratio (float | DataNode, required): Extents of the canvas over the image's; at least 1.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        min_canvas_size (float | DataNode, default 0.0): The least extent of the canvas, in pixels.
        n_channels (int, default 3): Channels of the images.
        paste_x (float | DataNode, default 0.5): Horizontal place of the image, from 0 (left) to 1 (right).
        paste_y (float | DataNode, default 0.5): Vertical place of the image, from 0 (top) to 1 (bottom).
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: int | _Sequence[int] | _ndarray = ...,
        min_canvas_size: float | DataNode | _ndarray | None = 0.0,
        n_channels: int | None = 3,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
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
        fill_value: int | _Sequence[int] | _ndarray = ...,
        min_canvas_size: float | DataNode | _ndarray | None = 0.0,
        n_channels: int | None = 3,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
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
        fill_value: int | _Sequence[int] | _ndarray = ...,
        min_canvas_size: float | DataNode | _ndarray | None = 0.0,
        n_channels: int | None = 3,
        paste_x: float | DataNode | _ndarray | None = 0.5,
        paste_y: float | DataNode | _ndarray | None = 0.5,
        preserve: bool | None = False,
        ratio: float | DataNode | _ndarray = ...,
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

class PerFrame(OperatorFace):
    """Names the first dimension F, so that each frame of a sequence takes its own value of an argument.

    Runs on: cpu, gpu.

    Args:
        input: Data with at least one dimension.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        replace (bool, default False): Replace the layout's first letter by F instead of refusing another one.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
        replace: bool | None = False,
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
        replace: bool | None = False,
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
        replace: bool | None = False,
    ) -> list[DataNode]: ...

class PermuteBatch(OperatorFace):
    """Output sample i is input sample ``indices[i]``; nothing is copied.

    >>> others = fn.permute_batch(images, indices=fn.batch_permutation())

    Runs on: cpu, gpu.

    Args:
        input: Data of any type and shape.

    Keyword args:
        indices (int | Sequence[int] | DataNode, required): For each sample, the index of the sample that takes its place: a list as long as the batch, or one computed number a sample.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        indices: int | _Sequence[int] | DataNode | _ndarray = ...,
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
        indices: int | _Sequence[int] | DataNode | _ndarray = ...,
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
        indices: int | _Sequence[int] | DataNode | _ndarray = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class PowerSpectrum(OperatorFace):
    """Squared magnitudes of the Fourier transform along one axis.

    >>> spectrum = fn.power_spectrum(signals)

    Runs on: cpu.

    Args:
        input: Signals: float32, of any number of dimensions.

    Keyword args:
        axis (int, default -1): The axis of time; by default the last.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        nfft (int): Size of the transform; by default the extent of the axis.
        power (int, default 2): 2: power; 1: magnitude.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = -1,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        nfft: int | None = None,
        power: int | None = 2,
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
        axis: int | None = -1,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        nfft: int | None = None,
        power: int | None = 2,
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
        axis: int | None = -1,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        nfft: int | None = None,
        power: int | None = 2,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class PreemphasisFilter(OperatorFace):
    """``y[t] = x[t] - coefficient * x[t - 1]``.

    What comes before the first element is zero, the first element itself (`clamp`), or the second (`reflect`).

    >>> sharper = fn.preemphasis_filter(audio, preemph_coeff=0.97)

    Runs on: cpu, gpu.

    Args:
        input: Signals of any shape, taken as one row; integers or floating point.

    Keyword args:
        border (str, default 'clamp'): What comes before the signal: `zero`, `clamp` or `reflect`.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.FLOAT: 9>): Type of the output.
        preemph_coeff (float | DataNode, default 0.97): The coefficient.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        border: str | None = "clamp",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preemph_coeff: float | DataNode | _ndarray | None = 0.97,
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
        border: str | None = "clamp",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preemph_coeff: float | DataNode | _ndarray | None = 0.97,
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
        border: str | None = "clamp",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.FLOAT,
        preemph_coeff: float | DataNode | _ndarray | None = 0.97,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

from penstock.python_function import PythonFunction as PythonFunction

class ROIRandomCrop(OperatorFace):
    """The start of a window of given extents: in each axis it lies in the region of interest where it is smaller
    than that, and contains it where it is larger; never outside of the input, where that is given.

    >>> start = fn.roi_random_crop(volumes, roi_start=start, roi_end=end, crop_shape=[64, 64, 64, 1])

    Runs on: cpu.

    Args:
        input: Data that the window is for; only its shape matters.

    Keyword args:
        crop_shape (int | Sequence[int] | DataNode, required): Extents of the window.
        roi_start (int | Sequence[int] | DataNode, required): Start of the region of interest.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        in_shape (int | Sequence[int] | DataNode): Shape of the input, instead of the input itself.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        roi_end (int | Sequence[int] | DataNode): End of the region of interest; excludes `roi_shape`.
        roi_shape (int | Sequence[int] | DataNode): Extents of the region of interest.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop_shape: int | _Sequence[int] | DataNode | _ndarray = ...,
        in_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        roi_end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_start: int | _Sequence[int] | DataNode | _ndarray = ...,
        seed: int | None = -1,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop_shape: int | _Sequence[int] | DataNode | _ndarray = ...,
        in_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        roi_end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_start: int | _Sequence[int] | DataNode | _ndarray = ...,
        seed: int | None = -1,
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
        crop_shape: int | _Sequence[int] | DataNode | _ndarray = ...,
        in_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        preserve: bool | None = False,
        roi_end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        roi_start: int | _Sequence[int] | DataNode | _ndarray = ...,
        seed: int | None = -1,
    ) -> list[DataNode]: ...

class RandomBBoxCrop(OperatorFace):
    """Draws windows until one overlaps the boxes enough; gives the window and the boxes as they lie in it.

    Each round draws one of the thresholds (or, with ``allow_no_crop``, the whole image), then ``num_attempts`` windows,
    of which the last with enough overlap counts. Boxes whose centres lie outside of the window are dropped, the
    others clipped. The method is that of SSD (Liu et al., 2016).

    >>> anchor, shape, boxes, labels = fn.random_bbox_crop(boxes, labels, scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0])
    >>> images = fn.slice(images, anchor, shape)

    Runs on: cpu.

    Args:
        boxes: FLOAT, of shape (n, 4), or (n, 6) for volumes: corners in fractions of the image.
        labels: INT32, of shape (n,) or (n, 1).

    Keyword args:
        all_boxes_above_threshold (bool, default True): Every box must overlap enough; else one is enough.
        allow_no_crop (bool, default True): The whole image is one of the possible outcomes.
        aspect_ratio (float | Sequence[float], default [1.0, 1.0]): Least and largest width over height; for volumes one range for all, or ranges of x/y, x/z and y/z.
        bbox_layout (str): What the coordinates of a box are: an order of xyXY or of xyWH.
        bbox_prune_threshold (float): Keep boxes by the fraction that lies inside, not by their centres.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop_shape (int | Sequence[int] | DataNode): Extents of the window in pixels; needs `input_shape`.
        input_shape (int | Sequence[int] | DataNode): Extents of the image in pixels.
        ltrb (bool, default True): Boxes end with corners; else with extents.
        num_attempts (int, default 1): Windows drawn for one threshold.
        output_bbox_indices (bool, default False): One more output: the indices of the boxes that are kept.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        quiet (bool, default False): No warning where no window is good enough and the best is taken.
        scaling (float | Sequence[float], default [1.0, 1.0]): Least and largest extent of the window in fractions of the image.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape_layout (str): Order of `crop_shape` and `input_shape`: of WH, or WHD.
        threshold_type (str, default 'iou'): `iou`: intersection over union; `overlap`: over the box.
        thresholds (float | Sequence[float], default [0.0]): Overlaps, one of which is drawn, that windows must have with boxes.
        total_num_attempts (int, default -1): Windows drawn in all, after which the best is taken.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        all_boxes_above_threshold: bool | None = True,
        allow_no_crop: bool | None = True,
        aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        bbox_layout: str | None = None,
        bbox_prune_threshold: float | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        input_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        num_attempts: int | None = 1,
        output_bbox_indices: bool | None = False,
        preserve: bool | None = False,
        quiet: bool | None = False,
        scaling: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
        shape_layout: str | None = None,
        threshold_type: str | None = "iou",
        thresholds: float | _Sequence[float] | _ndarray | None = ...,
        total_num_attempts: int | None = -1,
    ) -> None: ...
    def __call__(
        self,
        boxes: DataNode | _TensorLike,
        labels: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        all_boxes_above_threshold: bool | None = True,
        allow_no_crop: bool | None = True,
        aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        bbox_layout: str | None = None,
        bbox_prune_threshold: float | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        input_shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        num_attempts: int | None = 1,
        output_bbox_indices: bool | None = False,
        preserve: bool | None = False,
        quiet: bool | None = False,
        scaling: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
        shape_layout: str | None = None,
        threshold_type: str | None = "iou",
        thresholds: float | _Sequence[float] | _ndarray | None = ...,
        total_num_attempts: int | None = -1,
    ) -> Any: ...

class RandomCropGenerator(OperatorFace):
    """The start and the extents, each (height, width), of a random window: a part of the image's area, of an aspect
    ratio, at any place of the image.

    >>> start, extents = fn.random_crop_generator(fn.peek_image_shape(jpegs))

    Runs on: cpu.

    Args:
        input: Shapes of images, (height, width) or (height, width, channels): 1-D integers.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        num_attempts (int, default 10): Pairs of area and aspect ratio that are tried before the largest window is taken.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_area (float | Sequence[float], default [0.08, 1.0]): Range of the window's area, as a part of the image's.
        random_aspect_ratio (float | Sequence[float], default [0.75, 1.3333333333333333]): Range of the window's width / height.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
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
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
    ) -> list[DataNode]: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
    ) -> list[list[DataNode]]: ...

class RandomResizedCrop(OperatorFace):
    """Resizes a window of each image whose area and aspect ratio are drawn from ranges; one window for a sequence.

    The augmentation of Szegedy et al., "Going deeper with convolutions", 2015.

    >>> images = fn.random_resized_crop(images, size=[224, 224], random_area=[0.1, 1.0])  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HWC, FHWC, CHW, FCHW, CFHW.

    Keyword args:
        size (int | Sequence[int], required): Output extents (height, width), or one for both.
        antialias (bool, default True): Widen the filter when an axis shrinks, so that nothing is skipped.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output: that of the input (the default), or FLOAT.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        num_attempts (int, default 10): Windows that are drawn at most until one fits into the image.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        random_area (float | Sequence[float], default [0.08, 1.0]): Range of the window's area as a part of the image's.
        random_aspect_ratio (float | Sequence[float], default [0.75, 1.3333333333333333]): Range of the window's width / height.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
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
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
        size: int | _Sequence[int] | _ndarray = ...,
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
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
        size: int | _Sequence[int] | _ndarray = ...,
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
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        num_attempts: int | None = 10,
        preserve: bool | None = False,
        random_area: float | _Sequence[float] | _ndarray | None = ...,
        random_aspect_ratio: float | _Sequence[float] | _ndarray | None = ...,
        seed: int | None = -1,
        size: int | _Sequence[int] | _ndarray = ...,
        temp_buffer_hint: int | None = 0,
    ) -> list[DataNode]: ...

class Reinterpret(OperatorFace):
    """The same bytes read as another type, and in another shape; nothing is copied.

    Runs on: cpu, gpu.

    Args:
        data: Data of any type and shape.
        shape_input: The extents of the output: 1-D, of integers.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        layout (str): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rel_shape (float | Sequence[float] | DataNode): Extents relative to those of the input's dimensions; negative: takes what is left.
        shape (int | Sequence[int] | DataNode): Extents of the output.
        src_dims (int | Sequence[int] | DataNode): The input dimension that each output extent comes from; -1: a new one of extent 1.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        shape_input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        shape_input: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Reshape(OperatorFace):
    """The same elements in another shape, or under another layout; nothing is copied.

    Runs on: cpu, gpu.

    Args:
        data: Data of any type and shape.
        shape_input: The extents of the output: 1-D, of integers.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        layout (str): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rel_shape (float | Sequence[float] | DataNode): Extents relative to those of the input's dimensions; negative: takes what is left.
        shape (int | Sequence[int] | DataNode): Extents of the output.
        src_dims (int | Sequence[int] | DataNode): The input dimension that each output extent comes from; -1: a new one of extent 1.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        shape_input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        shape_input: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        layout: str | None = None,
        preserve: bool | None = False,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        src_dims: int | _Sequence[int] | DataNode | _ndarray | None = None,
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

class ResizeCropMirror(OperatorFace):
    """Resizes images, takes a window of the result and mirrors it.

    The same as ``resize``, ``crop`` and ``flip``, but that only what is kept is computed, and that a window may reach
    outside of the resized image: there the image goes on as its edge does.

    The bits of ``mirror`` name the axes where the layout begins with them (HWC, DHWC). Where other dimensions stand
    before, the bits count from the layout's end as in DALI: with CHW and FHWC, 1 mirrors H, and W is never mirrored;
    with FCHW, neither is.

    >>> images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224], mirror=fn.random.coin_flip())  # doctest: +SKIP

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8, int16, uint16 or float. Layouts: HWC, FHWC, CHW, FCHW, CFHW, DHWC, FDHWC, CDHW, FCDHW, CFDHW.

    Keyword args:
        antialias (bool, default True): Widen the filter when an axis shrinks, so that nothing is skipped.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        crop (float | Sequence[float] | DataNode): Extents of the window: (height, width) or (depth, height, width).
        crop_d (float | DataNode, default 0.0): Depth of the window; 0: all.
        crop_h (float | DataNode, default 0.0): Height of the window; 0: all.
        crop_pos_x (float | DataNode, default 0.5): Horizontal place of the window, from 0 (left) to 1 (right).
        crop_pos_y (float | DataNode, default 0.5): Vertical place of the window, from 0 (top) to 1 (bottom).
        crop_pos_z (float | DataNode, default 0.5): Place of the window in depth, from 0 (front) to 1 (back).
        crop_w (float | DataNode, default 0.0): Width of the window; 0: all.
        dtype (DALIDataType): Type of the output: that of the input (the default), or FLOAT.
        interp_type (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        mag_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that grow.
        max_size (float | Sequence[float]): The most that each axis may have: one value, or one for each axis (D, H, W order).
        min_filter (DALIInterpType | DataNode, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for axes that shrink.
        minibatch_size (int, default 32): Accepted for compatibility.
        mirror (int | DataNode, default 0): Bits that tell which axes are mirrored: 1: W (horizontally), 2: H (vertically), 4: D; shifted by one for each dimension that the layout has before them.
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
        rounding (str, default 'round'): How the window's start is made an integer: `round` (half away from zero) or `truncate`.
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
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
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
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
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
        antialias: bool | None = True,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        crop: float | _Sequence[float] | DataNode | _ndarray | None = None,
        crop_d: float | DataNode | _ndarray | None = 0.0,
        crop_h: float | DataNode | _ndarray | None = 0.0,
        crop_pos_x: float | DataNode | _ndarray | None = 0.5,
        crop_pos_y: float | DataNode | _ndarray | None = 0.5,
        crop_pos_z: float | DataNode | _ndarray | None = 0.5,
        crop_w: float | DataNode | _ndarray | None = 0.0,
        dtype: DALIDataType | None = None,
        interp_type: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        mag_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        max_size: float | _Sequence[float] | _ndarray | None = None,
        min_filter: DALIInterpType | DataNode | _ndarray | None = DALIInterpType.INTERP_LINEAR,
        minibatch_size: int | None = 32,
        mirror: int | DataNode | _ndarray | None = 0,
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
        rounding: str | None = "round",
        size: float | _Sequence[float] | DataNode | _ndarray | None = None,
        subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0,
    ) -> list[DataNode]: ...

class Rotate(OperatorFace):
    """Turns images counter-clockwise about their middle; the canvas grows to hold them, unless told otherwise.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images or volumes. Layouts: HWC, FHWC, DHWC, FDHWC.

    Keyword args:
        angle (float | DataNode, required): In degrees, counter-clockwise.
        axis (float | Sequence[float] | DataNode): For volumes: the direction (x, y, z) of the axis of rotation.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        fill_value (float): What lies outside of the input; without it, the nearest pixel of the border.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        keep_size (bool, default False): The output is as large as the input.
        output_dtype (DALIDataType): Old name of `dtype`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        size (float | Sequence[float] | DataNode, default []): Output extents (height, width) or (depth, height, width).
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray = ...,
        axis: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        keep_size: bool | None = False,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray = ...,
        axis: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        keep_size: bool | None = False,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        angle: float | DataNode | _ndarray = ...,
        axis: float | _Sequence[float] | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        keep_size: bool | None = False,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class SSDRandomCrop(OperatorFace):
    """``random_bbox_crop`` with the settings of SSD (Liu et al., 2016), and the image cropped at once.

    >>> images, boxes, labels = fn.ssd_random_crop(images, boxes, labels)

    Runs on: cpu.

    Args:
        images: Images of shape (H, W, C).
        boxes: FLOAT, of shape (n, 4): left, top, right, bottom in fractions of the image.
        labels: INT32, of shape (n,) or (n, 1).

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        num_attempts (int, default 1): Windows drawn for one threshold.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_attempts: int | None = 1,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        images: DataNode | _TensorLike,
        boxes: DataNode | _TensorLike,
        labels: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_attempts: int | None = 1,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> list[DataNode]: ...
    @_overload
    def __call__(
        self,
        images: list[DataNode],
        boxes: list[DataNode] | DataNode | _TensorLike,
        labels: list[DataNode] | DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_attempts: int | None = 1,
        preserve: bool | None = False,
        seed: int | None = -1,
    ) -> list[list[DataNode]]: ...

class Saturation(OperatorFace):
    """Scales the saturation.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: Images of three channels. Layouts: HWC, FHWC, DHWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        image_type (DALIImageType, default <DALIImageType.RGB: 0>): Colour space of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        saturation (float | DataNode, default 1.0): Factor of saturation; 0 gives grey.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
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
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
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
        image_type: DALIImageType | None = DALIImageType.RGB,
        preserve: bool | None = False,
        saturation: float | DataNode | _ndarray | None = 1.0,
    ) -> list[DataNode]: ...

class SequenceReader(OperatorFace):
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

class SequenceRearrange(OperatorFace):
    """Output frame i is input frame ``new_order[i]``.

    >>> backwards = fn.sequence_rearrange(sequences, new_order=[2, 1, 0])

    Runs on: cpu, gpu.

    Args:
        input: Sequences: at least two dimensions, the first of which is F or unnamed.

    Keyword args:
        new_order (int | Sequence[int] | DataNode, required): Indices of input frames, from 0.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        new_order: int | _Sequence[int] | DataNode | _ndarray = ...,
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
        new_order: int | _Sequence[int] | DataNode | _ndarray = ...,
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
        new_order: int | _Sequence[int] | DataNode | _ndarray = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Shapes(OperatorFace):
    """The extents of each sample, as a 1-D tensor.

    Runs on: cpu, gpu.

    Args:
        input: Data of any kind, on CPU or GPU; only its shape is looked at.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.INT64: 7>): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        type (DALIDataType, default <DALIDataType.INT64: 7>): Old name of `dtype`.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT64,
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
        dtype: DALIDataType | None = DALIDataType.INT64,
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
        dtype: DALIDataType | None = DALIDataType.INT64,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Slice(OperatorFace):
    """Takes a box of each sample.

    The box is given by the inputs anchor and shape (in the order of ``axes`` or ``axis_names``, x before y by default),
    or by one of ``start``, ``rel_start`` and one of ``end``, ``rel_end``, ``shape``, ``rel_shape``. Start and end are
    rounded half away from zero.

    Runs on: cpu, gpu.

    Args:
        data: Data of any type and shape.
        anchor: Where the box begins: 1-D, of numbers.
        shape_input: How far the box reaches: 1-D, of numbers.

    Keyword args:
        axes (int | Sequence[int] | DataNode, default [1, 0]): Indices of the dimensions that the other arguments speak of.
        axis_names (str, default 'WH'): Letters of the dimensions that the other arguments speak of, as in the layout.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        end (int | Sequence[int] | DataNode): End of the slice in samples.
        fill_values (float | Sequence[float], default [0.0]): What pixels outside of the input are, with out_of_bounds_policy="pad": one value, or one for each channel.
        image_type (DALIImageType): Colour space of the input.
        normalized_anchor (bool, default True): The positional anchor is a fraction of the input's extent.
        normalized_shape (bool, default True): The positional shape is a fraction of the input's extent.
        out_of_bounds_policy (str, default 'error'): A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`.
        output_dtype (DALIDataType): Old name of `dtype`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        rel_end (float | Sequence[float] | DataNode): End of the slice as a fraction of the input's extent.
        rel_shape (float | Sequence[float] | DataNode): Extents relative to those of the input's dimensions; negative: takes what is left.
        rel_start (float | Sequence[float] | DataNode): Start of the slice as a fraction of the input's extent.
        shape (int | Sequence[int] | DataNode): Extents of the slice in samples.
        start (int | Sequence[int] | DataNode): Start of the slice in samples.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        axis_names: str | None = "WH",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        normalized_anchor: bool | None = True,
        normalized_shape: bool | None = True,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rel_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        start: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        anchor: DataNode | _TensorLike | None = ...,
        shape_input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        axis_names: str | None = "WH",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        normalized_anchor: bool | None = True,
        normalized_shape: bool | None = True,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rel_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        start: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        anchor: list[DataNode] | DataNode | _TensorLike | None = ...,
        shape_input: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = ...,
        axis_names: str | None = "WH",
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        end: int | _Sequence[int] | DataNode | _ndarray | None = None,
        fill_values: float | _Sequence[float] | _ndarray | None = ...,
        normalized_anchor: bool | None = True,
        normalized_shape: bool | None = True,
        out_of_bounds_policy: str | None = "error",
        preserve: bool | None = False,
        rel_end: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_shape: float | _Sequence[float] | DataNode | _ndarray | None = None,
        rel_start: float | _Sequence[float] | DataNode | _ndarray | None = None,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        start: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class Spectrogram(OperatorFace):
    """Short-time Fourier transform: windows of the signal, transformed, squared.

    A transform of n elements gives n // 2 + 1 frequencies. The default window is Hann's, taken at half samples:
    ``0.5 * (1 - cos(2 pi (n + 0.5) / N))``. A centred window may reach out of the signal, into its reflection or into
    zeros.

    >>> spectra = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)

    Runs on: cpu, gpu.

    Args:
        input: Signals: float32, with one dimension of more than one element.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        center_windows (bool, default True): Windows are centred at multiples of the step, instead of starting there.
        layout (str, default 'ft'): Layout of the output: `ft` (frequency first) or `tf`.
        nfft (int): Size of the transform; by default that of the window. It gives nfft // 2 + 1 frequencies.
        power (int, default 2): 2: power; 1: magnitude.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reflect_padding (bool, default True): Past its ends the signal is reflected; else it is zero there.
        window_fn (float | Sequence[float]): The window; by default Hann's.
        window_length (int, default 512): Length of the window, in samples.
        window_step (int, default 256): Distance between windows, in samples.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        center_windows: bool | None = True,
        layout: str | None = "ft",
        nfft: int | None = None,
        power: int | None = 2,
        preserve: bool | None = False,
        reflect_padding: bool | None = True,
        window_fn: float | _Sequence[float] | _ndarray | None = None,
        window_length: int | None = 512,
        window_step: int | None = 256,
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
        center_windows: bool | None = True,
        layout: str | None = "ft",
        nfft: int | None = None,
        power: int | None = 2,
        preserve: bool | None = False,
        reflect_padding: bool | None = True,
        window_fn: float | _Sequence[float] | _ndarray | None = None,
        window_length: int | None = 512,
        window_step: int | None = 256,
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
        center_windows: bool | None = True,
        layout: str | None = "ft",
        nfft: int | None = None,
        power: int | None = 2,
        preserve: bool | None = False,
        reflect_padding: bool | None = True,
        window_fn: float | _Sequence[float] | _ndarray | None = None,
        window_length: int | None = 512,
        window_step: int | None = 256,
    ) -> list[DataNode]: ...

class Sphere(OperatorFace):
    """Bulges images as if they were on a ball.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8 or float. Layouts: HWC.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        fill_value (float, default 0.0): What lies outside of the input; bytes lose its fraction, and wrap around.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_NN: 0>): INTERP_NN or INTERP_LINEAR.
        mask (int | DataNode, default 1): Computed in the graph, 0 leaves a sample as it is. A constant has no effect.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
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
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
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
        fill_value: float | None = 0.0,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Squeeze(OperatorFace):
    """Removes dimensions of extent 1; nothing is copied.

    Runs on: cpu, gpu.

    Args:
        data: Data of any type and shape.

    Keyword args:
        axes (int | Sequence[int] | DataNode): Dimensions of extent 1 to remove.
        axis_names (str): Letters of the dimensions to remove.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        axes: int | _Sequence[int] | DataNode | _ndarray | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Stack(OperatorFace):
    """Joins the samples of all inputs, which have equal shapes, along a new dimension.

    Runs on: cpu, gpu.

    Args:
        input_0: Data of one type and shape.

    Keyword args:
        axis (int, default 0): Where the new dimension is; negative: from the end.
        axis_name (str): The letter of the new dimension.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input_0: DataNode | _TensorLike,
        /,
        *inputs: DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        input_0: list[DataNode],
        /,
        *inputs: list[DataNode] | DataNode | _TensorLike,
        device: str | None = None,
        name: str | None = None,
        axis: int | None = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class SubscriptDimCheck(OperatorFace):
    """Passes data through that has at least as many dimensions as were indexed.

    Runs on: cpu, gpu.

    Args:
        data: data.

    Keyword args:
        num_subscripts (int, required): How many dimensions were indexed.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_subscripts: int = ...,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_subscripts: int = ...,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        num_subscripts: int = ...,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

from penstock.tfrecord import TFRecordReader as TFRecordReader

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

class TensorSubscript(OperatorFace):
    """Parts of each sample, as views where they are contiguous in memory.

    Runs on: cpu, gpu.

    Args:
        data: data.

    Keyword args:
        at_0 (int | DataNode): Index in dimension 0, which is removed.
        at_1 (int | DataNode): Index in dimension 1, which is removed.
        at_10 (int | DataNode): Index in dimension 10, which is removed.
        at_11 (int | DataNode): Index in dimension 11, which is removed.
        at_12 (int | DataNode): Index in dimension 12, which is removed.
        at_13 (int | DataNode): Index in dimension 13, which is removed.
        at_14 (int | DataNode): Index in dimension 14, which is removed.
        at_15 (int | DataNode): Index in dimension 15, which is removed.
        at_16 (int | DataNode): Index in dimension 16, which is removed.
        at_17 (int | DataNode): Index in dimension 17, which is removed.
        at_18 (int | DataNode): Index in dimension 18, which is removed.
        at_19 (int | DataNode): Index in dimension 19, which is removed.
        at_2 (int | DataNode): Index in dimension 2, which is removed.
        at_20 (int | DataNode): Index in dimension 20, which is removed.
        at_21 (int | DataNode): Index in dimension 21, which is removed.
        at_22 (int | DataNode): Index in dimension 22, which is removed.
        at_23 (int | DataNode): Index in dimension 23, which is removed.
        at_24 (int | DataNode): Index in dimension 24, which is removed.
        at_25 (int | DataNode): Index in dimension 25, which is removed.
        at_26 (int | DataNode): Index in dimension 26, which is removed.
        at_27 (int | DataNode): Index in dimension 27, which is removed.
        at_28 (int | DataNode): Index in dimension 28, which is removed.
        at_29 (int | DataNode): Index in dimension 29, which is removed.
        at_3 (int | DataNode): Index in dimension 3, which is removed.
        at_30 (int | DataNode): Index in dimension 30, which is removed.
        at_31 (int | DataNode): Index in dimension 31, which is removed.
        at_4 (int | DataNode): Index in dimension 4, which is removed.
        at_5 (int | DataNode): Index in dimension 5, which is removed.
        at_6 (int | DataNode): Index in dimension 6, which is removed.
        at_7 (int | DataNode): Index in dimension 7, which is removed.
        at_8 (int | DataNode): Index in dimension 8, which is removed.
        at_9 (int | DataNode): Index in dimension 9, which is removed.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        hi_0 (int | DataNode): End of the range in dimension 0.
        hi_1 (int | DataNode): End of the range in dimension 1.
        hi_10 (int | DataNode): End of the range in dimension 10.
        hi_11 (int | DataNode): End of the range in dimension 11.
        hi_12 (int | DataNode): End of the range in dimension 12.
        hi_13 (int | DataNode): End of the range in dimension 13.
        hi_14 (int | DataNode): End of the range in dimension 14.
        hi_15 (int | DataNode): End of the range in dimension 15.
        hi_16 (int | DataNode): End of the range in dimension 16.
        hi_17 (int | DataNode): End of the range in dimension 17.
        hi_18 (int | DataNode): End of the range in dimension 18.
        hi_19 (int | DataNode): End of the range in dimension 19.
        hi_2 (int | DataNode): End of the range in dimension 2.
        hi_20 (int | DataNode): End of the range in dimension 20.
        hi_21 (int | DataNode): End of the range in dimension 21.
        hi_22 (int | DataNode): End of the range in dimension 22.
        hi_23 (int | DataNode): End of the range in dimension 23.
        hi_24 (int | DataNode): End of the range in dimension 24.
        hi_25 (int | DataNode): End of the range in dimension 25.
        hi_26 (int | DataNode): End of the range in dimension 26.
        hi_27 (int | DataNode): End of the range in dimension 27.
        hi_28 (int | DataNode): End of the range in dimension 28.
        hi_29 (int | DataNode): End of the range in dimension 29.
        hi_3 (int | DataNode): End of the range in dimension 3.
        hi_30 (int | DataNode): End of the range in dimension 30.
        hi_31 (int | DataNode): End of the range in dimension 31.
        hi_4 (int | DataNode): End of the range in dimension 4.
        hi_5 (int | DataNode): End of the range in dimension 5.
        hi_6 (int | DataNode): End of the range in dimension 6.
        hi_7 (int | DataNode): End of the range in dimension 7.
        hi_8 (int | DataNode): End of the range in dimension 8.
        hi_9 (int | DataNode): End of the range in dimension 9.
        lo_0 (int | DataNode): Start of the range in dimension 0.
        lo_1 (int | DataNode): Start of the range in dimension 1.
        lo_10 (int | DataNode): Start of the range in dimension 10.
        lo_11 (int | DataNode): Start of the range in dimension 11.
        lo_12 (int | DataNode): Start of the range in dimension 12.
        lo_13 (int | DataNode): Start of the range in dimension 13.
        lo_14 (int | DataNode): Start of the range in dimension 14.
        lo_15 (int | DataNode): Start of the range in dimension 15.
        lo_16 (int | DataNode): Start of the range in dimension 16.
        lo_17 (int | DataNode): Start of the range in dimension 17.
        lo_18 (int | DataNode): Start of the range in dimension 18.
        lo_19 (int | DataNode): Start of the range in dimension 19.
        lo_2 (int | DataNode): Start of the range in dimension 2.
        lo_20 (int | DataNode): Start of the range in dimension 20.
        lo_21 (int | DataNode): Start of the range in dimension 21.
        lo_22 (int | DataNode): Start of the range in dimension 22.
        lo_23 (int | DataNode): Start of the range in dimension 23.
        lo_24 (int | DataNode): Start of the range in dimension 24.
        lo_25 (int | DataNode): Start of the range in dimension 25.
        lo_26 (int | DataNode): Start of the range in dimension 26.
        lo_27 (int | DataNode): Start of the range in dimension 27.
        lo_28 (int | DataNode): Start of the range in dimension 28.
        lo_29 (int | DataNode): Start of the range in dimension 29.
        lo_3 (int | DataNode): Start of the range in dimension 3.
        lo_30 (int | DataNode): Start of the range in dimension 30.
        lo_31 (int | DataNode): Start of the range in dimension 31.
        lo_4 (int | DataNode): Start of the range in dimension 4.
        lo_5 (int | DataNode): Start of the range in dimension 5.
        lo_6 (int | DataNode): Start of the range in dimension 6.
        lo_7 (int | DataNode): Start of the range in dimension 7.
        lo_8 (int | DataNode): Start of the range in dimension 8.
        lo_9 (int | DataNode): Start of the range in dimension 9.
        num_subscripts (int, default 0): How many dimensions are indexed, full ranges included.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        step_0 (int | DataNode): Step of the range in dimension 0.
        step_1 (int | DataNode): Step of the range in dimension 1.
        step_10 (int | DataNode): Step of the range in dimension 10.
        step_11 (int | DataNode): Step of the range in dimension 11.
        step_12 (int | DataNode): Step of the range in dimension 12.
        step_13 (int | DataNode): Step of the range in dimension 13.
        step_14 (int | DataNode): Step of the range in dimension 14.
        step_15 (int | DataNode): Step of the range in dimension 15.
        step_16 (int | DataNode): Step of the range in dimension 16.
        step_17 (int | DataNode): Step of the range in dimension 17.
        step_18 (int | DataNode): Step of the range in dimension 18.
        step_19 (int | DataNode): Step of the range in dimension 19.
        step_2 (int | DataNode): Step of the range in dimension 2.
        step_20 (int | DataNode): Step of the range in dimension 20.
        step_21 (int | DataNode): Step of the range in dimension 21.
        step_22 (int | DataNode): Step of the range in dimension 22.
        step_23 (int | DataNode): Step of the range in dimension 23.
        step_24 (int | DataNode): Step of the range in dimension 24.
        step_25 (int | DataNode): Step of the range in dimension 25.
        step_26 (int | DataNode): Step of the range in dimension 26.
        step_27 (int | DataNode): Step of the range in dimension 27.
        step_28 (int | DataNode): Step of the range in dimension 28.
        step_29 (int | DataNode): Step of the range in dimension 29.
        step_3 (int | DataNode): Step of the range in dimension 3.
        step_30 (int | DataNode): Step of the range in dimension 30.
        step_31 (int | DataNode): Step of the range in dimension 31.
        step_4 (int | DataNode): Step of the range in dimension 4.
        step_5 (int | DataNode): Step of the range in dimension 5.
        step_6 (int | DataNode): Step of the range in dimension 6.
        step_7 (int | DataNode): Step of the range in dimension 7.
        step_8 (int | DataNode): Step of the range in dimension 8.
        step_9 (int | DataNode): Step of the range in dimension 9.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        at_0: int | DataNode | _ndarray | None = None,
        at_1: int | DataNode | _ndarray | None = None,
        at_10: int | DataNode | _ndarray | None = None,
        at_11: int | DataNode | _ndarray | None = None,
        at_12: int | DataNode | _ndarray | None = None,
        at_13: int | DataNode | _ndarray | None = None,
        at_14: int | DataNode | _ndarray | None = None,
        at_15: int | DataNode | _ndarray | None = None,
        at_16: int | DataNode | _ndarray | None = None,
        at_17: int | DataNode | _ndarray | None = None,
        at_18: int | DataNode | _ndarray | None = None,
        at_19: int | DataNode | _ndarray | None = None,
        at_2: int | DataNode | _ndarray | None = None,
        at_20: int | DataNode | _ndarray | None = None,
        at_21: int | DataNode | _ndarray | None = None,
        at_22: int | DataNode | _ndarray | None = None,
        at_23: int | DataNode | _ndarray | None = None,
        at_24: int | DataNode | _ndarray | None = None,
        at_25: int | DataNode | _ndarray | None = None,
        at_26: int | DataNode | _ndarray | None = None,
        at_27: int | DataNode | _ndarray | None = None,
        at_28: int | DataNode | _ndarray | None = None,
        at_29: int | DataNode | _ndarray | None = None,
        at_3: int | DataNode | _ndarray | None = None,
        at_30: int | DataNode | _ndarray | None = None,
        at_31: int | DataNode | _ndarray | None = None,
        at_4: int | DataNode | _ndarray | None = None,
        at_5: int | DataNode | _ndarray | None = None,
        at_6: int | DataNode | _ndarray | None = None,
        at_7: int | DataNode | _ndarray | None = None,
        at_8: int | DataNode | _ndarray | None = None,
        at_9: int | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        hi_0: int | DataNode | _ndarray | None = None,
        hi_1: int | DataNode | _ndarray | None = None,
        hi_10: int | DataNode | _ndarray | None = None,
        hi_11: int | DataNode | _ndarray | None = None,
        hi_12: int | DataNode | _ndarray | None = None,
        hi_13: int | DataNode | _ndarray | None = None,
        hi_14: int | DataNode | _ndarray | None = None,
        hi_15: int | DataNode | _ndarray | None = None,
        hi_16: int | DataNode | _ndarray | None = None,
        hi_17: int | DataNode | _ndarray | None = None,
        hi_18: int | DataNode | _ndarray | None = None,
        hi_19: int | DataNode | _ndarray | None = None,
        hi_2: int | DataNode | _ndarray | None = None,
        hi_20: int | DataNode | _ndarray | None = None,
        hi_21: int | DataNode | _ndarray | None = None,
        hi_22: int | DataNode | _ndarray | None = None,
        hi_23: int | DataNode | _ndarray | None = None,
        hi_24: int | DataNode | _ndarray | None = None,
        hi_25: int | DataNode | _ndarray | None = None,
        hi_26: int | DataNode | _ndarray | None = None,
        hi_27: int | DataNode | _ndarray | None = None,
        hi_28: int | DataNode | _ndarray | None = None,
        hi_29: int | DataNode | _ndarray | None = None,
        hi_3: int | DataNode | _ndarray | None = None,
        hi_30: int | DataNode | _ndarray | None = None,
        hi_31: int | DataNode | _ndarray | None = None,
        hi_4: int | DataNode | _ndarray | None = None,
        hi_5: int | DataNode | _ndarray | None = None,
        hi_6: int | DataNode | _ndarray | None = None,
        hi_7: int | DataNode | _ndarray | None = None,
        hi_8: int | DataNode | _ndarray | None = None,
        hi_9: int | DataNode | _ndarray | None = None,
        lo_0: int | DataNode | _ndarray | None = None,
        lo_1: int | DataNode | _ndarray | None = None,
        lo_10: int | DataNode | _ndarray | None = None,
        lo_11: int | DataNode | _ndarray | None = None,
        lo_12: int | DataNode | _ndarray | None = None,
        lo_13: int | DataNode | _ndarray | None = None,
        lo_14: int | DataNode | _ndarray | None = None,
        lo_15: int | DataNode | _ndarray | None = None,
        lo_16: int | DataNode | _ndarray | None = None,
        lo_17: int | DataNode | _ndarray | None = None,
        lo_18: int | DataNode | _ndarray | None = None,
        lo_19: int | DataNode | _ndarray | None = None,
        lo_2: int | DataNode | _ndarray | None = None,
        lo_20: int | DataNode | _ndarray | None = None,
        lo_21: int | DataNode | _ndarray | None = None,
        lo_22: int | DataNode | _ndarray | None = None,
        lo_23: int | DataNode | _ndarray | None = None,
        lo_24: int | DataNode | _ndarray | None = None,
        lo_25: int | DataNode | _ndarray | None = None,
        lo_26: int | DataNode | _ndarray | None = None,
        lo_27: int | DataNode | _ndarray | None = None,
        lo_28: int | DataNode | _ndarray | None = None,
        lo_29: int | DataNode | _ndarray | None = None,
        lo_3: int | DataNode | _ndarray | None = None,
        lo_30: int | DataNode | _ndarray | None = None,
        lo_31: int | DataNode | _ndarray | None = None,
        lo_4: int | DataNode | _ndarray | None = None,
        lo_5: int | DataNode | _ndarray | None = None,
        lo_6: int | DataNode | _ndarray | None = None,
        lo_7: int | DataNode | _ndarray | None = None,
        lo_8: int | DataNode | _ndarray | None = None,
        lo_9: int | DataNode | _ndarray | None = None,
        num_subscripts: int | None = 0,
        preserve: bool | None = False,
        step_0: int | DataNode | _ndarray | None = None,
        step_1: int | DataNode | _ndarray | None = None,
        step_10: int | DataNode | _ndarray | None = None,
        step_11: int | DataNode | _ndarray | None = None,
        step_12: int | DataNode | _ndarray | None = None,
        step_13: int | DataNode | _ndarray | None = None,
        step_14: int | DataNode | _ndarray | None = None,
        step_15: int | DataNode | _ndarray | None = None,
        step_16: int | DataNode | _ndarray | None = None,
        step_17: int | DataNode | _ndarray | None = None,
        step_18: int | DataNode | _ndarray | None = None,
        step_19: int | DataNode | _ndarray | None = None,
        step_2: int | DataNode | _ndarray | None = None,
        step_20: int | DataNode | _ndarray | None = None,
        step_21: int | DataNode | _ndarray | None = None,
        step_22: int | DataNode | _ndarray | None = None,
        step_23: int | DataNode | _ndarray | None = None,
        step_24: int | DataNode | _ndarray | None = None,
        step_25: int | DataNode | _ndarray | None = None,
        step_26: int | DataNode | _ndarray | None = None,
        step_27: int | DataNode | _ndarray | None = None,
        step_28: int | DataNode | _ndarray | None = None,
        step_29: int | DataNode | _ndarray | None = None,
        step_3: int | DataNode | _ndarray | None = None,
        step_30: int | DataNode | _ndarray | None = None,
        step_31: int | DataNode | _ndarray | None = None,
        step_4: int | DataNode | _ndarray | None = None,
        step_5: int | DataNode | _ndarray | None = None,
        step_6: int | DataNode | _ndarray | None = None,
        step_7: int | DataNode | _ndarray | None = None,
        step_8: int | DataNode | _ndarray | None = None,
        step_9: int | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        at_0: int | DataNode | _ndarray | None = None,
        at_1: int | DataNode | _ndarray | None = None,
        at_10: int | DataNode | _ndarray | None = None,
        at_11: int | DataNode | _ndarray | None = None,
        at_12: int | DataNode | _ndarray | None = None,
        at_13: int | DataNode | _ndarray | None = None,
        at_14: int | DataNode | _ndarray | None = None,
        at_15: int | DataNode | _ndarray | None = None,
        at_16: int | DataNode | _ndarray | None = None,
        at_17: int | DataNode | _ndarray | None = None,
        at_18: int | DataNode | _ndarray | None = None,
        at_19: int | DataNode | _ndarray | None = None,
        at_2: int | DataNode | _ndarray | None = None,
        at_20: int | DataNode | _ndarray | None = None,
        at_21: int | DataNode | _ndarray | None = None,
        at_22: int | DataNode | _ndarray | None = None,
        at_23: int | DataNode | _ndarray | None = None,
        at_24: int | DataNode | _ndarray | None = None,
        at_25: int | DataNode | _ndarray | None = None,
        at_26: int | DataNode | _ndarray | None = None,
        at_27: int | DataNode | _ndarray | None = None,
        at_28: int | DataNode | _ndarray | None = None,
        at_29: int | DataNode | _ndarray | None = None,
        at_3: int | DataNode | _ndarray | None = None,
        at_30: int | DataNode | _ndarray | None = None,
        at_31: int | DataNode | _ndarray | None = None,
        at_4: int | DataNode | _ndarray | None = None,
        at_5: int | DataNode | _ndarray | None = None,
        at_6: int | DataNode | _ndarray | None = None,
        at_7: int | DataNode | _ndarray | None = None,
        at_8: int | DataNode | _ndarray | None = None,
        at_9: int | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        hi_0: int | DataNode | _ndarray | None = None,
        hi_1: int | DataNode | _ndarray | None = None,
        hi_10: int | DataNode | _ndarray | None = None,
        hi_11: int | DataNode | _ndarray | None = None,
        hi_12: int | DataNode | _ndarray | None = None,
        hi_13: int | DataNode | _ndarray | None = None,
        hi_14: int | DataNode | _ndarray | None = None,
        hi_15: int | DataNode | _ndarray | None = None,
        hi_16: int | DataNode | _ndarray | None = None,
        hi_17: int | DataNode | _ndarray | None = None,
        hi_18: int | DataNode | _ndarray | None = None,
        hi_19: int | DataNode | _ndarray | None = None,
        hi_2: int | DataNode | _ndarray | None = None,
        hi_20: int | DataNode | _ndarray | None = None,
        hi_21: int | DataNode | _ndarray | None = None,
        hi_22: int | DataNode | _ndarray | None = None,
        hi_23: int | DataNode | _ndarray | None = None,
        hi_24: int | DataNode | _ndarray | None = None,
        hi_25: int | DataNode | _ndarray | None = None,
        hi_26: int | DataNode | _ndarray | None = None,
        hi_27: int | DataNode | _ndarray | None = None,
        hi_28: int | DataNode | _ndarray | None = None,
        hi_29: int | DataNode | _ndarray | None = None,
        hi_3: int | DataNode | _ndarray | None = None,
        hi_30: int | DataNode | _ndarray | None = None,
        hi_31: int | DataNode | _ndarray | None = None,
        hi_4: int | DataNode | _ndarray | None = None,
        hi_5: int | DataNode | _ndarray | None = None,
        hi_6: int | DataNode | _ndarray | None = None,
        hi_7: int | DataNode | _ndarray | None = None,
        hi_8: int | DataNode | _ndarray | None = None,
        hi_9: int | DataNode | _ndarray | None = None,
        lo_0: int | DataNode | _ndarray | None = None,
        lo_1: int | DataNode | _ndarray | None = None,
        lo_10: int | DataNode | _ndarray | None = None,
        lo_11: int | DataNode | _ndarray | None = None,
        lo_12: int | DataNode | _ndarray | None = None,
        lo_13: int | DataNode | _ndarray | None = None,
        lo_14: int | DataNode | _ndarray | None = None,
        lo_15: int | DataNode | _ndarray | None = None,
        lo_16: int | DataNode | _ndarray | None = None,
        lo_17: int | DataNode | _ndarray | None = None,
        lo_18: int | DataNode | _ndarray | None = None,
        lo_19: int | DataNode | _ndarray | None = None,
        lo_2: int | DataNode | _ndarray | None = None,
        lo_20: int | DataNode | _ndarray | None = None,
        lo_21: int | DataNode | _ndarray | None = None,
        lo_22: int | DataNode | _ndarray | None = None,
        lo_23: int | DataNode | _ndarray | None = None,
        lo_24: int | DataNode | _ndarray | None = None,
        lo_25: int | DataNode | _ndarray | None = None,
        lo_26: int | DataNode | _ndarray | None = None,
        lo_27: int | DataNode | _ndarray | None = None,
        lo_28: int | DataNode | _ndarray | None = None,
        lo_29: int | DataNode | _ndarray | None = None,
        lo_3: int | DataNode | _ndarray | None = None,
        lo_30: int | DataNode | _ndarray | None = None,
        lo_31: int | DataNode | _ndarray | None = None,
        lo_4: int | DataNode | _ndarray | None = None,
        lo_5: int | DataNode | _ndarray | None = None,
        lo_6: int | DataNode | _ndarray | None = None,
        lo_7: int | DataNode | _ndarray | None = None,
        lo_8: int | DataNode | _ndarray | None = None,
        lo_9: int | DataNode | _ndarray | None = None,
        num_subscripts: int | None = 0,
        preserve: bool | None = False,
        step_0: int | DataNode | _ndarray | None = None,
        step_1: int | DataNode | _ndarray | None = None,
        step_10: int | DataNode | _ndarray | None = None,
        step_11: int | DataNode | _ndarray | None = None,
        step_12: int | DataNode | _ndarray | None = None,
        step_13: int | DataNode | _ndarray | None = None,
        step_14: int | DataNode | _ndarray | None = None,
        step_15: int | DataNode | _ndarray | None = None,
        step_16: int | DataNode | _ndarray | None = None,
        step_17: int | DataNode | _ndarray | None = None,
        step_18: int | DataNode | _ndarray | None = None,
        step_19: int | DataNode | _ndarray | None = None,
        step_2: int | DataNode | _ndarray | None = None,
        step_20: int | DataNode | _ndarray | None = None,
        step_21: int | DataNode | _ndarray | None = None,
        step_22: int | DataNode | _ndarray | None = None,
        step_23: int | DataNode | _ndarray | None = None,
        step_24: int | DataNode | _ndarray | None = None,
        step_25: int | DataNode | _ndarray | None = None,
        step_26: int | DataNode | _ndarray | None = None,
        step_27: int | DataNode | _ndarray | None = None,
        step_28: int | DataNode | _ndarray | None = None,
        step_29: int | DataNode | _ndarray | None = None,
        step_3: int | DataNode | _ndarray | None = None,
        step_30: int | DataNode | _ndarray | None = None,
        step_31: int | DataNode | _ndarray | None = None,
        step_4: int | DataNode | _ndarray | None = None,
        step_5: int | DataNode | _ndarray | None = None,
        step_6: int | DataNode | _ndarray | None = None,
        step_7: int | DataNode | _ndarray | None = None,
        step_8: int | DataNode | _ndarray | None = None,
        step_9: int | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        at_0: int | DataNode | _ndarray | None = None,
        at_1: int | DataNode | _ndarray | None = None,
        at_10: int | DataNode | _ndarray | None = None,
        at_11: int | DataNode | _ndarray | None = None,
        at_12: int | DataNode | _ndarray | None = None,
        at_13: int | DataNode | _ndarray | None = None,
        at_14: int | DataNode | _ndarray | None = None,
        at_15: int | DataNode | _ndarray | None = None,
        at_16: int | DataNode | _ndarray | None = None,
        at_17: int | DataNode | _ndarray | None = None,
        at_18: int | DataNode | _ndarray | None = None,
        at_19: int | DataNode | _ndarray | None = None,
        at_2: int | DataNode | _ndarray | None = None,
        at_20: int | DataNode | _ndarray | None = None,
        at_21: int | DataNode | _ndarray | None = None,
        at_22: int | DataNode | _ndarray | None = None,
        at_23: int | DataNode | _ndarray | None = None,
        at_24: int | DataNode | _ndarray | None = None,
        at_25: int | DataNode | _ndarray | None = None,
        at_26: int | DataNode | _ndarray | None = None,
        at_27: int | DataNode | _ndarray | None = None,
        at_28: int | DataNode | _ndarray | None = None,
        at_29: int | DataNode | _ndarray | None = None,
        at_3: int | DataNode | _ndarray | None = None,
        at_30: int | DataNode | _ndarray | None = None,
        at_31: int | DataNode | _ndarray | None = None,
        at_4: int | DataNode | _ndarray | None = None,
        at_5: int | DataNode | _ndarray | None = None,
        at_6: int | DataNode | _ndarray | None = None,
        at_7: int | DataNode | _ndarray | None = None,
        at_8: int | DataNode | _ndarray | None = None,
        at_9: int | DataNode | _ndarray | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        hi_0: int | DataNode | _ndarray | None = None,
        hi_1: int | DataNode | _ndarray | None = None,
        hi_10: int | DataNode | _ndarray | None = None,
        hi_11: int | DataNode | _ndarray | None = None,
        hi_12: int | DataNode | _ndarray | None = None,
        hi_13: int | DataNode | _ndarray | None = None,
        hi_14: int | DataNode | _ndarray | None = None,
        hi_15: int | DataNode | _ndarray | None = None,
        hi_16: int | DataNode | _ndarray | None = None,
        hi_17: int | DataNode | _ndarray | None = None,
        hi_18: int | DataNode | _ndarray | None = None,
        hi_19: int | DataNode | _ndarray | None = None,
        hi_2: int | DataNode | _ndarray | None = None,
        hi_20: int | DataNode | _ndarray | None = None,
        hi_21: int | DataNode | _ndarray | None = None,
        hi_22: int | DataNode | _ndarray | None = None,
        hi_23: int | DataNode | _ndarray | None = None,
        hi_24: int | DataNode | _ndarray | None = None,
        hi_25: int | DataNode | _ndarray | None = None,
        hi_26: int | DataNode | _ndarray | None = None,
        hi_27: int | DataNode | _ndarray | None = None,
        hi_28: int | DataNode | _ndarray | None = None,
        hi_29: int | DataNode | _ndarray | None = None,
        hi_3: int | DataNode | _ndarray | None = None,
        hi_30: int | DataNode | _ndarray | None = None,
        hi_31: int | DataNode | _ndarray | None = None,
        hi_4: int | DataNode | _ndarray | None = None,
        hi_5: int | DataNode | _ndarray | None = None,
        hi_6: int | DataNode | _ndarray | None = None,
        hi_7: int | DataNode | _ndarray | None = None,
        hi_8: int | DataNode | _ndarray | None = None,
        hi_9: int | DataNode | _ndarray | None = None,
        lo_0: int | DataNode | _ndarray | None = None,
        lo_1: int | DataNode | _ndarray | None = None,
        lo_10: int | DataNode | _ndarray | None = None,
        lo_11: int | DataNode | _ndarray | None = None,
        lo_12: int | DataNode | _ndarray | None = None,
        lo_13: int | DataNode | _ndarray | None = None,
        lo_14: int | DataNode | _ndarray | None = None,
        lo_15: int | DataNode | _ndarray | None = None,
        lo_16: int | DataNode | _ndarray | None = None,
        lo_17: int | DataNode | _ndarray | None = None,
        lo_18: int | DataNode | _ndarray | None = None,
        lo_19: int | DataNode | _ndarray | None = None,
        lo_2: int | DataNode | _ndarray | None = None,
        lo_20: int | DataNode | _ndarray | None = None,
        lo_21: int | DataNode | _ndarray | None = None,
        lo_22: int | DataNode | _ndarray | None = None,
        lo_23: int | DataNode | _ndarray | None = None,
        lo_24: int | DataNode | _ndarray | None = None,
        lo_25: int | DataNode | _ndarray | None = None,
        lo_26: int | DataNode | _ndarray | None = None,
        lo_27: int | DataNode | _ndarray | None = None,
        lo_28: int | DataNode | _ndarray | None = None,
        lo_29: int | DataNode | _ndarray | None = None,
        lo_3: int | DataNode | _ndarray | None = None,
        lo_30: int | DataNode | _ndarray | None = None,
        lo_31: int | DataNode | _ndarray | None = None,
        lo_4: int | DataNode | _ndarray | None = None,
        lo_5: int | DataNode | _ndarray | None = None,
        lo_6: int | DataNode | _ndarray | None = None,
        lo_7: int | DataNode | _ndarray | None = None,
        lo_8: int | DataNode | _ndarray | None = None,
        lo_9: int | DataNode | _ndarray | None = None,
        num_subscripts: int | None = 0,
        preserve: bool | None = False,
        step_0: int | DataNode | _ndarray | None = None,
        step_1: int | DataNode | _ndarray | None = None,
        step_10: int | DataNode | _ndarray | None = None,
        step_11: int | DataNode | _ndarray | None = None,
        step_12: int | DataNode | _ndarray | None = None,
        step_13: int | DataNode | _ndarray | None = None,
        step_14: int | DataNode | _ndarray | None = None,
        step_15: int | DataNode | _ndarray | None = None,
        step_16: int | DataNode | _ndarray | None = None,
        step_17: int | DataNode | _ndarray | None = None,
        step_18: int | DataNode | _ndarray | None = None,
        step_19: int | DataNode | _ndarray | None = None,
        step_2: int | DataNode | _ndarray | None = None,
        step_20: int | DataNode | _ndarray | None = None,
        step_21: int | DataNode | _ndarray | None = None,
        step_22: int | DataNode | _ndarray | None = None,
        step_23: int | DataNode | _ndarray | None = None,
        step_24: int | DataNode | _ndarray | None = None,
        step_25: int | DataNode | _ndarray | None = None,
        step_26: int | DataNode | _ndarray | None = None,
        step_27: int | DataNode | _ndarray | None = None,
        step_28: int | DataNode | _ndarray | None = None,
        step_29: int | DataNode | _ndarray | None = None,
        step_3: int | DataNode | _ndarray | None = None,
        step_30: int | DataNode | _ndarray | None = None,
        step_31: int | DataNode | _ndarray | None = None,
        step_4: int | DataNode | _ndarray | None = None,
        step_5: int | DataNode | _ndarray | None = None,
        step_6: int | DataNode | _ndarray | None = None,
        step_7: int | DataNode | _ndarray | None = None,
        step_8: int | DataNode | _ndarray | None = None,
        step_9: int | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class ToDecibels(OperatorFace):
    """``multiplier * log10(max(ratio, x / reference))``, where the smallest ratio is the one that gives the cutoff.

    >>> decibels = fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)

    Runs on: cpu, gpu.

    Args:
        input: float32 data of any shape.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        cutoff_db (float, default -200.0): The lowest value of the output, in dB.
        multiplier (float, default 10.0): Factor of the logarithm: 10 for powers, 20 for magnitudes.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reference (float, default 0.0): What 0 dB stands for; by default the largest value of the sample.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        cutoff_db: float | None = -200.0,
        multiplier: float | None = 10.0,
        preserve: bool | None = False,
        reference: float | None = 0.0,
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
        cutoff_db: float | None = -200.0,
        multiplier: float | None = 10.0,
        preserve: bool | None = False,
        reference: float | None = 0.0,
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
        cutoff_db: float | None = -200.0,
        multiplier: float | None = 10.0,
        preserve: bool | None = False,
        reference: float | None = 0.0,
    ) -> list[DataNode]: ...

from penstock.python_function import TorchPythonFunction as TorchPythonFunction

class TransformTranslation(OperatorFace):
    """The affine matrix of a shift.

    Runs on: cpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        input: An affine matrix [M|t] of float, of shape (n, n + 1), to which the transform is applied.

    Keyword args:
        offset (float | Sequence[float] | DataNode, required): The shift of each dimension; its length is their number.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        reverse_order (bool, default False): The input's transform is applied to the operator's, not the operator's to it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        offset: float | _Sequence[float] | DataNode | _ndarray = ...,
        preserve: bool | None = False,
        reverse_order: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        input: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        offset: float | _Sequence[float] | DataNode | _ndarray = ...,
        preserve: bool | None = False,
        reverse_order: bool | None = False,
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
        offset: float | _Sequence[float] | DataNode | _ndarray = ...,
        preserve: bool | None = False,
        reverse_order: bool | None = False,
    ) -> list[DataNode]: ...

class Transpose(OperatorFace):
    """Reorders the dimensions of each sample; by default reverses them.

    Runs on: cpu, gpu.

    Args:
        input: Data of any type and shape.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        output_layout (str): Layout of the output.
        perm (int | Sequence[int]): The input dimension that each output dimension is; by default reversed.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        transpose_layout (bool, default True): Permute the layout too.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        output_layout: str | None = None,
        perm: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        transpose_layout: bool | None = True,
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
        output_layout: str | None = None,
        perm: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        transpose_layout: bool | None = True,
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
        output_layout: str | None = None,
        perm: int | _Sequence[int] | _ndarray | None = None,
        preserve: bool | None = False,
        transpose_layout: bool | None = True,
    ) -> list[DataNode]: ...

class Uniform(OperatorFace):
    """Numbers evenly distributed over a range, or picked with equal chances from a list of values.

    For integer types the bounds are cut to integers first and the drawn number is rounded, so that both ends of the
    range occur, half as often as the numbers between them.

    >>> angle = fn.random.uniform(range=[-10.0, 10.0])

    Runs on: cpu, gpu.

    Args:
        shape_like: The output takes the shape of this input; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        range (float | Sequence[float] | DataNode, default [-1.0, 1.0]): [lowest, highest): where the numbers are from.
        seed (int, default -1): Seed of the random stream; by default it is derived from the pipeline's seed.
        shape (int | Sequence[int] | DataNode): Shape of the output; by default it is a scalar.
        values (float | Sequence[float] | DataNode): The values to pick from; `range` is ignored then.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        shape_like: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        shape_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
        range: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        seed: int | None = -1,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
        values: float | _Sequence[float] | DataNode | _ndarray | None = None,
    ) -> list[DataNode]: ...

class VideoReader(OperatorFace):
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

class VideoReaderResize(OperatorFace):
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

class WarpAffine(OperatorFace):
    """Moves pixels by an affine matrix, which maps output to input coordinates unless ``inverse_map=False``.

    Runs on: cpu, gpu.
    Sequences (a leading F dimension) are processed frame by frame.

    Args:
        data: Images or volumes. Layouts: HWC, FHWC, DHWC, FDHWC.
        mtx: The matrix, where it is no argument.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        fill_value (float): What lies outside of the input; without it, the nearest pixel of the border.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_LINEAR: 1>): Filter for both enlarging and shrinking.
        inverse_map (bool, default True): The matrix maps output to input coordinates; False: input to output.
        matrix (float | Sequence[float] | DataNode, default []): 2x3 (3x4 for volumes) matrix in x, y(, z) order, row by row.
        output_dtype (DALIDataType): Old name of `dtype`.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        size (float | Sequence[float] | DataNode, default []): Output extents (height, width) or (depth, height, width).
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data: DataNode | _TensorLike,
        mtx: DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data: list[DataNode],
        mtx: list[DataNode] | DataNode | _TensorLike | None = ...,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        fill_value: float | None = None,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: float | _Sequence[float] | DataNode | _ndarray | None = ...,
        preserve: bool | None = False,
        size: float | _Sequence[float] | DataNode | _ndarray | None = ...,
    ) -> list[DataNode]: ...

class Water(OperatorFace):
    """Displaces pixels by ``ampl_x * sin(freq_x * y + phase_x)`` and ``ampl_y * cos(freq_y * x + phase_y)``.

    Runs on: cpu, gpu.

    Args:
        input: Images of uint8 or float. Layouts: HWC.

    Keyword args:
        ampl_x (float, default 10.0): Amplitude of the displacement in x, in pixels.
        ampl_y (float, default 10.0): Amplitude of the displacement in y, in pixels.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        fill_value (float, default 0.0): What lies outside of the input; bytes lose its fraction, and wrap around.
        freq_x (float, default 0.049087): Frequency of the displacement in x, in radians for each row.
        freq_y (float, default 0.049087): Frequency of the displacement in y, in radians for each column.
        interp_type (DALIInterpType, default <DALIInterpType.INTERP_NN: 0>): INTERP_NN or INTERP_LINEAR.
        mask (int | DataNode, default 1): Computed in the graph, 0 leaves a sample as it is. A constant has no effect.
        phase_x (float, default 0.0): Phase of the displacement in x, in radians.
        phase_y (float, default 0.0): Phase of the displacement in y, in radians.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        ampl_x: float | None = 10.0,
        ampl_y: float | None = 10.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | None = 0.0,
        freq_x: float | None = 0.049087,
        freq_y: float | None = 0.049087,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        phase_x: float | None = 0.0,
        phase_y: float | None = 0.0,
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
        ampl_x: float | None = 10.0,
        ampl_y: float | None = 10.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | None = 0.0,
        freq_x: float | None = 0.049087,
        freq_y: float | None = 0.049087,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        phase_x: float | None = 0.0,
        phase_y: float | None = 0.0,
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
        ampl_x: float | None = 10.0,
        ampl_y: float | None = 10.0,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        fill_value: float | None = 0.0,
        freq_x: float | None = 0.049087,
        freq_y: float | None = 0.049087,
        interp_type: DALIInterpType | None = DALIInterpType.INTERP_NN,
        mask: int | DataNode | _ndarray | None = 1,
        phase_x: float | None = 0.0,
        phase_y: float | None = 0.0,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...

class Zeros(OperatorFace):
    """A tensor of zeros for each sample.

    >>> fn.zeros(shape=[2, 3], dtype=types.FLOAT)

    Runs on: cpu.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType, default <DALIDataType.INT32: 6>): Type of the output.
        layout (str): Layout of the output.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        shape (int | Sequence[int] | DataNode): Extents of the output; by default it is a scalar.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT32,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = DALIDataType.INT32,
        layout: str | None = None,
        preserve: bool | None = False,
        shape: int | _Sequence[int] | DataNode | _ndarray | None = None,
    ) -> DataNode: ...

class ZerosLike(OperatorFace):
    """A tensor of zeros for each sample, of the shape, layout and, unless told otherwise, type of the input.

    Runs on: cpu.

    Args:
        data_like: Data whose shapes are taken; its contents do not matter.

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dtype (DALIDataType): Type of the output; by default that of the input.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        data_like: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        data_like: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dtype: DALIDataType | None = None,
        preserve: bool | None = False,
    ) -> list[DataNode]: ...
