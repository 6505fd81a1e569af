"""`transpose`: permutes dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import numpy_dtype
from penstock.kernels.windows import Region
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
from penstock.schema.example_data import on_photo
from penstock.schema.image_chain import ChainOperator, Pixels, Store
from penstock.schema.operator import Shape
from penstock.schema.plans import NoPlans


@register_operator
class Transpose(ChainOperator[None, None, NoPlans]):
    """Permutes the dimensions of each sample; reverses them by default."""

    schema = Schema(
        name="Transpose",
        moves_elements=True,
        inputs=(Input("input", doc="Data of any type and shape."),),
        arguments=(
            Argument("output_layout", "layout", None, "Layout of the output.", example="XYZ"),
            Argument(
                "perm",
                "int32[]",
                None,
                "For each output dimension, the input dimension; by default reversed.",
                example=[2, 0, 1],
            ),
            Argument("transpose_layout", "bool", True, "Permute the layout too."),
        ),
        shown=(on_photo(perm=[1, 0, 2]),),
        equivalents=(
            Equivalent("numpy.transpose", "The layout's letters move as well here."),
            Equivalent("PIL.Image.Image.transpose", "`Transpose.TRANSPOSE` swaps rows and columns."),
        ),
    )

    described_by_kind = True
    launches = True
    repeats_plans = True

    def setup(self) -> None:
        perm = self.args["perm"]
        if perm is not None and sorted(perm) != list(range(len(perm))):
            raise RuntimeError(f"Invalid permutation: sorted `perm` is not equal to [0, ..., n-1], got {perm}")
        if self.given("output_layout") and not self.args["output_layout"]:
            raise RuntimeError("Providing an empty output layout is not supported: leave `output_layout` out")

    def permutation(self, ndim: int) -> list[int]:
        """Return the number of the input dimension for each output dimension of data with ``ndim`` dimensions."""
        perm = self.args["perm"]
        if perm is None:
            return list(range(ndim))[::-1]
        if len(perm) != ndim:
            kind = RuntimeError if perm else ValueError
            raise kind(f"Input has different dimensionality ({ndim}) than the length of the permutation ({len(perm)})")
        return perm

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        perm = self.permutation(batch.ndim())
        layout = self.args["output_layout"] or ""
        if layout and len(layout) != batch.ndim():
            raise RuntimeError(f"The output layout '{layout}' does not name the {batch.ndim()} dimensions of the data")
        if not layout and batch.layout():
            moved = self.args["transpose_layout"]
            layout = "".join(batch.layout()[axis] for axis in perm) if moved else batch.layout()
        return [OutputSpec(batch.dtype, layout, batch.ndim())]

    def infer_batch(self, samples: Samples[None, None, NoPlans]) -> tuple[np.ndarray, NoPlans]:
        shapes = samples.shapes()
        return shapes.take(self.permutation(shapes.shape[1]), axis=1), NoPlans(len(samples))

    def stage_records(self, workspace: Workspace[None, None, NoPlans]) -> StageRecords | None:
        from penstock.operators.generic._transpose_cpu import MIN_RANK, transposing_stage

        batch = workspace.inputs[0]
        if batch.ndim() < MIN_RANK:
            return None
        permutation = self.permutation(batch.ndim())
        return transposing_stage(batch.shape_array(), permutation, numpy_dtype(batch.dtype).itemsize)

    def compute(self, sample: Sample) -> None:
        from penstock.operators.generic._transpose_cpu import transpose

        data = sample.inputs[0]
        transpose(data, self.permutation(data.ndim), sample.outputs[0])

    def stage(self, sample: Sample) -> Store:
        permutation = tuple(self.permutation(len(sample.shapes[0])))
        return Transposed(permutation, tuple(sample.shapes[0][axis] for axis in permutation))

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        permutation = self.permutation(workspace.inputs[0].ndim())
        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        plans = [None] * len(samples)
        copy_grouped(sources, targets, plans, lambda _, source, target: WindowCopy(source, target, permutation))


@dataclass(frozen=True)
class Transposed(Store):
    """The last step of a chain of one sample: stores its result with permuted dimensions."""

    permutation: tuple[int, ...]
    shape: Shape

    writes_views = True

    def reads(self, window: Region) -> Region:
        places = [self.permutation.index(axis) for axis in range(len(self.permutation))]
        return Region(tuple(window.anchor[p] for p in places), tuple(window.extents[p] for p in places))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.operators.generic._transpose_cpu import transpose

        transpose(source.part(self.reads(window)), self.permutation, target)
