"""`power_spectrum`: the power spectrum of a signal."""

from __future__ import annotations

import numpy as np

from penstock.operators.audio._axes import spectral_spec
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
from penstock.schema.example_data import signals
from penstock.schema.libraries import SCIPY

_MAX_DIMENSIONS = 3
_MIN_TRANSFORM = 3


@register_operator
class PowerSpectrum(Operator[None, int]):
    """Squared magnitudes of the Fourier transform along one axis.

    >>> spectrum = fn.power_spectrum(signals)
    """

    schema = Schema(
        name="PowerSpectrum",
        devices=("cpu",),
        needs=(SCIPY,),
        inputs=(Input("input", doc="Signals: float32, of any number of dimensions.", example=signals),),
        arguments=(
            Argument("axis", "int32", -1, "The axis of time; by default the last."),
            Argument("nfft", "int32", None, "Size of the transform; by default the extent of the axis.", example=256),
            Argument("power", "int32", 2, "2: power; 1: magnitude."),
        ),
        equivalents=(Equivalent("numpy.fft.rfft", "The squares of its magnitudes."),),
    )

    def setup(self) -> None:
        if self.args["power"] not in (1, 2):
            raise RuntimeError(
                f"Power argument should be either `2` (power) or `1` (magnitude). Received: {self.args['power']}"
            )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        spec = spectral_spec(workspace)
        if spec.ndim is not None and spec.ndim > _MAX_DIMENSIONS:
            raise RuntimeError(f"Unsupported number of dimensions {spec.ndim}")
        return [spec]

    def infer(self, sample: Sample[None, int]) -> tuple[int, ...]:
        # All negative axes mean the last one.
        shape, axis = list(sample.shapes[0]), max(self.args["axis"], -1)
        if axis >= len(shape):
            raise RuntimeError(f"Transform axis {axis} is out of bounds [0, {len(shape)})")
        # Without a positive `nfft`, the transform is as long as the axis.
        sample.plan = self.args["nfft"] if (self.args["nfft"] or 0) > 0 else shape[axis]
        if sample.plan < _MIN_TRANSFORM:
            raise RuntimeError(
                f"Could not initialize a Fourier transform of {sample.plan}: {_MIN_TRANSFORM} elements are needed at least"
            )
        shape[axis] = sample.plan // 2 + 1
        return tuple(shape)

    def compute(self, sample: Sample[None, int]) -> None:
        from scipy import fft

        out = sample.outputs[0]
        spectrum = fft.rfft(sample.inputs[0], n=sample.plan, axis=max(self.args["axis"], -1))
        np.abs(spectrum, out=out)
        if self.args["power"] == 2:
            np.square(out, out=out)
