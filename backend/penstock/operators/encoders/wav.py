"""`encoders.wav`: sounds as WAV files."""

from __future__ import annotations

from penstock.operators.encoders._sounds import SAMPLE_RATE, SOUNDS, SoundEncoder
from penstock.schema import Argument, Equivalent, Schema, register_operator
from penstock.schema.libraries import SOUNDFILE

_SUBTYPES = {"int16": "PCM_16", "int24": "PCM_24", "float": "FLOAT"}


@register_operator
class WavEncoder(SoundEncoder):
    """Encodes sounds as WAV files.

    Returns UINT8 of shape (bytes,), as `decoders.audio` takes it. libsndfile encodes, on the CPU; on a GPU, sounds are copied to the host
    and files back. A sound with values beyond -1 and 1 fails, unless the encoding is `float`.

    >>> files = fn.encoders.wav(speech, sample_rate=16000)
    """

    schema = Schema(
        name="encoders__Wav",
        inputs=(SOUNDS,),
        arguments=(
            Argument("encoding", "string", "int16", "`int16`, `int24` or `float`.", choices=tuple(_SUBTYPES)),
            SAMPLE_RATE,
        ),
        needs=(SOUNDFILE,),
        equivalents=(Equivalent("soundfile.write"),),
    )

    container = "WAV"
    subtypes = _SUBTYPES
