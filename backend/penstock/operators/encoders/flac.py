"""`encoders.flac`: sounds as FLAC files."""

from __future__ import annotations

from penstock.operators.encoders._sounds import SAMPLE_RATE, SOUNDS, SoundEncoder
from penstock.schema import Argument, Equivalent, Schema, register_operator
from penstock.schema.libraries import SOUNDFILE

_SUBTYPES = {"int16": "PCM_16", "int24": "PCM_24"}


@register_operator
class FlacEncoder(SoundEncoder):
    """Encodes sounds as FLAC files; lossless except for rounding to integers.

    Returns UINT8 of shape (bytes,), as `decoders.audio` takes it. libsndfile encodes, on the CPU; on a GPU, sounds are copied to the host
    and files back. A sound with values beyond -1 and 1 fails, and an empty one.

    >>> files = fn.encoders.flac(speech, sample_rate=16000)
    """

    schema = Schema(
        name="encoders__Flac",
        inputs=(SOUNDS,),
        arguments=(
            Argument("encoding", "string", "int16", "`int16` or `int24`.", choices=tuple(_SUBTYPES)),
            SAMPLE_RATE,
        ),
        needs=(SOUNDFILE,),
        equivalents=(Equivalent("soundfile.write"),),
    )

    container = "FLAC"
    subtypes = _SUBTYPES
    # A decoder does not recognize a file without samples.
    min_length = 1
