"""`flip`: mirrored images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.chains import StageKind, StageRecords, placements
from penstock.data_types import BOOL, FLOAT16, dtype_name, numpy_dtype
from penstock.operators.image._windows import Window
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import on_photo
from penstock.schema.image_chain import ChainOperator, Placement
from penstock.schema.outputs import Shape

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


_ARGUMENTS = {"D": "depthwise", "H": "vertical", "W": "horizontal"}
_NAMES = frozenset(_ARGUMENTS.values())


@dataclass(eq=False)
class MirroredAxes(PlanColumns[tuple[bool, ...]]):
    """Which dimensions to mirror, for many samples: bool of shape (samples, dimensions)."""

    axes: np.ndarray

    def __len__(self) -> int:
        return len(self.axes)

    def row(self, number: int) -> tuple[bool, ...]:
        return tuple(self.axes[number].tolist())


@register_operator
class Flip(ChainOperator[str, tuple[bool, ...], MirroredAxes]):
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
            Argument("depthwise", "int32", 0, "Nonzero: mirror in depth.", tensor=True),
            Argument("horizontal", "int32", 1, "Nonzero: mirror horizontally.", tensor=True),
            Argument("vertical", "int32", 0, "Nonzero: mirror vertically.", tensor=True),
        ),
        volumetric=True,
        shown=(
            on_photo(horizontal=1),
            on_photo(horizontal=0, vertical=1),
        ),
        equivalents=(
            Equivalent("torchvision.transforms.v2.functional.horizontal_flip"),
            Equivalent("PIL.ImageOps.mirror"),
            Equivalent("cv2.flip"),
        ),
    )

    described_by_kind = True
    launches = True
    shares_plans_in_chains = True
    repeats_plans = True

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if workspace.device == "cpu" and batch.dtype in (BOOL, FLOAT16):
            raise RuntimeError(f"The element type {dtype_name(batch.dtype)} is not supported")
        workspace.state = self.input_layout(workspace)
        return [OutputSpec(batch.dtype, workspace.state, batch.ndim())]

    def infer_batch(
        self, samples: Samples[str, tuple[bool, ...], MirroredAxes]
    ) -> tuple[list[list[Shape]], MirroredAxes]:
        layout = samples.state
        axes = samples.derived(_NAMES, layout, _mirrored_axes, samples, layout)
        return [samples.shape_list()], MirroredAxes(
            axes if len(axes) == len(samples) else axes.repeat(len(samples), axis=0)
        )

    def stage_records(self, workspace: Workspace[str, tuple[bool, ...], MirroredAxes]) -> StageRecords:
        batch = workspace.inputs[0]
        shapes, size = batch.shape_array(), numpy_dtype(batch.dtype).itemsize
        records = placements(0, shapes, shapes, size, workspace.plans.axes)
        return StageRecords(StageKind.PLACEMENT, records, shapes, size)

    def compute(self, sample: Sample[str, tuple[bool, ...]]) -> None:
        from penstock.kernels.cpu.mirror import mirror_axis

        source, mirrored, axis = sample.inputs[0], sample.plan, sample.workspace.state.index("W")
        if not mirrored[axis]:
            np.copyto(sample.outputs[0], source[_steps(mirrored)])
        else:
            others = (*mirrored[:axis], False, *mirrored[axis + 1 :])
            mirror_axis(source[_steps(others)], axis, sample.outputs[0])

    is_placement = True

    def stage(self, sample: Sample[str, tuple[bool, ...]]) -> Placement:
        shape = sample.shapes[0]
        return Window((0,) * len(shape), shape, shape, sample.plan)

    def compute_batch(self, workspace: Workspace[str, tuple[bool, ...]]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)

        def copy_of(mirrored: tuple[bool, ...], source: Located, target: Located) -> WindowCopy:
            return WindowCopy(source, target, mirrored=[axis for axis, turned in enumerate(mirrored) if turned])

        copy_grouped(sources, targets, [sample.plan for sample in samples], copy_of)


def _mirrored_axes(samples: Samples, layout: str) -> np.ndarray:
    """Return the dimensions to mirror: a row for each sample, or one row for all."""
    computed = not _NAMES.isdisjoint(samples.workspace.arguments)
    axes = np.zeros((len(samples) if computed else 1, len(layout)), bool)
    for letter, name in _ARGUMENTS.items():
        if letter in layout:
            axes[:, layout.index(letter)] = samples.scalars(name)
    return axes


def _steps(mirrored: Sequence[bool]) -> tuple[slice, ...]:
    return tuple(slice(None, None, -1 if turned else 1) for turned in mirrored)
