"""`filter`: correlation with an arbitrary kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import FLOAT, INT16, UINT8, UINT16, dtype_name
from penstock.kernels.axes import spatial_axes
from penstock.schema import (
    Alias,
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, fixed_arrays, photos, random_arrays
from penstock.schema.libraries import OPENCV
from penstock.schema.references import follows_opencv, opencv_reference

# For each border mode, its name in :data:`penstock.kernels.borders.BORDERS`.
_BORDERS = {
    "reflect_101": "reflect_101",
    "reflect_1001": "reflect",
    "wrap": "wrap",
    "clamp": "replicate",
    "constant": "constant",
}
_ALIASES = {
    "101": "reflect_101",
    "reflect101": "reflect_101",
    "1001": "reflect_1001",
    "reflect1001": "reflect_1001",
    "reflect": "reflect_1001",
    "edge": "clamp",
    "fill": "constant",
    "pad": "constant",
}
# The borders that OpenCV's filters support.
_OPENCV_BORDERS = {own: name for own, name in _BORDERS.items() if name not in ("wrap", "constant")}


@dataclass(frozen=True)
class FilterPlan:
    """How one sample is filtered.

    Attributes:
        axes: the dimensions of the data that the filter runs along.
        extents: the filter's extents.
        anchor: the filter's element that is aligned with the output pixel.
    """

    axes: list[int]
    extents: tuple[int, ...]
    anchor: tuple[int, ...]


@register_operator
class Filter(Operator[list[int], FilterPlan]):
    """Correlates images with a filter. For integer types, results are rounded half to even and saturate."""

    keeps_frame_shape = True
    schema = Schema(
        name="Filter",
        needs=(OPENCV,),
        inputs=(
            Input("data", doc="Images of uint8, int16, uint16 or float; channels first, last or absent."),
            Input(
                "filter",
                device="match_or_cpu",
                doc="The filter of each sample, float, two-dimensional.",
                example=random_arrays((3, 5), (1, 4), (2, 3), low=-0.3, high=0.5),
            ),
            Input(
                "fill_value",
                device="match_or_cpu",
                doc="Value beyond a constant border: a scalar of the data's type; 0 by default.",
            ),
        ),
        min_inputs=2,
        arguments=(
            Argument(
                "anchor",
                "int32[]",
                [-1],
                "The filter's element at the output's position, one value for each of its dimensions; -1: the centre.",
                tensor=True,
                per_frame=True,
                example=[0],
                tensor_example=[0, 0],
            ),
            Argument(
                "border",
                "string",
                "reflect_101",
                "Beyond the border: `reflect_101` (cb|abc), `reflect_1001` (ba|abc), `clamp` (aa|abc), `wrap` (bc|abc) "
                "or `constant`.",
                choices=("reflect_101", "reflect_1001", "clamp", "wrap", "constant"),
            ),
            Argument("dtype", "DALIDataType", None, "Type of the output: FLOAT, or by default that of the data."),
            Argument(
                "mode",
                "string",
                "same",
                "`same`: the output is as large as the input; `valid`: without border.",
                choices=("same", "valid"),
            ),
            opencv_reference("`cv2.filter2D`, whose borders are all but `wrap`; it fills constant ones with 0."),
        ),
        sequences=True,
        aliases=(Alias("experimental__Filter", deprecated_since="2.0"),),
        shown=(Example({}, (photos, fixed_arrays([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])), title="Emboss"),),
        equivalents=(
            Equivalent("cv2.filter2D", 'Equal with `reference="opencv"`.'),
            Equivalent(
                "scipy.ndimage.correlate",
                "Its borders are `reflect` for `reflect_1001` and `mirror` for `reflect_101`.",
            ),
        ),
    )

    def setup(self) -> None:
        border, self._mode = self.args["border"].lower(), self.args["mode"].lower()
        self._border = _ALIASES.get(border, border)
        if self._border not in _BORDERS:
            raise RuntimeError(f"Unknown border '{self.args['border']}': use one of {', '.join(_BORDERS)}")
        if self._mode not in ("same", "valid"):
            raise RuntimeError(
                f"Unknown ``mode`` was provided: ``{self.args['mode']}``. Supported modes are ``same`` and ``valid``."
            )
        self._follows_opencv = follows_opencv(self)
        if self._follows_opencv and self._border == "wrap" and self._mode == "same":
            raise ValueError(
                "With `reference='opencv'`, `border` must be one of reflect_101, reflect_1001, clamp, constant"
            )

    def describe(self, workspace: Workspace[list[int], FilterPlan]) -> list[OutputSpec]:
        batch, kernels = workspace.inputs[:2]
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if "F" in batch.layout():
            raise RuntimeError(f"Frames must be the outermost dimension, got layout '{batch.layout()}'")
        axes = spatial_axes(batch.layout(), batch.ndim()) if len(batch) else []
        if len(batch) and kernels.ndim() != len(axes):
            raise RuntimeError(
                "Filter dimensionality must match the number of spatial dimensions in the input samples. "
                f"Got {len(axes)} spatial dimensions but the filter is {kernels.ndim()} dimensional."
            )
        if len(batch) and len(axes) != 2:
            raise RuntimeError(
                f"Unsupported input data dimensionality: {len(axes)} spatial dimensions, but only 2-dimensional "
                "convolutions are supported; is the layout set?"
            )
        if batch.dtype not in (UINT8, INT16, UINT16, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if kernels.dtype != FLOAT:
            raise RuntimeError(f"Filters must be float, got {dtype_name(kernels.dtype)}")
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(f"Output data type must be same as input or FLOAT, got {dtype_name(dtype)}")
        self._check_fill_value(workspace)
        workspace.state = axes
        return [OutputSpec(dtype, batch.layout(), batch.ndim())]

    def _check_fill_value(self, workspace: Workspace[list[int], FilterPlan]) -> None:
        if len(workspace.inputs) < 3:
            return
        if self._follows_opencv:
            raise RuntimeError("With `reference='opencv'`, a fill value is not accepted: constant borders are 0")
        data, fill = workspace.inputs[0], workspace.inputs[2]
        if fill.dtype != data.dtype or fill.ndim():
            raise RuntimeError(
                f"The fill value must be a scalar of {dtype_name(data.dtype)}, got {dtype_name(fill.dtype)} of "
                f"{fill.ndim()} dimensions"
            )

    def infer(self, sample: Sample[list[int], FilterPlan]) -> tuple[int, ...]:
        axes, extents = sample.workspace.state, sample.shapes[1]
        if not all(extents):
            raise RuntimeError(f"The filter is empty: {list(extents)}")
        if not all(sample.shapes[0]):
            raise RuntimeError(f"The data to filter is empty: {list(sample.shapes[0])}")
        shape, anchor = list(sample.shapes[0]), self._anchor(sample, extents)
        if self._mode == "same":
            sample.plan = FilterPlan(axes, extents, anchor)
            return tuple(shape)
        sample.plan = FilterPlan(axes, extents, (0,) * len(axes))
        for axis, extent in zip(axes, extents):
            shape[axis] -= extent - 1
            if shape[axis] < 1:
                raise RuntimeError(f"The filter {list(extents)} is larger than the data {list(sample.shapes[0])}")
        return tuple(shape)

    @staticmethod
    def _anchor(sample: Sample[list[int], FilterPlan], extents: tuple[int, ...]) -> tuple[int, ...]:
        anchor = sample["anchor"]
        computed = sample.tensor_argument("anchor")
        accepted = (1, len(extents)) if computed is None or not computed.ndim else (len(extents),)
        if len(anchor) not in accepted:
            raise RuntimeError(f'Argument "anchor" expected shape {len(extents)} but got {len(anchor)} values')
        places = anchor * len(extents) if len(anchor) == 1 else anchor
        for place, extent in zip(places, extents):
            if not -1 <= place < extent:
                raise RuntimeError(f"The anchor {anchor} does not lie within the filter of shape {list(extents)}")
        return tuple(extent // 2 if place == -1 else place for place, extent in zip(places, extents))

    def compute(self, sample: Sample[list[int], FilterPlan]) -> None:
        from penstock.kernels.cpu.opencv import border, images, keep, opencv
        from penstock.operators.image._box_cpu import filter_box

        cv2, plan, target = opencv(), sample.plan, sample.outputs[0]
        layout = sample.workspace.inputs[0].layout()
        window = np.ascontiguousarray(sample.inputs[1])
        y, x = plan.anchor
        depth = cv2.CV_32F if target.dtype == np.float32 else -1
        weight = self._box_weight(sample, window)
        for image, out in zip(images(sample.inputs[0], layout), images(target, layout)):
            if weight:
                filter_box(np.ascontiguousarray(image), plan.extents, plan.anchor, _BORDERS[self._border], weight, out)
                continue
            padded = self._padded(sample, image, plan)
            if padded is None:
                kind = border(_BORDERS[self._border])
                image = np.ascontiguousarray(image)
                keep(cv2.filter2D(image, depth, window, dst=out, anchor=(x, y), borderType=kind), out)
                continue
            # The padding covers the filter's reach, so OpenCV's border doesn't matter.
            full = cv2.filter2D(padded, depth, window, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
            out[...] = full[: out.shape[0], : out.shape[1]].reshape(out.shape)

    @staticmethod
    def _box_weight(sample: Sample[list[int], FilterPlan], window: np.ndarray) -> float:
        """Return the weight that all elements have, if they are equal and bytes may be summed before weighting; else 0."""
        from penstock.operators.image._box_cpu import sums_first

        has_fill = len(sample.inputs) > 2 and sample.inputs[2] != 0
        if sample.inputs[0].dtype != np.uint8 or sample.outputs[0].dtype != np.uint8 or has_fill:
            return 0.0
        weight = float(window.flat[0])
        return weight if (window == weight).all() and sums_first(weight, window.size) else 0.0

    def compute_batch(self, workspace: Workspace[list[int], FilterPlan]) -> None:
        if self._follows_opencv:
            Operator.compute_batch(self, workspace)
            return
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._correlation_cuda import Correlation, correlate_images

        samples, axis = workspace.live, workspace.state[0]
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        windows, *fills = (self._on_either_device(batch, samples) for batch in workspace.inputs[1:])
        jobs = [
            Correlation(source, target, axis, window, (sample.plan.anchor[0], sample.plan.anchor[1]), fill)
            for sample, source, target, window, fill in zip(
                samples, sources, targets, windows, fills[0] if fills else [0.0] * len(samples)
            )
        ]
        correlate_images(jobs, _BORDERS[self._border])

    @staticmethod
    def _on_either_device(batch: Any, samples: Sequence[Sample[list[int], FilterPlan]]) -> list[Any]:
        """Return the samples of a batch that may be on either device: NumPy arrays, or locations on the GPU."""
        from penstock.kernels.cuda.launch import locate_all

        on_gpu = batch.device_type == "gpu"
        return locate_all(batch, samples) if on_gpu else [batch.samples[sample.index] for sample in samples]

    def _padded(self, sample: Sample[list[int], FilterPlan], image: np.ndarray, plan: FilterPlan) -> np.ndarray | None:
        """Return the image padded by the filter's reach; None if OpenCV handles the border itself."""
        if self._mode == "valid":
            return np.ascontiguousarray(image)
        if self._border in _OPENCV_BORDERS or self._follows_opencv:
            return None
        reach = [(place, extent - 1 - place) for place, extent in zip(plan.anchor, plan.extents)]
        reach += [(0, 0)] * (image.ndim - 2)
        if self._border == "wrap":
            return np.pad(image, reach, "wrap")
        fill = sample.inputs[2] if len(sample.inputs) > 2 else 0
        return np.pad(image, reach, constant_values=fill)
