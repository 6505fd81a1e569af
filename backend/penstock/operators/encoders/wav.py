"""`encoders.wav`: sounds as WAV files."""

from __future__ import annotations

import math
import struct

import numpy as np

from penstock.operators.encoders._sounds import (
    SAMPLE_RATE,
    SOUNDS,
    beyond_range,
    check_encoding,
    check_sound,
    describe_files,
)
from penstock.schema import (
    Argument,
    Equivalent,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)

# The number of bytes of a value.
_ENCODINGS = {"int16": 2, "int24": 3, "float": 4}
_PCM, _IEEE_FLOAT = 1, 3
_MAX_BYTES = (1 << 32) - 1


@register_operator
class WavEncoder(Operator):
    """Encodes sounds as WAV files.

    Returns the bytes of each file: UINT8 of shape (bytes,), an input for `decoders.audio`. The files equal libsndfile's, except that
    files with the encoding `float` have no PEAK chunk, which would contain the time of writing. With GPU inputs, sounds are copied to the
    host and files back. A sound with values outside of -1 to 1 fails, unless the encoding is `float`.

    >>> files = fn.encoders.wav(speech, sample_rate=16000)
    """

    schema = Schema(
        name="encoders__Wav",
        inputs=(SOUNDS,),
        arguments=(
            Argument("encoding", "string", "int16", "`int16`, `int24` or `float`.", choices=tuple(_ENCODINGS)),
            SAMPLE_RATE,
        ),
        equivalents=(Equivalent("soundfile.write"),),
    )

    def setup(self) -> None:
        check_encoding(self.args["encoding"], _ENCODINGS)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return describe_files(workspace)

    def infer(self, sample: Sample[None, bytes]) -> tuple[int, ...]:
        shape, rate = sample.shapes[0], sample["sample_rate"]
        check_sound(shape, rate)
        data_bytes = math.prod(shape) * _ENCODINGS[self.args["encoding"]]
        sample.plan = _header(shape[0], math.prod(shape[1:]), rate, self.args["encoding"])
        size = len(sample.plan) + data_bytes + data_bytes % 2
        if size > _MAX_BYTES:
            raise ValueError(
                f"A WAV file has at most {_MAX_BYTES} bytes, and a sound of shape {list(shape)} takes {size}"
            )
        return (size,)

    def compute(self, sample: Sample[None, bytes]) -> None:
        sound, file, header = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0], sample.plan
        file[: len(header)] = np.frombuffer(header, np.uint8)
        end = len(header) + sound.size * _ENCODINGS[self.args["encoding"]]
        file[end:] = 0
        _fill(sound, file[len(header) : end], self.args["encoding"])


def _header(count: int, channels: int, rate: int, encoding: str) -> bytes:
    """Return all bytes of a WAV file that precede the values; ``count``: the number of samples per channel."""
    value_bytes = _ENCODINGS[encoding]
    sample_bytes = channels * value_bytes
    chunk = struct.pack(
        "<4sIHHIIHH",
        *(b"fmt ", 16, _IEEE_FLOAT if encoding == "float" else _PCM, channels),
        *(rate, rate * sample_bytes, sample_bytes, 8 * value_bytes),
    )
    if encoding == "float":
        chunk += struct.pack("<4sII", b"fact", 4, count & _MAX_BYTES)
    data_bytes = count * sample_bytes
    size = len(b"WAVE") + len(chunk) + 8 + data_bytes + data_bytes % 2
    return (
        struct.pack("<4sI4s", b"RIFF", size & _MAX_BYTES, b"WAVE")
        + chunk
        + struct.pack("<4sI", b"data", data_bytes & _MAX_BYTES)
    )


def _fill(sound: np.ndarray, data: np.ndarray, encoding: str) -> None:
    """Fill ``data`` with the encoded values of a sound.

    Args:
        sound: float32 or int16 of shape (n,).
        data: uint8; output.
        encoding: one of ``_ENCODINGS``.

    Raises:
        ValueError: the encoding is ``int16`` or ``int24``, and values are not from -1 to 1.
    """
    from penstock.operators.encoders._quantize_cpu import fill_16_bits, fill_24_bits

    is_real = sound.dtype == np.float32
    if encoding == "float":
        np.multiply(sound, np.float32(1 if is_real else 2**-15), out=data.view(np.float32))
    elif is_real:
        fits = fill_24_bits(sound, data) if encoding == "int24" else fill_16_bits(sound, data.view(np.int16))
        if not fits:
            raise beyond_range(sound)
    elif encoding == "int16":
        data.view(np.int16)[:] = sound
    else:
        values = data.reshape(-1, 3)
        values[:, 0], values[:, 1:] = 0, sound.view(np.uint8).reshape(-1, 2)
