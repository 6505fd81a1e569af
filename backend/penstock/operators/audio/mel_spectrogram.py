"""A `spectrogram` and the `mel_filter_bank` behind it, without the spectra ever being in memory."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operators.audio.spectrogram import Spectrogram, signal_of
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
        frequencies_first = steps[1].state == 0
        return frequencies_first and self._spectrogram.transform is not None

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        from penstock.kernels.cpu import fft

        first, second = samples
        starts, weights = second.plan
        assert self._spectrogram.transform is not None
        fft.band_power(signal_of(first), self._spectrogram.transform, starts, weights, second.outputs[0])

    @property
    def _spectrogram(self) -> Spectrogram:
        spectrogram = self.operators[0]
        assert isinstance(spectrogram, Spectrogram)
        return spectrogram
