"""`encoders.flac`: sounds as FLAC files."""

from __future__ import annotations

import io

import numpy as np

from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.encoders._files import FileEncoder
from penstock.operators.encoders._sounds import (
    SAMPLE_RATE,
    SOUNDS,
    beyond_range,
    check_encoding,
    check_sound,
    describe_files,
)
from penstock.operators.postprocessing._rows import Rows, Tables
from penstock.schema import Argument, Equivalent, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.libraries import SOUNDFILE

# Bits per value in the file, bits of the numpy type that holds it, and libsndfile's name of the encoding.
_ENCODINGS = {"int16": (16, 16, "PCM_16"), "int24": (24, 32, "PCM_24")}
_integers = ThreadBuffers()


@register_operator
class FlacEncoder(FileEncoder):
    """Encodes sounds as FLAC files; lossless except for rounding to integers.

    Returns the bytes of each file: UINT8 of shape (bytes,), an input for `decoders.audio`. libsndfile encodes on the CPU; with GPU inputs,
    sounds are copied to the host and files back. A sound fails if it is empty or has values outside of -1 to 1.

    >>> files = fn.encoders.flac(speech, sample_rate=16000)
    """

    schema = Schema(
        name="encoders__Flac",
        inputs=(SOUNDS,),
        arguments=(
            Argument("encoding", "string", "int16", "`int16` or `int24`.", choices=tuple(_ENCODINGS)),
            SAMPLE_RATE,
        ),
        needs=(SOUNDFILE,),
        equivalents=(Equivalent("soundfile.write"),),
    )

    def setup(self) -> None:
        check_encoding(self.args["encoding"], _ENCODINGS)

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        return describe_files(workspace)

    def encode(self, sample: Sample) -> np.ndarray:
        """Encode a sound; return the file's bytes, uint8 of shape (bytes,).

        Raises:
            ValueError: the shape or sample rate is invalid, or values are out of range.
        """
        import soundfile

        sound, rate = sample.inputs[0], sample["sample_rate"]
        bits, stored_bits, subtype = _ENCODINGS[self.args["encoding"]]
        check_sound(sound.shape, rate)
        if not len(sound):
            # Decoders do not recognize a FLAC file without samples.
            raise ValueError("A FLAC file must have at least 1 sample")
        if sound.dtype == np.float32:
            sound = _quantized(sound, bits, stored_bits)
        file = io.BytesIO()
        soundfile.write(file, sound, rate, subtype, format="FLAC")
        return np.frombuffer(file.getbuffer(), np.uint8)


def _quantized(sound: np.ndarray, bits: int, stored_bits: int) -> np.ndarray:
    """Return a sound as integers, in memory that this thread's next sound overwrites. This takes a third of libsndfile's time.

    Args:
        sound: float32.
        bits: the number of bits of an integer.
        stored_bits: the number of bits of the numpy type that holds an integer, in its upper bits.

    Raises:
        ValueError: values are not from -1 to 1.
    """
    from penstock.operators.encoders._quantize_cpu import round_to_levels

    integers = _integers.array(sound.shape, np.dtype(f"i{stored_bits // 8}"))
    if not round_to_levels(np.ascontiguousarray(sound).reshape(-1), bits, stored_bits - bits, integers.reshape(-1)):
        raise beyond_range(sound)
    return integers
