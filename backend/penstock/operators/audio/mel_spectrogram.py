"""A `spectrogram` and the `mel_filter_bank` behind it, without the spectra ever being in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.schema import Sample, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator


@register_operator
class MelSpectrogram(FusedOperator):
    """Sums up the bands of a few frames at a time, while their spectra are in the first-level cache."""

    schema = Schema(
        name="_fused__MelSpectrogram",
        devices=("cpu",),
        fuses=(("Spectrogram",), ("MelFilterBank",)),
        hidden=True,
    )

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        spectra, bands = steps
        frequencies_first = bands.state == 0
        return frequencies_first and all(sample.plan is not None for sample in spectra.live)

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        from penstock.kernels.cpu import fft

        spectrum, bands = samples
        signal = np.ascontiguousarray(spectrum.inputs[0]).reshape(-1)
        starts, weights = bands.plan
        fft.band_power(signal, spectrum.plan, starts, weights, bands.outputs[0])
