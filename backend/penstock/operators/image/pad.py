"""`pad`: extents brought to a common size, a multiple, or a minimum."""

from __future__ import annotations

from collections.abc import Hashable

from penstock.data_types import FLOAT64, dtype_name
from penstock.kernels.axes import resolve_axes
from penstock.kernels.windows import Region
from penstock.operators.image._windows import copy_region, copy_regions, region_copy
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.image_chain import ChainOperator, Placement
from penstock.schema.samples import Example

_MAX_DIMENSIONS = 5


@register_operator
class Pad(ChainOperator):
    """Adds elements at the end of dimensions: up to the greatest extent in the batch, to ``shape``, to a multiple of ``align``."""

    schema = Schema(
        name="Pad",
        inputs=(Input("input", doc="Data of any type but float64, of any shape."),),
        arguments=(
            Argument(
                "align",
                "int32[]",
                None,
                "Extents are rounded up to a multiple of it: one value, or one for each axis.",
                tensor=True,
                uniform=True,
                example=[8],
            ),
            Argument(
                "axes", "int32[]", None, "Indices of the dimensions that the other arguments speak of.", tensor=True
            ),
            Argument(
                "axis_names",
                "layout",
                None,
                "Letters of the dimensions that the other arguments speak of, as in the layout.",
            ),
            Argument(
                "fill_value",
                "float",
                0.0,
                "What the new elements are; integers lose its fraction, and wrap around.",
                tensor=True,
                zero_dimensional=True,
            ),
            Argument(
                "shape",
                "int32[]",
                None,
                "The least extents of the output; 0 or less: the greatest of the batch.",
                tensor=True,
                example=[30],
            ),
        ),
        batchwise=True,
        examples=(Example(), Example({"axes": [0, 1], "shape": [30, -1]}), Example({"axis_names": "W"})),
    )
    depends_on_batch = True

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("`axes` and `axis_names` cannot be given together")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype == FLOAT64:
            raise RuntimeError(f"Unsupported data type: {dtype_name(batch.dtype)}")
        if len(batch) and not 0 < batch.ndim() <= _MAX_DIMENSIONS:
            raise RuntimeError(f"Unsupported number of dimensions {batch.ndim()}")
        good = [shape for index, shape in enumerate(batch.shapes) if index not in workspace.failures]
        workspace.state = [max(extents) for extents in zip(*good)]
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = sample.shapes[0]
        layout = sample.workspace.inputs[0].layout()
        axes = resolve_axes(sample["axes"], self.args["axis_names"], layout, len(shape))
        if not axes:
            axes = list(range(len(shape)))
        extents = list(shape)
        wanted, align = self._per_axis(sample, "shape", len(axes)), self._per_axis(sample, "align", len(axes))
        for position, axis in enumerate(axes):
            least = -1 if wanted is None else wanted[position]
            extent = max(shape[axis], least if least > 0 else sample.workspace.state[axis])
            if align is not None:
                extent = -(-extent // align[position]) * align[position]
            extents[axis] = extent
        sample.plan = Region((0,) * len(shape), tuple(extents))
        return sample.plan.extents

    @staticmethod
    def _per_axis(sample: Sample, name: str, count: int) -> list[int] | None:
        if not sample.given(name):
            return None
        values = sample[name]
        if not values and name == "shape":
            return None
        if len(values) not in (1, count):
            raise RuntimeError(f'Argument "{name}" expected shape {count} but got {len(values)} values')
        if name == "align" and any(value < 1 for value in values):
            raise RuntimeError(f"Values of the `align` argument must be positive, got {values}")
        return values * count if len(values) == 1 else values

    def compute(self, sample: Sample) -> None:
        target = sample.outputs[0]
        copy_region(sample.inputs[0], sample.plan, [sample["fill_value"]], None, target)

    takes_windows = True

    def stage_key(self, sample: Sample) -> Hashable:
        return sample.plan, sample["fill_value"]

    def stage(self, sample: Sample) -> Placement:
        return region_copy(sample.plan, sample.shapes[0], [sample["fill_value"]], None)

    def compute_batch(self, workspace: Workspace) -> None:
        copy_regions(workspace, None, None)
