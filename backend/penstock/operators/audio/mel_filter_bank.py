"""`mel_filter_bank`: a spectrogram in mel bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penstock.kernels import c_math
from penstock.operators.audio._axes import (
    KnownSums,
    SumPlans,
    WeightedSums,
    combine_along,
    combine_batch,
    spectral_spec,
)
from penstock.operators.audio._mel_bands import band_weights
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays, spectrograms


class _Scale(NamedTuple):
    """Conversions between Hz and a mel scale, in single precision."""

    to_mel: Callable[[np.float32], np.float32]
    to_hertz: Callable[[np.ndarray], np.ndarray]


@register_operator
class MelFilterBank(Operator[int, WeightedSums, SumPlans]):
    """Sums the power in triangular bands, evenly spaced on the mel scale.

    The frequency axis is `f` of the layout; without a layout, the last but one.

    >>> mel = fn.mel_filter_bank(fn.spectrogram(audio), sample_rate=16000.0, nfilter=80)
    """

    schema = Schema(
        name="MelFilterBank",
        inputs=(
            Input(
                "input",
                doc="Spectrograms: float32; frequencies from 0 to half the sample rate.",
                example=random_arrays((129, 10), (129, 7), (129, 12), low=0, high=9, layout="ft"),
            ),
        ),
        arguments=(
            Argument("freq_high", "float", 0.0, "Highest frequency, in Hz; 0: half the sample rate.", example=9000.0),
            Argument("freq_low", "float", 0.0, "Lowest frequency, in Hz."),
            Argument(
                "mel_formula",
                "string",
                "slaney",
                "The mel scale: `slaney` (linear below 1 kHz) or `htk`.",
                choices=("slaney", "htk"),
            ),
            Argument("nfilter", "int32", 128, "Number of bands.", example=20),
            Argument("normalize", "bool", True, "Divide each band's weights by half its width."),
            Argument(
                "reference",
                "string",
                "dali",
                "The library whose bands are used: `dali` (edges in single precision) or `librosa` (double precision; also Whisper's).",
                choices=("dali", "librosa"),
            ),
            Argument("sample_rate", "float", 44100.0, "Sample rate of the signal, in Hz."),
        ),
        shown=(Example({"sample_rate": 16000.0, "nfilter": 64}, (spectrograms,)),),
    )

    def setup(self) -> None:
        self._rate, self._low = self.args["sample_rate"], self.args["freq_low"]
        self._high = self.args["freq_high"] if self.args["freq_high"] > 0 else self._rate / 2
        exact = self.args["reference"] != "dali"
        self._filters = KnownSums(self._exact_filters if exact else self._make_filters)
        if self.args["nfilter"] <= 0:
            raise RuntimeError(f"The number of filters should be > 0, got `nfilter` {self.args['nfilter']}")
        if self._rate <= 0:
            raise RuntimeError(f"The sample rate should be > 0, got {self._rate:g}")
        if self._low < 0 or self._low > self._rate / 2:
            raise RuntimeError(f"freq_low should be >= 0 and at most sample_rate/2, got {self._low:g}")
        if not self._low < self._high <= self._rate:
            raise RuntimeError(f"freq_high should be within the range (freq_low, sample_rate/2], got {self._high:g}")
        if self.args["mel_formula"] not in _SCALES:
            raise RuntimeError(
                f'Unsupported mel_formula value "{self.args["mel_formula"]}". Supported values are: "slaney", "htk"'
            )
        if self.args["reference"] not in ("dali", "librosa"):
            raise RuntimeError(f'`reference` must be "dali" or "librosa". Got: "{self.args["reference"]}"')

    def describe(self, workspace: Workspace[int, WeightedSums, SumPlans]) -> list[OutputSpec]:
        spec = spectral_spec(workspace)
        workspace.state = spec.layout.find("f") if spec.layout else max((spec.ndim or 0) - 2, 0)
        if workspace.state < 0:
            raise RuntimeError(f"'f' axis not present in the layout. Got: `{spec.layout}`")
        return [spec]

    def infer_batch(self, samples: Samples[int, WeightedSums, SumPlans]) -> tuple[np.ndarray, SumPlans]:
        shapes, axis = samples.shapes(), samples.state
        if not shapes.shape[1]:
            raise RuntimeError("A spectrogram must have at least one dimension")
        is_last_axis = shapes[:, axis + 1 :].prod(axis=1) == 1
        plans = self._filters.plans(np.stack((shapes[:, axis], is_last_axis), axis=1))
        shapes[:, axis] = self.args["nfilter"]
        return shapes, plans

    def compute(self, sample: Sample[int, WeightedSums, SumPlans]) -> None:
        combine_along(sample.workspace.state, sample.inputs[0], sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[int, WeightedSums, SumPlans]) -> None:
        combine_batch(workspace.state, workspace)

    def _exact_filters(self, bins: int, _last_axis: int) -> WeightedSums:
        """Return triangular filters computed in double precision."""
        weights = band_weights(
            bins,
            self.args["nfilter"],
            self._low,
            self._high,
            self._rate,
            formula=self.args["mel_formula"],
            area=self.args["normalize"],
            in_mel=False,
        )
        return _banded(weights.T.astype(np.float32))

    def _make_filters(self, bins: int, last_axis: int) -> WeightedSums:
        """Return triangular filters whose edges are computed in single precision, as DALI computes them.

        Args:
            bins: the number of frequencies, from 0 to half the sample rate.
            last_axis: nonzero if all axes after the frequencies have one element.
        """
        count = self.args["nfilter"]
        low, high = np.float32(self._low), np.float32(self._high)
        step = np.float64(np.float32(self._rate)) / max(2 * (bins - 1), 1)
        edges, last_edge = _band_edges(_SCALES[self.args["mel_formula"]], low, high, count)
        first, stop = (min(math.ceil(edge * (1 / step)), bins) for edge in (low, high))
        frequencies = np.arange(bins) * step
        # For each frequency: the number of the interval between two edges that contains it, and its weight in the band whose
        # triangle falls in this interval.
        intervals = np.searchsorted(edges[1:], frequencies, side="right")
        used = np.flatnonzero((np.arange(bins) >= first) & (np.arange(bins) < stop) & (intervals <= count))
        end = edges[intervals[used] + 1]
        falling = ((end - frequencies[used]) * (1 / (end - edges[intervals[used]]))).astype(np.float32)
        if last_axis:
            # Here DALI rounds edges up to whole bins, which assigns a bin that lies exactly on an edge to another band.
            intervals = np.searchsorted(np.ceil(edges[1:-1] / step), np.arange(bins), side="right")
        bands = intervals[used]
        down, up = bands > 0, bands < count
        weights = np.zeros((count, bins), np.float32)
        weights[bands[down] - 1, used[down]] = falling[down]
        weights[bands[up], used[up]] = np.float32(1) - falling[up]
        if not self.args["normalize"]:
            return _banded(weights)
        norms = (2 / (np.append(edges[2:-1], last_edge) - edges[:-2])).astype(np.float32)
        # DALI multiplies the sums by the norms if frequencies are the last axis, and otherwise the weights.
        return _banded(weights)._replace(gains=norms) if last_axis else _banded(weights * norms[:, None])


def _band_edges(scale: _Scale, low: np.float32, high: np.float32, count: int) -> tuple[np.ndarray, np.float64]:
    """Return the edges of ``count`` bands in Hz: evenly spaced in mel, converted in single precision, stored as float64.

    The second result is the last edge as the sum of all steps; DALI normalizes the last band with it.
    """
    first, last = np.float64(scale.to_mel(low)), np.float64(scale.to_mel(high))
    mels = np.full(count + 3, (last - first) / (count + 1))
    mels[0] = first
    mels = np.add.accumulate(mels)
    mels[-1] = last
    edges = scale.to_hertz(mels.astype(np.float32)).astype(np.float64)
    return np.append(edges[:-2], edges[-1]), edges[-2]


def _banded(weights: np.ndarray) -> WeightedSums:
    """Return weights in banded form: the first nonzero column of each row, and the columns from it on, all rows as wide as the widest."""
    used = weights != 0
    if not used.size:
        return WeightedSums(np.zeros(len(weights), np.int64), np.zeros((len(weights), 0), np.float32))
    starts = used.argmax(axis=1)
    stops = np.where(used.any(axis=1), weights.shape[1] - used[:, ::-1].argmax(axis=1), starts)
    width = max(int((stops - starts).max()), 1)
    band = np.zeros((len(weights), width), np.float32)
    for row, (start, stop) in enumerate(zip(starts, stops)):
        band[row, : stop - start] = weights[row, start:stop]
    return WeightedSums(starts, band)


_HERTZ_PER_MEL, _BREAK_HERTZ = np.float32(200 / 3), np.float32(1000)
_BREAK_MEL = _BREAK_HERTZ / _HERTZ_PER_MEL
_LOG_STEP = np.float32(0.068751777)  # the logarithm of 6.4, divided by 27
_ONE, _HTK_HERTZ, _HTK_MEL = np.float32(1), np.float32(700), np.float32(1127)


def _hertz_to_slaney(hertz: np.float32) -> np.float32:
    if hertz < _BREAK_HERTZ:
        return hertz / _HERTZ_PER_MEL
    return _BREAK_MEL + np.float32(c_math.log(hertz / _BREAK_HERTZ)) / _LOG_STEP


def _slaney_to_hertz(mels: np.ndarray) -> np.ndarray:
    above = _BREAK_HERTZ * c_math.exp(_LOG_STEP * (mels - _BREAK_MEL))
    return np.where(mels >= _BREAK_MEL, above, mels * _HERTZ_PER_MEL)


def _hertz_to_htk(hertz: np.float32) -> np.float32:
    return _HTK_MEL * np.float32(c_math.log(_ONE + hertz / _HTK_HERTZ))


def _htk_to_hertz(mels: np.ndarray) -> np.ndarray:
    return _HTK_HERTZ * (c_math.exp(mels / _HTK_MEL) - _ONE)


_SCALES = {"slaney": _Scale(_hertz_to_slaney, _slaney_to_hertz), "htk": _Scale(_hertz_to_htk, _htk_to_hertz)}
