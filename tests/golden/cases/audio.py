"""Audio: spectra, mel bands, decibels, cepstra, filters, resampling and decoding."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import soundfile
from case import Family, placed, unpacked

FAMILY = Family("audio")
ONE = {"batch_size": 1}
RANDOM = np.random.RandomState(0)
TIMES = np.arange(2600) / 5200
SOUND = (0.4 * np.sin(2 * np.pi * 440 * TIMES**2) + 0.2 * (RANDOM.rand(2600) - 0.5)).astype(np.float32)
QUIET_ENDS = np.concatenate([np.zeros(3000), SOUND, np.zeros(2500)]).astype(np.float32)
INTEGERS = {
    "INT8": (SOUND * 100).astype(np.int8),
    "UINT8": (SOUND * 100 + 128).astype(np.uint8),
    "INT16": (SOUND * 30000).astype(np.int16),
    "UINT16": (SOUND * 30000 + 32768).astype(np.uint16),
    "INT32": (SOUND * 2e9).astype(np.int32),
    "UINT32": (SOUND * 2e9 + 2**31).astype(np.uint32),
}


def constant(dali: Any, data: np.ndarray, layout: str = "") -> Any:
    node = placed(dali, dali.types.Constant(data, device="cpu"))
    return dali.fn.reshape(node, layout=layout) if layout else node


def sound(dali: Any) -> Any:
    return constant(dali, SOUND)


def spectra(dali: Any, **settings: Any) -> Any:
    return dali.fn.spectrogram(sound(dali), **settings)


def mel(dali: Any, **settings: Any) -> Any:
    return dali.fn.mel_filter_bank(spectra(dali), sample_rate=16000.0, **settings)


DEFINITIONS: dict[str, Callable[[Any], Any]] = {
    "spectrogram": lambda dali: spectra(dali),
    "spectrogram nfft": lambda dali: spectra(dali, nfft=1024, window_length=400, window_step=160),
    "spectrogram odd": lambda dali: spectra(dali, nfft=601, window_length=301, window_step=77),
    "spectrogram of 8": lambda dali: spectra(dali, window_length=8, window_step=5, layout="tf"),
    "spectrogram of 2048": lambda dali: spectra(dali, window_length=2048, power=1, layout="tf"),
    "spectrogram odd magnitude": lambda dali: spectra(dali, nfft=600, window_length=301, power=1, layout="tf"),
    "spectrogram magnitude": lambda dali: spectra(dali, power=1),
    "spectrogram time first": lambda dali: spectra(dali, layout="tf"),
    "spectrogram not centred": lambda dali: spectra(dali, center_windows=False),
    "spectrogram zeros": lambda dali: spectra(dali, reflect_padding=False),
    "spectrogram window": lambda dali: spectra(dali, window_fn=[1.0, 2.0, 3.0, 2.0], window_length=4, window_step=3),
    "spectrogram short": lambda dali: dali.fn.spectrogram(constant(dali, SOUND[:100])),
    "spectrogram of one": lambda dali: dali.fn.spectrogram(constant(dali, SOUND[:1])),
    "spectrogram too short": lambda dali: dali.fn.spectrogram(constant(dali, SOUND[:100]), center_windows=False),
    "spectrogram exact": lambda dali: dali.fn.spectrogram(constant(dali, SOUND[:512]), center_windows=False),
    "spectrogram column": lambda dali: dali.fn.spectrogram(constant(dali, SOUND[:, None])),
    "spectrogram of two": lambda dali: dali.fn.spectrogram(constant(dali, SOUND.reshape(-1, 2))),
    "spectrogram int16": lambda dali: dali.fn.spectrogram(constant(dali, INTEGERS["INT16"])),
    "spectrogram nfft short": lambda dali: spectra(dali, nfft=256),
    "spectrogram power": lambda dali: spectra(dali, power=3),
    "spectrogram layout": lambda dali: spectra(dali, layout="xy"),
    "spectrogram wrong window": lambda dali: spectra(dali, window_fn=[1.0, 2.0]),
    "spectrogram step": lambda dali: spectra(dali, window_step=0),
    "mel": lambda dali: mel(dali),
    "mel htk": lambda dali: mel(dali, mel_formula="htk"),
    "mel few": lambda dali: mel(dali, nfilter=40, freq_low=100.0, freq_high=7000.0),
    "mel plain": lambda dali: mel(dali, nfilter=23, normalize=False),
    "mel time first": lambda dali: dali.fn.mel_filter_bank(spectra(dali, layout="tf"), nfilter=30),
    "mel row": lambda dali: dali.fn.mel_filter_bank(constant(dali, SOUND[:257])),
    "mel without layout": lambda dali: dali.fn.mel_filter_bank(constant(dali, SOUND[:2570].reshape(257, 10))),
    "mel volume": lambda dali: dali.fn.mel_filter_bank(constant(dali, SOUND[:2570].reshape(2, 257, 5))),
    "mel channels": lambda dali: dali.fn.mel_filter_bank(constant(dali, SOUND[:2570].reshape(2, 257, 5), "Cft")),
    "mel htk of constants": lambda dali: dali.fn.mel_filter_bank(
        constant(dali, SOUND[:2570].reshape(257, 10)), sample_rate=16000.0, mel_formula="htk", nfilter=80
    ),
    "mel of one frame": lambda dali: dali.fn.mel_filter_bank(
        constant(dali, SOUND[:257].reshape(257, 1)), sample_rate=22050.0, freq_low=33.3, freq_high=7777.0
    ),
    "mel plain of constants": lambda dali: dali.fn.mel_filter_bank(
        constant(dali, SOUND[:2580].reshape(20, 129), "tf"), sample_rate=22050.0, normalize=False, nfilter=40
    ),
    "mel time first of constants": lambda dali: dali.fn.mel_filter_bank(
        constant(dali, SOUND[:1056].reshape(32, 33), "tf"), sample_rate=22050.0, nfilter=80, freq_low=700.0
    ),
    "mel wrong layout": lambda dali: dali.fn.mel_filter_bank(constant(dali, SOUND[:2570].reshape(257, 10), "xy")),
    "mel int": lambda dali: dali.fn.mel_filter_bank(dali.fn.cast(spectra(dali), dtype=dali.types.INT16)),
    "mel reversed": lambda dali: mel(dali, freq_low=1000.0, freq_high=500.0),
    "mel too high": lambda dali: mel(dali, freq_high=50000.0),
    "mel formula": lambda dali: mel(dali, mel_formula="x"),
    "mel none": lambda dali: mel(dali, nfilter=0),
    "decibels": lambda dali: dali.fn.to_decibels(mel(dali)),
    "decibels cutoff": lambda dali: dali.fn.to_decibels(mel(dali), multiplier=20.0, reference=2.0, cutoff_db=-30.0),
    "decibels of zeros": lambda dali: dali.fn.to_decibels(constant(dali, np.zeros(5, np.float32))),
    "decibels of negatives": lambda dali: dali.fn.to_decibels(constant(dali, np.float32([-1, 0, 2, 4]))),
    "decibels of NaN": lambda dali: dali.fn.to_decibels(constant(dali, np.float32([np.nan, 1, np.inf, -np.inf, 2]))),
    "decibels beside NaN": lambda dali: dali.fn.to_decibels(constant(dali, np.float32([np.nan, 1, -3, 2]))),
    "decibels of nothing positive": lambda dali: dali.fn.to_decibels(constant(dali, np.float32([-1e-3, -0.5]))),
    "decibels reference 0": lambda dali: dali.fn.to_decibels(sound(dali), reference=0.0),
    "decibels reference negative": lambda dali: dali.fn.to_decibels(
        constant(dali, np.float32([-1, 0, 2])), reference=-1.0
    ),
    "decibels without a cutoff": lambda dali: dali.fn.to_decibels(
        constant(dali, np.float32([0, 1, 1e-30])), cutoff_db=-1000.0
    ),
    "decibels times nothing": lambda dali: dali.fn.to_decibels(constant(dali, np.float32([0, 1, 0.5])), multiplier=0.0),
    "decibels int": lambda dali: dali.fn.to_decibels(constant(dali, INTEGERS["INT32"])),
    "decibels scalar": lambda dali: dali.fn.to_decibels(constant(dali, np.float32(3))),
    "mfcc": lambda dali: dali.fn.mfcc(dali.fn.to_decibels(mel(dali))),
    "mfcc all": lambda dali: dali.fn.mfcc(mel(dali), n_mfcc=500),
    "mfcc lifter": lambda dali: dali.fn.mfcc(mel(dali), lifter=22.0, n_mfcc=13),
    "mfcc axis": lambda dali: dali.fn.mfcc(mel(dali), axis=1, n_mfcc=5),
    "mfcc axis out": lambda dali: dali.fn.mfcc(mel(dali), axis=2),
    "mfcc axis negative": lambda dali: dali.fn.mfcc(mel(dali), axis=-1),
    "mfcc none": lambda dali: dali.fn.mfcc(mel(dali), n_mfcc=0),
    "mfcc type 5": lambda dali: dali.fn.mfcc(mel(dali), dct_type=5),
    "mfcc type 1": lambda dali: dali.fn.mfcc(mel(dali), dct_type=1),
    "mfcc type 1 normalized": lambda dali: dali.fn.mfcc(mel(dali), dct_type=1, normalize=True),
    "mfcc type 2 normalized": lambda dali: dali.fn.mfcc(mel(dali), dct_type=2, normalize=True),
    "mfcc type 3": lambda dali: dali.fn.mfcc(mel(dali), dct_type=3),
    "mfcc type 3 normalized": lambda dali: dali.fn.mfcc(mel(dali), dct_type=3, normalize=True),
    "mfcc type 4": lambda dali: dali.fn.mfcc(mel(dali), dct_type=4),
    "mfcc type 4 normalized": lambda dali: dali.fn.mfcc(mel(dali), dct_type=4, normalize=True),
    "mfcc lifter of constants": lambda dali: dali.fn.mfcc(
        constant(dali, SOUND[:1600].reshape(40, 40)), lifter=22.0, n_mfcc=13
    ),
    "mfcc normalized of constants": lambda dali: dali.fn.mfcc(
        constant(dali, SOUND[:1600].reshape(40, 40)), axis=1, normalize=True, dct_type=3
    ),
    "mfcc row": lambda dali: dali.fn.mfcc(sound(dali)),
    "mfcc volume": lambda dali: dali.fn.mfcc(constant(dali, SOUND[:2400].reshape(4, 30, 20)), axis=1, n_mfcc=7),
    "preemphasis": lambda dali: dali.fn.preemphasis_filter(sound(dali)),
    "preemphasis zero": lambda dali: dali.fn.preemphasis_filter(sound(dali), border="zero", preemph_coeff=0.5),
    "preemphasis reflect": lambda dali: dali.fn.preemphasis_filter(sound(dali), border="reflect"),
    "preemphasis border": lambda dali: dali.fn.preemphasis_filter(sound(dali), border="x"),
    "preemphasis two": lambda dali: dali.fn.preemphasis_filter(constant(dali, SOUND.reshape(-1, 2), "tc")),
    "preemphasis half": lambda dali: dali.fn.preemphasis_filter(sound(dali), dtype=dali.types.FLOAT16),
    "preemphasis bool": lambda dali: dali.fn.preemphasis_filter(constant(dali, SOUND > 0)),
    "preemphasis int16": lambda dali: dali.fn.preemphasis_filter(
        constant(dali, INTEGERS["INT16"]), dtype=dali.types.INT16
    ),
    "preemphasis double": lambda dali: dali.fn.preemphasis_filter(
        dali.fn.cast(sound(dali), dtype=dali.types.FLOAT64), dtype=dali.types.FLOAT64
    ),
    "preemphasis computed": lambda dali: dali.fn.preemphasis_filter(
        sound(dali), preemph_coeff=dali.fn.random.uniform(range=[0.5, 0.9], seed=1)
    ),
    "nonsilent": lambda dali: dali.fn.nonsilent_region(constant(dali, QUIET_ENDS)),
    "nonsilent all": lambda dali: dali.fn.nonsilent_region(sound(dali)),
    "nonsilent short window": lambda dali: dali.fn.nonsilent_region(
        constant(dali, QUIET_ENDS), window_length=32, cutoff_db=-10.0
    ),
    "nonsilent reference": lambda dali: dali.fn.nonsilent_region(
        constant(dali, QUIET_ENDS), reference_power=1.0, cutoff_db=-20.0
    ),
    "nonsilent no reference": lambda dali: dali.fn.nonsilent_region(constant(dali, QUIET_ENDS), reference_power=0.0),
    "nonsilent none": lambda dali: dali.fn.nonsilent_region(
        constant(dali, QUIET_ENDS), reference_power=100.0, cutoff_db=0.0
    ),
    "nonsilent never reset": lambda dali: dali.fn.nonsilent_region(
        constant(dali, QUIET_ENDS), window_length=100, reset_interval=-1
    ),
    "nonsilent silence": lambda dali: dali.fn.nonsilent_region(constant(dali, np.zeros(100, np.float32))),
    "nonsilent before NaN": lambda dali: dali.fn.nonsilent_region(constant(dali, np.float32([1, 2, np.nan, 0]))),
    "nonsilent window longer": lambda dali: dali.fn.nonsilent_region(constant(dali, QUIET_ENDS[2900:3100])),
    "nonsilent reset": lambda dali: dali.fn.nonsilent_region(sound(dali), window_length=1000),
    "nonsilent table": lambda dali: dali.fn.nonsilent_region(constant(dali, SOUND.reshape(-1, 2))),
    "nonsilent double": lambda dali: dali.fn.nonsilent_region(dali.fn.cast(sound(dali), dtype=dali.types.FLOAT64)),
    "power spectrum": lambda dali: dali.fn.power_spectrum(sound(dali)),
    "power spectrum magnitude": lambda dali: dali.fn.power_spectrum(sound(dali), power=1),
    "power spectrum axis": lambda dali: dali.fn.power_spectrum(constant(dali, SOUND.reshape(26, 100)), axis=0),
    "power spectrum longer": lambda dali: dali.fn.power_spectrum(constant(dali, SOUND.reshape(26, 100)), nfft=128),
    "power spectrum odd": lambda dali: dali.fn.power_spectrum(constant(dali, SOUND[:77])),
    "power spectrum of none": lambda dali: dali.fn.power_spectrum(sound(dali), nfft=-1),
    "power spectrum int": lambda dali: dali.fn.power_spectrum(constant(dali, INTEGERS["INT16"])),
    "resample rates": lambda dali: dali.fn.audio_resample(sound(dali), in_rate=16000.0, out_rate=22050.0),
    "resample length": lambda dali: dali.fn.audio_resample(sound(dali), out_length=1001),
    "resample channels": lambda dali: dali.fn.audio_resample(constant(dali, SOUND.reshape(-1, 2), "tc"), scale=0.7),
    "resample computed": lambda dali: dali.fn.audio_resample(
        sound(dali), scale=dali.fn.random.uniform(range=[0.5, 2], seed=1)
    ),
    "resample to nothing": lambda dali: dali.fn.audio_resample(sound(dali), scale=0.0),
    "resample both": lambda dali: dali.fn.audio_resample(sound(dali), scale=0.5, out_length=5),
    "resample unsaid": lambda dali: dali.fn.audio_resample(sound(dali)),
    "resample one rate": lambda dali: dali.fn.audio_resample(sound(dali), in_rate=100.0),
    "resample negative": lambda dali: dali.fn.audio_resample(sound(dali), scale=-1.0),
    "resample quality": lambda dali: dali.fn.audio_resample(sound(dali), scale=1.5, quality=101.0),
    "resample volume": lambda dali: dali.fn.audio_resample(constant(dali, SOUND.reshape(2, -1, 2)), scale=1.5),
    "resample double": lambda dali: dali.fn.audio_resample(sound(dali), scale=0.5, dtype=dali.types.FLOAT64),
    "resample old": lambda dali: dali.fn.experimental.audio_resample(sound(dali), scale=0.5),
}


def encoded(samples: np.ndarray, coding: str = "WAV PCM_16") -> np.ndarray:
    file = io.BytesIO()
    kind, subtype = coding.split()
    soundfile.write(file, samples, 16000, format=kind, subtype=subtype)
    return np.frombuffer(file.getvalue(), np.uint8)


STEREO = SOUND.reshape(-1, 2)
DECODERS: dict[str, Callable[[Any], Any]] = {
    "mono": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(SOUND))),
    "stereo": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO))),
    "downmix": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), downmix=True),
    "downmix mono": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(SOUND)), downmix=True),
    "resampled": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), sample_rate=22050.0),
    "resampled downmix": lambda dali: dali.fn.decoders.audio(
        constant(dali, encoded(STEREO)), sample_rate=8000.0, downmix=True, quality=0.0
    ),
    "same rate": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), sample_rate=16000.0),
    "rate 0": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), sample_rate=0.0),
    "nothing recorded": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO[:0]))),
    "nothing resampled": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO[:0])), sample_rate=8000.0),
    "nothing downmixed": lambda dali: dali.fn.decoders.audio(
        constant(dali, encoded(STEREO[:0])), sample_rate=8000.0, downmix=True
    ),
    "no recording": lambda dali: dali.fn.decoders.audio(constant(dali, np.arange(100, dtype=np.uint8))),
    "negative rate": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), sample_rate=-1.0),
    "quality": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), sample_rate=8000.0, quality=200.0),
    "quality unused": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), quality=200.0),
    "uint8": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)), dtype=dali.types.UINT8),
    "garbage": lambda dali: dali.fn.decoders.audio(constant(dali, np.arange(100, dtype=np.uint8))),
    "truncated": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)[:3000])),
    "empty": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO[:0]))),
    "bytes in a table": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO)[:, None])),
    "signed bytes": lambda dali: dali.fn.decoders.audio(constant(dali, encoded(STEREO).view(np.int8))),
    "old name": lambda dali: dali.fn.audio_decoder(constant(dali, encoded(STEREO))),
}


# These results equal DALI's exactly, as sums are added in the same order. Spectra do not, as their order differs.
EXACT = ("mel row", "mel without layout", "mel volume", "mel channels", "mfcc volume")
for name, define in DEFINITIONS.items():
    exact = name in EXACT or name.endswith(("of constants", "of one frame"))
    FAMILY.add(
        name,
        unpacked(define),
        options=ONE,
        gpu=not name.startswith("power spectrum"),
        exact=exact,
        exact_on_gpu=False,
    )
for name, define in DECODERS.items():
    FAMILY.add(f"decoding {name}", unpacked(define), options=ONE, gpu=False)


def _resampled(scale: float, quality: float) -> Callable[[Any], Any]:
    return lambda dali: dali.fn.audio_resample(constant(dali, SOUND[:600]), scale=scale, quality=quality)


def _in_range(dali: Any, node: Any, dtype: str) -> Any:
    """Return results, those of 32 bits divided by 65536, as they are computed in float32, which has fewer exact bits."""
    return node // 65536 if dtype.endswith("32") else node


def _resampled_between(source: str, target: str) -> Callable[[Any], Any]:
    def define(dali: Any) -> Any:
        data = constant(dali, INTEGERS.get(source, SOUND)[:600])
        return _in_range(dali, dali.fn.audio_resample(data, scale=0.75, dtype=getattr(dali.types, target)), target)

    return define


def _silence(source: str) -> Callable[[Any], Any]:
    return lambda dali: dali.fn.nonsilent_region(constant(dali, INTEGERS[source]), cutoff_db=-3.0)


def _decoded(coding: str, dtype: str, settings: dict[str, Any]) -> Callable[[Any], Any]:
    data = encoded(STEREO[:500], coding)

    def define(dali: Any) -> Any:
        audio, _ = dali.fn.decoders.audio(constant(dali, data), dtype=getattr(dali.types, dtype), **settings)
        return _in_range(dali, audio, dtype)

    return define


for quality in (0.0, 20.0, 50.0, 100.0):
    for scale in (1.5, 0.5, 0.3333, 1.0, 3.0):
        FAMILY.add(f"resampling by {scale}, {quality=}", _resampled(scale, quality), options=ONE)
for source in (*INTEGERS, "FLOAT"):
    for target in (*INTEGERS, "FLOAT"):
        FAMILY.add(f"resampling {source} to {target}", _resampled_between(source, target), options=ONE)
for source in INTEGERS:
    FAMILY.add(f"silence in {source}", unpacked(_silence(source)), options=ONE)
for dtype in ("INT16", "INT32", "FLOAT"):
    for settings in ({}, {"downmix": True}, {"sample_rate": 22050.0}):
        FAMILY.add(f"decoding to {dtype}, {settings}", _decoded("WAV PCM_16", dtype, settings), options=ONE, gpu=False)
for coding in ("WAV PCM_U8", "WAV PCM_24", "WAV FLOAT", "WAV ULAW", "FLAC PCM_16", "AIFF PCM_16"):
    for dtype in ("INT16", "FLOAT"):
        FAMILY.add(f"decoding {coding} to {dtype}", _decoded(coding, dtype, {}), options=ONE, gpu=False)
# The last bits of decoded Vorbis depend on the version of the library.
FAMILY.add("decoding OGG VORBIS", _decoded("OGG VORBIS", "FLOAT", {}), tolerance=1e-4, options=ONE, gpu=False)
