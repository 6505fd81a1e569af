"""`cast`: converts the element type."""

from __future__ import annotations

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import BFLOAT16, FLOAT16, numpy_dtype
from penstock.operators.generic._casting import check_castable
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
from penstock.schema.outputs import Shape
from penstock.schema.plans import NoPlans
from penstock.schema.pointwise import PointwiseOperator


@register_operator
class Cast(PointwiseOperator[None, None, NoPlans]):
    """Converts values to another type. For integer types, values are rounded half away from zero and saturate.

    For BFLOAT16, values are first rounded to FLOAT, then to the nearest BFLOAT16, ties to even. BFLOAT16 is for outputs: operators can
    only move such data, not compute with it. As numpy lacks the type, arrays hold the bits as uint16
    (`np.asarray(output).view(ml_dtypes.bfloat16)`).

    >>> image = fn.cast(image, dtype=types.BFLOAT16)
    """

    schema = Schema(
        name="Cast",
        inputs=(Input("input", doc="Data of any type and shape."),),
        arguments=(Argument("dtype", "DALIDataType", doc="Type of the output.", required=True, with_bfloat16=True),),
        equivalents=(
            Equivalent(
                "numpy.ndarray.astype",
                "It drops fractions and wraps around; here they are rounded, and what is too large becomes the "
                "type's largest value.",
            ),
            Equivalent("torchvision.transforms.v2.ToDtype", "It can scale to the type's range, too."),
        ),
    )

    described_by_kind = True
    repeats_plans = True

    def setup(self) -> None:
        self.launches = self.args["dtype"] not in (BFLOAT16, FLOAT16)

    def is_pointwise(self) -> bool:
        return self.args["dtype"] is not BFLOAT16

    def run(self, workspace: Workspace) -> None:
        if workspace.inputs[0].dtype == self.args["dtype"]:
            workspace.outputs = [workspace.inputs[0].relabelled()]
        else:
            self.run_batch(workspace)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        check_castable(batch.dtype, self.args["dtype"])
        return [OutputSpec(self.args["dtype"], batch.layout(), batch.ndim())]

    def infer_batch(self, samples: Samples[None, None, NoPlans]) -> tuple[list[list[Shape]], NoPlans]:
        return [samples.shape_list()], NoPlans(len(samples))

    def stage_records(self, workspace: Workspace[None, None, NoPlans]) -> StageRecords | None:
        from penstock.operators.generic._cast_cpu import casting_stage

        batch = workspace.inputs[0]
        if batch.dtype is FLOAT16 or not self.launches:
            return None
        return casting_stage(batch.shape_array(), numpy_dtype(batch.dtype), numpy_dtype(self.args["dtype"]))

    def compute(self, sample: Sample) -> None:
        if self.args["dtype"] is BFLOAT16:
            from penstock.kernels.cpu.halves import round_to_bfloat16

            round_to_bfloat16(sample.inputs[0], sample.outputs[0])
            return
        self.compute_elements(sample, sample.inputs[0], sample.outputs[0])

    def compute_elements(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        from penstock.kernels.cpu.casting import cast

        if source.dtype == target.dtype:
            np.copyto(target, source)
        else:
            cast(source, target)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        if self.args["dtype"] is BFLOAT16:
            from penstock.operators.generic._bfloat16_cuda import round_batch

            round_batch(sources, targets)
            return
        plans = [None] * len(samples)
        copy_grouped(sources, targets, plans, lambda _, source, target: WindowCopy(source, target))
