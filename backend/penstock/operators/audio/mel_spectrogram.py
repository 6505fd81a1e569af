"""`spectrogram` and `mel_filter_bank` fused so that spectra stay in the cache, optionally with `to_decibels` and `normalize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from penstock.data_types import FLOAT
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.schema import Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator
from penstock.schema.image_chain import NotFusable

if TYPE_CHECKING:
    from penstock.kernels.cpu.decibels import Logarithm
    from penstock.kernels.cpu.fft import Transform
    from penstock.kernels.cpu.moments import Standard

_BANDS = (("Spectrogram",), ("MelFilterBank",))
_DECIBELS = (*_BANDS, ("ToDecibels",))


class _Decibels(Protocol):
    """The attributes of `to_decibels` that are used here."""

    @property
    def logarithm(self) -> Logarithm:
        """The logarithm's parameters for kernels."""


class _Normalize(Protocol):
    """The methods of `normalize` that are used here."""

    def standard_of_rows(self, sample: Sample, data: np.ndarray) -> Standard | None:
        """Return the parameters for normalizing each row of a matrix separately; None if rows are not normalized separately."""

    def compute_array(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        """Fill ``target`` with the normalized ``source``."""


@register_operator
class MelSpectrogram(FusedOperator):
    """Fuses `spectrogram` and `mel_filter_bank`: sums the bands of a few frames at a time, while the spectra are in the L1 cache."""

    schema = Schema(
        name="_fused__MelSpectrogram",
        devices=("cpu",),
        fuses=_BANDS,
        hidden=True,
    )

    def check_batch(self, steps: Sequence[Workspace]) -> None:
        spectra, bands = steps[:2]
        if bands.state != 0 or any(sample.plan is None for sample in spectra.live):
            raise NotFusable("spectra of another layout or power")
        if any(sample.plan.gains is not None for sample in bands.live):
            raise NotFusable("spectra of one frame, whose sums are normalized")

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        from penstock.kernels.cpu import fft

        fft.band_power(*_band_inputs(*samples), samples[-1].outputs[0])


@register_operator
class MelDecibels(MelSpectrogram):
    """Fuses these two and `to_decibels`: converts each sample's bands to decibels while they are in the L2 cache."""

    schema = Schema(name="_fused__MelDecibels", devices=("cpu",), fuses=_DECIBELS, hidden=True)

    def setup(self) -> None:
        self._buffers = ThreadBuffers()

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        self.compute_decibels(samples, None, samples[-1].outputs[0])

    def compute_decibels(self, samples: Sequence[Sample], standard: Standard | None, out: np.ndarray) -> None:
        """Fill ``out`` with one sample's bands in decibels; normalize each row unless ``standard`` is None."""
        from penstock.operators.audio._mel_decibels_cpu import mel_decibels, tiles_size

        decibels = cast(_Decibels, self.operators[2])
        tiles = self._buffers.array((tiles_size(*out.shape),), out.dtype)
        mel_decibels(*_band_inputs(*samples[:2]), decibels.logarithm, standard, tiles, out)


@register_operator
class NormalizedMelDecibels(MelDecibels):
    """Fuses these three and a `normalize` that computes its parameters for each sample separately."""

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

    def setup(self) -> None:
        super().setup()
        self._levels = ThreadBuffers()

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        normalize, sample = cast(_Normalize, self.operators[3]), samples[-1]
        out = sample.outputs[0]
        if (standard := normalize.standard_of_rows(sample, out)) is not None:
            self.compute_decibels(samples, standard, out)
            return
        levels = self._levels.array(out.shape, out.dtype)
        self.compute_decibels(samples, None, levels)
        normalize.compute_array(sample, levels, out)


def _band_inputs(spectrum: Sample, bands: Sample) -> tuple[np.ndarray, Transform, np.ndarray, np.ndarray]:
    """Return the signal, flat, its transform's parameters, and the starts and weights of the bands."""
    return np.ascontiguousarray(spectrum.inputs[0]).reshape(-1), spectrum.plan, bands.plan.starts, bands.plan.weights
