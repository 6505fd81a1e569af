"""`mel_filter_bank`: a spectrogram in mel bands."""

from __future__ import annotations

import numpy as np

from penstock.operators.audio._axes import combine_along, combine_batch, spectral_spec
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, random_arrays, spectrograms


@register_operator
class MelFilterBank(Operator[int, tuple[np.ndarray, np.ndarray]]):
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
            Argument("sample_rate", "float", 44100.0, "Sample rate of the signal, in Hz."),
        ),
        shown=(Example({"sample_rate": 16000.0, "nfilter": 64}, (spectrograms,)),),
    )

    def setup(self) -> None:
        self._rate, self._low = self.args["sample_rate"], self.args["freq_low"]
        self._high = self.args["freq_high"] if self.args["freq_high"] > 0 else self._rate / 2
        self._filters: dict[int, tuple[np.ndarray, np.ndarray]] = {}
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

    def describe(self, workspace: Workspace[int, tuple[np.ndarray, np.ndarray]]) -> list[OutputSpec]:
        spec = spectral_spec(workspace)
        workspace.state = spec.layout.find("f") if spec.layout else max((spec.ndim or 0) - 2, 0)
        if workspace.state < 0:
            raise RuntimeError(f"'f' axis not present in the layout. Got: `{spec.layout}`")
        return [spec]

    def infer(self, sample: Sample[int, tuple[np.ndarray, np.ndarray]]) -> tuple[int, ...]:
        shape = list(sample.shapes[0])
        axis = sample.workspace.state
        if not shape:
            raise RuntimeError("A spectrogram must have at least one dimension")
        bins = shape[axis]
        if bins not in self._filters:
            self._filters[bins] = self._make_filters(bins)
        sample.plan = self._filters[bins]
        shape[axis] = self.args["nfilter"]
        return tuple(shape)

    def compute(self, sample: Sample[int, tuple[np.ndarray, np.ndarray]]) -> None:
        starts, weights = sample.plan
        combine_along(sample.workspace.state, sample.inputs[0], starts, weights, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[int, tuple[np.ndarray, np.ndarray]]) -> None:
        combine_batch(workspace.state, workspace)

    def _make_filters(self, bins: int) -> tuple[np.ndarray, np.ndarray]:
        """The first bin of each band, and its weights from there on, padded with zeros."""
        to_mel, to_hertz = _SCALES[self.args["mel_formula"]]
        edges = to_hertz(np.linspace(to_mel(self._low), to_mel(self._high), self.args["nfilter"] + 2))
        # Converted back to Hz, the last edge would be off by a rounding error.
        edges[-1] = self._high
        frequencies = np.arange(bins) * (self._rate / max(2 * (bins - 1), 1))
        low, middle, high = (edges[i : i + self.args["nfilter"], None] for i in range(3))
        rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
        weights = np.maximum(0, np.minimum(rising, falling))
        if self.args["normalize"]:
            weights *= 2 / (high - low)
        return _banded(weights.astype(np.float32))


def _banded(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first nonzero column of each row, and the columns from there on, as many as the widest row needs."""
    used = weights != 0
    if not used.size:
        return np.zeros(len(weights), np.int64), np.zeros((len(weights), 0), np.float32)
    starts = used.argmax(axis=1)
    stops = np.where(used.any(axis=1), weights.shape[1] - used[:, ::-1].argmax(axis=1), starts)
    width = max(int((stops - starts).max()), 1)
    band = np.zeros((len(weights), width), np.float32)
    for row, (start, stop) in enumerate(zip(starts, stops)):
        band[row, : stop - start] = weights[row, start:stop]
    return starts, band


_BREAK_HERTZ, _HERTZ_PER_MEL = 1000.0, 200.0 / 3
_BREAK_MEL = _BREAK_HERTZ / _HERTZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27


def _hertz_to_slaney(hertz: float) -> float:
    if hertz < _BREAK_HERTZ:
        return hertz / _HERTZ_PER_MEL
    return _BREAK_MEL + float(np.log(hertz / _BREAK_HERTZ) / _LOG_STEP)


def _slaney_to_hertz(mel: np.ndarray) -> np.ndarray:
    above = _BREAK_HERTZ * np.exp(_LOG_STEP * (mel - _BREAK_MEL))
    return np.where(mel < _BREAK_MEL, mel * _HERTZ_PER_MEL, above)


def _hertz_to_htk(hertz: float) -> float:
    return 2595 * float(np.log10(1 + hertz / 700))


def _htk_to_hertz(mel: np.ndarray) -> np.ndarray:
    return 700 * (10 ** (mel / 2595) - 1)


_SCALES = {"slaney": (_hertz_to_slaney, _slaney_to_hertz), "htk": (_hertz_to_htk, _htk_to_hertz)}
