"""`flip`: mirrored images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import BOOL, FLOAT16, dtype_name
from penstock.operators.image._windows import Window
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.image_chain import ChainOperator, Placement

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


@register_operator
class Flip(ChainOperator):
    """Mirrors images horizontally, vertically or in depth."""

    schema = Schema(
        name="Flip",
        inputs=(
            Input(
                "input",
                ("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"),
                doc="Images of any type; on the CPU neither bool nor float16.",
            ),
        ),
        arguments=(
            Argument("depthwise", "int32", 0, "Not 0: mirrored in depth.", tensor=True),
            Argument("horizontal", "int32", 1, "Not 0: mirrored horizontally.", tensor=True),
            Argument("vertical", "int32", 0, "Not 0: mirrored vertically.", tensor=True),
        ),
        volumetric=True,
    )

    plans_by_shape = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if workspace.device == "cpu" and batch.dtype in (BOOL, FLOAT16):
            raise RuntimeError(f"The element type {dtype_name(batch.dtype)} is not supported")
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(batch.dtype, workspace.state, batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        mirrored = {"D": sample["depthwise"], "H": sample["vertical"], "W": sample["horizontal"]}
        step = tuple(slice(None, None, -1 if mirrored.get(letter) else 1) for letter in sample.workspace.state)
        sample.plan = step
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.mirror import mirror_axis

        source, steps, axis = sample.inputs[0], sample.plan, sample.workspace.state.index("W")
        if steps[axis].step == 1:
            np.copyto(sample.outputs[0], source[steps])
        else:
            others = (*steps[:axis], slice(None), *steps[axis + 1 :])
            mirror_axis(source[others], axis, sample.outputs[0])

    takes_windows = True

    def stage(self, sample: Sample) -> Placement:
        shape = sample.shapes[0]
        return Window((0,) * len(shape), shape, shape, tuple(step.step == -1 for step in sample.plan))

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)

        def copy_of(steps: Sequence[slice], source: Located, target: Located) -> WindowCopy:
            return WindowCopy(source, target, mirrored=[axis for axis, step in enumerate(steps) if step.step == -1])

        copy_grouped(sources, targets, [sample.plan for sample in samples], copy_of)
