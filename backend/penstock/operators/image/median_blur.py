"""`experimental.median_blur`: smoothing that keeps edges."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, UINT8, UINT16, dtype_name
from penstock.schema import (
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
from penstock.schema.example_data import on_photo


@register_operator
class MedianBlur(Operator[str, tuple[int, int]]):
    """Sets each value to the median of a window around it; the border repeats the edge."""

    keeps_frame_shape = True
    schema = Schema(
        name="experimental__MedianBlur",
        inputs=(
            Input(
                "input",
                ("HW", "HWC", "FHWC", "CHW", "FCHW"),
                doc="Images of uint8, int16, uint16, int32 or float.",
            ),
        ),
        arguments=(
            Argument(
                "window_size", "int32[]", [3, 3], "Width and height of the window, odd.", tensor=True, example=[5, 3]
            ),
        ),
        sequences=True,
        shown=(on_photo(window_size=[7, 7]),),
        equivalents=(
            Equivalent("cv2.medianBlur", "Square windows only."),
            Equivalent("PIL.ImageFilter.MedianFilter", "Square windows only."),
        ),
    )

    def describe(self, workspace: Workspace[str, tuple[int, int]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, UINT16, INT32, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, workspace.state, batch.ndim())]

    def infer(self, sample: Sample[str, tuple[int, int]]) -> tuple[int, ...]:
        window = sample["window_size"]
        if len(window) not in (1, 2):
            raise RuntimeError(f"`window_size` must have 2 entries (width, height), got {len(window)}")
        for size in window:
            if size < 1 or not size % 2:
                raise RuntimeError(f"`window_size` must be odd and positive, got {window}")
        sample.plan = window[0], window[-1]
        return sample.shapes[0]

    def compute(self, sample: Sample[str, tuple[int, int]]) -> None:
        from penstock.operators.image._median_cpu import median_filter

        source, target = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        if not target.size:
            return
        layout = sample.workspace.state
        outer = source.shape[0] if layout.startswith("C") else 1
        height, width = (source.shape[layout.index(letter)] for letter in "HW")
        shape = (outer, height, width, -1)
        window_width, window_height = sample.plan
        median_filter(source.reshape(shape), window_width, window_height, target.reshape(shape))

    def compute_batch(self, workspace: Workspace[str, tuple[int, int]]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._median_cuda import median_filter

        samples, axis = workspace.live, workspace.state.index("H")
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        windows = [(height, width) for width, height in (sample.plan for sample in samples)]
        median_filter([(source, axis, window, target) for source, window, target in zip(sources, windows, targets)])
