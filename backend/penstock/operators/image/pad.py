"""`pad`: extends data to a common size, a minimum size, or a multiple of a size."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import FLOAT64, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.kernels.windows import Region
from penstock.operators.image._windows import Regions, copy_region, copy_regions, region_copy, region_records
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.image_chain import ChainOperator, Placement

_MAX_DIMENSIONS = 5


@register_operator
class Pad(ChainOperator[np.ndarray, Region, Regions]):
    """Pads dimensions at the end: to the largest extent in the batch or to ``shape``, rounded up to a multiple of
    ``align``."""

    schema = Schema(
        name="Pad",
        inputs=(Input("input", doc="Data of any type but float64, of any shape."),),
        arguments=(
            Argument(
                "align",
                "int32[]",
                None,
                "Round extents up to a multiple of this: one value, or one for each axis.",
                tensor=True,
                uniform=True,
                example=[8],
                tensor_example=8,
            ),
            Argument(
                "axes", "int32[]", None, "Indices of the dimensions that the other arguments apply to.", tensor=True
            ),
            Argument(
                "axis_names",
                "layout",
                None,
                "Letters of the dimensions that the other arguments apply to.",
            ),
            Argument(
                "fill_value",
                "float",
                0.0,
                "Value of the new elements; for integer types, its fraction is dropped, and it wraps around.",
                tensor=True,
                zero_dimensional=True,
            ),
            Argument(
                "shape",
                "int32[]",
                None,
                "The minimum extents of the output; 0 or less: the maximum of the batch.",
                tensor=True,
                example=[30],
            ),
        ),
        batchwise=True,
        examples=(Example(), Example({"axes": [0, 1], "shape": [30, -1]}), Example({"axis_names": "W"})),
        shown=(on_photo(axis_names="HW", shape=[200, 260], fill_value=200.0),),
        equivalents=(
            Equivalent("torchvision.transforms.v2.functional.pad", "It pads all sides; here the end alone."),
            Equivalent("numpy.pad", "It pads both ends of each axis; here the end alone."),
            Equivalent("cv2.copyMakeBorder", "It pads all sides, also with what is at the border."),
        ),
    )
    depends_on_batch = True

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("`axes` and `axis_names` cannot be given together")

    def describe(self, workspace: Workspace[np.ndarray]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype == FLOAT64:
            raise RuntimeError(f"Unsupported data type: {dtype_name(batch.dtype)}")
        if len(batch) and not 0 < batch.ndim() <= _MAX_DIMENSIONS:
            raise RuntimeError(f"Unsupported number of dimensions {batch.ndim()}")
        good = [shape for index, shape in enumerate(batch.shapes) if index not in workspace.failures]
        workspace.state = np.array([max(extents) for extents in zip(*good)], np.int64)
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def infer_batch(self, samples: Samples[np.ndarray, Region, Regions]) -> tuple[np.ndarray, Regions]:
        extents = samples.shapes()
        layout, ndim = samples.workspace.inputs[0].layout(), extents.shape[1]
        axes = samples.derived(("axes",), ("axes", layout, ndim), self._axes, samples, layout, ndim)
        # Indexing with a slice is faster than with a list of all dimensions.
        places = slice(None) if axes == list(range(ndim)) else axes
        own, greatest = extents[:, places], samples.state[places]
        wanted = self._per_axis(samples, "shape", len(axes))
        padded = np.maximum(own, greatest if wanted is None else np.where(wanted > 0, wanted, greatest))
        align = self._per_axis(samples, "align", len(axes))
        extents[:, places] = padded if align is None else -(-padded // align) * align
        return extents, Regions(np.zeros(extents.shape, np.int64), extents)

    def _axes(self, samples: Samples, layout: str, ndim: int) -> list[int]:
        """Return the dimensions to pad."""
        rows = samples.values("axes").astype(np.int64)
        if (rows != rows[0]).any():
            raise ValueError("`axes` or `axis_names` differ between the samples of the batch")
        given = rows[0].tolist() if samples.given("axes") else None
        return resolve_axes(given, self.args["axis_names"], layout, ndim) or list(range(ndim))

    @staticmethod
    def _per_axis(samples: Samples, name: str, count: int) -> np.ndarray | None:
        if not samples.given(name):
            return None
        if not samples.values(name).size:
            return None
        values = samples.per_axis(name, count).astype(np.int64)
        if name == "align" and (values < 1).any():
            wrong = next(row for row in values.tolist() if min(row) < 1)
            raise RuntimeError(f"Values of `align` argument must be positive. Got: {wrong}")
        return values

    def compute(self, sample: Sample[np.ndarray, Region]) -> None:
        target = sample.outputs[0]
        copy_region(sample.inputs[0], sample.plan, [sample["fill_value"]], None, target)

    is_placement = True
    launches = True
    repeats_plans = True

    def stage_records(self, workspace: Workspace[np.ndarray, Region, Regions]) -> StageRecords | None:
        fill = Samples(self, workspace, range(workspace.batch_size)).values("fill_value")
        return region_records(workspace, fill if len(fill) > 1 else fill[0], None)

    def stage_key(self, sample: Sample[np.ndarray, Region]) -> Hashable:
        return sample.plan, sample["fill_value"]

    def stage(self, sample: Sample[np.ndarray, Region]) -> Placement:
        return region_copy(sample.plan, sample.shapes[0], [sample["fill_value"]], None)

    def compute_batch(self, workspace: Workspace[np.ndarray, Region]) -> None:
        copy_regions(workspace, None, None)
