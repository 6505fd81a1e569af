"""`to_decibels`: converts magnitudes or powers to decibels."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock.operators.audio._axes import spectral_spec
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays, spectrograms
from penstock.schema.fused import ArrayOperator

if TYPE_CHECKING:
    from penstock.kernels.cpu.decibels import Logarithm


@register_operator
class ToDecibels(ArrayOperator):
    """Computes ``multiplier * log10(max(ratio, x / reference))``; ``ratio`` corresponds to `cutoff_db`.

    >>> decibels = fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    """

    schema = Schema(
        name="ToDecibels",
        inputs=(
            Input(
                "input",
                doc="float32 data of any shape.",
                example=random_arrays((129, 10), (129, 7), (129, 12), low=0, high=9, layout="ft"),
            ),
        ),
        arguments=(
            Argument("cutoff_db", "float", -200.0, "The lowest value of the output, in dB."),
            Argument("multiplier", "float", 10.0, "Factor of the logarithm: 10 for powers, 20 for magnitudes."),
            Argument("reference", "float", 0.0, "The value at 0 dB; by default the largest of the sample."),
        ),
        shown=(Example({"cutoff_db": -80.0}, (spectrograms,)),),
    )

    def setup(self) -> None:
        if self.given("reference") and self.args["reference"] == 0:
            raise RuntimeError("`reference` argument can't be zero")
        with np.errstate(all="ignore"):
            ratio = np.float32(10.0 ** (np.float64(self.args["cutoff_db"]) / self.args["multiplier"]))
        # If the ratio underflows to 0, use the smallest positive number: the logarithm of 0 is undefined.
        self._smallest = ratio or np.nextafter(np.float32(0), np.float32(1))
        self._factor = np.float32(self.args["multiplier"] / math.log(10))

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [spectral_spec(workspace)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return sample.shapes[0]

    def compute_array(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        if not source.size:
            return
        from penstock.kernels.cpu import decibels

        decibels.to_decibels(source, self.logarithm, target)

    @cached_property
    def logarithm(self) -> Logarithm:
        """The logarithm's parameters for kernels."""
        from penstock.kernels.cpu.decibels import Logarithm

        # Without an argument, the reference is the largest positive element. NaN yields the cutoff.
        has_reference = self.given("reference")
        reference = np.float32(self.args["reference"] if has_reference else 1)
        return Logarithm(not has_reference, reference, self._smallest, self._factor)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.audio._decibels_cuda import to_decibels

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        reference = np.float32(self.args["reference"]) if self.given("reference") else None
        to_decibels(list(zip(sources, targets)), reference, self._smallest, self._factor)
