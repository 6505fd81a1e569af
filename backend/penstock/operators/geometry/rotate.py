"""`rotate`: images rotated about their centre."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.geometry import about_centres, rotated_canvases, rotations_2d, rotations_3d
from penstock.operators.geometry._warping import (
    DTYPE,
    FILL_VALUE,
    INTERP_TYPE,
    OUTPUT_DTYPE,
    REFERENCE,
    SIZE,
    WarpingOperator,
    WarpPlan,
    WarpPlans,
)
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.operator import Shape


@register_operator
class Rotate(WarpingOperator):
    """Rotates images counter-clockwise about their centre; by default the canvas grows to hold the result."""

    schema = Schema(
        name="Rotate",
        inputs=(
            Input(
                "input",
                ("HWC", "FHWC", "DHWC", "FDHWC"),
                doc="Images or volumes.",
            ),
        ),
        arguments=(
            Argument(
                "angle",
                "float",
                doc="In degrees, counter-clockwise.",
                required=True,
                tensor=True,
                per_frame=True,
                example=30.0,
            ),
            Argument(
                "axis",
                "float[]",
                None,
                "For volumes: the direction (x, y, z) of the axis of rotation.",
                tensor=True,
                matrix=True,
                per_frame=True,
            ),
            DTYPE,
            FILL_VALUE,
            INTERP_TYPE,
            Argument("keep_size", "bool", False, "Keep the input's size."),
            OUTPUT_DTYPE,
            REFERENCE,
            SIZE,
        ),
        sequences=True,
        volumetric=True,
        examples=(
            Example(),
            Example({"axis": [0.0, 0.6, 0.8]}, layout="DHWC"),
            Example({"axis": [0.0, 0.6, 0.8]}, layout="FDHWC"),
        ),
        shown=(
            on_photo(angle=30.0, fill_value=0.0),
            on_photo("The size kept, the border extended", angle=30.0, keep_size=True),
        ),
        equivalents=(
            Equivalent(
                "cv2.warpAffine",
                'Equal with `reference="opencv"`, with the matrix of `cv2.getRotationMatrix2D(((w - 1) / 2, (h - 1) / 2), angle, 1)`, '
                "to whose last column half the growth of the canvas is added.",
            ),
            Equivalent(
                "torchvision.transforms.v2.functional.rotate",
                "It fills what lies outside with zeros; a canvas that grows may differ by a pixel, and values "
                "inside by 1.",
            ),
            Equivalent(
                "PIL.Image.Image.rotate",
                "It fills what lies outside with zeros; a canvas that grows may differ by a pixel, and values "
                "inside by 1.",
            ),
        ),
    )

    described_by_kind = True
    repeats_plans = True

    def setup(self) -> None:
        super().setup()
        self.maps_backwards = not self.follows_opencv

    def plan_warps(self, samples: Samples[None, WarpPlan, WarpPlans], extents: np.ndarray) -> WarpPlans:
        sizes_in = np.ascontiguousarray(extents[:, ::-1])
        rotations = self._rotations(samples, extents.shape[1])
        wanted = self.wanted_extents(samples, extents.shape[1])
        if wanted is not None:
            sizes_out = np.ascontiguousarray(np.broadcast_to(wanted[:, ::-1], extents.shape))
        elif self.args["keep_size"]:
            sizes_out = sizes_in
        else:
            _, sizes_out = rotated_canvases(sizes_in, rotations)
        return self._plans(samples, rotations, sizes_in, sizes_out)

    def _plans(self, samples: Samples, rotations: np.ndarray, sizes_in: np.ndarray, sizes_out: np.ndarray) -> WarpPlans:
        if not self.follows_opencv:
            return WarpPlans(about_centres(rotations, sizes_in, sizes_out), sizes_out[:, ::-1])
        from penstock.kernels.cpu.opencv import rotation

        angles = np.broadcast_to(samples.scalars("angle").astype(np.float32), len(sizes_in))
        matrices = [rotation(*each) for each in zip(sizes_in.tolist(), sizes_out.tolist(), angles.tolist())]
        return WarpPlans(np.stack(matrices), sizes_out[:, ::-1])

    def align_frames(
        self, workspace: Workspace[None, WarpPlan, WarpPlans], shapes: list[list[Shape]], lengths: Sequence[int]
    ) -> list[list[Shape]]:
        """Give all frames of a sequence a canvas of the same size, if the sizes of canvases follow from angles."""
        if self.args["keep_size"] or self.given("size"):
            return shapes
        start = 0
        for length in lengths:
            frames = [sample for sample in workspace.samples[start : start + length] if sample is not None]
            start += length
            if len({sample.plan.extents for sample in frames}) > 1:
                self._share_canvas(Samples(self, workspace, [sample.index for sample in frames]), frames)
        if len(workspace.live_indices) == workspace.batch_size:
            workspace.plans = WarpPlans.of([sample.plan for sample in workspace.live])
        extents = [None if sample is None else sample.plan.extents for sample in workspace.samples]
        return [
            [shape if e is None else (*e, shape[-1]) for e, shape in zip(extents, output_shapes)]
            for output_shapes in shapes
        ]

    def _share_canvas(
        self, samples: Samples[None, WarpPlan, WarpPlans], frames: Sequence[Sample[None, WarpPlan]]
    ) -> None:
        """Give all frames the largest extents that any frame needs, made even or odd as the extents of most frames are."""
        sizes_in = np.ascontiguousarray(samples.shapes()[:, -2::-1])
        rotations = self._rotations(samples, sizes_in.shape[1])
        enclosing, canvases = rotated_canvases(sizes_in, rotations)
        needed, odd = enclosing.max(axis=0), (canvases % 2).sum(axis=0)
        size_out = needed + (needed % 2 != (2 * odd > len(frames)))
        sizes_out = np.tile(size_out, (len(frames), 1))
        plans = self._plans(samples, rotations, sizes_in, sizes_out)
        for sample, plan in zip(frames, plans):
            sample.plan = plan

    def _rotations(self, samples: Samples, rank: int) -> np.ndarray:
        angles = samples.scalars("angle")
        return rotations_2d(angles, len(samples)) if rank == 2 else rotations_3d(angles, _axes(samples), len(samples))


def _axes(samples: Samples) -> np.ndarray:
    """Return the axes of rotation in rows: one for each sample, or one for all."""
    if not samples.given("axis"):
        raise RuntimeError("Argument `axis` is required to rotate volumes")
    axes = samples.values("axis")
    for axis in axes:
        if len(axis) != 3 or not axis.any():
            raise RuntimeError(f"`axis` must be a direction of three numbers that are not all 0, got {axis.tolist()}")
    return axes
