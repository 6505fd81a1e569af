"""Feature extractors of codecs that have two inputs, the sound itself and rows of mel bands: NeuCodec and X-Codec 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.presets.family import Features, named
from penstock.presets.spectra import INT16, KALDI, RowFamily, Values, mask_of, up, whole
from penstock.presets.speech import FEATURES, FEATURES_MASK, PADDING_MASK, VALUES

# Constants in transformers' classes, which configurations cannot set: the number of bands, and of windows per row.
_BANDS, _STRIDE = 80, 2


@dataclass(frozen=True, kw_only=True)
class NeuCodecFamily(RowFamily):
    """NeuCodec.

    Attributes:
        feature_size: without effect: the feature extractor in transformers always uses 80 bands.
        padding_value: the value with which bands are padded; sounds are padded with zeros.
        hop_length: one zero is appended to a sound, which is then padded to a multiple of this many samples.
        silence_beside: the number of zeros before and after a sound when bands are computed.
    """

    padding_value: float = 1.0
    hop_length: int = 320
    silence_beside: int = 0
    # transformers' feature extractor saves these settings in configurations, but uses constants instead.
    ignored: frozenset[str] = frozenset({"frame_length", "frame_shift", "num_mel_bins", "stride"})

    padding = True
    in_samples = True
    always_masks = True
    fills_to_longest_only: ClassVar[bool] = True
    hidden = frozenset({"silence_beside", "ignored"})

    @property
    def outputs(self) -> tuple[str, ...]:
        return VALUES, PADDING_MASK, FEATURES, FEATURES_MASK

    @property
    def bands(self) -> int:
        return _BANDS

    @property
    def default_multiple(self) -> int:
        return self.hop_length

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("hop_length")

    def units(self, sound: np.ndarray, features: Features) -> int:
        return len(sound) + 1

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        samples = data.shape()[:1] + 1
        total = whole(up(samples, self.hop_length))
        signal = fn.slice(data, start=[0], shape=total, axes=[0], out_of_bounds_policy="pad")
        ones = fn.slice(
            fn.ones_like(data, dtype=types.INT32),
            start=[0],
            shape=whole(samples),
            axes=[0],
            out_of_bounds_policy="pad",
            fill_values=[1],
        )
        mask = fn.slice(ones, start=[0], shape=total, axes=[0], out_of_bounds_policy="pad", name=PADDING_MASK)
        heard = fn.slice(
            signal * INT16,
            start=[-self.silence_beside],
            shape=whole(total + 2 * self.silence_beside),
            axes=[0],
            out_of_bounds_policy="pad",
        )
        bands = self.features(heard, **KALDI, window="povey", layout="ft")
        rows = fn.transpose(fn.standardize(bands, axis=1, ddof=1), perm=[1, 0])
        count = whole(up(rows.shape()[:1], _STRIDE))
        values, valid = (
            fn.slice(each, start=[0], shape=count, axes=[0], out_of_bounds_policy="pad", fill_values=[fill])
            for each, fill in ((rows, self.padding_value), (mask_of(rows), 0))
        )
        return (
            fn.reshape(signal, shape=[1, -1], name=VALUES),
            mask,
            fn.reshape(values, shape=[-1, _STRIDE * _BANDS], name=FEATURES),
            named(fn.copy(fn.reshape(valid, shape=[-1, _STRIDE])[:, 1]), FEATURES_MASK, 1),
        )

    def filled(self, features: Features, length: int, units: int | None) -> dict[str, np.ndarray]:
        samples = features[PADDING_MASK].shape[0]
        beyond = max(0, (units or 0) - samples)
        more = self._rows_of(samples + beyond) - len(features[FEATURES])
        return {
            VALUES: np.pad(features[VALUES], ((0, 0), (0, beyond))),
            PADDING_MASK: np.pad(features[PADDING_MASK], (0, beyond)),
            FEATURES: np.pad(features[FEATURES], ((0, more), (0, 0)), constant_values=self.padding_value),
            FEATURES_MASK: np.pad(features[FEATURES_MASK], (0, more)),
        }

    def _rows_of(self, samples: int) -> int:
        """Return the number of rows of a sound with this many samples."""
        windows = (samples + 2 * self.silence_beside - KALDI["window_length"]) // KALDI["window_step"] + 1
        return int(up(windows, _STRIDE)) // _STRIDE


@dataclass(frozen=True, kw_only=True)
class XcodecFamily(NeuCodecFamily):
    """X-Codec 2, which adds half a hop length of silence before and after a sound when it computes bands."""

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["silence_beside"] = settings["hop_length"] // 2
        return settings
