"""`perspective_crops`: cuts quadrilaterals out of images; each crop is a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penstock.data_types import (
    FLOAT,
    INT16,
    INTERP_CUBIC,
    INTERP_LINEAR,
    INTERP_NN,
    UINT8,
    UINT16,
    DALIInterpType,
    dtype_name,
)
from penstock.kernels.borders import check_border
from penstock.operators.parts._parts import mark_parts
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.libraries import OPENCV
from penstock.tensors import TensorList, TensorListGPU

_FLAGS: dict[DALIInterpType, str] = {
    INTERP_NN: "INTER_NEAREST",
    INTERP_LINEAR: "INTER_LINEAR",
    INTERP_CUBIC: "INTER_CUBIC",
}
_ORIGINS = ("corner", "center")
_TYPES = (UINT8, INT16, UINT16, FLOAT)
_MAX_CHANNELS = 4
# The greatest height and width of images and crops: OpenCV stores coordinates in 16 bits.
_MAX_EXTENT = 32767


class _Crop(NamedTuple):
    """A crop to make.

    Attributes:
        image: the index of the crop's image in the batch.
        corners: the quadrilateral's corners, float64 of shape (4, 2).
        height, width: the crop's extents before it is turned.
        turned: whether the crop is turned by 90 degrees counterclockwise.
    """

    image: int
    corners: np.ndarray
    height: int
    width: int
    turned: bool

    @property
    def extents(self) -> tuple[int, int]:
        """The height and width of the crop, after it is turned."""
        return (self.width, self.height) if self.turned else (self.height, self.width)


@register_operator
class PerspectiveCrops(Operator):
    """Cuts quadrilaterals out of each image and warps them to rectangles. Each crop is a sample; the crops of all images form one batch.

    Returns the crops, and the number of crops of each image. Without a `size`, a crop is as wide as the longer of the quadrilateral's
    upper and lower sides, and as high as the longer of the left and right sides, in whole pixels. If a crop fails in a later operator, its
    image fails. OpenCV computes crops on the CPU. On a GPU, kernels compute the same results with INTERP_NN and INTERP_LINEAR, except for
    int16 images and, with INTERP_LINEAR, images with two channels: those images are copied to the host, and their crops back.

    >>> crops, counts = fn.perspective_crops(images, quadrilaterals, rotate_tall=1.5)  # lines of text
    >>> crops = fn.resize(crops, size=[48, 320], mode="not_larger")  # like any other batch
    """

    schema = Schema(
        name="PerspectiveCrops",
        inputs=(
            Input("images", ("HWC",), doc="Images of uint8, int16, uint16 or float, of up to 4 channels."),
            Input(
                "quadrilaterals",
                device="match_or_cpu",
                doc="Numbers of shape (quadrilaterals, 4, 2): x and y of the upper left, upper right, lower right and lower left "
                "corner, in pixels; best on the CPU, where they are needed.",
            ),
        ),
        arguments=(
            Argument(
                "border_mode",
                "string",
                "replicate",
                "Beyond the border of the image: `constant` (0), `replicate` (aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc) or "
                "`wrap` (bc|abc).",
                choices=("constant", "replicate", "reflect", "reflect_101", "wrap"),
            ),
            Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "INTERP_NN, INTERP_LINEAR or INTERP_CUBIC."),
            Argument(
                "pixel_origin",
                "string",
                "corner",
                "The origin of pixel (0, 0): `corner`, so that a box is cut as by `crop_boxes`, or `center` as in OpenCV.",
                choices=_ORIGINS,
            ),
            Argument(
                "rotate_tall",
                "float",
                0.0,
                "Crops at least this many times as high as wide are rotated counterclockwise by 90 degrees; 0: none.",
            ),
            Argument(
                "size", "int32[]", None, "Height and width of all crops; by default each has its own.", example=[8, 32]
            ),
        ),
        outputs=2,
        host_outputs=(1,),
        needs=(OPENCV,),
        unswept="its first output is a batch of another size",
        equivalents=(
            Equivalent(
                "cv2.warpPerspective",
                "For one quadrilateral, with `cv2.getPerspectiveTransform` and `pixel_origin='center'`.",
            ),
        ),
    )

    def setup(self) -> None:
        check_border(self.args["border_mode"])
        if self.args["interp_type"] not in _FLAGS:
            raise ValueError(f"Unsupported interpolation {self.args['interp_type']}: use NN, LINEAR or CUBIC")
        if self.args["pixel_origin"] not in _ORIGINS:
            raise ValueError(f"`pixel_origin` must be one of {', '.join(_ORIGINS)}. Got: {self.args['pixel_origin']!r}")
        if not 0 <= self.args["rotate_tall"] < math.inf:
            raise ValueError(f"`rotate_tall` must be 0 or more. Got: {self.args['rotate_tall']:g}")
        size = self.args["size"]
        if size is not None and (len(size) != 2 or not 1 <= min(size) <= max(size) <= _MAX_EXTENT):
            raise ValueError(f"`size` must be a height and a width, from 1 to {_MAX_EXTENT}. Got: {size}")

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        given, quadrilaterals = workspace.inputs[0], _on_cpu(workspace.inputs[1])
        if len(given) and given.dtype not in _TYPES:
            raise RuntimeError(f"Unsupported input type: {dtype_name(given.dtype)}")
        crops: list[_Crop] = []
        counts = [0] * len(given)
        for index, (shape, own) in enumerate(zip(given.shapes, quadrilaterals.samples)):
            if index not in workspace.failures:
                try:
                    found = self._crops(index, shape, own)
                except ValueError as error:
                    workspace.fail(index, error)
                    continue
                counts[index] = len(found)
                crops += found
        shapes = [(*crop.extents, given.shapes[crop.image][2]) for crop in crops]
        spec = OutputSpec(given.dtype, "HWC", 3)
        if isinstance(given, TensorListGPU) and self._has_kernel(given, crops):
            parts: TensorList = self._cut_on_gpu(workspace, given, crops, shapes, spec)
        else:
            parts = self._cut_on_cpu(workspace, crops, shapes, spec)
        workspace.outputs = [parts, mark_parts(workspace, parts, counts)]

    def _has_kernel(self, images: TensorListGPU, crops: Sequence[_Crop]) -> bool:
        """Return whether a GPU kernel computes these crops with OpenCV's results."""
        channels = {images.shapes[crop.image][2] for crop in crops}
        is_nearest = self.args["interp_type"] == INTERP_NN
        # For these, OpenCV uses code that rounds positions and weights, which the kernel does not.
        is_rounded = images.dtype == INT16 or self.args["interp_type"] == INTERP_CUBIC
        return len(channels) == 1 and not is_rounded and (is_nearest or channels != {2})

    def _cut_on_gpu(
        self,
        workspace: Workspace,
        images: TensorListGPU,
        crops: Sequence[_Crop],
        shapes: Sequence[tuple[int, ...]],
        spec: OutputSpec,
    ) -> TensorListGPU:
        """Make the crops in one launch on the GPU."""
        from penstock.kernels.cuda.launch import places_of
        from penstock.operators.parts._perspective_crops_cuda import Crops, cut_quadrilaterals

        parts: TensorListGPU = workspace.allocate(shapes, spec)
        owners = [crop.image for crop in crops]
        image_shapes = images.shape_array()[owners]
        cut = Crops(
            places_of(images)[0][owners],
            places_of(parts)[0],
            image_shapes,
            np.array([(crop.height, crop.width) for crop in crops], np.int64),
            np.array([crop.turned for crop in crops]),
            self._inverses(crops),
            images.dtype,
        )
        is_nearest = self.args["interp_type"] == INTERP_NN
        cut_quadrilaterals(cut, int(image_shapes[0, 2]), self.args["border_mode"], is_nearest)
        return parts

    def _cut_on_cpu(
        self, workspace: Workspace, crops: Sequence[_Crop], shapes: Sequence[tuple[int, ...]], spec: OutputSpec
    ) -> TensorList:
        """Make the crops with OpenCV on the CPU; return them on the device of the workspace."""
        parts = replace(workspace, device="cpu").allocate(shapes, spec)
        images, targets = _on_cpu(workspace.inputs[0]).samples, parts.samples
        workspace.parallel(
            lambda number: self._cut(images[crops[number].image], crops[number], targets[number]),
            len(crops),
            [math.prod(shape) for shape in shapes],
        )
        return parts if workspace.device == "cpu" else TensorListGPU.upload(parts)

    def _crops(self, index: int, shape: tuple[int, ...], given: np.ndarray) -> list[_Crop]:
        """Return the crops of an image.

        Raises:
            ValueError: ``given`` has another shape than (quadrilaterals, 4, 2); a quadrilateral contains no pixel, is not convex, or is too
                large or too far away; or the image is too large or has too many channels.
        """
        if given.ndim != 3 or given.shape[1:] != (4, 2):
            if given.size:
                raise ValueError(f"Quadrilaterals must have the shape (quadrilaterals, 4, 2). Got: {list(given.shape)}")
            return []
        height, width, channels = shape
        if not 1 <= channels <= _MAX_CHANNELS or not 1 <= min(height, width) <= max(height, width) <= _MAX_EXTENT:
            raise ValueError(
                f"Images must have 1 to {_MAX_CHANNELS} channels and up to {_MAX_EXTENT} pixels along each side. Got the "
                f"shape: {list(shape)}"
            )
        corners = given.astype(np.float64)
        _check_quadrilaterals(corners)
        sides = np.hypot(*np.moveaxis(np.roll(corners, -1, axis=1) - corners, 2, 0)).tolist()
        return [self._crop(index, number, corners[number], own, shape) for number, own in enumerate(sides)]

    def _crop(
        self, index: int, number: int, corners: np.ndarray, sides: Sequence[float], shape: tuple[int, ...]
    ) -> _Crop:
        upper, right, lower, left = sides
        wide, high = int(max(upper, lower)), int(max(left, right))
        if self.args["size"] is not None:
            high, wide = self.args["size"]
            return _Crop(index, corners, high, wide, False)
        if min(wide, high) < 1:
            raise ValueError(f"{_named(number, corners)} holds no pixel")
        if wide * high > 16 * max(shape[0] * shape[1], 1 << 16) or max(wide, high) > _MAX_EXTENT:
            raise ValueError(
                f"{_named(number, corners)} is more than 16 times as large as its image of {shape[1]} x {shape[0]} pixels, or has a "
                f"side of more than {_MAX_EXTENT} pixels"
            )
        ratio = self.args["rotate_tall"]
        return _Crop(index, corners, high, wide, bool(ratio and high >= ratio * wide))

    def _corners(self, crops: Sequence[_Crop]) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the quadrilaterals and of the upright crops as OpenCV expects them: each float32 of shape (crops, 4, 2)."""
        wide, high = np.array([crop.width for crop in crops]), np.array([crop.height for crop in crops])
        edges = np.zeros((len(crops), 4, 2), np.float32)
        edges[:, 1:3, 0], edges[:, 2:, 1] = wide[:, None], high[:, None]
        shift = np.float32(0.5 if self.args["pixel_origin"] == "corner" else 0)
        return (np.array([crop.corners for crop in crops]) - shift).astype(np.float32), edges - shift

    def _inverses(self, crops: Sequence[_Crop]) -> np.ndarray:
        """Return the matrices that map coordinates of upright crops to coordinates of their images: float64 of shape (crops, 3, 3)."""
        from penstock.kernels.cpu.opencv import opencv

        transform, invert = opencv().getPerspectiveTransform, opencv().invert
        return np.array([invert(transform(*corners))[1] for corners in zip(*self._corners(crops))])

    def _cut(self, image: np.ndarray, crop: _Crop, target: np.ndarray) -> None:
        from penstock.kernels.cpu.opencv import border, keep, opencv

        cv2, size = opencv(), (crop.width, crop.height)
        corners, edges = self._corners([crop])
        matrix, source = cv2.getPerspectiveTransform(corners[0], edges[0]), np.ascontiguousarray(image)
        flags, mode = getattr(cv2, _FLAGS[self.args["interp_type"]]), border(self.args["border_mode"])
        if crop.turned:
            upright = cv2.warpPerspective(source, matrix, size, flags=flags, borderMode=mode)
            target[...] = np.rot90(upright.reshape(crop.height, crop.width, -1))
        else:
            keep(cv2.warpPerspective(source, matrix, size, dst=target, flags=flags, borderMode=mode), target)


def _check_quadrilaterals(corners: np.ndarray) -> None:
    """Raise ValueError if a quadrilateral has a corner that is not finite or far away, or is not convex."""
    _check(corners, np.isfinite(corners).all(axis=(1, 2)), "has a corner that is not a number")
    # Coordinates beyond this are far outside of any image; in single precision, which OpenCV uses, they would be too coarse.
    _check(corners, np.abs(corners).max(axis=(1, 2)) <= 1e6, "is far outside of its image")
    sides = np.roll(corners, -1, axis=1) - corners
    after = np.roll(sides, -1, axis=1)
    turns = sides[..., 0] * after[..., 1] - sides[..., 1] * after[..., 0]
    _check(corners, (turns > 0).all(axis=1) | (turns < 0).all(axis=1), "is not convex")


def _check(corners: np.ndarray, are_good: np.ndarray, told: str) -> None:
    bad = np.flatnonzero(~are_good)
    if len(bad):
        raise ValueError(f"{_named(int(bad[0]), corners[bad[0]])} {told}")


def _named(number: int, corners: np.ndarray) -> str:
    return f"Quadrilateral {number}, {corners.tolist()},"


def _on_cpu(batch: TensorList) -> TensorList:
    return batch.as_cpu() if isinstance(batch, TensorListGPU) else batch
