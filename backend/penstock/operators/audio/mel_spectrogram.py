"""A `spectrogram` and the `mel_filter_bank` behind it, without the spectra ever being in memory; and what often follows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.schema import Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.fused import ArrayOperator, FusedOperator
from penstock.types import FLOAT

_BANDS = (("Spectrogram",), ("MelFilterBank",))
_DECIBELS = (*_BANDS, ("ToDecibels",))


@register_operator
class MelSpectrogram(FusedOperator):
    """Sums up the bands of a few frames at a time, while their spectra are in the first-level cache."""

    schema = Schema(
        name="_fused__MelSpectrogram",
        devices=("cpu",),
        fuses=_BANDS,
        hidden=True,
    )

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        spectra, bands = steps[:2]
        frequencies_first = bands.state == 0
        return frequencies_first and all(sample.plan is not None for sample in spectra.live)

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        spectrum, bands = samples
        self.sum_bands(spectrum, bands, bands.outputs[0])

    def sum_bands(self, spectrum: Sample, bands: Sample, out: np.ndarray) -> None:
        """The first two steps of one sample."""
        from penstock.kernels.cpu import fft

        signal = np.ascontiguousarray(spectrum.inputs[0]).reshape(-1)
        starts, weights = bands.plan
        fft.band_power(signal, spectrum.plan, starts, weights, out)


@register_operator
class MelDecibels(MelSpectrogram):
    """Takes each sample's bands through the steps that follow while they are in the second-level cache."""

    schema = Schema(name="_fused__MelDecibels", devices=("cpu",), fuses=_DECIBELS, hidden=True)

    def setup(self) -> None:
        self._buffers = ThreadBuffers()

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        spectrum, bands, *rest = samples
        out = samples[-1].outputs[0]
        # The steps work from one of these to the other, and the last one into the output.
        source, target = out, self._buffers.array(out.shape, out.dtype)
        if len(rest) % 2:
            source, target = target, source
        self.sum_bands(spectrum, bands, source)
        for position, sample in enumerate(rest, 2):
            operator = self.operators[position]
            assert isinstance(operator, ArrayOperator)
            try:
                operator.compute_array(sample, source, target)
            except Exception as error:
                raise self.error_of(position, error, sample.index) from error
            source, target = target, source


@register_operator
class NormalizedMelDecibels(MelDecibels):
    """Likewise, with a `normalize` of each sample on its own."""

    schema = Schema(
        name="_fused__NormalizedMelDecibels",
        devices=("cpu",),
        fuses=(*_DECIBELS, ("Normalize",)),
        hidden=True,
    )

    @classmethod
    def takes(cls, operators: Sequence[Operator]) -> bool:
        normalize = operators[-1].args
        return normalize["dtype"] == FLOAT and not normalize["batch"]
