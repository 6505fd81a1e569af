"""`preemphasis_filter`: boosts high frequencies."""

from __future__ import annotations

import numpy as np

from penstock.data_types import BOOL, FLOAT, FLOAT16, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, signals, sounds

_BORDERS = ("zero", "clamp", "reflect")


@register_operator
class PreemphasisFilter(Operator):
    """Computes ``y[t] = x[t] - coefficient * x[t - 1]``.

    `border` chooses the value before the first element: zero (`zero`), the first element (`clamp`), or the second (`reflect`).

    >>> sharper = fn.preemphasis_filter(audio, preemph_coeff=0.97)
    """

    schema = Schema(
        name="PreemphasisFilter",
        inputs=(
            Input(
                "input", doc="Signals of any shape, which are flattened; integers or floating point.", example=signals
            ),
        ),
        arguments=(
            Argument(
                "border",
                "string",
                "clamp",
                "The element before the signal: `zero`, `clamp` or `reflect`.",
                choices=("clamp", "zero", "reflect"),
            ),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output."),
            Argument("preemph_coeff", "float", 0.97, "The coefficient.", tensor=True),
        ),
        shown=(Example({}, (sounds,)),),
    )

    def setup(self) -> None:
        if self.args["border"] not in _BORDERS:
            raise RuntimeError(
                f'`border` mode "{self.args["border"]}" is not supported. It can be one of {", ".join(_BORDERS)}'
            )
        if self.args["dtype"] in (FLOAT16, BOOL):
            raise RuntimeError(f"Unsupported output type: {dtype_name(self.args['dtype'])}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype in (FLOAT16, BOOL):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        return [OutputSpec(self.args["dtype"], batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu import audio
        from penstock.kernels.cpu.casting import cast

        signal, out = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0].reshape(-1)
        if not signal.size:
            return
        coefficient = np.float32(sample["preemph_coeff"])
        if not coefficient:
            # Convert without floating-point arithmetic, which would round large integers.
            cast(signal, out)
            return
        working = np.float64 if signal.dtype == np.float64 else np.float32
        signal = signal.astype(working, copy=False)
        filtered = out if out.dtype == working else np.empty(out.size, working)
        audio.preemphasis(signal, working(coefficient), self._before(signal), filtered)
        if filtered is not out:
            cast(filtered, out)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.audio._preemphasis_cuda import preemphasize

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        coefficients = [sample["preemph_coeff"] for sample in samples]
        preemphasize(list(zip(sources, coefficients, targets)), self.args["border"])

    def _before(self, signal: np.ndarray) -> np.floating:
        if self.args["border"] == "clamp":
            return signal[0]
        if self.args["border"] == "reflect" and signal.size > 1:
            return signal[1]
        return signal.dtype.type(0)
