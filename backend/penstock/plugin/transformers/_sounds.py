"""The processor of sounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.plugin.transformers._features import Features
from penstock.plugin.transformers._processor import Processor


class FeatureExtractor(Processor):
    """A feature extractor of speech made from a model's own configuration; arguments as for :class:`ImageProcessor`."""

    _input = "audio"

    def __call__(
        self,
        raw_speech: object,
        *,
        sampling_rate: int | None = None,
        return_tensors: str | None = None,
        **settings: object,
    ) -> Features:
        """What the model is given of one sound, or of several.

        Args:
            raw_speech: a sound, or a list of them: one-dimensional, of float.
            sampling_rate: of the sounds in Hz; checked if it is given.
            return_tensors: `np`, `pt` or None, as for images.
            settings: as in the configuration, for this call.

        Raises:
            PresetError: a setting is not followed, or unknown.
            ValueError: the sampling rate is not the model's, or a sound is empty or has several channels.
        """
        wanted = getattr(self._followed({})[0], "sampling_rate", None)
        if sampling_rate not in (None, wanted):
            raise ValueError(f"The model takes sounds of {wanted} Hz, and these are of {sampling_rate} Hz")
        sounds = [np.ascontiguousarray(np.asarray(sound, np.float32)) for sound in _several(raw_speech)]
        for number, sound in enumerate(sounds):
            if sound.ndim != 1 or not sound.size:
                raise ValueError(f"Sound {number}: expected one channel of samples. Got the shape {sound.shape}")
        return self._features([sounds], return_tensors, settings)


def _several(sounds: object) -> Sequence[object]:
    """Sounds as a sequence; a list of numbers is one sound."""
    if isinstance(sounds, np.ndarray):
        return list(sounds) if sounds.ndim > 1 else [sounds]
    if isinstance(sounds, (list, tuple)) and sounds and not isinstance(sounds[0], (int, float)):
        return sounds
    return [sounds]
