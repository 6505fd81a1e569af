"""Feature extractors whose sounds become rows of mel bands: AST, CLAP, CLVP, SeamlessM4T, Speech2Text, Gemma 3n and 4,
Parakeet, Nemotron, Lasr, Voxtral Realtime, Qwen3-ASR, Phi-4, Granite Speech and Fun-ASR-Nano.

The results of classes that compute with numpy in transformers are equal bit for bit. The other classes compute with PyTorch, whose Fourier
transform rounds differently: features differ from theirs by less than :data:`TOLERANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from penstock import fn, types
from penstock import math as graph_math
from penstock.graph import DataNode
from penstock.presets.family import Features, PresetError, Values, named
from penstock.presets.speech import FEATURES, FEATURES_MASK, MASK, PADDING_MASK, VALUES, SoundFamily

Count = TypeVar("Count", int, DataNode)
"""An integer, or a node that computes one."""
TOLERANCE = 1e-3
"""The greatest difference from the features of classes in transformers that compute with PyTorch."""
INT16 = 32768.0
_SIZES = "audio_embed_sizes"
_MASK_TYPES = {"bool": types.BOOL, "int32": types.INT32, "int64": types.INT64}
# The smallest energy in Kaldi's filter banks: the difference between 1 and the next number in single precision.
_KALDI_MIN_ENERGY = 1.192092955078125e-07
KALDI: Values = {
    "window_length": 400,
    "window_step": 160,
    "nfft": 512,
    "preemphasis": 0.97,
    "remove_offset": True,
    "floor": _KALDI_MIN_ENERGY,
    "mel_formula": "kaldi",
    "straight_in_mel": True,
    "freq_low": 20.0,
}


@dataclass(frozen=True, kw_only=True)
class SpectralFamily(SoundFamily):
    """Base class of families that convert sounds to mel bands of windows.

    Attributes:
        feature_size: the number of bands, unless another setting determines it.
    """

    feature_size: int = 80
    return_attention_mask: bool = True

    mask_name: ClassVar[str] = MASK
    mask_type: ClassVar[type] = np.int32
    always_masks: ClassVar[bool] = False
    """Whether masks are returned even if a call does not request them."""

    def features(self, signal: DataNode, **arguments: Any) -> DataNode:
        """Return the mel bands of a signal; ``arguments``: further arguments of :func:`fn.mel_features`."""
        return fn.mel_features(signal, nfilter=self.bands, sample_rate=float(self.sampling_rate), **arguments)

    @property
    def bands(self) -> int:
        """The number of mel bands."""
        return self.feature_size

    @property
    def default_multiple(self) -> int:
        """The number, of samples or of rows, to whose multiples a call pads sounds by default."""
        return 1

    def check_positive(self, *names: str) -> None:
        """Raise PresetError if one of the settings is not positive."""
        for name in names:
            if getattr(self, name) <= 0:
                raise PresetError(f"`{name}` must be positive. Got: {getattr(self, name)}")

    def check_values(self, **values: object) -> None:
        """Raise PresetError if a setting has another value than the argument of the same name."""
        for name, value in values.items():
            if getattr(self, name) != value:
                raise PresetError(f"`{name}` is supported only where it is {value}. Got: {getattr(self, name)!r}")


# -- always the same number of rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ClipSoundFamily(SpectralFamily):
    """Base class of families that convert each sound to the same number of rows, whatever lengths a call requests."""

    return_attention_mask: bool = False

    def settings_of(self, padding: object, truncation: object) -> Values:
        """Return the settings that a call with these arguments changes."""
        return {}


@dataclass(frozen=True, kw_only=True)
class AstFamily(ClipSoundFamily):
    """The Audio Spectrogram Transformer.

    Attributes:
        feature_size: the number of channels; only 1 is supported.
        num_mel_bins: the number of bands.
        max_length: the number of rows; longer results are cut off, and shorter ones are padded with zeros.
        do_normalize, mean, std: whether to subtract `mean` and divide by twice `std`.
    """

    feature_size: int = 1
    num_mel_bins: int = 128
    max_length: int = 1024
    do_normalize: bool = True
    mean: float = -4.2677393
    std: float = 4.5689974

    @property
    def outputs(self) -> tuple[str, ...]:
        return (VALUES,)

    @property
    def bands(self) -> int:
        return self.num_mel_bins

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("num_mel_bins", "max_length")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        rows = _first_rows(self.features(data, **{**KALDI, "window": "symmetric_hann"}), self.max_length)
        if self.do_normalize:
            rows = (rows - self.mean) / (self.std * 2)
        return (named(rows, VALUES, 2),)


_TRUNCATIONS, _REPETITIONS = ("rand_trunc", "fusion"), ("repeatpad", "repeat", "pad")


@dataclass(frozen=True, kw_only=True)
class ClapFamily(ClipSoundFamily):
    """CLAP. The feature extractor in transformers crops sounds that are too long at random; presets refuse them.

    Attributes:
        hop_length, fft_window_size: the hop length and window size of the transform, in samples.
        max_length_s: the length to which sounds are padded, in seconds.
        frequency_min, frequency_max: the range of the bands, in Hz.
        truncation: `fusion`: return the features four times; `rand_trunc`: return features once, with bands of another mel scale.
        padding: what follows the sound: `repeatpad`: whole repetitions, then silence; `repeat`: repetitions, the last one cut off; `pad`:
            only silence.
        top_db: accepted without effect: the feature extractor in transformers ignores it, too.
    """

    feature_size: int = 64
    sampling_rate: int = 48000
    hop_length: int = 480
    max_length_s: int = 10
    fft_window_size: int = 1024
    frequency_min: float = 0.0
    frequency_max: float = 14000.0
    top_db: object = None
    truncation: str = "fusion"  # type: ignore[assignment,misc]
    padding: str = "repeatpad"  # type: ignore[misc]
    # transformers' feature extractor saves these settings, which follow from the others, in configurations.
    ignored: frozenset[str] = frozenset({"nb_frequency_bins", "nb_max_samples"})

    hidden = frozenset({"ignored"})

    @property
    def outputs(self) -> tuple[str, ...]:
        return FEATURES, "is_longer"

    @property
    def most(self) -> int:
        return self.max_length_s * self.sampling_rate

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("feature_size", "hop_length", "max_length_s", "fft_window_size")
        for name, choices in (("truncation", _TRUNCATIONS), ("padding", _REPETITIONS)):
            if getattr(self, name) not in choices:
                raise PresetError(f"`{name}` must be one of {', '.join(choices)}. Got: {getattr(self, name)!r}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        samples, fuses = data.shape()[:1], self.truncation == "fusion"
        room = samples * 0 + self.most
        covered = {"pad": samples, "repeat": room, "repeatpad": room // samples * samples}[self.padding]
        repeated = fn.slice(data, start=[0], shape=whole(covered), axes=[0], out_of_bounds_policy="wrap")
        filled = fn.slice(repeated, start=[0], shape=[self.most], axes=[0], out_of_bounds_policy="pad")
        rows = self.features(
            filled,
            window_length=self.fft_window_size,
            window_step=self.hop_length,
            freq_low=self.frequency_min,
            freq_high=self.frequency_max,
            mel_formula="htk" if fuses else "slaney",
            normalize=not fuses,
            logarithm="decibels",
            center_windows=True,
        )
        pictures = fn.stack(*[rows] * (4 if fuses else 1), name=FEATURES)
        return pictures, fn.constant(idata=[int(fuses)], shape=[1], dtype=types.BOOL, name=self.outputs[1])

    def settings_of(self, padding: object, truncation: object) -> Values:
        settings: Values = {} if truncation is None else {"truncation": truncation}
        return settings if padding in (None, True) else {**settings, "padding": padding or "pad"}

    def joined(self, images: Sequence[Features]) -> Values:
        values = super().joined(images)
        if self.truncation == "fusion":
            # If no sound of a call is longer, transformers marks a random one as longer. Presets mark the first.
            values["is_longer"] = np.arange(len(images))[:, None] == 0
        return values


# -- rows that are padded ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RowFamily(SpectralFamily):
    """Base class of families that convert sounds to rows, which a call cuts off or pads.

    The lengths that a call requests are in rows or, if :attr:`in_samples`, in samples.
    """

    in_samples: ClassVar[bool] = False
    axis: ClassVar[int] = 0
    """The axis along which values are padded."""
    masks_unfilled: ClassVar[bool] = True
    """Whether a call that does not pad returns masks, too."""
    fills_to_longest_only: ClassVar[bool] = False
    """Whether presets support only calls that pad sounds to the longest one, and cut none off."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (FEATURES, self.mask_name)

    def units(self, sound: np.ndarray, features: Features) -> int:
        """Return the length of a sound in rows or samples, as calls count them."""
        return len(sound) if self.in_samples else len(features[FEATURES])

    def cut(self, sound: np.ndarray, most: int) -> np.ndarray:
        """Return the first ``most`` samples of a sound."""
        return sound[:most]

    def call_outputs(self, sounds: int) -> Values:
        """Return the further outputs of a call with this many sounds."""
        return {}

    def filled(self, features: Features, length: int, units: int | None) -> dict[str, np.ndarray]:
        """Return a sound's outputs, cut off or padded.

        Args:
            features: the pipeline's results for the sound.
            length: the length to use of the sound, in rows or samples.
            units: the length to pad to, in rows or samples; None: do not pad.
        """
        values, mask = (features[name] for name in self.outputs)
        beyond = max(0, (units or 0) - values.shape[self.axis])
        around = [(0, 0)] * values.ndim
        around[self.axis] = (0, beyond)
        return {
            self.outputs[0]: np.pad(values, around, constant_values=self.padding_value),
            self.mask_name: np.pad(mask, (0, beyond)),
        }


@dataclass(frozen=True, kw_only=True)
class Speech2TextFamily(RowFamily):
    """Speech2Text: bands, each normalized to mean 0 and variance 1.

    Attributes:
        num_mel_bins: the number of bands.
        do_ceptral_normalize, normalize_means, normalize_vars: whether to normalize bands; if so, the other two must be true.
        dither: must be 0.
    """

    num_mel_bins: int = 80
    do_ceptral_normalize: bool = True
    normalize_means: bool = True
    normalize_vars: bool = True
    dither: float = 0.0

    @property
    def bands(self) -> int:
        return self.num_mel_bins

    def converted(self, values: Values) -> Values:
        # transformers' feature extractor always returns masks, even if the configuration says otherwise.
        return super().converted({**values, "return_attention_mask": True})

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(dither=0)
        if self.do_ceptral_normalize:
            self.check_values(normalize_means=True, normalize_vars=True)

    def cut(self, sound: np.ndarray, most: int) -> np.ndarray:
        return sound[: _samples_of(most)]

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        rows = self.features(data * INT16, **KALDI, window="povey")
        if self.do_ceptral_normalize:
            rows = fn.standardize(rows, axis=0, epsilon=0.0, recentred=True)
        return named(rows, FEATURES, 2), mask_of(rows, MASK)


def _samples_of(rows: int) -> int:
    """Return the smallest number of samples for which Kaldi's features have this many rows."""
    return max(rows - 1, 0) * KALDI["window_step"] + KALDI["window_length"]


@dataclass(frozen=True, kw_only=True)
class SeamlessFamily(RowFamily):
    """SeamlessM4T and wav2vec2-BERT: bands, each normalized to mean 0 and variance 1, with several windows per row.

    Attributes:
        num_mel_bins: the number of bands.
        stride: the number of windows per row.
    """

    num_mel_bins: int = 80
    stride: int = 2

    padding = True

    @property
    def bands(self) -> int:
        return self.num_mel_bins

    @property
    def default_multiple(self) -> int:
        return self.stride

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("num_mel_bins")
        if self.stride < 2:
            raise PresetError(f"`stride` must be at least 2. Got: {self.stride}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        bands = self.features(data * INT16, **KALDI, window="povey", layout="ft")
        rows = fn.transpose(fn.standardize(bands, axis=1, ddof=1), perm=[1, 0])
        total = up(rows.shape()[:1], self.stride)
        values, mask = (
            fn.slice(each, start=[0], shape=whole(total), axes=[0], out_of_bounds_policy="pad", fill_values=[fill])
            for each, fill in ((rows, self.padding_value), (mask_of(rows), 0))
        )
        features = fn.reshape(values, shape=[-1, self.bands * self.stride], name=FEATURES)
        return features, fn.copy(fn.reshape(mask, shape=[-1, self.stride])[:, 1], name=MASK)

    def units(self, sound: np.ndarray, features: Features) -> int:
        return (len(sound) - KALDI["window_length"]) // KALDI["window_step"] + 1

    def cut(self, sound: np.ndarray, most: int) -> np.ndarray:
        # Do not cut the sound, because means are over the whole sound: `filled` cuts off rows instead.
        return sound

    def filled(self, features: Features, length: int, units: int | None) -> dict[str, np.ndarray]:
        # An incomplete row is dropped, unless the call pads.
        rows = (length if units is None else units) // self.stride
        return super().filled({name: values[:rows] for name, values in features.items()}, length, rows)


@dataclass(frozen=True, kw_only=True)
class FunAsrFamily(RowFamily):
    """Fun-ASR-Nano: several windows per row, some of which neighbouring rows share.

    Attributes:
        frame_length, frame_shift: the length of windows and the distance between the starts of windows, in milliseconds.
        num_frames_lfr, stride_lfr: the number of windows per row, and the distance between the starts of rows, in windows.
        window: must be `hamming`.
    """

    frame_length: int = 25
    frame_shift: int = 10
    num_frames_lfr: int = 7
    stride_lfr: int = 6
    window: str = "hamming"

    padding = True
    mask_name = FEATURES_MASK

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("feature_size", "frame_length", "frame_shift", "num_frames_lfr", "stride_lfr")
        self.check_values(window="hamming")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        length, step = (self.sampling_rate * each // 1000 for each in (self.frame_length, self.frame_shift))
        arguments = {"window_length": length, "window_step": step, "nfft": 1 << (length - 1).bit_length()}
        windows = self.features(data, **{**KALDI, **arguments}, window="symmetric_hamming")
        count = (windows.shape()[:1] + (self.stride_lfr - 1)) // self.stride_lfr
        # Beyond the ends, rows repeat the first and the last window.
        before = (self.num_frames_lfr - 1) // 2
        total = whole(count * self.stride_lfr)
        strided = (
            fn.reshape(
                fn.slice(windows, start=[offset - before], shape=total, axes=[0], out_of_bounds_policy="clamp"),
                shape=[-1, self.stride_lfr * self.bands],
            )[:, : self.bands]
            for offset in range(self.num_frames_lfr)
        )
        rows = fn.cat(*strided, axis=1)
        return named(rows, FEATURES, 2), mask_of(rows, self.mask_name)


@dataclass(frozen=True, kw_only=True)
class ParakeetFamily(RowFamily):
    """Parakeet, Canary and other models of NeMo: bands, each normalized to mean 0 and variance 1.

    Attributes:
        hop_length, n_fft, win_length: the hop length, FFT size and window length of the transform, in samples.
        preemphasis: the fraction of the previous sample that is subtracted.
        standardizes: whether to normalize bands.
    """

    hop_length: int = 160
    n_fft: int = 512
    win_length: int = 400
    preemphasis: float = 0.97
    standardizes: bool = True

    padding = True
    mask_type = bool
    always_masks = True
    in_samples = True
    hidden = frozenset({"standardizes"})

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("hop_length", "n_fft", "win_length")
        self.check_values(padding_value=0)

    def prepared(self, signal: DataNode) -> DataNode:
        """Return the sound of which bands are computed; by default, the signal itself."""
        return signal

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        data = self.prepared(data)
        before = fn.slice(data, start=[-1], shape=whole(data.shape()[:1]), axes=[0], out_of_bounds_policy="pad")
        rows = self.features(
            data - before * self.preemphasis,
            window="symmetric_hann",
            window_length=self.win_length,
            window_step=self.hop_length,
            nfft=self.n_fft,
            normalize=True,
            center_windows=True,
            reflect_padding=False,
            floor=2.0**-24,
            floor_added=True,
            precision="double",
        )
        # The last window has a row, but the mask counts it as padding.
        valid = rows[:-1]
        mask = mask_of(valid)
        if self.standardizes:
            valid = fn.standardize(valid, axis=0, ddof=1, epsilon=1e-5, of_deviation=True)
        total = rows.shape()[:1]
        values, mask = (
            fn.slice(each, start=[0], shape=whole(total), axes=[0], out_of_bounds_policy="pad")
            for each in (valid, mask)
        )
        return named(values, FEATURES, 2), fn.cast(mask, dtype=types.BOOL, name=self.mask_name)

    def filled(self, features: Features, length: int, units: int | None) -> dict[str, np.ndarray]:
        return super().filled(features, length, None if units is None else units // self.hop_length + 1)


@dataclass(frozen=True, kw_only=True)
class CohereFamily(ParakeetFamily):
    """Cohere's speech recognition, for sounds that are so short that transformers' feature extractor does not split them.

    Attributes:
        dither: the standard deviation of the noise that is added; sounds of equal length get the same noise.
        max_audio_clip_s, overlap_chunk_second: sounds of up to the first minus the second, in seconds, are not split.
        min_energy_window_samples: accepted without effect: it is read only for longer sounds.
    """

    feature_size: int = 128
    dither: float = 1e-5
    max_audio_clip_s: float = 35.0
    overlap_chunk_second: float = 5.0
    min_energy_window_samples: int = 1600

    def prepared(self, signal: DataNode) -> DataNode:
        return fn.dither(signal, amount=self.dither) if self.dither > 0 else signal

    def units(self, sound: np.ndarray, features: Features) -> int:
        longest = max(0.0, self.max_audio_clip_s - self.overlap_chunk_second)
        if len(sound) > longest * self.sampling_rate:
            raise ValueError(
                f"The sound is longer than {longest:g} seconds: cut it first, as presets do not split sounds as the class does"
            )
        return super().units(sound, features)

    def call_outputs(self, sounds: int) -> Values:
        return {"audio_chunk_index": [(number, None) for number in range(sounds)]}


@dataclass(frozen=True, kw_only=True)
class NemotronFamily(ParakeetFamily):
    """Nemotron's streaming models, for whole sounds.

    Attributes:
        mel_filters_dtype: must be `float32`.
    """

    standardizes: bool = False
    mel_filters_dtype: str = "float32"

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(mel_filters_dtype="float32")


@dataclass(frozen=True, kw_only=True)
class SampleFamily(RowFamily):
    """Base class of families that return the samples of sounds, with one channel.

    Attributes:
        feature_size: the number of channels; only 1 is supported.
    """

    feature_size: int = 1

    padding = True
    in_samples = True
    axis = 1
    mask_name = PADDING_MASK

    @property
    def outputs(self) -> tuple[str, ...]:
        return (VALUES, self.mask_name)

    @property
    def block(self) -> int:
        """The number of samples to whose multiples sounds are padded."""
        return 1

    @property
    def default_multiple(self) -> int:
        return self.block

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(feature_size=1)
        if self.block < 1:
            raise PresetError(
                f"Sounds can be padded only to multiples of a positive number of samples. Got: {self.block}"
            )

    def prepared(self, signal: DataNode) -> DataNode:
        """Return the sound with the values that are returned; by default, unchanged."""
        return signal

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        total = whole(up(data.shape()[:1], self.block))
        values, mask = (
            fn.slice(each, start=[0], shape=total, axes=[0], out_of_bounds_policy="pad", fill_values=[fill])
            for each, fill in ((self.prepared(data), self.padding_value), (fn.ones_like(data, dtype=types.INT32), 0))
        )
        if self.axis:
            return fn.reshape(values, shape=[1, -1], name=VALUES), named(mask, self.mask_name, 1)
        return named(values, VALUES, 1), named(mask, self.mask_name, 1)

    def filled(self, features: Features, length: int, units: int | None) -> dict[str, np.ndarray]:
        cut = {name: values[..., :length] for name, values in features.items()}
        return super().filled(cut, length, units)


@dataclass(frozen=True, kw_only=True)
class MuseFamily(SampleFamily):
    """Muse Spark.

    Attributes:
        samples_per_token: sounds are padded to a multiple of this many samples.
    """

    sampling_rate: int = 24000
    samples_per_token: int = 1920

    axis = 0
    mask_name = "input_values_mask"

    @property
    def block(self) -> int:
        return self.samples_per_token


@dataclass(frozen=True, kw_only=True)
class PocketFamily(SampleFamily):
    """Pocket TTS.

    Attributes:
        pad_to_multiple_of: sounds are padded to a multiple of this many samples.
        end_on_pause: must be false: presets do not cut off what follows the last loud part of a sound.
        frame_size, pause_duration, fade_out_duration, silence_floor_db, analysis_frame_duration: accepted without effect: they are
            read only with `end_on_pause`, or in later steps.
    """

    sampling_rate: int = 24000
    pad_to_multiple_of: int = 1920
    end_on_pause: bool = True
    frame_size: int = 1920
    pause_duration: float = 0.08
    fade_out_duration: float = 0.02
    silence_floor_db: float = 35.0
    analysis_frame_duration: float = 0.02

    @property
    def block(self) -> int:
        return self.pad_to_multiple_of

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(end_on_pause=False)


@dataclass(frozen=True, kw_only=True)
class WavTokenizerFamily(SampleFamily):
    """WavTokenizer.

    Attributes:
        hop_length: accepted without effect: sounds are not padded to multiples of it.
        normalize_audio: must be false.
        target_peak_dB_FS: accepted without effect: it is read only with `normalize_audio`.
    """

    sampling_rate: int = 24000
    hop_length: int = 600
    normalize_audio: bool = False
    target_peak_dB_FS: float = -3.0

    always_masks = True

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(normalize_audio=False)


@dataclass(frozen=True, kw_only=True)
class PeSoundFamily(SampleFamily):
    """PE Audio, which extends sounds to whole blocks by reflection.

    Attributes:
        hop_length: the number of samples of a block.
    """

    sampling_rate: int = 48000
    hop_length: int = 1920

    masks_unfilled = False

    @property
    def block(self) -> int:
        return self.hop_length

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        total = whole(up(data.shape()[:1], self.block))
        reflected = fn.slice(data, start=[0], shape=total, axes=[0], out_of_bounds_policy="reflect_101")
        return super().process(reflected, backend)

    def units(self, sound: np.ndarray, features: Features) -> int:
        return up(len(sound), self.block)


@dataclass(frozen=True, kw_only=True)
class OmniFamily(SampleFamily):
    """OmniASR: sounds normalized to mean 0 and variance 1.

    Attributes:
        do_normalize: whether to normalize sounds.
    """

    do_normalize: bool = True

    def prepared(self, signal: DataNode) -> DataNode:
        return fn.standardize(signal, epsilon=1e-5) if self.do_normalize else signal


@dataclass(frozen=True, kw_only=True)
class VibeFamily(SampleFamily):
    """VibeVoice's tokenizer: sounds normalized to the same loudness.

    Attributes:
        normalize_audio, target_dB_FS: whether to normalize sounds, and to which loudness, in dB relative to full scale.
        eps: a small number that is added to divisors.
        pad_to_multiple_of: sounds are padded to a multiple of this many samples.
    """

    sampling_rate: int = 24000
    normalize_audio: bool = True
    target_dB_FS: float = -25.0
    eps: float = 1e-6
    pad_to_multiple_of: int = 3200

    @property
    def block(self) -> int:
        return self.pad_to_multiple_of

    def prepared(self, signal: DataNode) -> DataNode:
        if not self.normalize_audio:
            return signal
        gain = 10 ** (self.target_dB_FS / 20)
        scaled = signal * (gain / (fn.reductions.rms(signal) + self.eps))
        peak = fn.reductions.max(graph_math.max(scaled, scaled * -1.0))
        return scaled / (1.0 + (peak > 1.0) * (peak + (self.eps - 1.0)))


# -- sounds that are padded --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FilledFamily(SpectralFamily):
    """Base class of families that cut off or pad sounds before they compute bands.

    Attributes:
        max_length: the length in samples to which a call cuts off or pads sounds by default; 0: no length.
        pad_to_multiple_of: sounds are padded to a multiple of this many samples.
    """

    max_length: int = 0
    pad_to_multiple_of: int = 1

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.value_name, *(self.mask_name,) * self.always_masks)

    @property
    def most(self) -> int | None:
        return self.max_length or None

    @property
    def default_multiple(self) -> int:
        return self.pad_to_multiple_of

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("feature_size", "pad_to_multiple_of")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        signal = data
        if self.most and self.truncation:
            signal = fn.slice(data, start=[0], shape=[self.most], axes=[0], out_of_bounds_policy="trim_to_shape")
        total = up(signal.shape()[:1], self.pad_to_multiple_of)
        if self.most and self.padding == "max_length":
            total = graph_math.max(total, self.most)
        extended = fn.slice(
            signal,
            start=[0],
            shape=whole(total),
            axes=[0],
            out_of_bounds_policy="pad",
            fill_values=[self.padding_value],
        )
        features = self.spectrum(extended)
        if not self.always_masks:
            return (named(features, self.value_name, 2),)
        rows = features.shape()[:1] if self.row_masks else total
        ones = fn.ones_like(signal, dtype=types.INT32)
        valid = fn.slice(ones, start=[0], shape=whole(self.valid(signal.shape()[:1])), axes=[0])
        mask = fn.slice(valid, start=[0], shape=whole(rows), axes=[0], out_of_bounds_policy="pad")
        dtype = _MASK_TYPES[np.dtype(self.mask_type).name]
        return (*self.masked(features, mask), fn.cast(mask, dtype=dtype, name=self.mask_name))

    value_name: ClassVar[str] = FEATURES
    row_masks: ClassVar[bool] = True
    """Whether masks have one element for each row; otherwise, one for each sample."""

    def spectrum(self, signal: DataNode) -> DataNode:
        """Return the features of a padded signal."""
        raise NotImplementedError

    def masked(self, features: DataNode, mask: DataNode) -> tuple[DataNode]:
        """Return the features as an output; some families set the features of padding to 0."""
        return (named(features, FEATURES, 2),)

    def valid(self, samples: Count) -> Count:
        """Return how many elements of the mask are true for a sound with this many samples; both are integers or nodes."""
        return samples

    def lengthened(self, sound: np.ndarray) -> np.ndarray:
        """Return the sound; some families extend short sounds with silence, which the mask counts as sound."""
        return sound

    def mask(self, samples: int, total: int, rows: int) -> np.ndarray:
        """Return the mask of a sound with ``samples`` samples that was padded to ``total`` samples and then converted to ``rows`` rows."""
        return np.arange(rows if self.row_masks else total) < self.valid(samples)

    def finished(self, features: np.ndarray, mask: np.ndarray, samples: int, longest: bool) -> np.ndarray:
        """Return the features of a sound in a call; some families change those of padding.

        Args:
            features: the features of the padded sound.
            mask: the sound's mask.
            samples: the number of samples before padding.
            longest: whether this is the longest sound of the call.
        """
        return features

    def returns_masks(self, requested: bool | None, sounds: int) -> bool:
        """Return whether a call with this many sounds returns masks; ``requested``: what the call says about it, None if nothing."""
        return bool(requested) or self.always_masks

    def extra_outputs(self, samples: int) -> dict[str, np.ndarray]:
        """Return the further outputs for a sound with this many samples."""
        return {}

    def together(self, values: Values, samples: Sequence[int]) -> Values:
        """Return the outputs of a call, from the joined outputs of its sounds; ``samples``: the sounds' numbers of samples."""
        return values


@dataclass(frozen=True, kw_only=True)
class GemmaSoundFamily(FilledFamily):
    """Gemma 3n and Gemma 4.

    Attributes:
        frame_length_ms, hop_length_ms: the length of windows and the distance between the starts of windows, in milliseconds.
        min_frequency, max_frequency: the range of the bands, in Hz.
        preemphasis: the fraction of the window's previous sample that is subtracted.
        preemphasis_htk_flavor: must be true.
        fft_overdrive: double the length of the transform.
        mel_floor: the smallest energy; with `is_gemma4`, a number that is added to energies.
        dither, input_scale_factor, per_bin_mean, per_bin_stddev: must be 0, 1, None and None.
        is_gemma4: begin windows before the sound, add `mel_floor`, and set rows after the sound to 0.
    """

    feature_size: int = 128
    frame_length_ms: float = 32.0
    hop_length_ms: float = 10.0
    min_frequency: float = 125.0
    max_frequency: float = 7600.0
    preemphasis: float = 0.97
    preemphasis_htk_flavor: bool = True
    fft_overdrive: bool = True
    dither: float = 0.0
    input_scale_factor: float = 1.0
    mel_floor: float = 1e-5
    per_bin_mean: object = None
    per_bin_stddev: object = None
    max_length: int = 480_000
    pad_to_multiple_of: int = 128
    is_gemma4: bool = False
    # transformers' feature extractor saves these settings in configurations, but recomputes them from others when it is created.
    ignored: frozenset[str] = frozenset({"frame_length", "hop_length", "fft_length"})

    padding = True
    truncation = True
    mask_name = FEATURES_MASK
    mask_type = bool
    always_masks = True
    hidden = frozenset({"is_gemma4", "ignored"})

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(
            dither=0, input_scale_factor=1, per_bin_mean=None, per_bin_stddev=None, preemphasis_htk_flavor=True
        )
        if self.preemphasis < 0 or min(self._window, self._step) < 1:
            raise PresetError("`preemphasis` must not be negative, and windows and their distance must have samples")

    @property
    def _window(self) -> int:
        return round(self.sampling_rate * self.frame_length_ms / 1000.0)

    @property
    def _step(self) -> int:
        return round(self.sampling_rate * self.hop_length_ms / 1000.0)

    @property
    def _before(self) -> int:
        """The number of samples of silence before a sound."""
        return self._window // 2 if self.is_gemma4 else 0

    def spectrum(self, signal: DataNode) -> DataNode:
        # In transformers, windows have one more sample, which is not used: without it, the sound must be one sample shorter.
        total = signal.shape()[:1] + (self._before - 1)
        shifted = fn.slice(signal, start=[-self._before], shape=whole(total), axes=[0], out_of_bounds_policy="pad")
        length = 2 ** math.ceil(math.log2(self._window))
        return self.features(
            shifted,
            window_length=self._window,
            window_step=self._step,
            window="hann" if self.is_gemma4 else "single_hann",
            nfft=length * 2 if self.fft_overdrive else length,
            freq_low=self.min_frequency,
            freq_high=self.max_frequency,
            mel_formula="htk",
            preemphasis=self.preemphasis,
            power=1,
            floor=self.mel_floor,
            floor_added=self.is_gemma4,
            precision="single",
        )

    def masked(self, features: DataNode, mask: DataNode) -> tuple[DataNode]:
        if not self.is_gemma4:
            return super().masked(features, mask)
        return (named(features * fn.cast(fn.reshape(mask, shape=[-1, 1]), dtype=types.FLOAT), FEATURES, 2),)

    def valid(self, samples: Count) -> Count:
        # In Gemma 4, a row is valid if the sample after its window is within the sound; in Gemma 3n, if the window's first sample is.
        offset = self._window - self._before if self.is_gemma4 else 0
        return (samples - offset + (self._step - 1)) // self._step

    def finished(self, features: np.ndarray, mask: np.ndarray, samples: int, longest: bool) -> np.ndarray:
        return features * mask[:, None] if self.is_gemma4 else features


@dataclass(frozen=True, kw_only=True)
class LasrFamily(FilledFamily):
    """Lasr (MedASR).

    Attributes:
        hop_length, n_fft, win_length: the hop length, FFT size and window length of the transform, in samples.
    """

    feature_size: int = 128
    hop_length: int = 160
    n_fft: int = 512
    win_length: int = 400

    padding = True
    mask_type = bool

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("hop_length", "n_fft", "win_length")

    def spectrum(self, signal: DataNode) -> DataNode:
        return self.features(
            signal,
            window="symmetric_hann",
            window_length=self.win_length,
            window_step=self.hop_length,
            nfft=self.n_fft,
            freq_low=125.0,
            freq_high=7500.0,
            mel_formula="kaldi",
            straight_in_mel=True,
            floor=1e-5,
            precision="double",
        )

    def mask(self, samples: int, total: int, rows: int) -> np.ndarray:
        return (np.arange(total) < samples)[self.win_length - 1 :: self.hop_length]


@dataclass(frozen=True, kw_only=True)
class DecimalFamily(FilledFamily):
    """Base class of families that compute ``(max(log10(x), m - 8) + 4) / 4``, where ``m`` is the maximum of the logarithms.

    Attributes:
        hop_length, n_fft: the hop length and FFT size of the transform, in samples.
    """

    feature_size: int = 128
    hop_length: int = 160
    n_fft: int = 400

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("hop_length", "n_fft")

    def highest(self, logarithms: DataNode) -> DataNode | float:
        """Return the maximum of the logarithms, relative to which logarithms are limited."""
        return fn.reductions.max(logarithms)

    def spectrum(self, signal: DataNode) -> DataNode:
        logarithms = self.features(
            signal,
            window_length=self.n_fft,
            window_step=self.hop_length,
            normalize=True,
            freq_high=8000.0,
            center_windows=True,
            logarithm="decimal",
            precision="double",
            layout="ft",
        )[:, :-1]
        return (graph_math.max(logarithms, self.highest(logarithms) - 8.0) + 4.0) / 4.0


@dataclass(frozen=True, kw_only=True)
class GraniteFamily(DecimalFamily):
    """Granite Speech: rows of two windows each, and the number of tokens of each sound.

    Attributes:
        n_mels: the number of bands; the feature extractor in transformers does not read `feature_size`.
        win_length: the length of the window, which is centred in the transform.
        projector_window_size, projector_downsample_rate: the number of rows in a window of the projector, and of rows that become one
            token.
    """

    n_fft: int = 512
    n_mels: int = 80
    win_length: int = 400
    projector_window_size: int = 15
    projector_downsample_rate: int = 5
    # transformers' feature extractor saves these settings, which follow from the others, in configurations.
    ignored: frozenset[str] = frozenset({"melspec_kwargs", "feature_size"})

    padding = True
    mask_name = FEATURES_MASK
    hidden = frozenset({"ignored"})

    @property
    def bands(self) -> int:
        return self.n_mels

    @property
    def outputs(self) -> tuple[str, ...]:
        return FEATURES, _SIZES

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("n_mels", "win_length", "projector_window_size", "projector_downsample_rate")
        self.check_values(padding_value=0)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tokens = self._tokens(data.shape()[0])
        return (*super().process(data, backend), fn.reshape(tokens, shape=[], name=_SIZES))

    def spectrum(self, signal: DataNode) -> DataNode:
        windows = self.features(
            signal,
            window_length=self.win_length,
            window_step=self.hop_length,
            nfft=self.n_fft,
            mel_formula="htk",
            center_windows=True,
            logarithm="decimal",
            precision="double",
        )
        limited = (graph_math.max(windows, self.highest(windows) - 8.0) + 4.0) / 4.0
        pairs = whole(windows.shape()[:1] // 2 * 2)
        return fn.reshape(fn.slice(limited, start=[0], shape=pairs, axes=[0]), shape=[-1, 2 * self.bands])

    def _tokens(self, samples: Count) -> Count:
        """Return the number of tokens of a sound with this many samples; both are integers or nodes."""
        rows = (samples // self.hop_length + 1) // 2
        blocks = (rows + (self.projector_window_size - 1)) // self.projector_window_size
        return blocks * (self.projector_window_size // self.projector_downsample_rate)

    def extra_outputs(self, samples: int) -> dict[str, np.ndarray]:
        return {_SIZES: np.array(self._tokens(samples))}

    def returns_masks(self, requested: bool | None, sounds: int) -> bool:
        return False

    def together(self, values: Values, samples: Sequence[int]) -> Values:
        tokens = np.array(values[_SIZES])
        return {**values, self.mask_name: np.arange(tokens.max()) < tokens[:, None]}


@dataclass(frozen=True, kw_only=True)
class Granite5Family(DecimalFamily):
    """Granite Speech 5: rows of two windows each; each window is followed by half the difference between the next and the previous one.

    Attributes:
        num_mel_bins: the number of bands; the feature extractor in transformers does not read `feature_size`.
        win_length: the length of the window, which is centred in the transform.
        delta_win_length: must be 3.
        logmel_floor_db: logarithms are limited to this much below the highest one.
    """

    n_fft: int = 512
    num_mel_bins: int = 80
    win_length: int = 400
    delta_win_length: int = 3
    logmel_floor_db: float = 8.0
    ignored: frozenset[str] = frozenset({"feature_size"})

    padding = True
    always_masks = True
    mask_type = np.int64
    hidden = frozenset({"ignored"})

    @property
    def bands(self) -> int:
        return self.num_mel_bins

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("num_mel_bins", "win_length")
        self.check_values(delta_win_length=3)

    def spectrum(self, signal: DataNode) -> DataNode:
        samples = signal.shape()[:1]
        count = self.valid(samples) * 2
        # Append silence, if needed, for an even number of windows.
        total = graph_math.max(samples, (count - 1) * self.hop_length + 1)
        windows = self.features(
            fn.slice(signal, start=[0], shape=whole(total), axes=[0], out_of_bounds_policy="pad"),
            window_length=self.win_length,
            window_step=self.hop_length,
            nfft=self.n_fft,
            mel_formula="htk",
            center_windows=True,
            logarithm="decimal",
            precision="double",
        )
        own = fn.slice(windows, start=[0], shape=whole(count), axes=[0])
        limited = (graph_math.max(own, self.highest(own) - self.logmel_floor_db) + 4.0) / 4.0
        before, after = (
            fn.slice(limited, start=[place], shape=whole(count), axes=[0], out_of_bounds_policy="clamp")
            for place in (-1, 1)
        )
        return fn.reshape(fn.cat(limited, (after - before) * 0.5, axis=1), shape=[-1, 4 * self.bands])

    def valid(self, samples: Count) -> Count:
        return (samples // self.hop_length + 1) // 2

    def returns_masks(self, requested: bool | None, sounds: int) -> bool:
        return requested is not False


@dataclass(frozen=True, kw_only=True)
class VoxtralFamily(DecimalFamily):
    """Voxtral Realtime.

    Attributes:
        win_length: the length of the transform.
        global_log_mel_max: the number relative to which logarithms are limited, instead of their maximum.
    """

    win_length: int = 400
    global_log_mel_max: float = 1.5

    padding = True
    mask_type = bool

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(win_length=self.n_fft)

    def highest(self, logarithms: DataNode) -> DataNode | float:
        return self.global_log_mel_max

    def mask(self, samples: int, total: int, rows: int) -> np.ndarray:
        return (np.arange(total) < samples)[self.win_length - 1 :: self.hop_length]


@dataclass(frozen=True, kw_only=True)
class SecondsFamily(DecimalFamily):
    """Base class of families that pad sounds to a fixed length.

    Attributes:
        chunk_length: the length to which sounds are padded, in seconds.
        dither: must be 0.
    """

    chunk_length: int = 30
    dither: float = 0.0
    # transformers' feature extractor saves these settings, which follow from the others, in configurations.
    ignored: frozenset[str] = frozenset({"nb_max_frames", "n_samples"})

    padding = "max_length"
    hidden = frozenset({"ignored"})

    @property
    def most(self) -> int:
        return self.max_length or self.chunk_length * self.sampling_rate

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(dither=0)
        self.check_positive("chunk_length")


@dataclass(frozen=True, kw_only=True)
class ChunkFamily(SecondsFamily):
    """Base class of families that refuse sounds longer than the fixed length, which transformers' feature extractor would split."""

    def lengthened(self, sound: np.ndarray) -> np.ndarray:
        if len(sound) > self.most:
            raise ValueError(
                f"The sound is longer than {self.chunk_length} seconds: cut it first, as presets do not split sounds as the class does"
            )
        return sound


@dataclass(frozen=True, kw_only=True)
class MossFamily(ChunkFamily):
    """MOSS Transcribe Diarize."""

    feature_size: int = 80

    mask_name = FEATURES_MASK
    always_masks = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*super().outputs, PADDING_MASK)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return (*super().process(data, backend), fn.ones_like(data, dtype=types.INT64, name=PADDING_MASK))

    def valid(self, samples: Count) -> Count:
        return (samples + (self.hop_length - 1)) // self.hop_length

    def mask(self, samples: int, total: int, rows: int) -> np.ndarray:
        return np.arange(total // self.hop_length) < self.valid(samples)

    def together(self, values: Values, samples: Sequence[int]) -> Values:
        valid = np.arange(max(samples)) < np.array(samples)[:, None]
        return {**values, PADDING_MASK: valid.astype(np.int64)}


# The number of windows that dots.note merges into one token.
_DOTS_WINDOWS_PER_TOKEN = 8


@dataclass(frozen=True, kw_only=True)
class DotsFamily(ChunkFamily):
    """dots.note, which cuts off the windows after the longest sound of a call.

    Attributes:
        chunk_seconds: another name of `chunk_length`.
    """

    chunk_length: int = 60
    chunk_seconds: int = 0

    @property
    def outputs(self) -> tuple[str, ...]:
        return FEATURES, "chunk_sample_lengths", "num_audio_tokens"

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["chunk_length"], settings["chunk_seconds"] = settings["chunk_seconds"] or settings["chunk_length"], 0
        return settings

    def _tokens(self, samples: Count) -> Count:
        """Return the number of tokens of a sound with this many samples; both are integers or nodes."""
        return (samples + (self.hop_length * _DOTS_WINDOWS_PER_TOKEN - 1)) // (
            self.hop_length * _DOTS_WINDOWS_PER_TOKEN
        )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        samples = data.shape()[:1]
        filled = fn.slice(data, start=[0], shape=[self.most], axes=[0], out_of_bounds_policy="pad")
        tokens = self._tokens(samples)
        features = fn.slice(
            self.spectrum(filled),
            start=[0],
            shape=whole(tokens * _DOTS_WINDOWS_PER_TOKEN),
            axes=[1],
            out_of_bounds_policy="trim_to_shape",
            name=FEATURES,
        )
        _, lengths, counts = self.outputs
        return features, fn.reshape(samples, shape=[], name=lengths), fn.reshape(tokens, shape=[], name=counts)

    def returns_masks(self, requested: bool | None, sounds: int) -> bool:
        return False

    def extra_outputs(self, samples: int) -> dict[str, np.ndarray]:
        _, lengths, counts = self.outputs
        return {lengths: np.array(samples), counts: np.array(self._tokens(samples))}

    def together(self, values: Values, samples: Sequence[int]) -> Values:
        return {**values, FEATURES: values[FEATURES][..., : self._tokens(max(samples)) * _DOTS_WINDOWS_PER_TOKEN]}


@dataclass(frozen=True, kw_only=True)
class QwenSoundFamily(SecondsFamily):
    """Qwen3-ASR.

    Attributes:
        min_length: the smallest length of a sound, in samples; shorter sounds are extended with silence.
        n_window: results are padded with zeros to a multiple of twice this many windows.
    """

    min_length: int = 8000
    n_window: int = 50

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("n_window")

    def spectrum(self, signal: DataNode) -> DataNode:
        columns = super().spectrum(signal)
        total = whole(up(columns.shape()[1:], 2 * self.n_window))
        return fn.slice(columns, start=[0], shape=total, axes=[1], out_of_bounds_policy="pad")

    def lengthened(self, sound: np.ndarray) -> np.ndarray:
        return np.pad(sound, (0, max(0, self.min_length - len(sound))))

    def mask(self, samples: int, total: int, rows: int) -> np.ndarray:
        mask = (np.arange(total) < samples)[:: self.hop_length][: total // self.hop_length]
        return np.pad(mask, (0, up(len(mask), 2 * self.n_window) - len(mask)))


@dataclass(frozen=True, kw_only=True)
class ClvpFamily(FilledFamily):
    """CLVP.

    Attributes:
        default_audio_length: the length in seconds to which sounds are cut off or padded.
        hop_length, n_fft: the hop length and FFT size of the transform, in samples.
        mel_norms: must be None.
        chunk_length, n_samples, nb_max_frames: accepted without effect: the feature extractor in transformers does not
            read them.
    """

    sampling_rate: int = 22050
    default_audio_length: int = 6
    hop_length: int = 256
    n_fft: int = 1024
    mel_norms: object = None
    ignored: frozenset[str] = frozenset({"chunk_length", "n_samples", "nb_max_frames"})

    padding = "max_length"
    truncation = True
    always_masks = True
    row_masks = False
    hidden = frozenset({"ignored"})

    @property
    def most(self) -> int:
        return self.max_length or self.default_audio_length * self.sampling_rate

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_values(mel_norms=None)

    def spectrum(self, signal: DataNode) -> DataNode:
        return self.features(
            signal,
            window_length=self.n_fft,
            window_step=self.hop_length,
            freq_high=8000.0,
            mel_formula="htk",
            normalize=True,
            center_windows=True,
            floor=1e-5,
            layout="ft",
        )


@dataclass(frozen=True, kw_only=True)
class Phi4SoundFamily(FilledFamily):
    """Phi-4 Multimodal.

    Attributes:
        hop_length, n_fft, win_length: the hop length, FFT size and window length of the transform, in samples.
        preemphasis: the fraction of the previous sample that is subtracted.
        audio_compression_rate, audio_downsample_rate: the numbers by which a number of rows is divided to get the number of tokens.
        audio_feat_stride: must be 1.
        mel_min_frequency, mel_max_frequency: the range of the bands, in Hz.
    """

    hop_length: int = 160
    n_fft: int = 512
    win_length: int = 400
    preemphasis: float = 0.97
    audio_compression_rate: int = 8
    audio_downsample_rate: int = 1
    audio_feat_stride: int = 1
    mel_min_frequency: float = 0.0
    mel_max_frequency: float = 7690.0

    padding = True
    value_name = "audio_input_features"
    mask_name = "audio_attention_mask"
    mask_type = bool

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.value_name, _SIZES

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_positive("hop_length", "n_fft", "win_length", "audio_compression_rate", "audio_downsample_rate")
        self.check_values(audio_feat_stride=1)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tokens = self._tokens(self.valid(data.shape()[0]))
        return (*super().process(data, backend), fn.reshape(tokens, shape=[], name=_SIZES))

    def spectrum(self, signal: DataNode) -> DataNode:
        return self.features(
            signal * INT16,
            window="symmetric_hamming",
            window_length=self.win_length,
            window_step=self.hop_length,
            nfft=self.n_fft,
            preemphasis=self.preemphasis,
            mel_formula="kaldi",
            straight_in_mel=True,
            freq_low=self.mel_min_frequency,
            freq_high=self.mel_max_frequency,
            floor=1.0,
        )

    def valid(self, samples: Count) -> Count:
        return (samples - self.win_length) // self.hop_length + 1

    def _tokens(self, rows: Count) -> Count:
        """Return the number of tokens of a sound with this many rows; both are integers or nodes."""
        compressed = (rows + (self.audio_compression_rate - 1)) // self.audio_compression_rate
        return (compressed + (self.audio_downsample_rate - 1)) // self.audio_downsample_rate

    def extra_outputs(self, samples: int) -> dict[str, np.ndarray]:
        return {_SIZES: np.array(self._tokens(self.valid(samples)))}

    def returns_masks(self, requested: bool | None, sounds: int) -> bool:
        return sounds > 1 and requested is not False

    def finished(self, features: np.ndarray, mask: np.ndarray, samples: int, longest: bool) -> np.ndarray:
        if longest:
            return features
        # transformers' feature extractor sets rows after the sound to 0, but leaves some of the last ones unchanged.
        values = features.copy()
        values[self.valid(samples) : samples // self.hop_length - 1] = 0
        return values


def whole(count: DataNode) -> DataNode:
    """Convert a count to INT32, the type in which operators accept extents."""
    return fn.cast(count, dtype=types.INT32)


def up(count: Count, step: int) -> Count:
    """Round a count, an integer or a node, up to a multiple of ``step``."""
    return (count + (step - 1)) // step * step


def _first_rows(rows: DataNode, count: int) -> DataNode:
    """Return the first ``count`` rows; if there are fewer, pad with rows of zeros."""
    return fn.slice(rows, start=[0], shape=[count], axes=[0], out_of_bounds_policy="pad")


def mask_of(rows: DataNode, name: str | None = None) -> DataNode:
    """Return a mask that consists of ones, one for each row."""
    return fn.ones_like(rows[:, 0], dtype=types.INT32, name=name)
