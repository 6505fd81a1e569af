"""The processor for sounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.plugin.transformers._features import Features, collected
from penstock.plugin.transformers._processor import Processor
from penstock.presets import PresetError
from penstock.presets.family import stacked
from penstock.presets.spectra import ChunkFamily, ClipSoundFamily, FilledFamily, RowFamily, SpectralFamily
from penstock.presets.speech import (
    FEATURES,
    FEATURES_MASK,
    MASK,
    PADDING_MASK,
    VALUES,
    CodecFamily,
    SoundFamily,
    SoundTokenFamily,
    WhisperFamily,
)


class FeatureExtractor(Processor):
    """A feature extractor for speech, made from a model's configuration; for the arguments, see :class:`ImageProcessor`."""

    _input = "audio"
    # Other settings only have an effect when the extractor is constructed, which computes filters, windows and lengths from them.
    _assignable = frozenset({"do_normalize", "padding_side", "padding_value", "return_attention_mask"})

    def __call__(
        self,
        raw_speech: object,
        *,
        sampling_rate: int | None = None,
        padding: object = None,
        max_length: int | None = None,
        truncation: bool | None = None,
        pad_to_multiple_of: int | None = None,
        return_attention_mask: bool | None = None,
        do_normalize: bool | None = None,
        return_tensors: object = None,
        device: object = None,
        **settings: object,
    ) -> Features:
        """Return the model's inputs for one sound or several.

        Args:
            raw_speech: a sound, or a list of sounds: one-dimensional arrays of float.
            sampling_rate: the sampling rate of the sounds in Hz; if set, it must be the model's.
            padding: how far sounds are padded: `max_length`; `longest` or True: to the longest sound of the call;
                `do_not_pad` or False. The default is that of transformers: Whisper's sounds are padded to `max_length`, those of
                codecs and Gemma 4 to the longest one, others are not padded.
            max_length: the largest length of a sound, in samples; for Gemma 4, in tokens. For Whisper, the default is the
                configured length.
            truncation: whether to cut off longer sounds; by default, only those of Whisper and Gemma 4 are cut off.
            pad_to_multiple_of: padded lengths, in samples, are multiples of this number; for codecs and Gemma 4, the number is
                fixed.
            return_attention_mask: whether to return a mask that separates sound from padding; for Whisper, with one value
                for each frame. If only the configuration requests the mask, Whisper's has one value for each sample, as in
                transformers. For codecs and Gemma 4, masks are always returned.
            do_normalize: whether to normalize Whisper's sounds to mean 0 and variance 1 first.
            return_tensors: `np`, `pt` or None, see :class:`ImageProcessor`.
            device: must be `cpu`.
            settings: settings that override those of the configuration in this call.

        Raises:
            PresetError: a setting is not supported, or unknown.
            ValueError: the sampling rate is not the model's, a sound is empty or has several channels, or the arguments do
                not fit together.
        """
        if device is not None and str(device) != "cpu":
            raise ValueError(f"`device` must be 'cpu'. Got: {device}")
        family = self._followed(settings)[0]
        if not isinstance(family, SoundFamily):
            raise PresetError("The configuration is not for sound")
        if do_normalize is not None and not isinstance(family, WhisperFamily):
            settings = {**settings, "do_normalize": do_normalize}
            self._followed(settings)
        if sampling_rate not in (None, family.sampling_rate):
            raise ValueError(
                f"The model takes sounds of {family.sampling_rate} Hz, and these are of {sampling_rate} Hz"
            )
        sounds = [np.ascontiguousarray(np.asarray(sound, np.float32)) for sound in _several(raw_speech)]
        for number, sound in enumerate(sounds):
            if sound.ndim != 1 or not sound.size:
                raise ValueError(f"Sound {number}: expected one channel of samples. Got the shape {sound.shape}")
        kind = None if return_tensors is None else str(getattr(return_tensors, "value", return_tensors))
        if isinstance(family, ClipSoundFamily):
            return self._clips(sounds, kind, {**settings, **family.settings_of(padding, truncation)})
        if isinstance(family, ChunkFamily):
            # Here, transformers' feature extractor pads sounds to a fixed length, whatever a call requests.
            padding = max_length = truncation = None
        way = _way(family.padding if padding is None else padding)
        if isinstance(family, SoundTokenFamily):
            cuts = family.truncation if truncation is None else truncation
            return self._pieces(family, sounds, way, kind, (max_length, cuts), settings)
        if isinstance(family, CodecFamily):
            pad_to_multiple_of = family.multiple
            if not (max_length or truncation or way == _NONE):
                max_length = family.chunked(max(map(len, sounds)))
                way = way if max_length is None else _MAX_LENGTH
        if isinstance(family, SpectralFamily):
            pad_to_multiple_of = pad_to_multiple_of or family.default_multiple
        most = _multiple(max_length or family.most, pad_to_multiple_of)
        cuts = family.truncation if truncation is None else truncation
        if cuts:
            if most is None:
                raise ValueError("`truncation` needs a `max_length`")
            sounds = [family.cut(sound, most) if isinstance(family, RowFamily) else sound[:most] for sound in sounds]
        if way == _MAX_LENGTH and most is None:
            raise ValueError(_NEEDS_LENGTH)
        if isinstance(family, SpectralFamily):
            filling = _Filling(way, most, pad_to_multiple_of or 1, return_attention_mask, cuts)
            if isinstance(family, FilledFamily):
                return self._filled_first(family, sounds, filling, kind, settings)
            assert isinstance(family, RowFamily)
            return self._rows(family, sounds, filling, kind, settings)
        longest = max(map(len, sounds))
        length = None if way == _NONE else most if way == _MAX_LENGTH else _multiple(longest, pad_to_multiple_of)
        if isinstance(family, CodecFamily):
            return self._codes(family, sounds, length, kind)
        if isinstance(family, WhisperFamily):
            overrides = return_attention_mask, do_normalize
            return self._spectra(family, sounds, length, kind, overrides, settings)
        masks = family.return_attention_mask if return_attention_mask is None else return_attention_mask
        return self._waves(family, sounds, length, kind, masks, settings)

    def _spectra(
        self,
        family: WhisperFamily,
        sounds: list[np.ndarray],
        length: int | None,
        kind: str | None,
        overrides: tuple[bool | None, bool | None],
        settings: Mapping[str, object],
    ) -> Features:
        """Return Whisper's spectra; ``overrides``: the call's settings for masks of frames and for normalized sounds."""
        lengths = [max(len(sound), length or 0) for sound in sounds]
        if len(set(lengths)) > 1:
            raise ValueError(f"Sounds of {min(lengths)} to {max(lengths)} samples do not fit into one tensor: pad them")
        frames, normalizes = overrides
        inputs = [_normalized(sound) for sound in sounds] if normalizes else sounds
        followed = {**settings, "max_length": lengths[0], "return_attention_mask": False}
        features = self._features([inputs], kind, followed)
        if not (frames or normalizes or family.return_attention_mask):
            return features
        masks = np.stack([_mask(len(sound), total) for sound, total in zip(sounds, lengths)])
        if frames:
            masks = masks[:, :: family.hop_length][:, : lengths[0] // family.hop_length]
        return Features({**features, **collected({MASK: masks}, kind, "")})

    def _waves(
        self,
        family: SoundFamily,
        sounds: list[np.ndarray],
        length: int | None,
        kind: str | None,
        masks: bool,
        settings: Mapping[str, object],
    ) -> Features:
        """Return the features of wav2vec 2.0. Without a mask, the mean and variance of a sound include its padding."""
        totals = [max(len(sound), length or 0) for sound in sounds]
        filled = [_filled(sound, total, family.padding_value) for sound, total in zip(sounds, totals)]
        followed = {**settings, "return_attention_mask": False}
        values = [outputs[VALUES] for outputs in self._outputs(sounds if masks else filled, followed)]
        if masks:
            values = [_filled(value, max(len(value), length or 0), family.padding_value) for value in values]
        features: dict[str, object] = {VALUES: stacked(values)}
        if masks:
            features[MASK] = stacked([_mask(len(sound), total) for sound, total in zip(sounds, totals)])
        return collected(features, kind, "")

    def _codes(self, family: CodecFamily, sounds: list[np.ndarray], length: int | None, kind: str | None) -> Features:
        """Return the features of codecs, which are the padded samples."""
        totals = [max(len(sound), length or 0) for sound in sounds]
        filled = [_filled(sound, total, family.padding_value) for sound, total in zip(sounds, totals)]
        features: dict[str, object] = {VALUES: stacked([np.pad(sound, family.around)[None] for sound in filled])}
        if length is not None or family.always_masks:
            masks = [_mask(len(sound), total) for sound, total in zip(sounds, totals)]
            features[PADDING_MASK] = stacked([np.pad(mask, family.around) for mask in masks])
        return collected(features, kind, "")

    def _clips(self, sounds: list[np.ndarray], kind: str | None, settings: Mapping[str, object]) -> Features:
        """Return the features of families whose pipeline pads sounds."""
        family = self._followed(settings)[0]
        assert isinstance(family, ClipSoundFamily)
        for number, sound in enumerate(sounds):
            if family.most and len(sound) > family.most:
                raise ValueError(
                    f"Sound {number} has {len(sound)} samples, more than {family.most}: cut it first. Of longer sounds, transformers' "
                    "class would take a random part"
                )
        return self._features([sounds], kind, settings)

    def _rows(
        self,
        family: RowFamily,
        sounds: list[np.ndarray],
        filling: _Filling,
        kind: str | None,
        settings: Mapping[str, object],
    ) -> Features:
        """Return the features of families that pad spectra, not sounds."""
        if family.fills_to_longest_only and (filling.way != _LONGEST or filling.cuts):
            raise ValueError("Sounds of this class are supported only with `padding=True`, and without `truncation`")
        outputs = self._outputs(sounds, settings)
        units = [family.units(sound, each) for sound, each in zip(sounds, outputs)]
        if filling.most is not None and filling.cuts:
            units = [min(features, filling.most) for features in units]
        length = filling.length(units)
        padded = [family.filled(each, features, length) for each, features in zip(outputs, units)]
        masks = family.return_attention_mask if filling.masks is None else filling.masks
        masks = (masks and (family.masks_unfilled or length is not None)) or family.always_masks
        names = family.outputs if masks else family.outputs[:1]
        features = collected({name: stacked([each[name] for each in padded]) for name in names}, kind, "")
        return Features({**features, **family.call_outputs(len(sounds))})

    def _filled_first(
        self,
        family: FilledFamily,
        sounds: list[np.ndarray],
        filling: _Filling,
        kind: str | None,
        settings: Mapping[str, object],
    ) -> Features:
        """Return the features of families that pad sounds before they compute spectra."""
        sounds = [family.lengthened(sound) for sound in sounds]
        length = filling.length(list(map(len, sounds)))
        totals = [max(len(sound), length or 0) for sound in sounds]
        filled = [_filled(sound, total, family.padding_value) for sound, total in zip(sounds, totals)]
        # The sounds are already padded here, so the pipeline must not pad them again.
        most = max(totals) if family.padding == _MAX_LENGTH else 0
        if most and min(totals) < most:
            raise ValueError(f"Sounds of {min(totals)} to {most} samples do not fit into one tensor: pad them")
        followed = {**settings, "max_length": most, "pad_to_multiple_of": 1}
        features = [each[family.value_name] for each in self._outputs(filled, followed)]
        longest = max(map(len, sounds))
        finished: list[tuple[np.ndarray, np.ndarray]] = []
        for sound, total, values in zip(sounds, totals, features):
            mask: np.ndarray = family.mask(len(sound), total, len(values)).astype(family.mask_type)
            finished.append((family.finished(values, mask, len(sound), len(sound) == longest), mask))
        results: dict[str, object] = {family.value_name: stacked([values for values, _ in finished])}
        more = [family.extra_outputs(len(sound)) for sound in sounds]
        results |= {name: np.stack([each[name] for each in more]) for name in more[0]}
        if family.returns_masks(filling.masks, len(sounds)):
            results[family.mask_name] = stacked([mask for _, mask in finished])
        return collected(family.together(results, list(map(len, sounds))), kind, "")

    def _pieces(
        self,
        family: SoundTokenFamily,
        sounds: list[np.ndarray],
        way: str,
        kind: str | None,
        bound: tuple[int | None, bool],
        settings: Mapping[str, object],
    ) -> Features:
        """Return Gemma 4's features; ``bound``: the number of pieces, and whether longer sounds are cut off."""
        max_pieces, cuts = bound
        values = [outputs[FEATURES] for outputs in self._outputs(sounds, settings)]
        values = [value[:max_pieces] for value in values] if cuts else values
        if way == _MAX_LENGTH and max_pieces is None:
            raise ValueError(_NEEDS_LENGTH)
        total = 0 if way == _NONE else max_pieces if way == _MAX_LENGTH else max(map(len, values))
        totals = [max(len(value), total or 0) for value in values]
        beyond = [((0, total - len(value)), (0, 0)) for value, total in zip(values, totals)]
        filled = [np.pad(value, pad, constant_values=family.padding_value) for value, pad in zip(values, beyond)]
        masks = [_mask(len(value), total).astype(bool) for value, total in zip(values, totals)]
        return collected({FEATURES: stacked(filled), FEATURES_MASK: stacked(masks)}, kind, "")


_NEEDS_LENGTH = "`padding='max_length'` needs a `max_length`"
_MAX_LENGTH, _LONGEST, _NONE = "max_length", "longest", "do_not_pad"


@dataclass(frozen=True)
class _Filling:
    """How far the sounds of a call are padded.

    Attributes:
        way: `max_length`, `longest` or `do_not_pad`.
        most: the length that the call requests, or None.
        multiple: padded lengths are multiples of this number of samples.
        masks: whether the call requests masks; None: the call does not specify this.
        cuts: whether sounds longer than `most` are cut off.
    """

    way: str
    most: int | None
    multiple: int
    masks: bool | None
    cuts: bool

    def length(self, lengths: Sequence[int]) -> int | None:
        """Return the length to which all sounds are padded; None: sounds are not padded."""
        if self.way == _NONE:
            return None
        return self.most if self.way == _MAX_LENGTH else _multiple(max(lengths), self.multiple)


def _way(padding: object) -> str:
    """Return how far sounds are padded: `max_length`, `longest` or `do_not_pad`.

    Raises:
        ValueError: ``padding`` is not one of the values that transformers accepts.
    """
    choice = getattr(padding, "value", padding)
    way = {True: _LONGEST, False: _NONE}[choice] if isinstance(choice, bool) else choice
    if way not in (_MAX_LENGTH, _LONGEST, _NONE):
        raise ValueError(f"`padding` must be {_MAX_LENGTH!r}, {_LONGEST!r}, {_NONE!r}, True or False. Got: {padding!r}")
    return str(way)


def _multiple(length: int | None, of: int | None) -> int | None:
    return length if length is None or not of else -(-length // of) * of


def _mask(length: int, total: int) -> np.ndarray:
    return (np.arange(total) < length).astype(np.int32)


def _filled(sound: np.ndarray, total: int, value: float) -> np.ndarray:
    return np.pad(sound, (0, total - len(sound)), constant_values=value)


def _normalized(sound: np.ndarray) -> np.ndarray:
    """Return a sound normalized to mean 0 and variance 1, with the arithmetic of transformers' feature extractor."""
    changed: np.ndarray = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)
    return changed


def _several(sounds: object) -> Sequence[object]:
    """Return sounds as a sequence; a list of numbers is one sound."""
    if isinstance(sounds, np.ndarray):
        return list(sounds) if sounds.ndim > 1 else [sounds]
    if isinstance(sounds, (list, tuple)) and sounds and not isinstance(sounds[0], (int, float)):
        return sounds
    return [sounds]
