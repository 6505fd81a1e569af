"""Base class of dilation and erosion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT16, UINT8, UINT16, dtype_name
from penstock.kernels.borders import check_border
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace

INPUTS = (Input("input", ("HW", "HWC", "FHWC", "CHW", "FCHW"), doc="Images of uint8, int16, uint16 or float."),)
ARGUMENTS = (
    Argument(
        "anchor",
        "int32[]",
        [-1, -1],
        "The mask's element (x, y) at the output's position; -1: the centre.",
        tensor=True,
        per_frame=True,
    ),
    Argument(
        "border_mode",
        "string",
        "constant",
        "Beyond the border: `constant` (a value that does not change the result), `replicate` (aa|abc), "
        "`reflect` (ba|abc), `reflect_101` (cb|abc) or `wrap` (bc|abc).",
        choices=("constant", "replicate", "reflect", "reflect_101", "wrap"),
    ),
    Argument("iterations", "int32", 1, "How many times the operation is repeated."),
    Argument(
        "mask_size", "int32[]", [3, 3], "Width and height of the mask.", tensor=True, per_frame=True, example=[4, 7]
    ),
)


@dataclass(frozen=True)
class MaskPlan:
    """A rectangular mask.

    Attributes:
        width, height: extents of a single mask that is equivalent to all iterations.
        x, y: the element of the mask that is aligned with the output pixel.
    """

    width: int
    height: int
    x: int
    y: int


class MorphologyOperator(Operator[str, MaskPlan]):
    """Base class of operators that set each pixel to the maximum or the minimum under a mask.

    Attributes:
        function: name of OpenCV's function, for the CPU.
        extreme: ``Greatest`` or ``Least``, for the GPU.
    """

    function: str
    extreme: str

    def setup(self) -> None:
        check_border(self.args["border_mode"])
        if self.args["iterations"] < 1:
            raise RuntimeError(f"`iterations` must be positive, got {self.args['iterations']}")

    def describe(self, workspace: Workspace[str, MaskPlan]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, UINT16, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, workspace.state, batch.ndim())]

    def infer(self, sample: Sample[str, MaskPlan]) -> tuple[int, ...]:
        sizes, anchor = _pair(sample, "mask_size"), _pair(sample, "anchor")
        for size, place in zip(sizes, anchor):
            if size < 1:
                raise RuntimeError(f"`mask_size` must be positive, got {sizes}")
            if not -1 <= place < size:
                raise RuntimeError(f"The anchor {anchor} does not lie within the mask of size {sizes}")
        x, y = (size // 2 if place == -1 else place for size, place in zip(sizes, anchor))
        # Iterating with a rectangle equals one pass with a larger rectangle.
        times = self.args["iterations"]
        width, height = (1 + times * (size - 1) for size in sizes)
        sample.plan = MaskPlan(width, height, times * x, times * y)
        return sample.shapes[0]

    def compute(self, sample: Sample[str, MaskPlan]) -> None:
        from penstock.kernels.cpu.opencv import border, images, keep, opencv

        cv2, layout, plan = opencv(), sample.workspace.state, sample.plan
        if not sample.outputs[0].size:
            return
        operation = getattr(cv2, self.function)
        mask = np.ones((plan.height, plan.width), np.uint8)
        for image, out in zip(images(sample.inputs[0], layout), images(sample.outputs[0], layout)):
            if self.args["border_mode"] == "wrap":
                # OpenCV's morphology doesn't support this border.
                reach = [(plan.y, plan.height - 1 - plan.y), (plan.x, plan.width - 1 - plan.x)]
                padded = np.pad(image, reach + [(0, 0)] * (image.ndim - 2), "wrap")
                full = operation(padded, mask, anchor=(0, 0))
                out[...] = full[: out.shape[0], : out.shape[1]].reshape(out.shape)
                continue
            kind = border(self.args["border_mode"])
            image = np.ascontiguousarray(image)
            keep(operation(image, mask, dst=out, anchor=(plan.x, plan.y), borderType=kind), out)

    def compute_batch(self, workspace: Workspace[str, MaskPlan]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._morphology_cuda import Morphology, take_extremes

        samples, axis = workspace.live, workspace.state.index("H")
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = [
            Morphology(source, target, axis, (s.plan.height, s.plan.width), (s.plan.y, s.plan.x))
            for s, source, target in zip(samples, sources, targets)
        ]
        take_extremes(self.extreme, jobs, self.args["border_mode"])


def _pair(sample: Sample[str, MaskPlan], name: str) -> list[int]:
    values = sample[name]
    if len(values) not in (1, 2):
        raise RuntimeError(f"`{name}` must have 2 entries (x, y), got {len(values)}")
    return values * 2 if len(values) == 1 else values
